"""What an explainer has learnt: how tables are read, a method, the model that decides, and how far to trust it."""

from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from gpae.arrays import Labels, Rows
from gpae.artefact import State, flatten, unflatten
from gpae.errors import InputError
from gpae.explainer import Explainer
from gpae.explainers.gpae import GPAE
from gpae.favourable import FavourableRows
from gpae.models.calibration import Calibration
from gpae.models.given_model import GivenModel, logit_of
from gpae.models.given_provers import provers_of
from gpae.models.gp_autoencoder import GPAEClassifier
from gpae.models.own_model import OwnModel
from gpae.models.replicas import Replicas
from gpae.models.surrogate import Fidelity, Guide
from gpae.plan_finder import PlanFinder
from gpae.proofs.certificate import Certificate, Prove
from gpae.proofs.enumeration import by_every_row
from gpae.proofs.fourier import by_branch_and_bound
from gpae.proofs.rules import by_rules
from gpae.rehearsal import AT_MOST, RETRAINED, rehearsed
from gpae.search.neighbourhood import Surroundings
from gpae.search.refine import Logits
from gpae.table.codec import Codec, Encoded
from gpae.table.constraint import Array
from gpae.table.freedom import Freedom
from gpae.table.levels import Level
from gpae.table.table_maker import TableMaker
from gpae.trust import Trust

__all__ = ["Learnt"]

_TO_DISTIL = 10_000
"""Training rows that a surrogate is distilled from at most; the model itself is asked about all."""
_KEPT_FOR_FIDELITY = 10
"""One in so many training rows the surrogate does not see: how well it knows the model is measured there."""
_THE_OTHER_WAY_ROUND = 0.35
"""An AUC on the training table below which a model is not taken for a poor one."""
_THE_SAME = 0.9
"""Of the rows kept that a model favours: the share that it must favour when it is given again."""
_GIVEN_RETRAINED = 2.0
"""How far retraining a user's model moves its logits, in terms of what the surrogate's last layer alone would: as was
seen on LAW and GMC."""
_TO_PROBE = 500
"""Rows on which a user's model is looked at for a structure that allows proofs."""


@dataclass(frozen=True, slots=True, eq=False)
class Learnt:
    """Everything that answers need."""

    codec: Codec
    method: Explainer
    favourable: FavourableRows
    scale: Array
    """D: one over the standard deviation of numbers, 1 for everything else."""
    trust: Trust
    given: GivenModel | None = None
    """The user's own model, where that is what decides, and"""
    provers: tuple[Prove, ...] = ()
    """what its structure allows to prove, and"""
    fidelity: Fidelity | None = None
    """how well the surrogate that guides the search knows it."""

    @classmethod
    def from_labels(
        cls, codec: Codec, method: Explainer, X: Rows, y: Labels, validation: tuple[Rows, Labels] | None, seed: int
    ) -> "Learnt":
        """Learn from labelled rows: the method trains the classifier that it explains."""
        method.fit(X, y, layout=codec.layout, validation=validation)
        decides = OwnModel(method.classifier_)
        watched = _watched(method.classifier_, X, y) if validation is None else validation
        calibration = Calibration.of(logit_of(decides.probability(watched[0], watched[0])), watched[1])
        trust = Trust(calibration, _replicas(method.classifier_, X, y, seed, RETRAINED, AT_MOST / RETRAINED))
        if trust.replicas is not None and isinstance(method, GPAE):
            trust = replace(trust, replicas=rehearsed(method, trust.replicas, X, seed))
        return cls._completed(codec, method, X, decides.probability(X, X), trust)

    @classmethod
    def from_model(
        cls, codec: Codec, method: Explainer, model: Any, train: Any, labels: Labels | None, seed: int
    ) -> "Learnt":
        """Learn from a model: a surrogate is distilled from what it says of the training rows.

        ``labels`` are those of the rows, where they are known.
        """
        schema, encoded = codec.schema, codec.encode(train)
        assert schema.labels is not None
        known = _spread_out(encoded.values, _TO_PROBE)
        given = GivenModel.of(model, TableMaker.like(train, schema), schema.labels, known)
        scores = given(encoded.values)
        if (scores > 0.5).all() or (scores <= 0.5).all():
            says = schema.labels[int(scores[0] > 0.5)]
            raise InputError(f"the model says {says!r} of every training row; there is nothing to explain")
        if labels is not None:
            _refuse_the_other_way_round(scores, labels, schema.labels[1])
        mixed = np.random.Generator(np.random.Philox(seed)).permutation(len(scores))
        some, others = np.split(mixed, [min(_TO_DISTIL, len(mixed) - len(mixed) // _KEPT_FOR_FIDELITY)])
        surrogate = method.get_params(deep=False)["classifier"].distil(encoded.rows[some], scores[some])
        method.set_params(classifier=surrogate)
        method.fit(encoded.rows, (scores > 0.5).astype(np.int64), layout=codec.layout)
        if labels is None:  # what the model believes stands in for what is so
            labels = (np.random.Generator(np.random.Philox(seed)).random(len(scores)) < scores).astype(np.int64)
        trust = Trust(None, _replicas(method.classifier_, encoded.rows, labels, seed, _GIVEN_RETRAINED))
        learnt = cls._completed(codec, method, encoded.rows, scores, trust)
        others = others if len(others) else some
        fidelity = Fidelity.of(scores[others], method.classifier_.predict_proba(encoded.rows[others])[:, 1])
        return replace(learnt.with_model(model, given, encoded), fidelity=fidelity)

    @classmethod
    def _completed(cls, codec: Codec, method: Explainer, X: Rows, said: Array, trust: Trust) -> "Learnt":
        """Keep what the search and the answers need of the training rows that the model favours."""
        chosen = X[said > 0.5]
        rows, density = chosen if len(chosen) else X, method.classifier_
        # a classifier without a density of its rows leaves the plans' plausibility open
        densities = density.score_samples(rows) if hasattr(density, "score_samples") else np.zeros(0)
        spread = X.std(axis=0)
        number = codec.layout.continuous & (spread > 0)
        scale = np.where(number, 1.0 / np.where(number, spread, 1.0), 1.0)
        return cls(codec, method, FavourableRows.of(rows, densities, codec), scale, trust)

    def with_model(self, model: Any, given: GivenModel, rows: Encoded) -> "Learnt":
        """The same with a user's model to decide; ``rows`` are some to look at it with."""
        some = _spread_out(rows.values, _TO_PROBE)
        provers = provers_of(model, given, self.codec.schema, some, given.favourable)
        return replace(self, given=given, provers=provers)

    def with_given(self, model: Any, speaks: str) -> "Learnt":
        """The same with the user's model that it was learnt from; some favourable rows stand for its training table.

        ``speaks``: how it was asked.
        """
        some = self.codec.decode(self.favourable.some)
        assert self.codec.schema.labels is not None
        maker = TableMaker.like(some, self.codec.schema)
        given = GivenModel.of(model, maker, self.codec.schema.labels, speaks=speaks)
        encoded = self.codec.encode(some)
        favoured = float((given(encoded.values) > 0.5).mean())
        if favoured < _THE_SAME:
            raise InputError(
                f"this is not the model that the explainer was made for: of rows that that one favours, it favours "
                f"{favoured:.0%}; give the same model, or use TabularExplainer.explaining for this one"
            )
        return self.with_model(model, given, encoded)

    def calibrated_on(self, rows: Encoded, labels: Labels) -> "Learnt":
        """The same with probabilities calibrated on labelled rows that the model was not fitted to."""
        logits = logit_of(self.decides.probability(rows.rows, rows.values))
        return replace(self, trust=replace(self.trust, calibration=Calibration.of(logits, labels)))

    @property
    def decides(self) -> OwnModel | GivenModel:
        """The model that decides: the user's, or the one that the method has trained."""
        return self.given or OwnModel(self.method.classifier_)

    def finder(self, survival: float | None = None, *, quick: bool = False) -> PlanFinder:
        """What searches for plans, and proves that there are none.

        ``survival`` asks for plans that at least such a share of retrained models favours as well. ``quick``: the
        method's own search, which takes its time, is left out.
        """
        decides, guide = self.decides, self._guide(quick)
        lasting, careful = (None, None) if survival is None else self._lasting(survival)
        every = partial(_by_every_row, lasting or decides.logits, survival)
        return PlanFinder(
            logits=decides.logits,
            around=_surroundings(self),
            propose=guide or (None if quick else self.method.proposals),
            refit=None if guide is None or self.given is None else guide.refitted,
            provers=(by_rules, every, *(self.provers if self.given else self._own_provers())),
            lasting=lasting,
            careful=careful,
        )

    def _own_provers(self) -> tuple[Prove, ...]:
        """What the structure of the classifier that the method has trained allows to prove."""
        classifier = self.method.classifier_
        if not isinstance(classifier, GPAEClassifier):
            return ()
        return (lambda person, seconds, margin: by_branch_and_bound(person, classifier.model_, seconds, margin),)

    def _guide(self, quick: bool) -> Guide | None:
        """What guides the search on a user's model, in a hurry, or for GPAE; None: the method itself, if anything.

        GPAE's own search takes far longer and leads, once its plans are refined, to none that are better.
        """
        classifier = self.method.classifier_
        if not isinstance(classifier, GPAEClassifier):
            return None
        guided = self.given is not None or quick or isinstance(self.method, GPAE)
        return Guide(classifier, self.scale) if guided else None

    def _lasting(self, level: float) -> tuple[Logits, Logits]:
        """What a plan that lasts must reach, and what is aimed at: a proof is about the first."""
        decides, replicas = self.decides, self.trust.replicas
        if replicas is None:
            raise InputError(
                f"survival={level} cannot be asked of this method: only a GPAE's last layer can be redrawn; "
                "use method='gpae', or a post-hoc method that explains one"
            )

        def logits(freedom: Freedom, person: NDArray[np.intp], U: Array, *, careful: bool) -> Array:
            said = decides.logits(freedom, person, U)
            return np.minimum(said, replicas.at_level(U, said, level, careful=careful))

        return partial(logits, careful=False), partial(logits, careful=True)

    # saving

    def state(self) -> State:
        """Everything but the user's model, which is given again at loading."""
        favourable, trust = self.favourable, self.trust
        arrays = {
            "log_densities": favourable.log_densities,
            "distributions": favourable.distributions,
            "favourable": favourable.some,
            "scale": self.scale,
            **(flatten(trust.replicas, "replicas") if trust.replicas is not None else {}),
        }
        values = {
            "codec": self.codec.to_dict(),
            "calibration": None if trust.calibration is None else asdict(trust.calibration),
            "given": None if self.given is None else self.given.speaks,
            "fidelity": None if self.fidelity is None else asdict(self.fidelity),
        }
        return State(arrays, values).with_part("method", self.method.state())

    @classmethod
    def from_state(cls, state: State, method: Explainer) -> "Learnt":
        """Rebuild from :meth:`state`, with an unfitted method of the same kind."""
        arrays, values = state.arrays, state.values
        codec = Codec.from_dict(values["codec"])
        method.restore(state.part("method"), codec.layout)
        favourable = FavourableRows(*(arrays[name] for name in ("log_densities", "distributions", "favourable")))
        calibration, fidelity = values["calibration"], values["fidelity"]
        there = any(name.startswith("replicas.") for name in arrays)
        trust = Trust(
            None if calibration is None else Calibration(**calibration),
            unflatten(Replicas, arrays, "replicas") if there else None,
        )
        known = None if fidelity is None else Fidelity(**fidelity)
        return cls(codec, method, favourable, arrays["scale"], trust, fidelity=known)


@lru_cache(maxsize=4)
def _surroundings(learnt: Learnt) -> Surroundings:
    """Packed once: every call asks."""
    return Surroundings.of(learnt.favourable.some, learnt.scale)


def _by_every_row(
    logits: Logits, survival: float | None, person: Freedom, seconds: float, margin: float
) -> tuple[Certificate | None, Array | None]:
    """Ask about every row, and say in the proof if it is one of a decision that is to last."""
    proof, row = by_every_row(person, lambda people, U: logits(people, np.arange(len(U)), U), seconds, margin)
    if proof is not None and survival is not None:
        proof = replace(proof, details=proof.details | {"survival": survival})
    return proof, row


def _refuse_the_other_way_round(scores: Array, labels: Labels, favourable: Level) -> None:
    """A model whose scores fall where the label is the favourable one speaks of the other label."""
    if len(np.unique(labels)) == 2 and (auc := float(roc_auc_score(labels, scores))) < _THE_OTHER_WAY_ROUND:
        raise InputError(
            f"the model's scores are lower where the label is {favourable!r} (AUC {auc:.2f}): they seem to be of the "
            "other label; give a function of a table that returns the probability of the favourable one"
        )


def _spread_out(values: Array, n: int) -> Array:
    """At most n of some rows, from the first to the last."""
    return values[np.linspace(0, len(values) - 1, min(n, len(values))).astype(int)]


def _watched(classifier: Any, X: Rows, y: Labels) -> tuple[Rows, Labels]:
    """The training rows that a classifier kept for deciding when to stop; all rows, where it kept none."""
    watched = getattr(classifier, "watched_", None)
    return (X, y) if watched is None else (X[watched], y[watched])


def _replicas(classifier: Any, X: Rows, y: Labels, seed: int, spread: float, caution: float = 1.0) -> Replicas | None:
    if not isinstance(classifier, GPAEClassifier):
        return None
    return Replicas.of(classifier, X, y, seed=seed, spread=spread, caution=caution)
