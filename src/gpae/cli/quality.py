"""How well a fitted model does on rows that it was not fitted to."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpae.report.demo_view import Quality
    from gpae.tabular import TabularExplainer

__all__ = ["quality"]


def quality(explainer: "TabularExplainer", table: Any) -> "Quality":
    """Measure classifier and density on a table with the label column."""
    import numpy as np
    from sklearn.metrics import roc_auc_score

    from gpae.report.demo_view import Quality

    y = explainer.codec_.labels(table)
    favourable = explainer.predict_proba(table)[:, 1]
    share = float(y.mean())
    both = 0 < share < 1  # of one class only there is no ranking to judge
    density, envelope = _log_likelihoods(explainer, table)
    return Quality(
        rows=len(y),
        accuracy=float(np.mean((favourable > 0.5) == (y == 1))),
        auc=float(roc_auc_score(y, favourable)) if both else None,
        majority=max(share, 1 - share),
        log_density=density,
        log_envelope=envelope,
    )


def _log_likelihoods(explainer: "TabularExplainer", table: Any) -> tuple[float | None, float | None]:
    """Return the mean log density of the rows' latents, and that under the Gaussian envelope alone."""
    import torch

    from gpae.models.gp_autoencoder import GPAEClassifier
    from gpae.numerics.density import log_density, log_envelope

    model = explainer.method_.classifier_
    if not isinstance(model, GPAEClassifier):
        return None, None
    latents = torch.as_tensor(model.transform(explainer.codec_.encode(table).rows))
    values = (density(model.density_, latents).mean() for density in (log_density, log_envelope))
    whole, envelope = map(float, values)
    return whole, envelope
