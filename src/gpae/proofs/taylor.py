"""What a sum of cosines does not exceed on boxes: Taylor polynomials with bounds on what they leave out.

The logit is a sum of cosines: with a = sqrt(2/S) W_e theta,

    g(x) = theta_0 + sum_s a_s cos(z_s'x + c_s).

**The bound.** On a box of centre m and half-widths h, with multi-indices alpha up to an order K,

    g(m + d) = sum_{|alpha| <= K} T_alpha d^alpha + r(d),    |r(d)| <= sum_{|alpha| = K+1} C_alpha h^alpha,

    T_alpha = sum_s a_s z_s^alpha cos^(|alpha|)(z_s'm + c_s) / alpha!,    C_alpha = sum_s |a_s| |z_s|^alpha / alpha!.

K = 2 would be the gradient and the Hessian. The cosines are what costs, further orders cost little more, and they pay:
in T the waves cancel as they do in g, while the remainder adds up their sizes. So K is as high as a number of terms
allows, and the polynomial is bounded by

    T_0 + sum_j max_{|t| <= h_j} (T_j t + T_jj t^2) + sum_{other alpha} |T_alpha| h^alpha,

where T_alpha < 0 counts as 0 if all its powers are even. No bound exceeds theta_0 + sum_s |a_s|. (Intervals cosine by
cosine would cost as much again, and decide next to no box that this leaves open.)

**Faces.** On the box the slope in column j differs from T_j by at most E_j / h_j,

    E_j = sum_{2 <= |alpha| <= K} alpha_j |T_alpha| h^alpha + sum_{|alpha| = K+1} alpha_j C_alpha h^alpha.

Where h_j |T_j| > E_j the logit is monotone in that column, and its maximum lies on the box's better face, which has a
dimension less: there the bound is taken once more. What is still open is halved in the column that bends most, by E_j.

**Rounding.** Rows count as allowed up to ``SAME`` in every column, and all is computed in doubles. What either can add
to a logit, here or in the model's own answer, is bounded from above in :class:`Cosines`, and added to every bound.
"""

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from gpae.numerics.autoencoder import AutoEncoder
from gpae.proofs.domain import Domain
from gpae.table.value_block import SAME

__all__ = ["Bounds", "Cosines", "Expansion"]

_MOST_TERMS = 256
"""Of a Taylor polynomial: the order is as high as they allow,"""
_ORDERS = (8, 7, 6, 5, 4, 3, 2)
"""among these."""


@dataclass(frozen=True, slots=True, eq=False)
class Cosines:
    """The logit as a sum of cosines of the columns that are free, the others being the same in all rows."""

    constant: float
    weights: Float[Tensor, " S"]
    frequencies: Float[Tensor, "S free"]
    phases: Float[Tensor, " S"]
    rounding: float
    """What rounding adds up to at most at a point, here and in the model: by operation 2^-51 of all that is summed."""
    stray: float
    """By how much the logit can change within the ``SAME`` by which an allowed row may miss the boxes."""

    @classmethod
    def of(cls, model: AutoEncoder, domain: Domain) -> "Cosines":
        """Fold the model's linear maps into one vector, and what is not free into the phases."""
        Z, c, amplitude = model.encoder.frequencies, model.encoder.phases, model.encoder.amplitude
        free, fixed, far = (torch.as_tensor(part) for part in (domain.free, domain.fixed, domain.far))
        size = amplitude * (model.encoder_weights.abs() @ model.theta.abs())
        epsilon = torch.finfo(torch.float64).eps
        operations = sum(model.encoder_weights.shape) + 2 * Z.shape[1] + 16 * _MOST_TERMS
        total = size @ (1.0 + Z.abs() @ far + c.abs()) + model.theta0.abs()
        return cls(
            float(model.theta0),
            amplitude * model.logit_weights,
            Z[:, free],
            c + Z @ fixed,
            2.0 * operations * epsilon * float(total),
            float(size @ (Z.abs() @ (2.0 * SAME + 4.0 * epsilon * far))),
        )

    @property
    def most(self) -> float:
        """More than all of them together can be."""
        return self.constant + float(self.weights.abs().sum()) + self.rounding + self.stray


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """What is known of the logit on n boxes that are wide in m columns."""

    bound: Float[Tensor, " n"]
    """It is nowhere above."""
    rise: Float[Tensor, "n m"]
    """h_j T_j: what the slope at the centre adds on the way to a column's upper end,"""
    bend: Float[Tensor, "n m"]
    """E_j: by how much that may be wrong,"""
    doubt: Float[Tensor, "n 1"]
    """and what rounding adds."""

    def at(self, index: Tensor) -> "Bounds":
        """Of some of the boxes."""
        return Bounds(self.bound[index], self.rise[index], self.bend[index], self.doubt[index])

    @property
    def way(self) -> Float[Tensor, "n m"]:
        """1 where the logit rises in a column all over the box, -1 where it falls, 0 where neither is known."""
        return torch.where(self.rise.abs() > self.bend + self.doubt, self.rise.sign(), 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """Taylor polynomials of a sum of cosines in the m columns in which boxes are wide, and bounds from them.

    The terms are sorted: first those of even order, then the odd ones, then those of the remainder.
    """

    cosines: Cosines
    wide: Int64[Tensor, " m"]
    monomials: tuple[Int64[Tensor, "_ _"], ...]
    """Of each order the columns that are multiplied."""
    exponents: Float[Tensor, "terms m"]
    even: Float[Tensor, "S evens"]
    odd: Float[Tensor, "S odds"]
    """What turns the cosines and the sines at a centre into T,"""
    remainder: Float[Tensor, " last"]
    """and C."""

    @classmethod
    def of(cls, cosines: Cosines, wide: Int64[Tensor, " m"]) -> "Expansion | None":
        """As high an order as the number of terms allows; None if there are too many columns for the lowest."""
        m = len(wide)
        order = next((k for k in _ORDERS if math.comb(m + k, k) <= _MOST_TERMS), None)
        if order is None:
            return None
        orders = [*range(0, order + 1, 2), *range(1, order + 1, 2), order + 1]
        monomials = tuple(_monomials(m, k) for k in orders)
        exponents = [(M.unsqueeze(2) == torch.arange(m)).sum(dim=1).double() for M in monomials]
        factorials = [(alpha + 1.0).lgamma().sum(dim=1).exp() for alpha in exponents]
        # the derivatives of the cosine are cos, -sin, -cos, sin
        signs = [(1.0, -1.0, -1.0, 1.0)[k % 4] for k in orders]
        Z, a = cosines.frequencies[:, wide], cosines.weights.unsqueeze(1)
        parts = [a * sign * _products(Z, M) / f for M, f, sign in zip(monomials, factorials, signs, strict=True)]
        n = order // 2 + 1
        even, odd, last = torch.cat(parts[:n], dim=1), torch.cat(parts[n:-1], dim=1), parts[-1].abs().sum(dim=0)
        return cls(cosines, wide, monomials, torch.cat(exponents), even, odd, last)

    @property
    def order(self) -> int:
        """K."""
        return self.monomials[-1].shape[1] - 1

    def over(self, lower: Float[Tensor, "n free"], upper: Float[Tensor, "n free"]) -> Bounds:
        """Bound the logit on boxes."""
        centre, half = (lower + upper) / 2.0, ((upper - lower) / 2.0)[:, self.wide]
        phase = centre @ self.cosines.frequencies.T + self.cosines.phases
        terms = [phase.cos() @ self.even, phase.sin() @ self.odd, self.remainder.expand(len(centre), -1)]
        gains = torch.cat(terms, dim=1) * torch.cat([_products(half, M) for M in self.monomials], dim=1)
        alpha, degree = self.exponents, self.exponents.sum(dim=1, keepdim=True)
        rise, bow = (gains @ ((alpha == k) & (degree == k)).double() for k in (1, 2))
        # neither constant nor a part of one column's parabola
        mixed = ((degree > 2) | ((alpha > 0).sum(dim=1, keepdim=True) > 1)).double()
        even_powers = (alpha % 2 == 0).all(dim=1)
        rest = torch.where(even_powers, gains.relu(), gains.abs()) @ mixed
        doubt = self._doubt(half)
        bound = self.cosines.constant + gains[:, 0] + _parabola(rise, bow).sum(dim=1) + rest[:, 0] + doubt
        bend = gains.abs() @ (alpha * (degree >= 2))
        return Bounds(bound.clamp(max=self.cosines.most), rise, bend, (self.order + 2) * doubt.unsqueeze(1))

    def _doubt(self, half: Float[Tensor, "n m"]) -> Float[Tensor, " n"]:
        """What a bound may miss: no cosine turns by more than ``turn``, so its terms come to no more than e^turn."""
        turn = half @ self.cosines.frequencies[:, self.wide].abs().amax(dim=0)
        return self.cosines.rounding * turn.exp() + self.cosines.stray


def _monomials(m: int, k: int) -> Int64[Tensor, "_ k"]:
    """Every product of k of m columns."""
    chosen = list(combinations_with_replacement(range(m), k))
    return torch.tensor(chosen, dtype=torch.int64).reshape(len(chosen), k)


def _products(rows: Float[Tensor, "n m"], monomials: Int64[Tensor, "terms k"]) -> Float[Tensor, "n terms"]:
    return rows[:, monomials].prod(dim=2)


def _parabola(rise: Float[Tensor, "n m"], bow: Float[Tensor, "n m"]) -> Float[Tensor, "n m"]:
    """The largest value of rise t + bow t^2 for -1 <= t <= 1."""
    inner = rise.abs() < -2.0 * bow
    return torch.where(inner, -rise.square() / (4.0 * bow), rise.abs() + bow)
