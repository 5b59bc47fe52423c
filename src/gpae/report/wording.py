"""What the figures of a model mean, in sentences that do not claim more than was measured."""

import numpy as np

from gpae.models.density_weight import DensityWeight
from gpae.plots.divergence import PAPER_BETA, finding
from gpae.plots.numbers import number
from gpae.report.demo_view import Quality

__all__ = ["STATUS_MEANINGS", "classifier_words", "density_words", "divergence_words"]

STATUS_MEANINGS = {
    "found": "a plan was found, and the model favours the row exactly as it is written here",
    "already_favourable": "the model favours the person as they are",
    "infeasible": "proved: no row that the person may reach is favoured",
    "not_found": "searched and none found, which proves nothing",
    "timeout": "the time ran out",
    "bad_input": "the row could not be read",
}


def classifier_words(quality: Quality) -> str:
    """Say how often the model is right."""
    if quality.accuracy is None:
        return "The model's accuracy was not measured."
    words = f"On {quality.rows:,} rows it was not fitted to, the model is right on {100 * quality.accuracy:.1f} %"
    if quality.majority is not None:
        words += f" (always answering the more common class: {100 * quality.majority:.1f} %)"
    if quality.auc is not None:
        words += f"; its AUC is {quality.auc:.3f}"
    return words + ". A plan can be no better than the model that it satisfies."


def density_words(quality: Quality) -> str:
    """Say whether the density describes new rows better than the envelope it starts from."""
    if quality.log_density is None or quality.log_envelope is None:
        return "The density was not measured on rows it was not fitted to."
    gain = quality.log_density - quality.log_envelope
    measured = (
        f"The density gives rows it was not fitted to {_nats(quality.log_density)} nats each on average; "
        f"the Gaussian envelope alone gives {_nats(quality.log_envelope)}"
    )
    if gain > 0:
        return f"{measured}, {gain:.2f} less. Plausibility rests on this density."
    return f"{measured}: the fitted density is no better here, so take plausibility with caution."


def divergence_words(choice: DensityWeight) -> str:
    """Say what the curve over beta looks like, beside what the paper reports."""
    paper = f"The paper reports a minimum inside its grid, at {PAPER_BETA} on its LCD data"
    scale = "β weighs nats against feature units, so its value does not carry over from one data set to another."
    if not np.isfinite(choice.divergence).any():
        return f"{finding(choice)}, so the choice of β rests on nothing measured."
    low, high = _within_one_error(choice)
    flat = f"Between β = {low} and {high} the curve stays within one standard error of its lowest point. "
    middle = flat if low != high else ""
    if choice.interior:
        return f"{finding(choice)}. {middle}{paper}. {scale}"
    edge = "the grid, not the curve, set this β"
    return f"{finding(choice)}; {edge}. {middle}{paper}; here there is none. {scale}"


def _within_one_error(choice: DensityWeight) -> tuple[str, str]:
    lowest = int(np.nanargmin(choice.divergence))
    limit = choice.divergence[lowest] + choice.standard_error[lowest]
    near = choice.grid[choice.divergence <= limit]
    return number(float(near.min())), number(float(near.max()))


def _nats(value: float) -> str:
    return number(value, decimals=2)
