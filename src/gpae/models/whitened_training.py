"""Fitting the GPAE fast: Adam in whitened coordinates, at a rate that falls to nothing.

The loss is that of :mod:`gpae.models.training`. What makes it slow to minimise is the features' overlap, and that is
known: W_e and W_d are trained as coordinates V with W = PV (:mod:`gpae.numerics.whitening`). Hundreds of steps then do
what took thousands, and so few can follow one plan: the rate rises for a tenth of them and falls linearly to zero.
What is looked at and kept is a running mean of the coordinates, which is free of the steps' noise: the validation rows
choose between models, not between accidents.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from gpae.models.loss_gradient import Gradient, Scratch, gradient
from gpae.models.training import LossWeights, Rows, Schedule, Trace, cached_features, figures
from gpae.numerics.adam import Adam
from gpae.numerics.autoencoder import AutoEncoder
from gpae.numerics.fourier import features
from gpae.numerics.whitening import Whitening, whitening
from gpae.progress import report

__all__ = ["WhitenedTraining"]

_STEPS = 500
_EPOCHS = 5
"""Training takes about so many steps, but no fewer epochs."""
_RACE = 0.4
"""Share of them that a trial gets."""
_WARM_UP = 0.1
"""Share of the steps in which the rate rises."""
_MEMORY = 30
"""Steps that the running mean reaches back."""
_ENCODER_DAMPING = 1e-4
_DECODER_DAMPING = 1e-3
"""The decoder's is larger, because its features move in training."""
_DECODER_RATE = 0.3
"""The decoder's learning rate by the encoder's."""
_SAMPLE = 4000
"""Rows that a whitening is made from."""


@dataclass(frozen=True, slots=True, eq=False)
class WhitenedTraining:
    """A :class:`~gpae.models.training.Training`; what all its runs share is computed once.

    ``learning_rate`` is the rate at its peak, ``max_epochs`` a bound on the epochs that the rate falls in.
    """

    rows: Rows
    valid: Rows
    schedule: Schedule
    phi: Float[Tensor, "N S"] | None
    """None where it would not fit into memory."""
    phi_valid: Float[Tensor, "M S"]
    sample: Float[Tensor, "m S"]
    whitening: Whitening

    @classmethod
    def of(
        cls, start: AutoEncoder, rows: Rows, valid: Rows, schedule: Schedule, generator: torch.Generator
    ) -> "WhitenedTraining":
        """Compute the encoder's features, which do not change, and their whitening."""
        sample = features(start.encoder, rows.sample(_SAMPLE, generator).x)
        phi, phi_valid = cached_features(start.encoder, rows.x), features(start.encoder, valid.x)
        return cls(rows, valid, schedule, phi, phi_valid, sample, whitening(sample, _ENCODER_DAMPING))

    def epochs(self, race: bool = False) -> int:
        """How many epochs a run takes."""
        share = _RACE if race else 1.0
        batches = max(len(self.rows.x) // self.schedule.batch_size, 1)
        wanted = max(share * _EPOCHS, share * _STEPS / batches)
        return min(math.ceil(wanted), self.schedule.max_epochs)

    def __call__(
        self,
        model: AutoEncoder,
        weights: LossWeights,
        generator: torch.Generator,
        stage: str = "training",
        *,
        race: bool = False,
    ) -> tuple[AutoEncoder, Trace]:
        """Train for all epochs: it is the end of the rate's fall that brings the loss down, so none is left out."""
        schedule, n_epochs = self.schedule, self.epochs(race)
        path = _Path.of(model, self, weights, n_epochs)
        seen = [figures(model, self.phi_valid, self.valid)]
        kept, best, best_loss = model, 0, weights.total(*seen[0])
        for epoch in range(1, n_epochs + 1):
            path.walk(generator)
            model = path.mean.model(model)
            seen.append(figures(model, self.phi_valid, self.valid))
            total = weights.total(*seen[-1])
            if total < best_loss - schedule.tolerance * abs(best_loss):
                kept, best, best_loss = model, epoch, total
            report(stage, epoch / n_epochs)
            if not math.isfinite(total):
                break
        return kept, Trace(tuple(f[0] for f in seen), tuple(f[1] for f in seen), best)


@dataclass(frozen=True, slots=True, eq=False)
class _Coordinates:
    """What is trained. Matrices lie turned: torch multiplies fast with a narrow one on the left only."""

    of_encoder: Whitening
    of_decoder: Whitening
    encoder: Float[Tensor, "d S"]
    decoder: Float[Tensor, "D S"]
    theta: Float[Tensor, " d"]
    theta0: Float[Tensor, ""]

    @classmethod
    def of(cls, model: AutoEncoder, training: WhitenedTraining) -> "_Coordinates":
        of_encoder = training.whitening
        of_decoder = whitening(features(model.decoder, training.sample @ model.encoder_weights), _DECODER_DAMPING)
        encoder = of_encoder.coordinates(model.encoder_weights.T)
        decoder = of_decoder.coordinates(model.decoder_weights.T)
        return cls(of_encoder, of_decoder, encoder, decoder, model.theta.clone(), model.theta0.clone())

    @property
    def all(self) -> tuple[Tensor, ...]:
        return self.encoder, self.decoder, self.theta, self.theta0

    def copy(self) -> "_Coordinates":
        return _Coordinates(self.of_encoder, self.of_decoder, *(t.clone() for t in self.all))

    def model(self, like: AutoEncoder) -> AutoEncoder:
        """The auto-encoder that they stand for."""
        return replace(
            like,
            encoder_weights=self.of_encoder(self.encoder).T,
            decoder_weights=self.of_decoder(self.decoder).T,
            theta=self.theta.clone(),
            theta0=self.theta0.clone(),
        )

    def gradient(self, by: Gradient) -> tuple[Tensor, ...]:
        """By each of :attr:`all`, from the one by the weights."""
        return self.of_encoder(by.encoder_weights.T), self.of_decoder(by.decoder_weights.T), by.theta, by.theta0


@dataclass(frozen=True, slots=True, eq=False)
class _Path:
    """One run: where it is, the mean of where it has been lately, and what takes it on."""

    training: WhitenedTraining
    weights: LossWeights
    start: AutoEncoder
    here: _Coordinates
    mean: _Coordinates
    adam: Adam
    rates: Iterator[float]
    scratch: Scratch

    @classmethod
    def of(cls, model: AutoEncoder, training: WhitenedTraining, weights: LossWeights, n_epochs: int) -> "_Path":
        here, rate, n = _Coordinates.of(model, training), training.schedule.learning_rate, len(training.rows.x)
        size = min(training.schedule.batch_size, n)
        adam = Adam(here.all, (rate, _DECODER_RATE * rate, rate, rate))
        rates = _rates(n_epochs * (n // size))
        return cls(training, weights, model, here, here.copy(), adam, rates, Scratch.of(size, model))

    def walk(self, generator: torch.Generator) -> None:
        """One epoch; rows that do not fill a batch wait for the next."""
        rows = self.training.rows
        n, size = len(rows.x), len(self.scratch.features)
        order = torch.randperm(n, generator=generator).to(rows.x.device)
        for batch in order[: n - n % size].split(size):
            model = self.here.model(self.start)
            by = gradient(model, self._features(batch), rows.rows(batch), self.weights, n, self.scratch)
            self.adam.step(self.here.gradient(by), next(self.rates))
            for mean, now in zip(self.mean.all, self.here.all, strict=True):
                mean.lerp_(now, 1 / _MEMORY)

    def _features(self, batch: Tensor) -> Float[Tensor, "b S"]:
        if self.training.phi is None:
            return features(self.start.encoder, self.training.rows.x[batch])
        return torch.index_select(self.training.phi, 0, batch, out=self.scratch.features)


def _rates(n_steps: int) -> Iterator[float]:
    """The rate of each step, by its peak."""
    for step in range(n_steps):
        rising, falling = (step + 1) / (_WARM_UP * n_steps), (n_steps - step) / ((1 - _WARM_UP) * n_steps)
        yield min(rising, falling, 1.0)
