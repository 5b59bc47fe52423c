"""CounterNet: one pass to a row of the other class, native and post-hoc, with and without a mask."""

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from tests.conftest import SMALL

from gpae.errors import InputError
from gpae.explainers.counternet import CounterNet
from gpae.models.counternet import CounterNetClassifier
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.table.codec import Codec
from gpae.table.schema import Schema


def apart(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """A separable toy: yes where a + 0.6 [job = x] > 0.8; b says nothing, and nothing else does."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.random(n), "b": rng.random(n), "job": rng.choice(list("xyz"), n)})
    frame["y"] = (worth(frame) > 0).astype(int)
    return frame


def worth(frame: pd.DataFrame) -> NDArray[np.float64]:
    return np.asarray(frame.a + 0.6 * (frame.job == "x") - 0.8)


@pytest.fixture(scope="module")
def codec() -> Codec:
    return Codec.fit(apart(), Schema.infer(apart(), label="y", favourable=1, immutable=("b",)))


def fitted(codec: Codec, **options: object) -> CounterNet:
    made = CounterNet(classifier=GPAEClassifier(**SMALL, random_state=0), batch_size=64, **options)
    return made.fit(codec.encode(apart()).rows, codec.labels(apart()), layout=codec.layout)


@pytest.fixture(scope="module")
def method(codec: Codec) -> CounterNet:
    return fitted(codec)


@pytest.fixture(scope="module")
def posthoc(codec: Codec) -> CounterNet:
    return fitted(codec, mode="posthoc", max_epochs=30)


@pytest.fixture(scope="module")
def X(codec: Codec) -> NDArray[np.float64]:
    return codec.encode(apart(300, seed=1)).rows


def rate(method: CounterNet, X: NDArray[np.float64], target: int = 1) -> float:
    answer = method.explain(X, target)
    return float(answer.found[answer.status != "already_favourable"].mean())


def test_on_a_separable_toy_nearly_every_answer_is_valid_in_truth(
    method: CounterNet, codec: Codec, X: NDArray[np.float64]
) -> None:
    assert (method.classifier_.predict_proba(X)[:, 1] > 0.5).mean() == pytest.approx(
        apart(300, seed=1).y.mean(), abs=0.05
    )
    assert rate(method, X) > 0.97
    assert rate(method, X, 0) > 0.97
    answer = method.explain(X)
    user = codec.layout.to_user(answer.counterfactual[answer.found])
    job_x = list(codec.layout.features[2].levels).index("x")
    assert (user[:, 0] + 0.6 * (user[:, 2] == job_x) > 0.75).mean() > 0.97


def test_a_fixed_feature_stays_and_the_generator_allows_for_a_further_one(
    method: CounterNet, codec: Codec, X: NDArray[np.float64]
) -> None:
    answer = method.explain(X, fixed=codec.layout.named(("job",)))
    u, x = answer.counterfactual[answer.found], answer.factual[answer.found]
    np.testing.assert_array_equal(u[:, 1:], x[:, 1:])
    assert len(u)


def test_the_post_hoc_generator_explains_the_given_classifier(posthoc: CounterNet, X: NDArray[np.float64]) -> None:
    assert isinstance(posthoc.classifier_, GPAEClassifier)
    assert rate(posthoc, X) > 0.9


def test_the_native_method_explains_its_own_predictor(method: CounterNet) -> None:
    assert isinstance(method.classifier_, CounterNetClassifier)


def plane(n: int, seed: int) -> pd.DataFrame:
    """Yes where a + b > 0.9."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.random(n), "b": rng.random(n)})
    frame["y"] = (frame.a + frame.b > 0.9).astype(int)
    return frame


def on_the_plane(immutable: tuple[str, ...] = (), **options: object) -> tuple[CounterNet, NDArray[np.float64]]:
    frame = plane(600, seed=0)
    codec = Codec.fit(frame, Schema.infer(frame, label="y", favourable=1, immutable=immutable))
    method = CounterNet(**({"max_epochs": 30} | options))  # type: ignore[arg-type]
    method.fit(codec.encode(frame).rows, codec.labels(frame), layout=codec.layout)
    return method, codec.encode(plane(300, seed=1)).rows


def test_a_generator_that_knows_the_mask_answers_more_than_one_that_is_overruled() -> None:
    """Where half of what would have helped is fixed, only a generator that was told so has learnt to go all the way."""
    told, overruled = (rate(*on_the_plane(("b",), posthoc_mask=mask)) for mask in (False, True))
    assert told > 0.9
    assert overruled < 0.7


def test_the_chosen_weight_of_proximity_brings_answers_nearer_and_leaves_them_valid() -> None:
    chosen, X = on_the_plane()
    reference, _ = on_the_plane(w_prox=0.1)
    assert chosen.w_prox_ > reference.w_prox_ == 0.1
    near, far = (
        np.square(a.counterfactual - a.factual)[a.found].sum(1).mean()
        for a in (chosen.explain(X), reference.explain(X))
    )
    assert near < 0.8 * far
    assert rate(chosen, X) > 0.97


def test_the_generator_recovers_what_brute_force_finds_on_its_predictor() -> None:
    """The known answer: of all allowed rows the one that the generator's loss is least at."""
    method, X = on_the_plane(w_prox=0.3, max_epochs=90)
    answer = method.explain(X)
    u, x = answer.counterfactual[answer.found], answer.factual[answer.found]
    axis = np.linspace(0, 1, 81)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    p = method.classifier_.predict_proba(grid)[:, 1]
    loss = 0.2 * (p - 1) ** 2 + 0.3 * np.square(grid - x[:, None]).sum(2) / 2
    best = grid[loss.argmin(axis=1)]
    assert np.linalg.norm(u - best, axis=1).mean() < 0.1
    assert np.linalg.norm(x - best, axis=1).mean() > 0.2


def test_nothing_is_drawn_in_the_search(method: CounterNet, X: NDArray[np.float64]) -> None:
    np.testing.assert_array_equal(method.explain(X, seed=0).counterfactual, method.explain(X, seed=9).counterfactual)


def test_a_restored_post_hoc_method_answers_with_the_same_bits(posthoc: CounterNet, X: NDArray[np.float64]) -> None:
    copy = CounterNet()
    copy.restore(posthoc.state(), posthoc.layout_)
    np.testing.assert_array_equal(copy.explain(X).counterfactual, posthoc.explain(X).counterfactual)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "both"}, "mode='both' is not known"),
        ({"w_valid": 0.0}, "w_valid=0.0 must be a number above 0"),
        ({"w_prox": -1.0}, "w_prox=-1.0 must be 'auto' or a number of at least 0"),
        ({"patience": 0}, "patience=0 must be a whole number of at least 1"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(codec: Codec, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        CounterNet(**options).fit(codec.encode(apart()).rows, codec.labels(apart()), layout=codec.layout)
