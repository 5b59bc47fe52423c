"""Small neural networks for the baselines: aligned layers, one training loop, weights as named arrays."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import linear

from gpae.models.flat_weights import FlatWeights
from gpae.numerics.aligned import product
from gpae.progress import report

__all__ = ["AlignedLinear", "NetworkSchedule", "arrays_of", "load_arrays", "perceptron", "train_network"]


class AlignedLinear(nn.Module):
    """A linear layer whose value for a row does not depend on where in a tile the row stands.

    Not so in training, where that takes half of the time and nobody asks for it.
    """

    def __init__(self, n_in: int, n_out: int, generator: torch.Generator) -> None:
        super().__init__()
        bound = 1 / math.sqrt(max(n_in, 1))
        self.weight = nn.Parameter((2 * torch.rand(n_out, n_in, generator=generator) - 1) * bound)
        self.bias = nn.Parameter((2 * torch.rand(n_out, generator=generator) - 1) * bound)

    def forward(self, x: Float[Tensor, "B i"]) -> Float[Tensor, "B o"]:
        """x W' + b."""
        return linear(x, self.weight, self.bias) if self.training else product(x, self.weight.T) + self.bias


def perceptron(
    sizes: Sequence[int], generator: torch.Generator, activation: Callable[[], nn.Module] = nn.ReLU
) -> nn.Sequential:
    """Linear layers of these sizes with the activation between them (none behind the last)."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += [AlignedLinear(n_in, n_out, generator), activation()]
    return nn.Sequential(*layers[:-1])


@dataclass(frozen=True, slots=True)
class NetworkSchedule:
    """How long, how fast; ``patience`` None: all epochs, and the last weights are kept."""

    learning_rate: float
    batch_size: int
    max_epochs: int
    patience: int | None = None
    weight_decay: float = 0.0
    clip_norm: float | None = None


Loss = Callable[[tuple[Tensor, ...], float], Tensor]
"""(a batch of each tensor, the share of the training that is done) -> the mean loss of the batch."""


def train_network(
    network: nn.Module,
    rows: tuple[Tensor, ...],
    loss: Loss,
    schedule: NetworkSchedule,
    generator: torch.Generator,
    *,
    validation: tuple[Tensor, ...] | None = None,
    stage: str = "training",
) -> list[float]:
    """Adam on mini-batches; return the validation losses (of the training rows where there are no others).

    With a patience the best weights are kept and training stops when they have not improved for so many epochs.
    """
    watched = validation if validation is not None else rows
    decay, clip_norm = schedule.weight_decay, schedule.clip_norm
    weights = FlatWeights(list(network.parameters()), schedule.learning_rate, decay=decay, clip_norm=clip_norm)
    losses: list[float] = []
    kept: dict[str, Tensor] = {}
    best = 0
    for epoch in range(schedule.max_epochs):
        network.train()
        for batch in torch.randperm(len(rows[0]), generator=generator).split(schedule.batch_size):
            loss(tuple(part[batch] for part in rows), epoch / schedule.max_epochs).backward()
            weights.step()
        network.eval()
        with torch.no_grad():
            losses.append(float(loss(watched, 1.0)))
        report(stage, (epoch + 1) / schedule.max_epochs)
        if schedule.patience is None:
            continue
        if epoch == 0 or losses[-1] < losses[best]:
            best, kept = epoch, {name: value.clone() for name, value in network.state_dict().items()}
        elif epoch - best >= schedule.patience:
            break
    if kept:
        network.load_state_dict(kept)
    network.eval().requires_grad_(False)
    return losses


def arrays_of(network: nn.Module) -> dict[str, NDArray[np.generic]]:
    """The weights, to be saved."""
    return {name: value.detach().cpu().numpy().copy() for name, value in network.state_dict().items()}


def load_arrays(network: nn.Module, arrays: dict[str, NDArray[np.generic]]) -> None:
    """Put saved weights into a network of the same shape, ready to be used."""
    network.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in arrays.items()})
    network.eval().requires_grad_(False)
