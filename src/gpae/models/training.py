"""Fitting the GPAE: where it starts, what it minimises, when it stops.

The loss (E1, E2), with y in {0, 1} and class weights c_i:

    L = w_r mean |x_i - x^_i|^2  +  w_c mean c_i [softplus(g_i) - y_i g_i]  +  (|W_e|^2 + |W_d|^2) / 2n
"""

import math
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from gpae.numerics.autoencoder import AutoEncoder, decode, logit
from gpae.numerics.convex import logistic, ridge
from gpae.numerics.fourier import FourierMap, features, median_length_scale
from gpae.progress import report

__all__ = [
    "LENGTH_SCALE_FACTORS",
    "Rows",
    "Schedule",
    "Trace",
    "choose_length_scale",
    "start_from_convex_parts",
    "train",
]

LENGTH_SCALE_FACTORS = (0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8)
"""Candidates for the encoder's length-scale, in units of the median distance between two rows over sqrt(2)."""

_CACHED_ENTRIES = 250_000_000
_CONVEX_ROWS = 10_000
_PRIOR = 0.1
"""Prior precision of the convex starting point; W_e's own prior leaves the scale of theta free, which is weaker."""


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


def choose_length_scale(
    train: Rows, valid: Rows, unit_map: FourierMap, generator: torch.Generator, n_rows: int = 6000
) -> float:
    """Pick the encoder's length-scale by the cross-entropy of the convex classifier on rows it was not fitted to.

    theta'W_e'phi(x) is logistic regression on fixed features, so each candidate costs a few Newton steps. The largest
    one within a standard error of the best wins: what validation rows cannot tell apart, smoothness decides.
    """
    base = median_length_scale(train.x, generator)
    n_rows = min(n_rows, math.ceil(0.7 * len(train.x)))
    order = torch.randperm(len(train.x), generator=generator).to(train.x.device)
    # training rows that the candidates are not fitted to judge them too: a thousand validation rows alone are noisy
    rows, spare = train.rows(order[:n_rows]), train.rows(order[n_rows : 2 * n_rows])
    judges = Rows(*(torch.cat([getattr(valid, f.name), getattr(spare, f.name)]) for f in fields(Rows)))
    losses = []
    for i, factor in enumerate(LENGTH_SCALE_FACTORS):
        fmap = FourierMap(unit_map.frequencies / (factor * base), unit_map.phases)
        v, bias = logistic(features(fmap, rows.x), rows.y, rows.weight, _PRIOR / len(rows.x), n_steps=6)
        g = features(fmap, judges.x) @ v + bias
        losses.append(torch.nan_to_num(judges.weight * (softplus(g) - judges.y * g), nan=torch.inf))
        report("choosing the length-scale", (i + 1) / len(LENGTH_SCALE_FACTORS))
    table = torch.stack(losses)
    excess = table - table[table.mean(1).argmin()]
    close = excess.mean(1) <= excess.std(1) / math.sqrt(len(judges.x))
    return LENGTH_SCALE_FACTORS[int(close.nonzero().max())] * base


def start_from_convex_parts(
    train: Rows, encoder: FourierMap, decoder: FourierMap, latent_dim: int, generator: torch.Generator
) -> AutoEncoder:
    """A start that is already good: the first latent is the logit of the convex classifier, the others the leading
    directions of the best linear reconstruction from the features, the decoder the ridge solution given those."""
    rows = train.sample(_CONVEX_ROWS, generator)
    phi = features(encoder, rows.x)
    v, bias = logistic(phi, rows.y, rows.weight, _PRIOR / len(rows.x))
    spread = (phi @ v).std().clamp(min=1e-6)
    centred = phi - phi.mean(0)
    linear = ridge(centred, rows.x - rows.x.mean(0), _PRIOR)
    directions = torch.linalg.svd(centred @ linear, full_matrices=False).Vh[: latent_dim - 1].T
    others = linear @ directions
    others = others / (centred @ others).square().mean(0).sqrt().clamp(min=1e-6)
    missing = latent_dim - 1 - others.shape[1]
    noise = torch.randn(len(v), missing, generator=generator, dtype=v.dtype).to(v.device)
    encoder_weights = torch.cat([(v / spread).unsqueeze(1), others, noise], 1)
    theta = v.new_zeros(latent_dim)
    theta[0] = spread
    decoder_weights = ridge(features(decoder, phi @ encoder_weights), rows.x, _PRIOR)
    return AutoEncoder(encoder, encoder_weights, decoder, decoder_weights, theta, bias)


def train(
    model: AutoEncoder,
    rows: Rows,
    valid: Rows,
    *,
    reconstruction_weight: float,
    classification_weight: float,
    schedule: Schedule,
    generator: torch.Generator,
    stage: str = "training",
) -> tuple[AutoEncoder, Trace]:
    """Adam on mini-batches until the validation loss rests; return the best weights and the validation figures.

    The encoder's features do not change in training, so they are computed once (when they fit into memory).
    """
    n = len(rows.x)
    phi = features(model.encoder, rows.x) if n * len(model.encoder.phases) <= _CACHED_ENTRIES else None
    phi_valid = features(model.encoder, valid.x)
    free = [
        t.clone().requires_grad_() for t in (model.encoder_weights, model.decoder_weights, model.theta, model.theta0)
    ]
    optimiser = torch.optim.Adam(free, lr=schedule.learning_rate)
    figures = [_figures(_with(model, free), phi_valid, valid)]
    best, best_loss, waited = 0, math.inf, 0
    kept = [t.detach().clone() for t in free]
    for epoch in range(schedule.max_epochs):
        order = torch.randperm(n, generator=generator).to(rows.x.device)
        for batch in order.split(schedule.batch_size):
            batch_phi = phi[batch] if phi is not None else features(model.encoder, rows.x[batch])
            current = _with(model, free)
            reconstruction, cross_entropy = _losses(current, batch_phi, rows, batch)
            prior = (free[0].square().sum() + free[1].square().sum()) / (2 * n)
            loss = reconstruction_weight * reconstruction + classification_weight * cross_entropy + prior
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
        figures.append(_figures(_with(model, free), phi_valid, valid))
        total = reconstruction_weight * figures[-1][0] + classification_weight * figures[-1][1]
        if total < best_loss - schedule.tolerance * abs(best_loss) or best_loss == math.inf:
            best, best_loss, waited = epoch + 1, total, 0
            kept = [t.detach().clone() for t in free]
        else:
            waited += 1
        if waited == schedule.patience:
            for group in optimiser.param_groups:
                group["lr"] /= 10
        report(stage, (epoch + 1) / schedule.max_epochs)
        if waited >= 2 * schedule.patience or not math.isfinite(total):
            break
    return _with(model, kept), Trace(tuple(f[0] for f in figures), tuple(f[1] for f in figures), best)


def _with(model: AutoEncoder, free: list[Tensor]) -> AutoEncoder:
    return replace(model, encoder_weights=free[0], decoder_weights=free[1], theta=free[2], theta0=free[3])


def _cross_entropy(g: Float[Tensor, " N"], rows: Rows) -> Float[Tensor, ""]:
    return (rows.weight * (softplus(g) - rows.y * g)).mean()


def _losses(
    model: AutoEncoder, phi: Float[Tensor, "b S"], rows: Rows, batch: Tensor
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    latent = phi @ model.encoder_weights
    part = rows.rows(batch)
    phase = torch.addmm(model.decoder.phases, latent, model.decoder.frequencies.T)
    rebuilt = phase.cos() @ (model.decoder.amplitude * model.decoder_weights)
    return (rebuilt - part.x).square().sum(1).mean(), _cross_entropy(logit(model, latent), part)


@torch.no_grad()
def _figures(model: AutoEncoder, phi: Float[Tensor, "N S"], valid: Rows) -> tuple[float, float]:
    latent = phi @ model.encoder_weights
    reconstruction = (decode(model, latent) - valid.x).square().sum(1).mean()
    return float(reconstruction), float(_cross_entropy(logit(model, latent), valid))
