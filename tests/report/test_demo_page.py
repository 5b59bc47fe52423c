import dataclasses
import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from gpae.report.demo import demo_report
from gpae.report.demo_view import DemoReport, Quality

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Outline(HTMLParser):
    """What a page is made of; complains about tags that do not match."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: Counter[str] = Counter()
        self.headings: list[int] = []
        self.ids: Counter[str] = Counter()
        self.references: set[str] = set()
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen[tag] += 1
        self.attributes.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        for name, value in attrs:
            self.ids.update([value] if name == "id" else [])
            self.references.update(_targets(value or ""))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def _targets(value: str) -> list[str]:
    return [a or b for a, b in re.findall(r"url\(#([^)]+)\)|^#(.+)$", value)]


@pytest.fixture(scope="module")
def page(report: DemoReport) -> str:
    return demo_report(report)


@pytest.fixture(scope="module")
def outline(page: str) -> Outline:
    parser = Outline()
    parser.feed(page)
    parser.close()
    return parser


def test_tags_are_balanced(outline):
    assert not outline.open


def test_nothing_is_fetched_and_nothing_runs(page, outline):
    assert "http" not in page
    assert "<script" not in page
    assert "@import" not in page
    assert not {"script", "link", "iframe", "object", "embed"} & set(outline.seen)
    for _, attributes in outline.attributes:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith(("data:image/png;base64,", "#"))


def test_names_and_values_are_text_not_markup(page, outline):
    assert "<b>job" not in page
    assert "&lt;b&gt;job" in page
    for raw in ("<i>", "<small>", "<stalled>", "<0>"):
        assert raw not in page
    for said in ("<b>job", "<i>now</i>", '"<script>alert(1)</script>"', "a <small> table", "The search <stalled>."):
        assert said in outline.text


def test_every_id_is_used_once_and_every_reference_leads_somewhere(outline):
    assert max(outline.ids.values()) == 1
    assert outline.references <= set(outline.ids)
    assert outline.references


def test_headings_go_down_one_level_at_a_time(outline):
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(outline.headings, outline.headings[1:], strict=False))


def test_every_figure_has_a_description(outline):
    drawings = [attributes for tag, attributes in outline.attributes if tag == "svg"]
    assert len(drawings) == outline.seen["figure"] == 4 + 3
    assert all(drawing["role"] == "img" and drawing["aria-label"] for drawing in drawings)


def test_a_person_reads_what_to_change_and_what_it_achieves(outline):
    for said in (
        "Lower debt from 500.0 to 120.5.",
        "Change <b>job from <i>now</i> to a & b.",
        "2 of 4 features change",
        "20 %",
        "55 %",
        "More plausible than 71 % of the favourable training rows",
        "Plan 2",
        "Not found: searched and none found, which proves nothing. The search <stalled>.",
    ):
        assert said in outline.text


def test_the_schema_is_shown_with_what_may_change(outline):
    for said in (
        "17 to 90",
        "only up",
        "0 to 900.5 in steps of 0.5 or −9 or missing",
        "low < middle < high",
        "and 4 more",
    ):
        assert said in outline.text


def test_figures_take_the_colours_of_the_page(page):
    drawn = page.split("<body>")[1]
    assert "var(--favourable, #0072b2)" in drawn
    assert not re.search(r"(fill|stroke): #0072b2", drawn)


def test_the_page_without_latents_choice_or_measures_still_stands(report):
    bare = dataclasses.replace(report, cloud=None, choice=None, quality=Quality(0), people=(), statuses={})
    parser = Outline()
    parser.feed(demo_report(bare))
    assert not parser.open
    assert "was not measured" in parser.text
    assert "Inside the model" not in parser.text


def test_the_same_report_gives_the_same_page(report, page):
    assert demo_report(report) == page
