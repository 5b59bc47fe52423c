"""What the last layer of a network that gives rows means: numbers, yes/no columns, one-hot groups."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, log_softmax, pad
from torch.nn.utils.rnn import pad_sequence

from gpae.numerics.aligned import product
from gpae.table.layout import Layout

__all__ = ["ColumnKinds"]

_NUMBER, _YES_NO = -1, -2
_STEEP = 40.0
"""Logits further apart than this are as good as certain."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnKinds:
    """The kind of each column: -1 a number, -2 yes or no (also: a value is missing), else its one-hot group."""

    kind: Int[Tensor, " D"]
    numbers: Int[Tensor, " n"]
    yes_no: Int[Tensor, " b"]
    groups: tuple[Int[Tensor, " w"], ...]
    grouped: Int[Tensor, " n"]
    """The columns of all groups, one group after the other, and"""
    table: Int[Tensor, "g w"]
    """the same as a table, a group a line; where a group has fewer levels than the largest, a column more than there
    are stands for the rest."""
    present: Int[Tensor, " n"]
    """Which places of the table, line after line, are no such."""
    together: Float[Tensor, "D D"]
    """1 where two columns are of one group, 0 elsewhere."""

    @classmethod
    def of(cls, layout: Layout) -> "ColumnKinds":
        """Read them off a layout."""
        kind = torch.as_tensor(np.where(layout.discrete, _YES_NO, _NUMBER))
        for g, group in enumerate(layout.groups):
            kind[torch.as_tensor(group)] = g
        return cls.named(kind)

    @classmethod
    def named(cls, kind: Int[Tensor, " D"]) -> "ColumnKinds":
        """Sort the columns by their kind."""
        groups = tuple(torch.nonzero(kind == g).squeeze(1) for g in range(int(kind.max()) + 1))
        numbers, yes_no = (torch.nonzero(kind == k).squeeze(1) for k in (_NUMBER, _YES_NO))
        none = torch.zeros(0, dtype=torch.int64)
        table = pad_sequence(list(groups), batch_first=True, padding_value=len(kind)) if groups else none.reshape(0, 0)
        present = (table.flatten() < len(kind)).nonzero().squeeze(1)
        together = ((kind.unsqueeze(1) == kind) & (kind >= 0)).float()
        return cls(kind, numbers, yes_no, groups, torch.cat([*groups, none]), table, present, together)

    @classmethod
    def all_numbers(cls, width: int) -> "ColumnKinds":
        """Columns of which nothing is known."""
        return cls.named(torch.full((width,), _NUMBER))

    def log_likelihood(
        self, output: Float[Tensor, "B D"], x: Float[Tensor, "B D"], variance: float
    ) -> Float[Tensor, " B"]:
        """Gaussian with one variance for the numbers, Bernoulli and categorical with the outputs as logits."""
        error = (output[:, self.numbers] - x[:, self.numbers]).square().sum(1)
        total = -0.5 * (error / variance + len(self.numbers) * math.log(2 * math.pi * variance))
        yes_no = binary_cross_entropy_with_logits(output[:, self.yes_no], x[:, self.yes_no], reduction="none")
        total = total - yes_no.sum(1)
        return total + (x[:, self.grouped] * self.in_a_line(log_softmax(self.in_groups(output), 2))).sum(1)

    def means(self, output: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        """The expected row: numbers as they are, probabilities of the others."""
        row = output.clone()
        row[:, self.yes_no] = torch.sigmoid(output[:, self.yes_no])
        row[:, self.grouped] = self.in_a_line(torch.softmax(self.in_groups(output), 2))
        return row

    def shares(self, output: Float[Tensor, "B D"], open_: Bool[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        """A softmax over the open levels of each group; 0 elsewhere. Small tables: sums are quicker than gathering."""
        weight = output.clamp(-_STEEP, _STEEP).exp() * open_
        grouped = self.kind >= 0
        # 1 is added where there is no group: nothing is divided by nothing, forwards or backwards
        total = product(weight, self.together.to(output.dtype)) + ~grouped
        return weight / total.clamp(min=torch.finfo(output.dtype).tiny) * grouped

    def likeliest(self, shares: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        """1 for the level of each group with the largest share; 0 elsewhere."""
        grouped = self.kind >= 0
        largest = self.in_groups(shares).amax(2)[:, self.kind.clamp(min=0)]
        return ((shares >= largest) & grouped).to(shares.dtype)

    def in_groups(self, output: Float[Tensor, "B D"]) -> Float[Tensor, "B g w"]:
        """The columns of all groups side by side, so that one operation does for all; minus infinity for the rest."""
        return pad(output, (0, 1), value=-torch.inf)[:, self.table]

    def in_a_line(self, levels: Float[Tensor, "B g w"]) -> Float[Tensor, "B n"]:
        """Back to the columns of all groups, one group after the other."""
        return levels.flatten(1)[:, self.present]
