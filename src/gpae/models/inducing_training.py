"""Fitting the deep Gaussian process with inducing points: where it starts, what it minimises, when it stops.

Doubly stochastic: lambda is drawn through the encoder's marginals, m_x and v_x are the decoder's mean and variance
there, and with n training rows the loss is

    mean over a batch of  w_r (|x - m_x|^2 + sum_j v_x,j) + w_c c_i [softplus(g) - y g]  +  sum of KL(q(u) | p(u)) / n

The two likelihoods share one model, so the terms are added by hand. Only functions import this module (gpytorch is an
extra).
"""

import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from sklearn.cluster import KMeans
from torch import Tensor

from gpae.models.inducing_network import InducingLayer, InducingNetwork
from gpae.models.starting_point import CONVEX_ROWS, PRIOR, convex_latents
from gpae.models.training import LossWeights, Rows, Schedule, Trace, cross_entropy_of, winner
from gpae.numerics.autoencoder import logit
from gpae.numerics.convex import logistic, ridge
from gpae.numerics.fourier import median_length_scale
from gpae.numerics.inducing import InducingAutoEncoder
from gpae.progress import report

__all__ = ["choose_weights", "start", "train"]

_LOOK_EVERY = 20
"""Steps between two looks at the validation rows."""
_SPREAD = 0.1
"""Standard deviation of the whitened inducing values at the start: the untrained model is nearly deterministic."""
_INNER_VARIANCE = 0.1
"""Kernel variance of the inner layers, whose outputs begin as linear maps of variance one."""


def start(network: InducingNetwork, train_rows: Rows, generator: torch.Generator) -> None:
    """Start from the convex parts, as the GPAE does: what is linear in a layer's whitened features is solved for.

    Inducing points are the k-means centres of the rows and, in later layers, their images. Inner layers begin as linear
    maps: the encoder's as the linear classifier's logit and the leading principal directions, the decoder's as the
    latents themselves.
    """
    rows = train_rows.sample(CONVEX_ROWS, generator)
    n_points = network.encoder[0].variational_strategy.inducing_points.shape[1]
    centres = _centres(rows.x, n_points, generator)
    hidden, points = rows.x, centres
    for layer in network.encoder[:-1]:
        slope, offset = _linear_view(hidden, rows, layer.output_dims, generator)
        _start_inner(layer, hidden, points, slope, offset, generator)
        hidden, points = hidden @ slope.T + offset, points @ slope.T + offset
    last = network.encoder[-1]
    last.start(points, length_scale=median_length_scale(hidden, generator), variance=1.0, spread=_SPREAD)
    phi = last.whitened_features(hidden)
    weights, theta, bias = convex_latents(phi, rows, last.output_dims, generator)
    last.set_values(weights)
    with torch.no_grad():
        network.theta.copy_(theta)
        network.theta0.copy_(bias)
    _start_decoder(network, rows, phi @ weights, last.whitened_features(points) @ weights, generator)


def _start_decoder(
    network: InducingNetwork,
    rows: Rows,
    hidden: Float[Tensor, "N d"],
    points: Float[Tensor, "m d"],
    generator: torch.Generator,
) -> None:
    for layer in network.decoder[:-1]:
        slope = torch.eye(layer.output_dims, layer.input_dims, dtype=hidden.dtype, device=hidden.device)
        # beyond the identity: mixtures of the latents, for the kernel to see them from other sides
        more = layer.output_dims - layer.input_dims
        if more > 0:
            mixed = torch.randn(more, layer.input_dims, generator=generator, dtype=hidden.dtype).to(hidden.device)
            slope[layer.input_dims :] = mixed / mixed.norm(dim=1, keepdim=True)
        _start_inner(layer, hidden, points, slope, slope.new_zeros(len(slope)), generator)
        hidden, points = hidden @ slope.T, points @ slope.T
    last, mean = network.decoder[-1], rows.x.mean(0)
    scale, variance = median_length_scale(hidden, generator), rows.x.var(0).clamp(min=1e-4)
    last.start(points, length_scale=scale, variance=variance, spread=_SPREAD, offset=mean)
    # whitened features of the first output; the others' differ by the root of their variance alone
    phi = last.whitened_features(hidden) / variance[0].sqrt()
    last.set_values(ridge(phi, (rows.x - mean) / variance.sqrt(), PRIOR))


def _start_inner(
    layer: InducingLayer,
    hidden: Float[Tensor, "N i"],
    points: Float[Tensor, "m i"],
    slope: Float[Tensor, "o i"],
    offset: Float[Tensor, " o"],
    generator: torch.Generator,
) -> None:
    scale = median_length_scale(hidden, generator)
    layer.start(points, length_scale=scale, variance=_INNER_VARIANCE, spread=_SPREAD, slope=slope, offset=offset)


def _centres(x: Float[Tensor, "N D"], n: int, generator: torch.Generator) -> Float[Tensor, "m D"]:
    seed = int(torch.randint(2**31 - 1, (1,), generator=generator).item())
    found = KMeans(n, n_init=1, max_iter=25, random_state=seed).fit(x.cpu().double().numpy()).cluster_centers_
    return torch.as_tensor(found, dtype=x.dtype, device=x.device)


def _linear_view(
    x: Float[Tensor, "N D"], rows: Rows, n_outputs: int, generator: torch.Generator
) -> tuple[Float[Tensor, "o D"], Float[Tensor, " o"]]:
    """Directions of unit variance: the linear classifier's, the leading principal ones, random ones for the rest."""
    mean = x.mean(0)
    v, _ = logistic(x, rows.y, rows.weight, PRIOR / len(x))
    principal = torch.linalg.svd(x - mean, full_matrices=False).Vh[: n_outputs - 1]
    more = torch.randn(n_outputs - 1 - len(principal), x.shape[1], generator=generator, dtype=x.dtype).to(x.device)
    slope = torch.cat([v.unsqueeze(0), principal, more])
    slope = slope / ((x - mean) @ slope.T).std(0).clamp(min=1e-6).unsqueeze(1)
    return slope, -slope @ mean


def choose_weights(
    network: InducingNetwork,
    rows: Rows,
    valid: Rows,
    candidates: Sequence[LossWeights],
    schedule: Schedule,
    n_steps: int,
    generator: torch.Generator,
) -> LossWeights:
    """Race the candidates for so many steps each, as the GPAE does; the network ends where the winner has come to."""
    begin, outcomes = _copy(network), []
    for weights in candidates:
        network.load_state_dict(begin)
        stage = f"trying classification weight {weights.classification:g}"
        trace = train(network, rows, valid, weights, schedule, n_steps, generator, stage)
        outcomes.append((trace, (weights, _copy(network))))
    weights, reached = winner(outcomes)
    network.load_state_dict(reached)
    return weights


def train(
    network: InducingNetwork,
    rows: Rows,
    valid: Rows,
    weights: LossWeights,
    schedule: Schedule,
    n_steps: int,
    generator: torch.Generator,
    stage: str = "training",
) -> Trace:
    """Adam on mini-batches with a rate that falls to nothing over the steps; the network keeps its best weights.

    Best by the loss of the mean path on the validation rows, looked at every so many steps; ``schedule.patience`` such
    looks without progress end the training.
    """
    optimiser = torch.optim.Adam(network.requires_grad_(True).parameters(), lr=schedule.learning_rate)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(n_steps, 1))
    batches = _batches(len(rows.x), schedule.batch_size, generator)
    figures = [_figures(network.mean_path(), valid)]
    best, best_loss, kept = 0, weights.total(*figures[0]), _copy(network)
    for step in range(1, n_steps + 1):
        network.train()
        optimiser.zero_grad(set_to_none=True)
        loss = _loss(network, rows.rows(next(batches).to(rows.x.device)), weights, len(rows.x), generator)
        loss.backward()
        optimiser.step()
        falling.step()
        report(stage, step / n_steps)
        if step % _LOOK_EVERY and step != n_steps:
            continue
        figures.append(_figures(network.mean_path(), valid))
        total = weights.total(*figures[-1])
        if total < best_loss - schedule.tolerance * abs(best_loss):
            best, best_loss, kept = len(figures) - 1, total, _copy(network)
        if len(figures) - 1 - best >= schedule.patience or not math.isfinite(total):
            break
    network.load_state_dict(kept)
    network.eval().requires_grad_(False)
    return Trace(tuple(f[0] for f in figures), tuple(f[1] for f in figures), best)


def _batches(n: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
    while True:
        yield from torch.randperm(n, generator=generator).split(batch_size)


def _loss(
    network: InducingNetwork, batch: Rows, weights: LossWeights, n: int, generator: torch.Generator
) -> Float[Tensor, ""]:
    """The loss on a batch of the n rows, with one draw of the latents."""
    latent = network.sampled_latent(batch.x, generator)
    mean, variance = network.rebuilt(latent, generator)
    reconstruction = ((batch.x - mean).square() + variance).sum(1).mean()
    cross_entropy = cross_entropy_of(latent @ network.theta + network.theta0, batch)
    fit = weights.reconstruction * reconstruction + weights.classification * cross_entropy
    return fit + network.divergence() / n


@torch.no_grad()
def _figures(model: InducingAutoEncoder, valid: Rows) -> tuple[float, float]:
    """Squared error and cross-entropy of the mean path."""
    x, y, weight = (t.double().cpu() for t in (valid.x, valid.y, valid.weight))
    latent = model.encode(x)
    reconstruction = (model.decode(latent) - x).square().sum(1).mean()
    return float(reconstruction), float(cross_entropy_of(logit(model, latent), Rows(x, y, weight)))


def _copy(network: InducingNetwork) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}
