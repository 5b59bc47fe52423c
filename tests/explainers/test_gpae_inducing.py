from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import make_moons
from tests.conftest import SMALL, loans

from gpae import GPAEClassifier, TabularExplainer
from gpae.explainers.gpae_inducing import GPAEInducing
from gpae.models.inducing_autoencoder import InducingGPAEClassifier
from gpae.numerics.density import fit_tilt
from gpae.numerics.inducing import InducingAutoEncoder, MeanLayer
from gpae.table.codec import Codec
from gpae.table.schema import Schema

TINY = {"n_inducing": 24, "hidden_dim": 4, "max_steps": 10}


def encoded(X: np.ndarray, y: np.ndarray) -> tuple[Codec, np.ndarray, np.ndarray]:
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]).assign(y=y)
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1))
    return codec, codec.encode(frame).rows, codec.labels(frame)


def linear_classifier(w: torch.Tensor, bias: float, X: np.ndarray) -> InducingGPAEClassifier:
    """A model whose kernels carry no weight: the latents are two linear maps, the first of them the logit."""
    d, n_columns = 2, len(w)
    slope = torch.stack([w, torch.randn(n_columns, generator=torch.Generator().manual_seed(0), dtype=torch.float64)])
    zeros = {"dtype": torch.float64}
    layer = MeanLayer(
        torch.zeros(d, 3, n_columns, **zeros), torch.ones(d, n_columns, **zeros), torch.zeros(d, 3, **zeros), slope,
        torch.zeros(d, **zeros),
    )  # fmt: skip
    decoder = MeanLayer(
        torch.zeros(n_columns, 3, d, **zeros), torch.ones(n_columns, d, **zeros), torch.zeros(n_columns, 3, **zeros),
        torch.zeros(n_columns, d, **zeros), torch.zeros(n_columns, **zeros),
    )  # fmt: skip
    theta, theta0 = torch.tensor([1.0, 0.0], **zeros), torch.tensor(bias, **zeros)
    model = InducingGPAEClassifier(d, layers_per_side=1)
    model.model_ = InducingAutoEncoder((layer,), (decoder,), theta, theta0)
    latents = model.model_.encode(torch.tensor(X))
    model.density_ = fit_tilt(latents, torch.Generator().manual_seed(0), n_features=10, n_draws=500, n_fresh=500)
    model.classes_, model.n_features_in_, model.logit_spread_ = np.array([0, 1]), n_columns, 1.0
    return model


def test_on_a_linear_model_the_answer_is_the_projection_onto_the_boundary() -> None:
    rng = np.random.default_rng(0)
    w = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    raw = rng.random((300, 3))
    codec, X, y = encoded(raw, (raw @ w.numpy() > -0.25).astype(int))
    margin = 0.01
    method = GPAEInducing(classifier=linear_classifier(w, 0.25, X), beta=0.0, margin=margin)
    method.fit(X, y, layout=codec.layout)
    answer = method.explain(X)
    x, u = answer.factual[answer.found], answer.counterfactual[answer.found]
    gap = margin - (x @ w.numpy() + 0.25)
    projection = x + gap[:, None] * w.numpy() / float(w @ w)
    inside = ((projection > 0) & (projection < 1)).all(1)
    assert inside.sum() > 20
    np.testing.assert_allclose(u[inside], projection[inside], atol=1e-5)


@pytest.fixture(scope="module")
def moons() -> tuple[GPAEInducing, np.ndarray]:
    raw, labels = make_moons(400, noise=0.2, random_state=0)
    codec, X, y = encoded(raw, labels)
    classifier = GPAEClassifier(2, max_epochs=10, density_features=40, density_draws=1000, random_state=0)
    return GPAEInducing(classifier=classifier, **TINY).fit(X, y, layout=codec.layout), X


def boundary_points(method: GPAEInducing, n: int = 201) -> np.ndarray:
    """Where g reaches the margin along the lines of a grid."""
    axis = np.linspace(0, 1, n)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), 2)
    g = method.classifier_.decision_function(grid.reshape(-1, 2)).reshape(n, n) - method.margin_
    points = []
    for a, b, ga, gb in (
        (grid[:-1], grid[1:], g[:-1], g[1:]),
        (grid[:, :-1], grid[:, 1:], g[:, :-1], g[:, 1:]),
    ):
        crossed = ga * gb <= 0
        share = (ga / (ga - gb))[crossed][:, None]
        points.append(a[crossed] + share * (b - a)[crossed])
    return np.concatenate(points)


@pytest.mark.parametrize("beta", [0.0, 0.05])
def test_on_a_bent_model_hardly_a_point_of_the_boundary_is_better(
    moons: tuple[GPAEInducing, np.ndarray], beta: float
) -> None:
    """Against brute force over the whole boundary; the search is local, so a row in ten may miss the best basin."""
    fitted, X = moons
    method = GPAEInducing(classifier=fitted.classifier_, beta=beta)
    method.fit(X, fitted.classifier_.predict(X), layout=fitted.layout_)

    def cost(points: np.ndarray, x: np.ndarray) -> np.ndarray:
        density = method.classifier_.score_samples(points)
        return 0.5 * ((points - x) ** 2).sum(-1) - beta * density

    answer = method.explain(X)
    x, u = answer.factual[answer.found][:60], answer.counterfactual[answer.found][:60]
    points = boundary_points(method)
    best = np.array([cost(points, one).min() for one in x])
    assert (cost(u, x) >= best - 2e-3).all()
    assert np.mean(cost(u, x) <= best + 2e-3) >= 0.9


def test_the_whole_predictive_distribution_gives_the_same_answers(moons: tuple[GPAEInducing, np.ndarray]) -> None:
    method, X = moons
    rows = X[method.classifier_.decision_function(X) < 0][:5]
    fast = method.explain(rows).counterfactual
    method.cached = False
    try:
        slow = method.explain(rows).counterfactual
    finally:
        method.cached = True
    assert not np.isnan(fast).any()
    np.testing.assert_allclose(slow, fast, atol=1e-4)


def test_a_fitted_deep_gaussian_process_is_explained_as_it_is(moons: tuple[GPAEInducing, np.ndarray]) -> None:
    method, X = moons
    other = GPAEInducing(classifier=method.classifier_, beta=0.5)
    other.fit(X, method.classifier_.predict(X), layout=method.layout_)
    assert other.classifier_ is method.classifier_
    assert other.beta_ == 0.5
    assert other.density_weight_ is None


def test_the_table_explainer_finds_it_by_the_papers_name_and_saves_it(tmp_path: Path) -> None:
    explainer = TabularExplainer(label="granted", favourable="yes", method="GPAE-ind", beta=0.1, **TINY, **SMALL).fit(
        loans(300)
    )
    assert isinstance(explainer.method_, GPAEInducing)
    assert explainer.method_.classifier_.latent_dim == SMALL["latent_dim"]
    queries = loans(40, seed=3)
    explainer.save(tmp_path / "model.gpae")
    again = TabularExplainer.load(tmp_path / "model.gpae")
    answer = explainer.explain(queries).table
    pd.testing.assert_frame_equal(again.explain(queries).table, answer)
    assert answer.found.any()
