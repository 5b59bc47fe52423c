"""Three small auto-encoders, of either class and of all rows: the yardstick of IM1 and IM2.

D-20-10-d-10-20-D with rectifiers between (the latent and the output are linear), squared error, Adam. The three are
trained as one: each layer is a stack of three matrices, so that a step costs one step and not three.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gpae.arrays import Labels, Rows
from gpae.artefact import State
from gpae.errors import InputError
from gpae.models.flat_weights import FlatWeights
from gpae.progress import report

__all__ = ["ClassAutoencoders", "Schedule"]

_HIDDEN = (20, 10)
_FEWEST_STEPS = 50
_ALL = 2
"""Position of the auto-encoder of all rows, behind those of class 0 and class 1."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the auto-encoders are trained: Adam, until the rows held out have gained nothing for a while.

    Parameters
    ----------
    max_epochs, max_steps
        Whichever comes first. 16,000 steps are 8 seconds of one core, for any number of rows, and leave the error a
        tenth above that of 24,000; larger steps or batches are faster but end in poor minima for some seeds.
    patience, threshold
        Training stops when ``patience`` epochs have not lowered the error by the share ``threshold``.
    max_rows
        Of each kind; a tenth of them are held out.
    """

    learning_rate: float = 1e-3
    batch_size: int = 128
    max_epochs: int = 500
    max_steps: int = 16_000
    patience: int = 20
    threshold: float = 1e-3
    max_rows: int = 10_000


class ClassAutoencoders:
    """What rows of a class look like, learnt from training rows and their labels.

    Parameters
    ----------
    layers
        Weights (3 x in x out) and biases (3 x 1 x out): of class 0, of class 1, of all rows.
    errors
        Mean squared error (sum over columns) of each on the rows held out.
    """

    def __init__(self, layers: Sequence[tuple[Tensor, Tensor]], errors: Sequence[float]) -> None:
        self.layers = [(weight.double(), bias.double()) for weight, bias in layers]
        self.errors = tuple(errors)

    @property
    def latent_dim(self) -> int:
        """d."""
        return self.layers[len(_HIDDEN)][0].shape[2]

    @classmethod
    def fit(
        cls,
        X: Rows,
        y: Labels,
        *,
        seed: int = 0,
        latent_dim: int | None = None,
        schedule: Schedule | None = None,
    ) -> "ClassAutoencoders":
        """Train on encoded rows and labels; ``latent_dim`` None: half the columns, from 2 to 6.

        Six latents of seven columns are nearly the identity, for which every row looks like every class.
        """
        schedule = Schedule() if schedule is None else schedule
        generator = torch.Generator().manual_seed(seed)
        kinds = [_halves(part, schedule.max_rows, generator) for part in (X[y == 0], X[y == 1], X)]
        width = X.shape[1]
        latent = min(6, max(2, width // 2)) if latent_dim is None else latent_dim
        layers = _random_layers((width, *_HIDDEN, latent, *reversed(_HIDDEN), width), generator)
        return cls(*_train(layers, kinds, schedule, generator))

    def of_all(self, X: Rows) -> Rows:
        """Rebuild rows with the auto-encoder of all rows."""
        return self._rebuilt(X, _ALL)

    def of_class(self, X: Rows, label: Labels) -> Rows:
        """Rebuild each row with the auto-encoder of the class that is named for it."""
        return np.where((label == 1)[:, None], self._rebuilt(X, 1), self._rebuilt(X, 0))

    def _rebuilt(self, X: Rows, kind: int) -> Rows:
        one = [(weight[kind : kind + 1], bias[kind : kind + 1]) for weight, bias in self.layers]
        return np.asarray(_rebuild(one, torch.tensor(X, dtype=torch.float64).unsqueeze(0))[0].numpy())

    def state(self) -> State:
        """The layers and the errors."""
        arrays: dict[str, NDArray[np.generic]] = {}
        for i, (weight, bias) in enumerate(self.layers):
            arrays |= {f"weight{i}": weight.numpy(), f"bias{i}": bias.numpy()}
        return State(arrays, {"errors": list(self.errors)})

    @classmethod
    def from_state(cls, state: State) -> "ClassAutoencoders":
        """Rebuild from :meth:`state`."""
        parts = [[torch.tensor(state.arrays[f"{name}{i}"]) for name in ("weight", "bias")] for i in range(_depth())]
        return cls([(weight, bias) for weight, bias in parts], state.values["errors"])


def _depth() -> int:
    return 2 * len(_HIDDEN) + 2


def _halves(rows: Rows, most: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Rows to learn from, and a tenth of them that only decide when to stop."""
    if len(rows) < 2:
        raise InputError(f"an auto-encoder of a class needs at least two rows, and there are {len(rows)}")
    order = torch.randperm(len(rows), generator=generator)[:most]
    drawn = torch.tensor(rows, dtype=torch.float32)[order]
    held_out = max(len(drawn) // 10, 1)
    return drawn[held_out:], drawn[:held_out]


def _random_layers(sizes: Sequence[int], generator: torch.Generator) -> list[tuple[Tensor, Tensor]]:
    layers = []
    for n_in, n_out in pairwise(sizes):
        bound = 1 / math.sqrt(n_in)
        weight, bias = (
            (2 * torch.rand(shape, generator=generator) - 1) * bound for shape in ((3, n_in, n_out), (3, 1, n_out))
        )
        layers.append((weight, bias))
    return layers


def _rebuild(layers: Sequence[tuple[Tensor, Tensor]], x: Tensor) -> Tensor:
    """Each kind's rows (kinds x B x D) through its own auto-encoder."""
    return _passed(layers, x)[-1]


def _passed(layers: Sequence[tuple[Tensor, Tensor]], x: Tensor) -> list[Tensor]:
    """What goes into each layer, and what comes out at the end."""
    through = [x]
    for i, (weight, bias) in enumerate(layers):
        out = torch.baddbmm(bias, through[-1], weight)
        through.append(out if i in (len(_HIDDEN), len(layers) - 1) else out.relu_())
    return through


def _set_gradient(layers: Sequence[tuple[Tensor, Tensor]], batch: Tensor) -> None:
    """Put the gradient of the squared error into the layers' own, written out: half the time of torch's.

    The error of the kinds is summed: each follows the path that it would follow alone.
    """
    *through, rebuilt = _passed(layers, batch)
    pull = (rebuilt - batch).mul_(2 / batch.shape[1])
    for i in reversed(range(len(layers))):
        weight, bias = layers[i]
        torch.bmm(through[i].mT, pull, out=weight.grad)
        torch.sum(pull, 1, keepdim=True, out=bias.grad)
        if i:
            pull = torch.bmm(pull, weight.mT)
            if i != len(_HIDDEN) + 1:  # the latent is linear
                pull.mul_(through[i] > 0)


def _train(
    layers: list[tuple[Tensor, Tensor]],
    kinds: Sequence[tuple[Tensor, Tensor]],
    schedule: Schedule,
    generator: torch.Generator,
) -> tuple[list[tuple[Tensor, Tensor]], list[float]]:
    """Return each kind's best layers and their error on the rows held out."""
    parameters = [part for layer in layers for part in layer]
    weights = FlatWeights(parameters, schedule.learning_rate)
    kept = [part.clone() for part in parameters]
    best = mark = torch.full((len(kinds),), torch.inf)
    waited = torch.zeros(len(kinds))
    learnt_from, held_out = zip(*kinds, strict=True)
    for epoch in range(epochs := _epochs(learnt_from, schedule)):
        for batch in _batches(learnt_from, schedule.batch_size, generator):
            _set_gradient(layers, batch)
            weights.step()
        errors = _errors(layers, held_out)
        report("training auto-encoders to measure with", (epoch + 1) / epochs)
        going = waited < schedule.patience
        better = going & (errors < best)
        clearly = going & (errors < mark * (1 - schedule.threshold))
        waited, mark = torch.where(clearly, 0.0, waited + 1), torch.where(clearly, errors, mark)
        best = torch.where(better, errors, best)
        for saved, part in zip(kept, parameters, strict=True):
            saved[better] = part[better]
        if not bool((waited < schedule.patience).any()):
            break
    return list(zip(kept[::2], kept[1::2], strict=True)), best.tolist()


def _steps(kinds: Sequence[Tensor], size: int) -> int:
    """Batches in an epoch: of the largest kind, but enough for a look at the rows held out to be worth it."""
    return max(max(len(rows) for rows in kinds) // size, _FEWEST_STEPS)


def _epochs(kinds: Sequence[Tensor], schedule: Schedule) -> int:
    return max(min(schedule.max_epochs, schedule.max_steps // _steps(kinds, schedule.batch_size)), 1)


def _batches(kinds: Sequence[Tensor], size: int, generator: torch.Generator) -> Tensor:
    """One epoch, batches x kinds x rows x D; the smaller kinds come round several times."""
    n = _steps(kinds, size) * size
    orders = [
        torch.cat([torch.randperm(len(rows), generator=generator) for _ in range(-(-n // len(rows)))])[:n]
        for rows in kinds
    ]
    drawn = torch.stack([rows[order] for rows, order in zip(kinds, orders, strict=True)])
    return drawn.unflatten(1, (-1, size)).transpose(0, 1)


def _errors(layers: Sequence[tuple[Tensor, Tensor]], kinds: Sequence[Tensor]) -> Tensor:
    """Mean squared error of each kind's own rows."""
    errors = []
    for kind, rows in enumerate(kinds):
        own = [(weight[kind : kind + 1], bias[kind : kind + 1]) for weight, bias in layers]
        errors.append((_rebuild(own, rows.unsqueeze(0)) - rows).square().sum(2).mean())
    return torch.stack(errors)
