"""What training keeps, and which loss weight wins."""

import pytest
import torch

from gpae.errors import InputError
from gpae.models import training
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.parameters import check_parameters
from gpae.models.starting_point import start_from_convex_parts
from gpae.models.training import LossWeights, PlainTraining, Rows, Schedule, choose_weights, train
from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.fourier import draw_map

SCHEDULE = Schedule(learning_rate=1e-2, batch_size=64, max_epochs=25, patience=10)


def rows(n: int, seed: int) -> Rows:
    x = torch.rand(n, 6, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Rows(x, (x[:, 0] + 0.5 * x[:, 1] > 0.75).double(), torch.ones(n, dtype=torch.float64))


def start(train_rows: Rows) -> AutoEncoder:
    generator = torch.Generator().manual_seed(0)
    encoder, decoder = draw_map(60, 6, 1.0, generator, "random"), draw_map(60, 2, 1.0, generator, "random")
    return start_from_convex_parts(train_rows, encoder, decoder, 2, generator)


def test_the_weight_that_classifies_better_wins_the_race() -> None:
    """With d = 2 latents for six columns, reconstruction alone takes the latent that the classifier needs."""
    learn, watch = rows(400, 0), rows(400, 1)
    candidates = [LossWeights(1.0, 1e-3), LossWeights(1.0, 10.0)]
    weights, _ = choose_weights(
        start(learn), PlainTraining(learn, watch, SCHEDULE), candidates, torch.Generator().manual_seed(1)
    )
    assert weights.classification == 10.0


def test_among_equally_good_classifiers_the_better_reconstruction_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_CLOSE", 100.0)
    learn, watch = rows(400, 0), rows(400, 1)
    candidates = [LossWeights(1e-3, 10.0), LossWeights(1.0, 1e-3)]
    weights, _ = choose_weights(
        start(learn), PlainTraining(learn, watch, SCHEDULE), candidates, torch.Generator().manual_seed(1)
    )
    assert weights == candidates[1]


def test_training_that_diverges_keeps_the_weights_it_started_from() -> None:
    learn, watch = rows(100, 0), rows(100, 1)
    wild = Schedule(learning_rate=1e5, batch_size=64, max_epochs=5, patience=2)
    model, trace = train(start(learn), learn, watch, LossWeights(1.0, 1.0), wild, torch.Generator().manual_seed(1))
    assert trace.best == 0
    assert torch.equal(model.encoder_weights, start(learn).encoder_weights)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"latent_dim": 0}, "latent_dim=0 must be a whole number of at least 1"),
        ({"n_features": 10.5}, "n_features=10.5 must be a whole number"),
        ({"learning_rate": None}, "learning_rate=None must be a number from 1e-6 to 1e6"),
        ({"reconstruction_weight": float("inf")}, "reconstruction_weight=inf must be a number from 1e-6 to 1e6"),
        ({"length_scale": "wide"}, "length_scale='wide' must be 'auto' or a number from 1e-6 to 1e6"),
        ({"optimiser": "sgd"}, "optimiser='sgd' is not known; use one of 'whitened', 'adam'"),
        ({"fourier": "halton"}, "fourier='halton' is not known; use one of 'random', 'sobol'"),
        ({"class_weight": "even"}, "class_weight='even' is not known"),
        ({"class_weight": {"yes": -1.0}}, "class_weight gives 'yes' the weight -1.0"),
        ({"length_scale": 1e-300}, "length_scale=1e-300 must be 'auto' or a number from 1e-6"),
        ({"device": "meta"}, "device='meta' is not supported; use 'auto', 'cpu' or 'cuda'"),
        ({"device": "abacus"}, "device='abacus' is not known to PyTorch"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name_and_value(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_parameters(GPAEClassifier(**options).get_params())  # type: ignore[arg-type]
