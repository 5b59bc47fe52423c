"""Who takes part in a study: the methods as they are, and a few of them in another guise, to be shown beside them."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpae.errors import InputError
from gpae.explainer import Explainer
from gpae.explainers import EXPLAINERS
from gpae.models.gp_autoencoder import GPAEClassifier

__all__ = ["GUISES", "Contender", "contender"]


@dataclass(frozen=True, slots=True)
class Contender:
    """A method with settings, under the name that tables print."""

    method: str
    label: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self, classifier: GPAEClassifier, preset: str | None) -> Explainer:
        """Unfitted; it explains the shared classifier or brings its own, and takes the preset if it has one."""
        cls = EXPLAINERS[self.method]
        known = inspect.signature(cls).parameters
        options: dict[str, Any] = {"preset": preset} if preset and "preset" in known else {}
        if options and "objective" in known:
            options["objective"] = "carla_legacy"  # the version that the paper's numbers come from
        return cls(classifier=classifier, **options, **self.options)


GUISES = {
    "logistic-one-step": Contender("logistic", "LogReg (one step)", {"rounds": 1}),
    "logistic-posthoc": Contender("logistic", "LogReg (post-hoc)", {"mode": "posthoc"}),
    "sae-posthoc": Contender("sae", "SAE (post-hoc)", {"labels": "model"}),
    "counternet-posthoc": Contender("counternet", "CounterNet (post-hoc)", {"mode": "posthoc"}),
    "face-paths-only": Contender("face", "FACE (paths only)", {"last_resort": False}),
}
"""Not ranked. One step is the bare formula of LogReg; post-hoc, three methods explain the shared classifier instead of
their own; FACE without its last resort answers only whom a path leads to an answer."""


def contender(name: str) -> Contender:
    """A method of the registry as it is, or one of the guises."""
    if name in GUISES:
        return GUISES[name]
    try:
        method = EXPLAINERS.resolve(name)
    except InputError as error:
        raise InputError(f"{error}; and, for studies: {', '.join(GUISES)}") from None
    return Contender(method, EXPLAINERS.paper_name(method))
