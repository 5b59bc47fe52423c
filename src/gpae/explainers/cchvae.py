"""CCHVAE: look around the person in the latent space of an auto-encoder, in ever wider shells."""

import math
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from gpae.arrays import Labels, Rows
from gpae.artefact import State
from gpae.classifier import Classifier
from gpae.errors import InputError, one_of
from gpae.explainer import EXPLAINERS, Explainer, Query
from gpae.kernels.slopes import Slope
from gpae.models.explained import explained_classifier
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.search_settings import check_settings, decided
from gpae.models.searched_autoencoder import fitted_vae
from gpae.models.vae import VAE
from gpae.models.vae_network import Objective
from gpae.numerics.noise import normals, row_keys, uniforms
from gpae.numerics.tiles import in_tiles
from gpae.search.rounding import Rounding, finalised
from gpae.search.single_plan import beyond_boundary
from gpae.table.layout import Layout

__all__ = ["CCHVAE"]

_TOGETHER = 1024
"""Candidates that are decoded and judged together: few enough to stay in the cache."""
_FAR = 3.0
"""Latent diameters of the training rows beyond which the decoder has seen nothing."""
_FLAT = 1e-6
_MOST = 65_536
"""Samples in a shell and shells, at most."""
_CARLA = {"norm": 1, "shell_width": 0.1, "max_shells": 1000}


class CCHVAE(Explainer):
    """The nearest of the random latent points in the first shell that holds any with the target class.

    **Objective.** With z0 the latent mean of x, for r = 0, 1, ...: draw directions e and radii rho in [r w, (r+1) w),
    decode z0 + rho e / |e|_p beside the columns that may not change, round; if any of these rows has s g > 0, return
    the one nearest to x in the p-norm.

    **Differs from the paper.** It runs the reference implementation, whose auto-encoder collapses (``preset="carla"``
    with ``objective="carla_legacy"``). Here the auto-encoder's loss is balanced and validation rows stop its training;
    latents are measured in their own spread, one unit being the mean distance of a training row from the centre, so
    that a shell means the same for every table and latent dimension; only z moves, never what the decoder is told
    about fixed columns; features fixed at the call, one-way features and bounds are imposed on each candidate before it
    is judged; directions belong to the row, not to its place in a batch; the search ends at three times the largest
    latent distance.

    Parameters
    ----------
    classifier
        The classifier to explain, fitted or not; None: a :class:`GPAEClassifier` with its defaults.
    autoencoder
        The :class:`VAE`, fitted or not; None: one with its defaults and the objective below.
    objective
        Of the auto-encoder, where none is given.
    n_samples
        Candidates in a shell.
    shell_width, max_shells
        w in units of the latent spread, and how many shells at most: as far by default as the reference's thousand.
    norm
        p: 1 or 2, of the latent radius and of the distance between rows.
    shared_directions
        Whether all rows try the same directions; else each row has its own.
    margin
        Logit units beyond the boundary that an answer shall have; who can have none so far takes one without.
    preset
        ``"carla"``: p = 1, 1000 shells of 0.1 in plain latent units, and the auto-encoder's size, loss and five epochs
        as there (``objective="carla_legacy"`` keeps the older loss).
    """

    classifier_: GPAEClassifier
    autoencoder_: VAE
    unit_: Rows
    """One line a norm, 1 and 2: the unit of each latent."""
    reach_: Rows
    """For either norm: how far a search goes, in these units."""

    def __init__(
        self,
        *,
        classifier: GPAEClassifier | None = None,
        autoencoder: VAE | None = None,
        objective: Objective = "balanced",
        n_samples: int = 300,
        shell_width: float = 0.1,
        max_shells: int = 150,
        norm: Literal[1, 2] = 1,
        shared_directions: bool = False,
        margin: float = 0.0,
        preset: Literal["carla"] | None = None,
    ) -> None:
        self.classifier = classifier
        self.autoencoder = autoencoder
        self.objective = objective
        self.n_samples = n_samples
        self.shell_width = shell_width
        self.max_shells = max_shells
        self.norm = norm
        self.shared_directions = shared_directions
        self.margin = margin
        self.preset = preset

    def _settings(self) -> dict[str, Any]:
        return decided(self.get_params(deep=False), _CARLA)

    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        self._check_parameters()
        model = explained_classifier(self.classifier, X, y, validation)
        seed = model.random_state if isinstance(model.random_state, int) else 0
        self.autoencoder_ = fitted_vae(
            self.autoencoder, X, self.layout_, validation, objective=self.objective, preset=self.preset, seed=seed
        )
        self._measure(self.autoencoder_.latents(X))
        return model

    def _check_parameters(self) -> None:
        one_of("preset", self.preset, (None, "carla"))
        one_of("objective", self.objective, get_args(Objective))
        one_of("norm", self.norm, (1, 2))
        for name in ("n_samples", "max_shells"):
            value = getattr(self, name)
            if not isinstance(value, int) or not 1 <= value <= _MOST:
                raise InputError(f"{name}={value!r} must be a whole number from 1 to {_MOST}")
        check_settings(self.get_params(deep=False), least={"margin": 0.0})
        if not 0 < self.shell_width < np.inf:
            raise InputError(f"shell_width={self.shell_width!r} must be a number above 0")

    def _measure(self, z: Rows) -> None:
        """Learn the unit of the latent radius and how far a search goes, for either norm."""
        measured = [self._measured(z, p) for p in (1, 2)]
        self.unit_, self.reach_ = (np.array(part) for part in zip(*measured, strict=True))

    def _measured(self, z: Rows, p: int) -> tuple[Rows, float]:
        away = z - z.mean(axis=0)
        if self.preset == "carla":
            unit = np.ones(z.shape[1])
        else:
            spread = np.maximum(z.std(axis=0), _FLAT)
            unit = spread * max(np.linalg.norm(away / spread, p, axis=1).mean(), _FLAT)
        # twice the largest distance from the centre bounds the largest distance between two rows
        diameter = 2 * np.linalg.norm(away / unit, p, axis=1).max()
        if self.preset == "carla":
            # where the latents have collapsed, the prior still says how far latents lie apart
            diameter = max(diameter, z.shape[1] * 2 / np.sqrt(np.pi))
        return unit, float(_FAR * diameter)

    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        people = [torch.as_tensor(part) for part in (query.x, query.lower, query.upper)]
        people.append(torch.as_tensor(2.0 * query.target - 1.0, dtype=torch.float32))
        (z,) = in_tiles(lambda x: (self.autoencoder_.encode(x.float()),), people[:1])
        keys = row_keys(np.zeros_like(query.x) if self.shared_directions else query.x, seed)
        at, row = self._through_shells([*people, z, torch.as_tensor(keys.view(np.int64))])
        return at, finalised(self.layout_, row, query.x[at], query.lower[at], query.upper[at])

    def _through_shells(self, people: list[Tensor]) -> tuple[Labels, Rows]:
        """Answer shell by shell; who has an answer drops out."""
        settings = self._settings()
        which = settings["norm"] - 1
        shells = _Shells(
            self.autoencoder_,
            Slope.of(self.classifier_.model_),
            Rounding.of(self.layout_),
            self.unit_[which] * settings["shell_width"],
            self.n_samples,
            settings["norm"],
        )
        n_shells = min(settings["max_shells"], math.ceil(self.reach_[which] / settings["shell_width"]))
        together = max(1, _TOGETHER // self.n_samples)
        waiting = torch.arange(len(people[0]))
        answered, answers = [], []
        for clear, r in product(beyond_boundary(self.margin), range(max(1, n_shells))):
            row, found = in_tiles(partial(shells.nearest, clear, r), [part[waiting] for part in people], together)
            answered.append(waiting[found])
            answers.append(row[found])
            waiting = waiting[~found]
            if not len(waiting):
                break
        return torch.cat(answered).numpy(), torch.cat(answers).numpy().astype(np.float64)

    def state(self) -> State:
        """The classifier, the auto-encoder and the measures of its latents; the search itself learns nothing."""
        own = State({"unit": self.unit_, "reach": self.reach_}, {})
        own = own.with_part("classifier", self.classifier_.state())
        return own.with_part("autoencoder", self.autoencoder_.state())

    def restore(self, state: State, layout: Layout) -> None:
        """Rebuild from :meth:`state`."""
        self.layout_ = layout
        self.unit_, self.reach_ = np.array(state.arrays["unit"]), np.array(state.arrays["reach"])
        self.classifier_ = GPAEClassifier.from_state(state.part("classifier"))
        self.autoencoder_ = VAE.from_state(state.part("autoencoder"))


@dataclass(frozen=True, slots=True, eq=False)
class _Shells:
    """The random points around latents, shell by shell, and what they are worth."""

    autoencoder: VAE
    slope: Slope
    rounding: Rounding
    width: Rows
    """Of a shell, in each latent."""
    n_samples: int
    norm: int

    def nearest(
        self, clear: float, r: int, x: Tensor, lower: Tensor, upper: Tensor, sign: Tensor, z: Tensor, keys: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return each person's nearest row of the r-th shell so far on the target's side, and who has one."""
        points = (z.unsqueeze(1) + self.steps(r, keys)).flatten(0, 1)
        x, lower, upper, sign = (part.repeat_interleave(self.n_samples, 0) for part in (x, lower, upper, sign))
        own = x.float()
        rows = self.rounding(self.autoencoder.decode(points, own), x, lower, upper)
        change = (rows - own).abs()
        distance = change.sum(1) if self.norm == 1 else change.square().sum(1)
        valid = sign * self.slope.logits(rows) > clear
        distance = torch.where(valid, distance, torch.inf).unflatten(0, (-1, self.n_samples))
        nearest = distance.argmin(1, keepdim=True)
        rows = rows.unflatten(0, (-1, self.n_samples)).take_along_dim(nearest.unsqueeze(2), 1)
        return rows.squeeze(1), distance.take_along_dim(nearest, 1).squeeze(1).isfinite()

    def steps(self, r: int, keys: Tensor) -> Tensor:
        """B x n x k steps into the r-th shell, each person's own."""
        own, n, k = keys.numpy().view(np.uint64), self.n_samples, len(self.width)
        direction = normals(own, n * k, stream=2 * r).reshape(-1, n, k)
        radius = r + uniforms(own, n, stream=2 * r + 1)
        step = (radius / np.linalg.norm(direction, self.norm, axis=2))[:, :, None] * direction * self.width
        return torch.as_tensor(step, dtype=torch.float32)


EXPLAINERS.add("cchvae", CCHVAE, paper_name="CCHVAE")
