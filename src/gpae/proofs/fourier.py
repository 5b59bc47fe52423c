"""Proof for the Fourier classifier: branch and bound on boxes that cover what a person may become.

Every box is bounded by :mod:`gpae.proofs.taylor`. Where the logit is monotone in a column its maximum lies on the box's
better face, which has a dimension less: there the bound is taken once more. What is still open is halved in the column
that bends most. A proof is a cover of closed boxes; a row above the margin that is met on the way ends the search.
"""

import time
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from gpae.kernels.snapping import snap
from gpae.numerics.autoencoder import AutoEncoder, encode, logit
from gpae.proofs.certificate import Certificate
from gpae.proofs.domain import Boxes, Domain
from gpae.proofs.taylor import Cosines, Expansion
from gpae.table.constraint import Array, Mask
from gpae.table.freedom import Freedom
from gpae.table.value_block import SAME

__all__ = ["Cover", "by_branch_and_bound", "cover"]

_BATCH = 1024
"""Boxes that are bounded together."""
_MOST_BOXES = 500_000
_NARROW = 1e-10
"""A box that is open although it is no wider shows a question too close to be decided."""
_TRIED = 16
"""Open boxes of each batch, those of the largest bounds, whose best rows are asked about."""


def by_branch_and_bound(
    person: Freedom, model: AutoEncoder, seconds: float, margin: float = 0.0
) -> tuple[Certificate | None, Array | None]:
    """Return a proof that no row of the one person has a logit above ``margin``, or a row that has, or neither.

    Neither: time ran out, too many columns or levels may change, or the question is too close to be decided.
    """
    covered = cover(person, model, seconds, margin)
    return (None, None) if covered is None else (covered.certificate, covered.row)


@dataclass(frozen=True, slots=True, eq=False)
class Cover:
    """What a search has come to: every row that the person may become is, up to ``SAME``, in one of the boxes."""

    closed: Boxes
    """On them no allowed row has a logit above the margin,"""
    open: Boxes
    """on these one may."""
    free: Mask
    """D: the columns of the boxes."""
    row: Array | None
    """An allowed row (1 x D) above the margin, if one was met."""
    certificate: Certificate | None
    """A proof, if no box is left open."""

    def bounds(self, U: Array) -> Array:
        """The least bound of the closed boxes that hold each of some rows (n x D); infinite where none does."""
        if not len(self.closed):
            return np.full(len(U), np.inf)
        u = torch.as_tensor(U[:, self.free]).unsqueeze(1)
        held = ((self.closed.lower - 2.0 * SAME <= u) & (u <= self.closed.upper + 2.0 * SAME)).all(dim=2)
        return np.asarray(torch.where(held, self.closed.bound, torch.inf).amin(dim=1))


def cover(person: Freedom, model: AutoEncoder, seconds: float, margin: float = 0.0) -> Cover | None:
    """Cover what the one person may become with boxes; None if too many columns or levels may change."""
    until = time.monotonic() + seconds
    domain = Domain.of(person)
    if domain is None:
        return None
    expansion = Expansion.of(Cosines.of(model, domain), torch.as_tensor(domain.wide))
    if expansion is None:
        return None
    search = _Search(person, model, domain, expansion, margin, domain.shrunk(domain.roots()))
    while search.goes_on and time.monotonic() < until:
        search.step()
    return search.outcome()


@dataclass(slots=True, eq=False)
class _Search:
    """The boxes that are open and closed; a step deals with those of the largest bounds."""

    person: Freedom
    model: AutoEncoder
    domain: Domain
    expansion: Expansion
    margin: float
    open: Boxes
    closed: list[Boxes] = field(default_factory=list)
    row: Array | None = None
    looked_at: int = 0
    stuck: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether there is something left to do."""
        return len(self.open) > 0 and self.row is None and not self.stuck and self.looked_at < _MOST_BOXES

    def step(self) -> None:
        """Bound a batch of boxes and, where that does not decide, their better faces; branch on what stays open."""
        boxes = self._taken()
        whole = self.expansion.over(boxes.lower, boxes.upper)
        boxes = boxes.below(whole.bound)
        left = self._close(boxes)
        boxes, whole = boxes.at(left), whole.at(left)
        faces = boxes.face(self._spread(whole.way))
        face = self.expansion.over(faces.lower, faces.upper)
        boxes = boxes.below(face.bound)
        left = self._close(boxes)
        corner = faces.face(self._spread(face.rise.sign())).lower
        # what bends on the face counts; where that is flat and yet open, rules forbid its corner, and any column helps
        weight = self._spread(face.bend + 1e-3 * (whole.bend + whole.rise.abs()))
        if left.any():
            self._branch(boxes.at(left), corner[left], weight[left])

    def _close(self, boxes: Boxes) -> Bool[Tensor, " n"]:
        """Close the boxes that are decided; say which are left."""
        left = ~(boxes.bound <= self.margin)
        self.closed.append(boxes.at(~left))
        return left

    def _taken(self) -> Boxes:
        """Take the boxes of the largest bounds."""
        chosen = self.open.bound.topk(min(_BATCH, len(self.open))).indices
        boxes, left = self.open.at(chosen), torch.ones(len(self.open), dtype=torch.bool)
        left[chosen] = False
        self.open, self.looked_at = self.open.at(left), self.looked_at + len(boxes)
        return boxes

    def _spread(self, values: Float[Tensor, "n m"]) -> Float[Tensor, "n free"]:
        """Values of the wide columns at their place among the free ones; 0 elsewhere."""
        out = values.new_zeros(len(values), self.open.lower.shape[1])
        out[:, self.expansion.wide] = values
        return out

    def _branch(self, boxes: Boxes, corner: Float[Tensor, "n free"], weight: Float[Tensor, "n free"]) -> None:
        """Look for a favourable row in open boxes; single rows that are not allowed are closed, the others halved."""
        single = (boxes.width == 0.0).all(dim=1)
        best = boxes.bound.topk(min(_TRIED, len(boxes))).indices
        middle = (boxes.lower + boxes.upper) / 2.0
        self._ask(torch.cat([corner[best], middle[best], boxes.lower[single]]))
        forbidden = single.clone()
        forbidden[single] = ~self._permitted(boxes.lower[single])
        self.closed.append(boxes.at(forbidden).below(torch.tensor(-torch.inf)))
        boxes, weight = boxes.at(~forbidden), weight[~forbidden]
        self.stuck = bool((boxes.width.sum(dim=1) <= _NARROW).any())
        if len(boxes) and not self.stuck:
            column = torch.where(boxes.width > 0.0, weight, -1.0).argmax(dim=1)
            boxes = self.domain.shrunk(boxes.halved(column))
        self.open = Boxes.joined([self.open, boxes])

    def _permitted(self, values: Float[Tensor, "n free"]) -> Bool[Tensor, " n"]:
        U = self.domain.rows(values)
        return torch.as_tensor(self.person.rows(np.zeros(len(U), dtype=np.intp)).permits(U))

    def _ask(self, values: Float[Tensor, "n free"]) -> None:
        """Keep the best of the allowed rows nearest to these, if it is favourable."""
        U = self.domain.rows(values)
        many = self.person.rows(np.zeros(len(U), dtype=np.intp))
        U = snap(many.layout, U, many.x, many.lower, many.upper)
        U = U[many.permits(U)]
        said = logit(self.model, encode(self.model, torch.as_tensor(U)))
        if (said > self.margin).any():
            self.row = U[[int(said.argmax())]]

    def outcome(self) -> Cover:
        """What it has come to."""
        closed = Boxes.joined([self.domain.roots().at(slice(0)), *self.closed])
        certificate = None
        if not len(self.open) and self.row is None:
            best = float(closed.bound.max()) if len(closed) else -np.inf
            details = {"order": self.expansion.order, "wide columns": len(self.domain.wide)}
            certificate = Certificate("bounds", best, self.margin, self.looked_at, details)
        return Cover(closed, self.open, self.domain.free, self.row, certificate)
