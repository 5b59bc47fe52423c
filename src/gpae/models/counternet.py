"""CounterNet: a predictor, which is the classifier, and a generator of counterfactuals that sees what it sees."""

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from gpae.arrays import Probabilities, Rows
from gpae.artefact import State
from gpae.models.column_kinds import ColumnKinds
from gpae.models.network import arrays_of, load_arrays, perceptron
from gpae.numerics.tiles import in_tiles

__all__ = ["CounterNetClassifier", "Generator", "Predictor"]

_SLOPE = 0.01
_HIDDEN = 50
_CODE = 10


class Predictor(nn.Module):
    """h = E(x), q = P(h), and the logit, linear in q; the generator sees h and q."""

    n_cues = 2 * _CODE

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.encoder = perceptron((width, _HIDDEN, _CODE), generator, _bend)
        self.predictor = perceptron((_CODE, _CODE), generator)
        self.head = perceptron((_CODE, 1), generator)

    def forward(self, x: Float[Tensor, "B D"]) -> tuple[Float[Tensor, "B c"], Float[Tensor, " B"]]:
        """Return (h, q) and the logit."""
        h = _bend()(self.encoder(x))
        q = _bend()(self.predictor(h))
        return torch.cat([h, q], 1), self.head(q).squeeze(1)

    def logits(self, x: Float[Tensor, "B D"]) -> Float[Tensor, " B"]:
        """Return the logits alone."""
        return self(x)[1]


class Generator(nn.Module):
    """From what is seen of a person to a row that the person may become, whole levels and steps apart."""

    def __init__(self, n_cues: int, columns: ColumnKinds, generator: torch.Generator) -> None:
        super().__init__()
        self.columns = columns
        self.network = perceptron((n_cues, _HIDDEN, _HIDDEN, len(columns.kind)), generator, _bend)

    def forward(
        self,
        cues: Float[Tensor, "B c"],
        lower: Float[Tensor, "B D"],
        upper: Float[Tensor, "B D"],
    ) -> Float[Tensor, "B D"]:
        """Numbers inside their bounds, a softmax over the open levels of each group; both with a gradient."""
        raw, columns = self.network(cues), self.columns
        row = torch.minimum(torch.maximum(torch.sigmoid(raw), lower), upper)
        # of a fixed group only the person's own level is open
        return torch.where(columns.kind >= 0, columns.shares(raw, upper > 0), row) if columns.groups else row

    def decided(self, row: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
        """The row with its likeliest levels and a plain yes or no; gradients pass as if nothing had been decided."""
        soft, columns = row.detach(), self.columns
        hard = soft.clone()
        hard[:, columns.yes_no] = soft[:, columns.yes_no].round()
        if columns.groups:
            hard = torch.where(columns.kind >= 0, columns.likeliest(soft), hard)
        return row + (hard - soft)


class CounterNetClassifier:
    """The predictor as a classifier, in double precision and in tiles."""

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor.double().eval().requires_grad_(False)

    def decision_function(self, X: Rows) -> NDArray[np.float64]:
        """The logits."""
        (g,) = in_tiles(lambda x: (self.predictor(x)[1],), (torch.tensor(X, dtype=torch.float64),))
        return np.asarray(g.numpy())

    def predict_proba(self, X: Rows) -> Probabilities:
        """Class probabilities, B x 2."""
        favourable = 1 / (1 + np.exp(-np.clip(self.decision_function(X), -700, 700)))
        return np.column_stack([1 - favourable, favourable])

    def state(self) -> State:
        """The weights."""
        return State(arrays_of(self.predictor), {})

    @classmethod
    def from_state(cls, state: State) -> "CounterNetClassifier":
        """Rebuild from :meth:`state`."""
        width = state.arrays["encoder.0.weight"].shape[1]
        model = cls(Predictor(width, torch.Generator()))
        load_arrays(model.predictor, state.arrays)
        return model


def _bend() -> nn.Module:
    return nn.LeakyReLU(_SLOPE)
