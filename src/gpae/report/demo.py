"""The page that ``gpae demo`` writes: what each person would have to change, and how far to trust it."""

from collections.abc import Mapping

from gpae.models.density_weight import DensityWeight
from gpae.plots.density import latent_density
from gpae.plots.divergence import divergence_curve, finding, latents_by_beta
from gpae.plots.latent_plane import latent_plane
from gpae.plots.numbers import percent
from gpae.plots.plan import plan as draw_plan
from gpae.plots.plan_view import PlanView, plausibility_text
from gpae.report.demo_view import DemoReport, LatentCloud, Person
from gpae.report.html import Html, element, heading, join, listing, page, paragraph, table, text
from gpae.report.inline_figure import inline_figure
from gpae.report.schema_table import schema_table
from gpae.report.wording import STATUS_MEANINGS, classifier_words, density_words, divergence_words

__all__ = ["demo_report"]

SECTIONS = {
    "people": "The people",
    "trust": "How far to trust this",
    "latents": "Inside the model",
    "schema": "The table",
}


def demo_report(report: DemoReport) -> str:
    """Return the page as one self-contained HTML file."""
    title = f"What would have to change for {_outcome(report)}"
    people = join(_person(person, f"person{i}") for i, person in enumerate(report.people))
    main = join(
        [
            _section("people", people),
            _section("trust", _trust(report)),
            _section("latents", _latents(report.cloud, report.choice)),
            _section("schema", element("div", schema_table(report.schema), class_="card")),
        ]
    )
    body = [_header(report, title), element("main", main), _footer(report.notes)]
    return page(title, join(body))


def _outcome(report: DemoReport) -> str:
    return f"{report.schema.label} {report.schema.favourable}"


def _section(anchor: str, content: Html) -> Html:
    if not content:
        return Html("")
    return element("section", join([heading(2, SECTIONS[anchor], anchor), content]))


def _header(report: DemoReport, title: str) -> Html:
    helped = sum(bool(person.plans) for person in report.people)
    words = (
        f"A model fitted to {report.dataset} does not predict {_outcome(report)} for the people below. "
        f"For each of them this page shows a small and plausible change, where the {report.method} method "
        "found one, after which the model would."
    )
    tiles = {"people with a plan": f"{helped} of {len(report.people)}"}
    if report.quality.accuracy is not None:
        tiles["held-out accuracy"] = f"{100 * report.quality.accuracy:.1f} %"
    if report.quality.auc is not None:
        tiles["held-out AUC"] = f"{report.quality.auc:.3f}"
    if report.choice is not None:
        tiles["weight β of the density"] = f"{report.choice.beta:.3g}"
    return element("header", join([heading(1, title), paragraph(words, "lead"), _pairs(tiles, "tiles")]))


def _pairs(entries: Mapping[str, str], class_: str) -> Html:
    rows = [element("div", element("dt", text(name)) + element("dd", text(value))) for name, value in entries.items()]
    return element("dl", join(rows), class_=class_)


def _person(person: Person, anchor: str) -> Html:
    now = element("section", join([heading(4, "Now"), _pairs(person.facts, "facts")]))
    alone = len(person.plans) == 1
    plans = [
        _plan(plan, f"{anchor}-plan{i}", "What would have to change" if alone else f"Plan {i + 1}")
        for i, plan in enumerate(person.plans)
    ]
    return element("article", join([heading(3, person.name), now, *(plans or [_no_plan(person)])]), class_="card")


def _no_plan(person: Person) -> Html:
    status = person.status.replace("_", " ").capitalize()
    meaning = STATUS_MEANINGS.get(person.status)
    said = f"{status}: {meaning}." if meaning else f"{status}."
    return element("section", join([heading(4, "No plan"), paragraph(f"{said} {person.reason}".strip())]))


def _plan(view: PlanView, anchor: str, title: str) -> Html:
    rows = [(change.name, *change.texts) for change in view.changes]
    caption = f"{len(rows)} of {len(rows) + len(view.unchanged)} features change"
    sentences = listing(change.sentence for change in view.changes) if rows else paragraph("Nothing.")
    said = element("div", join([heading(4, title), sentences, _odds(view)]))
    listed = table(caption, ("feature", "now", "plan"), rows) if rows else Html("")
    drawing = inline_figure(draw_plan(view, titled=False), anchor, _described(view))
    return element("section", join([element("div", join([said, listed]), class_="beside"), drawing]))


def _described(view: PlanView) -> str:
    return " ".join([f"{view.headline}.", *(change.sentence for change in view.changes)])


def _odds(view: PlanView) -> Html:
    """Return the probability before and after, as a bar with a mark at one half and in words."""
    bars = [
        element("span", "", class_="after", style=f"width: {100 * view.probability_after:.1f}%"),
        element("span", "", class_="before", style=f"width: {100 * view.probability_before:.1f}%"),
        element("span", "", class_="half"),
    ]
    before, after = (element("b", text(percent(p))) for p in (view.probability_before, view.probability_after))
    plausible = plausibility_text(view.plausibility)
    words = Html(f"Probability of {text(view.outcome)}: {before} now, {after} with the plan.")
    return join(
        [
            element("div", Html("".join(bars)), class_="meter", aria_hidden="true"),
            element("p", Html(f"{words} {text(plausible)}{'.' if plausible else ''}"), class_="odds"),
        ]
    )


def _trust(report: DemoReport) -> Html:
    counts = [(name, f"{count:,}", STATUS_MEANINGS.get(name, "")) for name, count in report.statuses.items()]
    parts = [
        paragraph(
            "A plan says what this model would answer to another row. It does not say that acting on it "
            "causes the outcome in the world, nor that the model is fair."
        ),
        table("Query rows by status", ("status", "rows", "meaning"), counts, numeric=(1,)),
        heading(3, "The classifier"),
        paragraph(classifier_words(report.quality)),
        heading(3, "The density"),
        paragraph(density_words(report.quality)),
    ]
    if report.choice is not None:
        figure = inline_figure(
            divergence_curve(report.choice), "divergence", f"Curve: {finding(report.choice)}", class_="half"
        )
        parts += [heading(3, "The weight of the density"), paragraph(divergence_words(report.choice)), figure]
    return element("div", join(parts), class_="card")


def _latents(cloud: LatentCloud | None, choice: DensityWeight | None) -> Html:
    """Return the pictures of the latent space; nothing where it has no plane to show."""
    if cloud is None or cloud.latents.shape[1] < 2:
        return Html("")
    words = (
        "The model sees each row as a few numbers, its latent. A straight boundary in that space decides; "
        "a density over it says which latents are usual."
    )
    figures = [_density(cloud)]
    if choice is not None:
        plane = latent_plane(cloud.latents, cloud.model)
        drawing = latents_by_beta(choice, cloud.latents, cloud.favourable, plane)
        alt = "Small multiples of the latent plane: counterfactuals on the boundary at several weights β"
        caption = "β weighs plausibility against the size of the change."
        figures.append(inline_figure(drawing, "betas", alt, caption))
    return element("div", join([paragraph(words), *figures]), class_="card")


def _density(cloud: LatentCloud) -> Html:
    drawing = latent_density(cloud.latents, cloud.favourable, cloud.model, cloud.density)
    alt = "Left: latents of refused and favourable rows with the density's level sets. Right: its heat map."
    return inline_figure(drawing, "density", alt)


def _footer(notes: Mapping[str, str]) -> Html:
    lines = "; ".join(f"{name}: {value}" for name, value in notes.items())
    return element("footer", paragraph(f"Written by gpae. {lines}"))
