"""Fitting the GPAE: what it minimises, with which weights, when it stops.

The loss (E1, E2), with y in {0, 1} and class weights c_i:

    L = w_r mean |x_i - x^_i|^2  +  w_c mean c_i [softplus(g_i) - y_i g_i]  +  (|W_e|^2 + |W_d|^2) / 2n
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from gpae.numerics.autoencoder import AutoEncoder, decode, logit
from gpae.numerics.bias import shift
from gpae.numerics.fourier import FourierMap, features
from gpae.progress import report

__all__ = [
    "LossWeights",
    "PlainTraining",
    "Rows",
    "Schedule",
    "Trace",
    "Training",
    "adjusted",
    "cached_features",
    "choose_weights",
    "cross_entropy_of",
    "figures",
    "train",
    "winner",
]

T = TypeVar("T")

_CACHED_ENTRIES = 250_000_000
_RACE_EPOCHS = 20
_CLOSE = 0.003
"""Loss weights whose validation cross-entropy is this close, relatively, are equally good classifiers."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows to learn from or to watch, with the weight of each in the cross-entropy."""

    x: Float[Tensor, "N D"]
    y: Float[Tensor, " N"]
    weight: Float[Tensor, " N"]

    def sample(self, n: int, generator: torch.Generator) -> "Rows":
        """At most n rows, drawn without replacement."""
        if len(self.x) <= n:
            return self
        return self.rows(torch.randperm(len(self.x), generator=generator)[:n].to(self.x.device))

    def rows(self, index: Tensor) -> "Rows":
        """Some of the rows."""
        return Rows(self.x[index], self.y[index], self.weight[index])


@dataclass(frozen=True, slots=True)
class LossWeights:
    """w_r and w_c."""

    reconstruction: float
    classification: float

    def total(self, reconstruction: float, cross_entropy: float) -> float:
        """The weighted sum of the two parts of the loss."""
        return self.reconstruction * reconstruction + self.classification * cross_entropy


@dataclass(frozen=True, slots=True)
class Schedule:
    """The paper's: divide the rate by ten after ``patience`` epochs without progress, stop after twice as many."""

    learning_rate: float
    batch_size: int
    max_epochs: int
    patience: int
    tolerance: float = 1e-4


@dataclass(frozen=True, slots=True)
class Trace:
    """Validation figures, one entry an epoch; ``best`` is the epoch whose weights were kept (0: the start)."""

    reconstruction: tuple[float, ...]
    cross_entropy: tuple[float, ...]
    best: int


class Training(Protocol):
    """How a model is trained on given rows; one run after another."""

    def __call__(
        self,
        model: AutoEncoder,
        weights: LossWeights,
        generator: torch.Generator,
        stage: str = "training",
        *,
        race: bool = False,
    ) -> tuple[AutoEncoder, Trace]:
        """Go on from a model; return the best weights and the validation figures. A race is a shorter run."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PlainTraining:
    """A :class:`Training` by :func:`train`."""

    rows: Rows
    valid: Rows
    schedule: Schedule

    def __call__(
        self,
        model: AutoEncoder,
        weights: LossWeights,
        generator: torch.Generator,
        stage: str = "training",
        *,
        race: bool = False,
    ) -> tuple[AutoEncoder, Trace]:
        """Train until the validation loss rests; a race is over after some epochs.

        A few are not enough: a reconstruction that weighs too much harms the classifier late.
        """
        n_epochs = min(_RACE_EPOCHS, self.schedule.max_epochs) if race else self.schedule.max_epochs
        schedule = replace(self.schedule, max_epochs=n_epochs)
        return train(model, self.rows, self.valid, weights, schedule, generator, stage)


def choose_weights(
    start: AutoEncoder, training: Training, candidates: Iterable[LossWeights], generator: torch.Generator
) -> tuple[LossWeights, AutoEncoder]:
    """Race the candidates; return the winner and where its training has come to."""
    outcomes = []
    for weights in candidates:
        stage = f"trying classification weight {weights.classification:g}"
        model, trace = training(start, weights, generator, stage, race=True)
        outcomes.append((trace, (weights, model)))
    return winner(outcomes)


def winner(outcomes: Sequence[tuple[Trace, T]]) -> T:
    """The lowest cross-entropy on validation rows wins; among those close to it, the one that reconstructs best."""
    bound = (1 + _CLOSE) * min(trace.cross_entropy[trace.best] for trace, _ in outcomes)
    close = [outcome for outcome in outcomes if outcome[0].cross_entropy[outcome[0].best] <= bound]
    return min(close, key=lambda outcome: outcome[0].reconstruction[outcome[0].best])[1]


def train(
    model: AutoEncoder,
    rows: Rows,
    valid: Rows,
    weights: LossWeights,
    schedule: Schedule,
    generator: torch.Generator,
    stage: str = "training",
) -> tuple[AutoEncoder, Trace]:
    """Adam on mini-batches until the validation loss rests; return the best weights and the validation figures.

    The encoder's features do not change in training, so they are computed once (when they fit into memory).
    """
    n = len(rows.x)
    phi = cached_features(model.encoder, rows.x)
    phi_valid = features(model.encoder, valid.x)
    free = [t.clone().requires_grad_() for t in _trained(model)]
    kept = [t.detach().clone() for t in free]
    optimiser = torch.optim.Adam(free, lr=schedule.learning_rate)
    seen = [figures(model, phi_valid, valid)]
    best, best_loss, waited = 0, weights.total(*seen[0]), 0
    for epoch in range(1, schedule.max_epochs + 1):
        order = torch.randperm(n, generator=generator).to(rows.x.device)
        for batch in order.split(schedule.batch_size):
            batch_phi = phi[batch] if phi is not None else features(model.encoder, rows.x[batch])
            loss = _loss(_with(model, free), batch_phi, rows.rows(batch), weights, n)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        seen.append(figures(_with(model, free), phi_valid, valid))
        total = weights.total(*seen[-1])
        if total < best_loss - schedule.tolerance * abs(best_loss):
            best, best_loss, waited = epoch, total, 0
            kept = [t.detach().clone() for t in free]
        else:
            waited += 1
        if waited == schedule.patience:
            for group in optimiser.param_groups:
                group["lr"] /= 10
        report(stage, epoch / schedule.max_epochs)
        if waited >= 2 * schedule.patience or not math.isfinite(total):
            break
    return _with(model, kept), Trace(tuple(f[0] for f in seen), tuple(f[1] for f in seen), best)


def cached_features(encoder: FourierMap, x: Float[Tensor, "N D"]) -> Float[Tensor, "N S"] | None:
    """phi(x), or None where it would not fit into memory."""
    return features(encoder, x) if len(x) * len(encoder.phases) <= _CACHED_ENTRIES else None


def _trained(model: AutoEncoder) -> tuple[Tensor, ...]:
    return model.encoder_weights, model.decoder_weights, model.theta, model.theta0


def _with(model: AutoEncoder, free: list[Tensor]) -> AutoEncoder:
    return replace(model, encoder_weights=free[0], decoder_weights=free[1], theta=free[2], theta0=free[3])


def _loss(
    model: AutoEncoder, phi: Float[Tensor, "b S"], batch: Rows, weights: LossWeights, n: int
) -> Float[Tensor, ""]:
    """The loss on a batch of the n rows."""
    latent = phi @ model.encoder_weights
    phase = torch.addmm(model.decoder.phases, latent, model.decoder.frequencies.T)
    rebuilt = phase.cos() @ (model.decoder.amplitude * model.decoder_weights)
    reconstruction = (rebuilt - batch.x).square().sum(1).mean()
    prior = (model.encoder_weights.square().sum() + model.decoder_weights.square().sum()) / (2 * n)
    cross_entropy = cross_entropy_of(logit(model, latent), batch)
    return weights.reconstruction * reconstruction + weights.classification * cross_entropy + prior


def cross_entropy_of(g: Float[Tensor, " N"], rows: Rows) -> Float[Tensor, ""]:
    """mean c_i [softplus(g_i) - y_i g_i] (E1)."""
    return (rows.weight * (softplus(g) - rows.y * g)).mean()


@torch.no_grad()
def figures(model: AutoEncoder, phi: Float[Tensor, "N S"], valid: Rows) -> tuple[float, float]:
    """Reconstruction and cross-entropy on validation rows, whose phi is given, with the bias that they ask for."""
    latent = (model.encoder_weights.T @ phi.T).T  # this way round it is fast
    reconstruction = (decode(model, latent) - valid.x).square().sum(1).mean()
    g = logit(model, latent)
    return float(reconstruction), float(cross_entropy_of(g + shift(g, valid.y, valid.weight), valid))


@torch.no_grad()
def adjusted(model: AutoEncoder, valid: Rows) -> AutoEncoder:
    """The model with the bias that the validation rows ask for: its own unless they contradict it beyond doubt."""
    added = shift(logit(model, model.encode(valid.x)), valid.y, valid.weight)
    return replace(model, theta0=model.theta0 + added)
