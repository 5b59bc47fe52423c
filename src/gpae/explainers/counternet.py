"""CounterNet: a network that answers with a counterfactual in one pass."""

from numbers import Real
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gpae.arrays import Labels, Rows
from gpae.artefact import State
from gpae.classifier import Classifier
from gpae.errors import InputError, one_of
from gpae.explainer import EXPLAINERS, Explainer, Query
from gpae.models.budget import batches_and_epochs
from gpae.models.column_kinds import ColumnKinds
from gpae.models.counternet import CounterNetClassifier, Generator, Predictor
from gpae.models.counternet_judge import Described, Judge
from gpae.models.counternet_training import LossWeights, People, Schedule, Training
from gpae.models.explained import explained_classifier
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.held_out import held_out_tenth
from gpae.models.network import arrays_of, load_arrays
from gpae.numerics.tiles import in_tiles
from gpae.search.rounding import finalised
from gpae.table.layout import Layout

__all__ = ["CounterNet"]

_W_PROX = (0.1, 0.3, 1.0, 3.0)
_ANSWERED = 0.99
_LOOKED_AT = 2000


class CounterNet(Explainer):
    """A generator of counterfactuals, trained beside the classifier that it explains.

    **Objective.** With h = E(x), q = P(h), p(x) = sigmoid(linear(q)) and c = G(h, q), on each mini-batch in turns

        encoder and predictor:   w_pred (p(x) - y)^2
        generator alone:         w_valid (p(c) - (1 - round p(x)))^2 + w_prox |x - c|^2 / D.

    c has its numbers inside the person's bounds and a softmax over the levels of each group, with gradients through
    both; at test the likeliest level is taken and the row is rounded and judged. Nothing is sampled.

    **Differs from the paper.** It replaces immutable features in the answer; here the generator knows of them in
    training too (``posthoc_mask`` for the paper's way). Against the reference implementation: the predictor is frozen
    in the generator's turn; at the end the generator goes on alone, judged by the rows that it will answer with, of
    whole levels (straight-through gradients); w_prox is chosen; training is stopped by held-out rows and the best
    weights are kept, without dropout and smoothed labels; batches are of 256. The paper has this method explain its own
    model only; ``mode="posthoc"`` takes the latents and the logit of the GPAE's classifier as h and q, and trains the
    generator.

    Parameters
    ----------
    classifier
        The classifier to explain with ``mode="posthoc"``, fitted or not; None: a :class:`GPAEClassifier` with its
        defaults. With ``mode="native"`` only its seed matters.
    mode
        ``"native"``: the predictor is the classifier. ``"posthoc"``: see above.
    w_pred, w_valid, w_prox
        Weights of the three errors. Encoded rows lie in [0, 1], hence with w_prox below w_valid crossing the boundary
        always pays. ``w_prox="auto"`` begins with the reference's 0.1, at which nearly all answers are valid, and
        trains the generator further with 0.3, 1 and 3, as long as 99 % of the rows that are looked at (or as many as
        with 0.1, where that is fewer) keep a valid answer: as near to the person as validity allows.
    posthoc_mask
        Whether fixed features and directions are unknown in training.
    learning_rate, batch_size
        Of Adam; a small table is split into eight batches.
    max_epochs, max_updates, patience
        Training stops after so many epochs, after so many updates, or when held-out rows have seen no progress for
        ``patience`` epochs; then the generator goes on alone until the same happens again.
    """

    classifier_: CounterNetClassifier | GPAEClassifier
    generator_: Generator
    described_: Described
    """With ``mode="posthoc"``."""
    losses_: list[float]
    w_prox_: float
    """The weight of proximity, given or chosen."""

    def __init__(
        self,
        *,
        classifier: GPAEClassifier | None = None,
        mode: Literal["native", "posthoc"] = "native",
        w_pred: float = 1.0,
        w_valid: float = 0.2,
        w_prox: float | Literal["auto"] = "auto",
        posthoc_mask: bool = False,
        learning_rate: float = 3e-3,
        batch_size: int = 256,
        max_epochs: int = 60,
        max_updates: int = 3000,
        patience: int = 10,
    ) -> None:
        self.classifier = classifier
        self.mode = mode
        self.w_pred = w_pred
        self.w_valid = w_valid
        self.w_prox = w_prox
        self.posthoc_mask = posthoc_mask
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.max_updates = max_updates
        self.patience = patience

    def _fit(self, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None) -> Classifier:
        self._check_parameters()
        given = None if self.classifier is None else self.classifier.random_state
        draws = torch.Generator().manual_seed(given if isinstance(given, int) else 0)
        if self.mode == "native":
            predictor = Predictor(X.shape[1], draws)
            self.generator_ = Generator(predictor.n_cues, ColumnKinds.of(self.layout_), draws)
            self._train(predictor, X, y, validation, draws)
            return CounterNetClassifier(predictor)
        explained = explained_classifier(self.classifier, X, y, validation)
        self.described_ = Described.on(explained.model_, torch.as_tensor(X))
        self.generator_ = Generator(len(self.described_.centre), ColumnKinds.of(self.layout_), draws)
        self._train(self.described_.for_training(), X, y, validation, draws)
        return explained

    def _check_parameters(self) -> None:
        one_of("mode", self.mode, ("native", "posthoc"))
        for name in ("w_pred", "w_valid", "learning_rate"):
            if not 0 < getattr(self, name) < np.inf:
                raise InputError(f"{name}={getattr(self, name)!r} must be a number above 0")
        if self.w_prox != "auto" and not (isinstance(self.w_prox, Real) and 0 <= self.w_prox < np.inf):
            raise InputError(f"w_prox={self.w_prox!r} must be 'auto' or a number of at least 0")
        for name in ("batch_size", "max_epochs", "max_updates", "patience"):
            if not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)!r} must be a whole number of at least 1")

    def _train(
        self,
        judge: Judge,
        X: Rows,
        y: Labels,
        validation: tuple[Rows, Labels] | None,
        draws: torch.Generator,
    ) -> None:
        self.w_prox_ = _W_PROX[0] if self.w_prox == "auto" else float(self.w_prox)
        weights = LossWeights(self.w_pred, self.w_valid, self.w_prox_)
        rows = self._tensors(X, y)
        learnt, watched = held_out_tenth(rows, draws) if validation is None else (rows, self._tensors(*validation))
        work = batches_and_epochs(len(learnt[0]), self.batch_size, self.max_epochs, self.max_updates)
        schedule = Schedule(self.learning_rate, *work, self.patience)
        training = Training(judge, self.generator_, weights, schedule)
        people, others = (People.of(*part) for part in (learnt, watched))
        self.losses_ = training.run(people, others, draws)
        if self.w_prox == "auto":
            self._draw_nearer(training, people, others, draws)
        self.generator_.double()

    def _draw_nearer(self, training: Training, learnt: People, watched: People, draws: torch.Generator) -> None:
        """Raise the weight of proximity while the answers stay valid."""
        looked_at = torch.cat([watched.x, learnt.x])[:_LOOKED_AT]
        least = min(_ANSWERED, self._answered(training.judge, looked_at))
        for w_prox in _W_PROX[1:]:
            before = {name: value.clone() for name, value in self.generator_.state_dict().items()}
            losses = training.draw_nearer(learnt, watched, draws, w_prox)
            if self._answered(training.judge, looked_at) < least:
                self.generator_.load_state_dict(before)
                return
            self.w_prox_, self.losses_ = w_prox, self.losses_ + losses

    @torch.no_grad()
    def _answered(self, judge: Judge, x: Tensor) -> float:
        """Share of rows whose answer, rounded and inside the bounds, the judge puts in the other class."""
        X = x.double().numpy()
        box = self.layout_.box(X)
        cues, said = judge(x)
        row = self.generator_(cues, *(torch.tensor(bound, dtype=x.dtype) for bound in box))
        final = finalised(self.layout_, row.double().numpy(), X, *box)
        return float(((judge(torch.tensor(final, dtype=x.dtype))[1] > 0) != (said > 0)).double().mean())

    def _tensors(self, X: Rows, y: Labels) -> tuple[Tensor, ...]:
        """Rows, labels and bounds; with ``posthoc_mask`` the bounds are the range of the data."""
        lower, upper = self.layout_.box(X)
        if self.posthoc_mask:
            lower, upper = np.zeros_like(X), np.ones_like(X)
        return tuple(torch.tensor(part, dtype=torch.float32) for part in (X, y, lower, upper))

    def _judge(self) -> Judge:
        return self.classifier_.predictor if isinstance(self.classifier_, CounterNetClassifier) else self.described_

    def _search(self, query: Query, k: int, seed: int) -> tuple[Labels, Rows]:
        judge = self._judge()

        def answer(x: Tensor, lower: Tensor, upper: Tensor) -> tuple[Tensor]:
            return (self.generator_(judge(x)[0], lower, upper),)

        (row,) = in_tiles(answer, [torch.as_tensor(part) for part in (query.x, query.lower, query.upper)])
        return np.arange(len(row)), finalised(self.layout_, row.numpy(), query.x, query.lower, query.upper)

    def state(self) -> State:
        """The generator and the classifier that it belongs to."""
        native = isinstance(self.classifier_, CounterNetClassifier)
        seen = {} if native else {"centre": self.described_.centre.numpy(), "spread": self.described_.spread.numpy()}
        state = State(seen, {"mode": "native" if native else "posthoc", "losses": self.losses_, "w_prox": self.w_prox_})
        state = state.with_part("generator", State(arrays_of(self.generator_), {}))
        return state.with_part("classifier", self.classifier_.state())

    def restore(self, state: State, layout: Layout) -> None:
        """Rebuild from :meth:`state`."""
        self.layout_, self.losses_, self.w_prox_ = layout, list(state.values["losses"]), state.values["w_prox"]
        saved = state.part("classifier")
        if state.values["mode"] == "native":
            self.classifier_ = CounterNetClassifier.from_state(saved)
            n_cues = self.classifier_.predictor.n_cues
        else:
            self.classifier_ = GPAEClassifier.from_state(saved)
            seen = (torch.tensor(state.arrays[name]) for name in ("centre", "spread"))
            self.described_ = Described(self.classifier_.model_, *seen)
            n_cues = len(self.described_.centre)
        self.generator_ = Generator(n_cues, ColumnKinds.of(layout), torch.Generator()).double()
        load_arrays(self.generator_, state.part("generator").arrays)


EXPLAINERS.add("counternet", CounterNet, paper_name="CounterNet")
