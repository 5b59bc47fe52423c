"""How CounterNet learns: a turn of its predictor, a turn of its generator, until held-out people gain no more."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor, nn

from gpae.models.counternet import Generator, Predictor
from gpae.models.counternet_judge import Judge
from gpae.models.flat_weights import FlatWeights
from gpae.progress import report

__all__ = ["LossWeights", "People", "Schedule", "Training"]

_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class LossWeights:
    """Of the three squared errors: prediction, validity, proximity."""

    prediction: float
    validity: float
    proximity: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """Adam on mini-batches, until the held-out loss has not fallen for ``patience`` epochs."""

    learning_rate: float
    batch_size: int
    max_epochs: int
    patience: int
    clip_norm: float = 0.5


@dataclass(frozen=True, eq=False)
class People:
    """Rows, their labels, and where each may go."""

    x: Float[Tensor, "n D"]
    y: Float[Tensor, " n"]
    lower: Float[Tensor, "n D"]
    upper: Float[Tensor, "n D"]
    seen: tuple[Float[Tensor, "n c"], Float[Tensor, " n"]] | None = None
    """What a judge says of them, where it says the same every time."""

    @classmethod
    def of(cls, x: Tensor, y: Tensor, lower: Tensor, upper: Tensor) -> "People":
        """Nobody has looked at them yet."""
        return cls(x, y, lower, upper)

    def rows(self, index: Tensor) -> "People":
        """Some of them."""
        x, y, lower, upper, *seen = self._table[index].split(self._widths, 1)
        return People(x, y.squeeze(1), lower, upper, (seen[0], seen[1].squeeze(1)) if seen else None)

    @cached_property
    def _columns(self) -> tuple[Tensor, ...]:
        seen = () if self.seen is None else (self.seen[0], self.seen[1].unsqueeze(1))
        return self.x, self.y.unsqueeze(1), self.lower, self.upper, *seen

    @cached_property
    def _widths(self) -> list[int]:
        return [part.shape[1] for part in self._columns]

    @cached_property
    def _table(self) -> Float[Tensor, "n c"]:
        """All of it side by side: rows are picked once and not part by part."""
        return torch.cat(self._columns, 1)

    @torch.no_grad()
    def before(self, judge: Judge) -> "People":
        """The same, looked at once and for all."""
        parts = [judge(part) for part in self.x.split(_AT_ONCE)]
        return replace(self, seen=(torch.cat([cues for cues, _ in parts]), torch.cat([said for _, said in parts])))


class Training:
    """The turns on one mini-batch: first the predictor learns the labels, then the generator to flip its decisions.

    In the generator's turn the predictor has no gradient and its optimiser makes no step, so that it cannot learn to
    misjudge what the generator makes. A judge that is no :class:`Predictor` never changes.
    """

    def __init__(self, judge: Judge, generator: Generator, weights: LossWeights, schedule: Schedule) -> None:
        self.judge = judge
        self.generator = generator
        self.weights = weights
        self.schedule = schedule
        self.deciding = False
        self.predictor = judge if isinstance(judge, Predictor) else None
        rate, norm = schedule.learning_rate, schedule.clip_norm
        self.weights_of = [FlatWeights(list(part.parameters()), rate, clip_norm=norm) for part in self._parts()]

    def _parts(self) -> list[nn.Module]:
        return [self.generator] if self.predictor is None else [self.predictor, self.generator]

    def prediction_loss(self, people: People) -> Float[Tensor, ""]:
        """(p(x) - y)^2."""
        return (torch.sigmoid(self.judge.logits(people.x)) - people.y).square().mean()

    def generation_loss(self, people: People) -> Float[Tensor, ""]:
        """(p(c) - (1 - round p(x)))^2 and |x - c|^2 / D, weighted."""
        cues, said = people.seen or self._looked_at(people.x)
        row = self.generator(cues, people.lower, people.upper)
        judged = self.generator.decided(row) if self.deciding else row
        validity = (torch.sigmoid(self.judge.logits(judged)) - (said <= 0).to(row.dtype)).square().mean()
        proximity = (row - people.x).square().mean()
        return self.weights.validity * validity + self.weights.proximity * proximity

    @torch.no_grad()
    def _looked_at(self, x: Float[Tensor, "B D"]) -> tuple[Float[Tensor, "B c"], Float[Tensor, " B"]]:
        return self.judge(x)

    def turn_of_predictor(self, people: People) -> None:
        """One step on the labels, where there is a predictor to teach."""
        if self.predictor is not None:
            self._teach(self.predictor, True)
            (self.weights.prediction * self.prediction_loss(people)).backward()
            self.weights_of[0].step()

    def turn_of_generator(self, people: People) -> None:
        """One step on validity and proximity."""
        if self.predictor is not None:
            self._teach(self.predictor, False)
        self.generation_loss(people).backward()
        self.weights_of[-1].step()

    @staticmethod
    def _teach(part: nn.Module, learns: bool) -> None:
        """Say so once: it takes as long as a layer."""
        if next(part.parameters()).requires_grad is not learns:
            part.requires_grad_(learns)

    def run(self, people: People, watched: People, draws: torch.Generator) -> list[float]:
        """Train until the held-out loss rests, both in turns and then the generator alone; return the loss's course.

        The predictor is the first to rest, and what the generator learns later belongs to the predictor that is kept.
        """
        if self.predictor is None:
            people, watched = people.before(self.judge), watched.before(self.judge)
        losses = self._until_rest(people, watched, draws, [self.turn_of_predictor, self.turn_of_generator])
        return losses + self.go_on(people, watched, draws)

    def draw_nearer(self, people: People, watched: People, draws: torch.Generator, proximity: float) -> list[float]:
        """Go on with a higher weight of proximity."""
        self.weights = replace(self.weights, proximity=proximity)
        return self.go_on(people, watched, draws)

    def go_on(self, people: People, watched: People, draws: torch.Generator) -> list[float]:
        """Train the generator alone until the held-out loss rests again.

        From here on the rows that the predictor judges have whole levels, as the answers will: shares of several levels
        can cross the boundary where the likeliest level alone does not.
        """
        self.deciding = True
        self.generator.requires_grad_(True)
        people, watched = (part if part.seen is not None else part.before(self.judge) for part in (people, watched))
        losses = self._until_rest(people, watched, draws, [self.turn_of_generator])
        for part in self._parts():
            part.requires_grad_(False)
        return losses

    def _until_rest(
        self, people: People, watched: People, draws: torch.Generator, turns: list[Callable[[People], None]]
    ) -> list[float]:
        losses: list[float] = []
        kept: list[dict[str, Tensor]] = []
        best = 0
        for epoch in range(self.schedule.max_epochs):
            self._train(True)
            for batch in torch.randperm(len(people.x), generator=draws).split(self.schedule.batch_size):
                some = people.rows(batch)
                for turn in turns:
                    turn(some)
            self._train(False)
            losses.append(self._held_out(watched))
            report("training CounterNet", (epoch + 1) / self.schedule.max_epochs)
            if epoch == 0 or losses[-1] < losses[best]:
                best = epoch
                kept = [{name: value.clone() for name, value in part.state_dict().items()} for part in self._parts()]
            elif epoch - best >= self.schedule.patience:
                break
        for part, weights in zip(self._parts(), kept, strict=True):
            part.load_state_dict(weights)
        return losses

    def _train(self, training: bool) -> None:
        for part in self._parts():
            part.train(training)

    @torch.no_grad()
    def _held_out(self, people: People) -> float:
        loss = self.generation_loss(people)
        if self.predictor is not None:
            loss = loss + self.weights.prediction * self.prediction_loss(people)
        return float(loss)
