"""SAE: the mirror step, what it reaches, and the post-hoc variant."""

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from tests.conftest import SMALL

from gpae.errors import InputError
from gpae.explainer import Query
from gpae.explainers.sae import SAE
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.supervised_autoencoder import SupervisedAutoencoder
from gpae.table.codec import Codec
from gpae.table.schema import Schema

NORMAL, OFFSET = np.array([1.0, -0.8, 0.4]), 0.3
"""The true boundary: NORMAL'x = OFFSET."""


def linear(n: int = 600, seed: int = 0) -> pd.DataFrame:
    X = np.random.default_rng(seed).random((n, 3))
    return pd.DataFrame(X, columns=list("abc")).assign(y=(X @ NORMAL > OFFSET).astype(int))


@pytest.fixture(scope="module")
def codec() -> Codec:
    return Codec.fit(linear(), Schema.infer(linear(), label="y", favourable=1))


@pytest.fixture(scope="module")
def method(codec: Codec) -> SAE:
    made = SAE(classifier=GPAEClassifier(random_state=0), latent_dim=3, max_epochs=40)
    return made.fit(codec.encode(linear()).rows, codec.labels(linear()), layout=codec.layout)


@pytest.fixture(scope="module")
def posthoc(codec: Codec) -> SAE:
    made = SAE(classifier=GPAEClassifier(**SMALL, random_state=0), labels="model", latent_dim=3, max_epochs=40)
    return made.fit(codec.encode(linear()).rows, codec.labels(linear()), layout=codec.layout)


@pytest.fixture(scope="module")
def X(codec: Codec) -> NDArray[np.float64]:
    return codec.encode(linear(300, seed=1)).rows


def test_the_answers_are_beyond_the_known_boundary(method: SAE, codec: Codec, X: NDArray[np.float64]) -> None:
    answer = method.explain(X)
    asked = answer.status != "already_favourable"
    assert answer.found[asked].mean() > 0.9
    beyond = codec.layout.to_user(answer.counterfactual[answer.found]) @ NORMAL - OFFSET
    assert (beyond > -0.05).mean() > 0.95


def test_the_decoded_mirror_point_is_what_is_returned(method: SAE, X: NDArray[np.float64]) -> None:
    model, answer = method.autoencoder_, method.explain(X)
    x, u = answer.factual[answer.found], answer.counterfactual[answer.found]
    latent = model.transform(x)
    theta, bias = model.network_.coefficients.theta.numpy(), float(model.network_.coefficients.bias)
    mirrored = latent - 2 * ((latent @ theta + bias) / (theta @ theta))[:, None] * theta
    np.testing.assert_allclose(mirrored @ theta + bias, -(latent @ theta + bias), atol=1e-10)
    np.testing.assert_allclose(u, np.clip(model.inverse_transform(mirrored), 0, 1), atol=1e-6)


def test_a_row_that_is_re_encoded_to_the_old_side_is_not_found(method: SAE, X: NDArray[np.float64]) -> None:
    """Barely beyond the boundary the decoder's error decides: fewer answers than at the mirror point."""
    near = SAE(step=1.001)
    near.restore(method.state(), method.layout_)
    assert near.explain(X).found.sum() < method.explain(X).found.sum()


def test_the_native_method_explains_its_own_auto_encoder(method: SAE, posthoc: SAE) -> None:
    assert isinstance(method.classifier_, SupervisedAutoencoder)
    assert method.classifier_ is method.autoencoder_
    assert isinstance(posthoc.classifier_, GPAEClassifier)


def test_the_post_hoc_auto_encoder_learns_the_explained_classifiers_labels(
    posthoc: SAE, X: NDArray[np.float64]
) -> None:
    said = posthoc.classifier_.predict_proba(X)[:, 1] > 0.5
    assert (posthoc.autoencoder_.predict_proba(X)[:, 1] > 0.5)[said].mean() > 0.9
    answer = posthoc.explain(X)
    assert answer.found[answer.status != "already_favourable"].mean() > 0.8
    assert (posthoc.classifier_.predict_proba(answer.counterfactual[answer.found])[:, 1] > 0.5).all()


def test_where_the_auto_encoder_disagrees_the_person_is_not_led_away(posthoc: SAE, X: NDArray[np.float64]) -> None:
    """Mirroring a latent on the target's side would end on the refused one."""
    model = posthoc.autoencoder_
    x = X[model.decision_function(X) > 0]
    lower, upper = posthoc.layout_.box(x)
    query = Query(x, np.ones(len(x), dtype=np.int64), lower, upper)
    row, u = posthoc._search(query, 1, 0)
    np.testing.assert_array_equal(row, np.arange(len(x)))
    np.testing.assert_allclose(u, np.clip(model.inverse_transform(model.transform(x)), 0, 1), atol=1e-6)


def test_a_restored_post_hoc_method_answers_with_the_same_bits(posthoc: SAE, X: NDArray[np.float64]) -> None:
    copy = SAE()
    copy.restore(posthoc.state(), posthoc.layout_)
    assert isinstance(copy.classifier_, GPAEClassifier)
    np.testing.assert_array_equal(copy.explain(X).counterfactual, posthoc.explain(X).counterfactual)


def test_nothing_is_drawn_in_the_search(method: SAE, X: NDArray[np.float64]) -> None:
    np.testing.assert_array_equal(method.explain(X, seed=0).counterfactual, method.explain(X, seed=9).counterfactual)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "both"}, "labels='both' is not known"),
        ({"step": 1.0}, "step=1.0 must be a number above 1"),
        ({"noise": -1.0}, "noise=-1.0 must be a number above 0"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(codec: Codec, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SAE(**options).fit(codec.encode(linear()).rows, codec.labels(linear()), layout=codec.layout)
