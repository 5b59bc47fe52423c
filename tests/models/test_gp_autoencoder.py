import numpy as np
import pytest
import torch
from sklearn.datasets import make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpae import GPAEClassifier
from gpae.models.gp_autoencoder import default_margin


@parametrize_with_checks([GPAEClassifier(n_features=200, max_epochs=10, density_features=30, density_draws=500)])
def test_scikit_learns_own_checks(estimator: GPAEClassifier, check: object) -> None:
    check(estimator)  # type: ignore[operator]


def moons(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_moons(n, noise=0.2, random_state=seed)
    return (X - X.min(0)) / (X.max(0) - X.min(0)), y


@pytest.fixture(scope="module")
def model() -> GPAEClassifier:
    return GPAEClassifier(latent_dim=2, n_features=300, max_epochs=30, random_state=0).fit(*moons())


def test_it_bends_where_a_line_cannot(model: GPAEClassifier) -> None:
    assert model.score(*moons(seed=1)) > 0.93


def test_it_reconstructs_what_it_encodes(model: GPAEClassifier) -> None:
    X, _ = moons(seed=1)
    error = ((model.inverse_transform(model.transform(X)) - X) ** 2).sum(1).mean()
    assert error < 0.2 * X.var(0).sum()


def test_the_probability_is_the_logistic_of_the_linear_map_of_the_latent(model: GPAEClassifier) -> None:
    X, _ = moons(50)
    g = model.transform(X) @ model.model_.theta.numpy() + float(model.model_.theta0)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-g)), rtol=1e-12)


def test_rows_are_denser_than_noise(model: GPAEClassifier) -> None:
    X, _ = moons(300, seed=1)
    far = model.transform(X).mean(0) + 6 * model.transform(X).std(0)
    from gpae.numerics.density import log_density

    assert model.score_samples(X).mean() > float(log_density(model.density_, torch.tensor(far).unsqueeze(0))) + 3


@pytest.mark.parametrize("options", [{"fourier": "sobol"}, {"density_on": "target"}, {"class_weight": "balanced"}])
def test_its_options_fit_too(options: dict[str, str]) -> None:
    X, y = moons(300)
    model = GPAEClassifier(latent_dim=2, n_features=100, max_epochs=5, random_state=0, **options).fit(X, y)
    assert model.score(X, y) > 0.85


def test_class_weights_raise_the_recall_of_the_rare_class() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((1500, 2))
    y = (X[:, 0] + rng.normal(0, 0.3, 1500) > 1.1).astype(int)
    recalls = []
    for weight in (None, "balanced"):
        model = GPAEClassifier(2, 100, max_epochs=10, class_weight=weight, random_state=0).fit(X, y)
        recalls.append(model.predict(X)[y == 1].mean())
    assert recalls[1] > recalls[0] + 0.1


def test_the_same_seed_gives_the_same_model_and_no_global_state_moves() -> None:
    X, y = moons(200)
    state = torch.get_rng_state()
    a, b = (GPAEClassifier(2, 80, max_epochs=3, random_state=4).fit(X, y).decision_function(X) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    assert torch.equal(torch.get_rng_state(), state)


def test_training_does_not_end_worse_than_it_started(model: GPAEClassifier) -> None:
    trace = model.trace_
    total = np.array(trace.reconstruction) + model.classification_weight_ * np.array(trace.cross_entropy)
    assert total[trace.best] <= total.min() * 1.001


def test_latents_have_names_and_foreign_validation_labels_are_refused(model: GPAEClassifier) -> None:
    assert list(model.get_feature_names_out()) == ["gpaeclassifier0", "gpaeclassifier1"]
    X, y = moons(100)
    with pytest.raises(ValueError, match="no class of the training labels"):
        GPAEClassifier(2, 50, max_epochs=1).fit(X, y, validation=(X, y + 6))


def test_three_classes_are_refused_with_a_reason() -> None:
    X, _ = moons(90)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        GPAEClassifier().fit(X, np.arange(90) % 3)


def test_the_margin_is_two_per_cent_of_the_logits_spread(model: GPAEClassifier) -> None:
    X, _ = moons()
    assert default_margin(model) == pytest.approx(0.02 * model.decision_function(X).std(ddof=1), rel=1e-9)


def test_rows_in_any_memory_layout_are_read(model: GPAEClassifier) -> None:
    X, y = moons(60)
    np.testing.assert_array_equal(model.decision_function(X[::-1]), model.decision_function(X)[::-1])
    np.testing.assert_array_equal(model.transform(np.asfortranarray(X)), model.transform(X))
    latents = model.transform(X)
    np.testing.assert_array_equal(model.inverse_transform(latents[::-1]), model.inverse_transform(latents)[::-1])
    GPAEClassifier(2, 40, max_epochs=1, random_state=0).fit(X[::-1], y[::-1])
    with pytest.raises(ValueError, match="latents have 2 columns here, these have 3"):
        model.inverse_transform(np.zeros((4, 3)))
