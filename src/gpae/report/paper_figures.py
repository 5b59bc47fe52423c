"""The figures of the paper, drawn from what the studies have left in the results folder."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from gpae.artefact import read_artefact
from gpae.benchmark.studies.correlations import Correlations
from gpae.benchmark.studies.digits import Digits
from gpae.benchmark.studies.latents import Latents
from gpae.files import written_whole
from gpae.plots.ablation import ablation_figure
from gpae.plots.correlations import correlation_figure
from gpae.plots.density import latent_density
from gpae.plots.digits import digits_figure
from gpae.plots.divergence import divergence_curve, finding, latents_by_beta
from gpae.plots.latent_plane import latent_plane
from gpae.plots.style import to_png, to_svg
from gpae.report.paper_page import Drawing

__all__ = ["FIGURES", "paper_drawings", "save_drawings"]

FIGURES = "figures"
"""The folder of the results with what the figures are drawn from."""


def paper_drawings(results: Path) -> tuple[list[Drawing], list[str]]:
    """The figures that can be drawn, and a sentence for each study that has not been run."""
    drawings: list[Drawing] = []
    missing = []
    for name, draw in _SOURCES.items():
        path = results / name
        if path.is_file():
            drawings += draw(path)
        else:
            missing.append(f"{name} is not there; `gpae bench figures -o {results}` makes it.")
    return drawings, missing


def save_drawings(drawings: list[Drawing], folder: Path) -> None:
    """Each figure as PNG and as SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in drawings:
        for suffix, content in ((".png", to_png(one.figure)), (".svg", to_svg(one.figure))):
            with written_whole(folder / f"{one.name}{suffix}") as temporary:
                temporary.write_bytes(content)


def _density(path: Path) -> list[Drawing]:
    data = Latents.from_state(read_artefact(path))
    words = "Latents of training rows in two dimensions with the level sets of the fitted density, and its heat map."
    drawing = latent_density(data.latents, data.favourable, data.classifier.model_, data.classifier.density_)
    return [Drawing("density", "The latent density on LCD", words, drawing)]


def _choice(path: Path) -> list[Drawing]:
    data = Latents.from_state(read_artefact(path))
    choice, plane = data.choice, latent_plane(data.latents, data.classifier.model_)
    return [
        Drawing("divergence", "The choice of β on LCD", f"{finding(choice)}.", divergence_curve(choice)),
        Drawing(
            "betas",
            "Counterfactuals on the boundary as β grows",
            "The larger β, the closer together the counterfactuals lie on the boundary, where the density is highest.",
            latents_by_beta(choice, data.latents, data.favourable, plane),
        ),
    ]


def _correlations(path: Path) -> list[Drawing]:
    data = Correlations.from_state(read_artefact(path))
    words = (
        "Absolute differences between the correlations of the counterfactuals and those of the target class on LCD "
        "with the loan term (one seed, defaults; darker: further apart); below, the shares of the two terms."
    )
    return [
        Drawing(
            "correlations",
            "Do counterfactuals hang together as the target class does?",
            words,
            correlation_figure(data),
        )
    ]


def _ablation(path: Path) -> list[Drawing]:
    frame = pd.read_csv(path)
    band = "GPAE with β = 0.02: mean over seeds on LCD and its 95 % confidence band"
    return [
        Drawing(
            "ablation-latents", "The latent dimension", f"{band}; 1000 features.", ablation_figure(frame, "latent_dim")
        ),
        Drawing(
            "ablation-features",
            "The number of Fourier features",
            f"{band}; 4 latents.",
            ablation_figure(frame, "n_features"),
        ),
    ]


def _digits(path: Path) -> list[Drawing]:
    words = (
        "The latent plane of a supervised auto-encoder with decoded images, counterfactuals of one query by every "
        "method, and decoded steps across the boundary."
    )
    return [Drawing("digits", "Digits", words, digits_figure(Digits.from_state(read_artefact(path))))]


_SOURCES: dict[str, Callable[[Path], list[Drawing]]] = {
    f"{FIGURES}/latents-2.figure": _density,
    f"{FIGURES}/latents-4.figure": _choice,
    f"{FIGURES}/correlations.figure": _correlations,
    "ablation/ablation.csv": _ablation,
    f"{FIGURES}/digits.figure": _digits,
}
