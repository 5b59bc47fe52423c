"""CounterNet's parts: whose turn it is, what the generator may return, when training stops."""

import numpy as np
import pandas as pd
import pytest
import torch
from tests.conftest import SMALL

from gpae.models.column_kinds import ColumnKinds
from gpae.models.counternet import CounterNetClassifier, Generator, Predictor
from gpae.models.counternet_judge import Described
from gpae.models.counternet_training import LossWeights, People, Schedule, Training
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.table.codec import Codec
from gpae.table.layout import Layout
from gpae.table.schema import Schema

WEIGHTS = LossWeights(1.0, 0.2, 0.1)
SCHEDULE = Schedule(learning_rate=3e-3, batch_size=64, max_epochs=3, patience=2)


def jobs(n: int = 200, seed: int = 0) -> tuple[Layout, People]:
    """Two numbers, of which one is fixed, and two groups of levels, of which one is fixed."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"a": rng.random(n), "b": rng.random(n), "job": rng.choice(list("xyz"), n), "home": rng.choice(list("pqr"), n)}
    )
    frame["label"] = (frame.a + (frame.job == "x") > 0.8).astype(int)
    codec = Codec.fit(frame, Schema.infer(frame, label="label", favourable=1, immutable=("b", "home")))
    X = codec.encode(frame).rows
    lower, upper = codec.layout.box(X)
    parts = (X, codec.labels(frame), lower, upper)
    return codec.layout, People(*(torch.tensor(part, dtype=torch.float32) for part in parts))


def training(schedule: Schedule = SCHEDULE) -> tuple[Training, People]:
    layout, people = jobs()
    g = torch.Generator().manual_seed(0)
    predictor = Predictor(layout.width, g)
    return Training(predictor, Generator(predictor.n_cues, ColumnKinds.of(layout), g), WEIGHTS, schedule), people


def weights_of(module: torch.nn.Module) -> list[torch.Tensor]:
    return [value.detach().clone() for value in module.parameters()]


def same(before: list[torch.Tensor], module: torch.nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))


def test_in_the_generators_turn_encoder_and_predictor_keep_every_bit() -> None:
    task, people = training()
    task.turn_of_predictor(people)  # so that its optimiser has momentum
    predictor, generator = weights_of(task.predictor), weights_of(task.generator)
    for _ in range(3):
        task.turn_of_generator(people)
    assert same(predictor, task.predictor)
    assert not same(generator, task.generator)


def test_in_the_predictors_turn_the_generator_keeps_every_bit() -> None:
    task, people = training()
    task.turn_of_generator(people)
    predictor, generator = weights_of(task.predictor), weights_of(task.generator)
    task.turn_of_predictor(people)
    assert same(generator, task.generator)
    assert not same(predictor, task.predictor)


def test_the_losses_are_the_three_squared_errors() -> None:
    task, people = training()
    with torch.no_grad():
        cues, logit = task.predictor(people.x)
        c = task.generator(cues, people.lower, people.upper)
        p, p_c = torch.sigmoid(logit), torch.sigmoid(task.predictor(c)[1])
        validity = ((p_c - (1 - p.round())) ** 2).mean()
        proximity = (((c - people.x) ** 2).sum(1) / c.shape[1]).mean()
        torch.testing.assert_close(task.prediction_loss(people), ((p - people.y) ** 2).mean())
        torch.testing.assert_close(task.generation_loss(people), 0.2 * validity + 0.1 * proximity)


def test_what_is_generated_obeys_the_bounds_and_the_groups() -> None:
    task, people = training()
    layout, _ = jobs()
    upper = people.upper.clone()
    job, home = layout.groups
    upper[:, job[0]] = 0.0
    c = task.generator(task.predictor(people.x)[0], people.lower, upper).detach()
    assert bool(((c >= people.lower) & (c <= upper)).all())
    torch.testing.assert_close(c[:, job].sum(1), torch.ones(len(c)))
    assert torch.equal(c[:, job[0]], torch.zeros(len(c)))
    assert torch.equal(c[:, home], people.x[:, home])
    assert torch.equal(c[:, 1], people.x[:, 1])


def test_levels_get_a_gradient() -> None:
    task, people = training()
    task.generator.zero_grad()
    task.generation_loss(people).backward()
    layout, _ = jobs()
    last = task.generator.network[-1].weight.grad
    assert bool((last[layout.groups[0]].abs().sum(1) > 0).all())
    assert float(last[layout.groups[1]].abs().max()) < 1e-10  # fixed: nothing to learn there


def test_what_is_decided_has_whole_levels_and_the_gradient_of_what_is_not() -> None:
    task, people = training()
    layout, _ = jobs()
    soft = task.generator(task.predictor(people.x)[0], people.lower, people.upper).detach().requires_grad_(True)
    hard = task.generator.decided(soft)
    for group in layout.groups:
        torch.testing.assert_close(hard[:, group].amax(1), torch.ones(len(hard)))
        torch.testing.assert_close(hard[:, group].sum(1), torch.ones(len(hard)))
        assert torch.equal(hard[:, group].argmax(1), soft[:, group].argmax(1))
    assert torch.equal(hard[:, :2], soft[:, :2])
    (2 * hard).sum().backward()
    assert torch.equal(soft.grad, torch.full_like(soft, 2.0))


def test_training_stops_when_the_held_out_loss_rests_and_keeps_the_best_weights() -> None:
    task, people = training(Schedule(learning_rate=0.05, batch_size=64, max_epochs=60, patience=3))
    some, rest = people.rows(torch.arange(0, 100)), people.rows(torch.arange(100, 200))
    draws = torch.Generator().manual_seed(0)
    task.run(some, rest, draws)
    losses = task.go_on(some, rest, draws)
    assert len(losses) - 1 - int(np.argmin(losses)) == 3 or len(losses) == 60
    with torch.no_grad():
        kept = float(task.generation_loss(rest) + task.prediction_loss(rest))
    assert kept == pytest.approx(min(losses), rel=1e-6)


def test_when_the_generator_goes_on_alone_the_predictor_keeps_every_bit() -> None:
    task, people = training()
    predictor, generator = weights_of(task.predictor), weights_of(task.generator)
    task.draw_nearer(people, people, torch.Generator().manual_seed(0), proximity=1.0)
    assert same(predictor, task.predictor)
    assert not same(generator, task.generator)


def test_a_described_classifier_is_judged_by_its_own_logit_and_never_changes() -> None:
    layout, people = jobs()
    X = people.x.double().numpy()
    classifier = GPAEClassifier(**SMALL, random_state=0).fit(X, people.y.numpy().astype(int))
    judge = Described.on(classifier.model_, torch.as_tensor(X))
    cues, logit = judge(torch.as_tensor(X))
    np.testing.assert_allclose(logit.numpy(), classifier.decision_function(X), atol=1e-9)
    torch.testing.assert_close(cues.mean(0), torch.zeros(4).double(), atol=1e-9, rtol=0)
    torch.testing.assert_close(cues.std(0), torch.ones(4).double())
    generator = Generator(4, ColumnKinds.of(layout), torch.Generator().manual_seed(0))
    training = judge.for_training()
    seen = training(torch.as_tensor(X).float())
    torch.testing.assert_close(seen[0].double(), cues, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(seen[1].double(), logit, atol=1e-3, rtol=1e-3)
    losses = Training(training, generator, WEIGHTS, SCHEDULE).run(people, people, torch.Generator())
    assert losses[SCHEDULE.max_epochs - 1] < losses[0]
    np.testing.assert_array_equal(judge(torch.as_tensor(X))[1].numpy(), logit.numpy())


def test_the_classifier_has_the_same_bits_alone_restored_and_in_a_batch() -> None:
    task, people = training()
    model, X = CounterNetClassifier(task.predictor), people.x.double().numpy()
    whole = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X[5:6])[0], whole[5])
    np.testing.assert_array_equal(CounterNetClassifier.from_state(model.state()).predict_proba(X), whole)
    np.testing.assert_array_equal(whole[:, 1] > 0.5, model.decision_function(X) > 0)


def test_shares_are_a_softmax_over_the_open_levels_and_the_likeliest_is_the_largest() -> None:
    columns = ColumnKinds.named(torch.tensor([-1, 0, 0, 0, -2, 1, 1]))
    output = 5.0 * torch.randn(50, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    open_ = torch.ones(50, 7, dtype=torch.bool)
    open_[:, 2] = False
    shares = columns.shares(output, open_)
    torch.testing.assert_close(shares[:, [1, 3]], torch.softmax(output[:, [1, 3]], 1))
    torch.testing.assert_close(shares[:, 5:], torch.softmax(output[:, 5:], 1))
    assert not shares[:, [0, 2, 4]].any()
    likeliest = columns.likeliest(shares)
    assert torch.equal(likeliest[:, 5:].argmax(1), output[:, 5:].argmax(1))
    assert torch.equal(likeliest[:, 1:4].sum(1), torch.ones(50, dtype=torch.float64))
    assert not likeliest[:, [0, 4]].any()
