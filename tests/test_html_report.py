"""The HTML report as a person sees it: opened in a headless browser, read, filtered, looked at."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ort_interop_gen.drift.finding import Finding, Severity
from ort_interop_gen.drift.report import Report, ordered, render
from ort_interop_gen.drift.sides import compare_sides, load_side
from PIL import Image
from playwright.sync_api import sync_playwright
from support import ROOT, need_tool

FACTS = ROOT / "spec" / "facts"
HOSTILE = "<img src=x onerror=alert(1)></script>&\"'"


@pytest.fixture(scope="module")
def report() -> Report:
    """1.26 to 1.28, which has three severities, with a made-up breaking finding of hostile text."""
    sides = [load_side(name, FACTS, ("linux",)) for name in ("1.26.0", "1.28.0")]
    bad = Finding(
        "slot-moved", Severity.BREAKING, HOSTILE, HOSTILE, HOSTILE, HOSTILE[::-1], hint=HOSTILE
    )
    found = compare_sides(sides[0], sides[1], ("linux",))
    return Report("diff", "1.26.0", "1.28.0", ordered([*found, bad]), root=ROOT)


@pytest.fixture(scope="module")
def page_file(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(report, "html"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=need_tool("chromium"), args=["--no-sandbox"]
        )
        yield found
        found.close()


@pytest.fixture
def page(browser: Any, page_file: Path) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1100, "height": 800}, offline=True)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.goto(page_file.as_uri())
    yield page
    assert problems == []
    context.close()


def shown(page: Any) -> Counter[str]:
    """The severities of the findings that are visible."""
    articles = page.locator("article:visible")
    return Counter(articles.nth(i).get_attribute("data-severity") for i in range(articles.count()))


def test_everything_is_on_one_page_without_a_network(
    report: Report, page_file: Path, page: Any
) -> None:
    text = page_file.read_text(encoding="utf-8")
    assert not re.search(r'(?:src|href)="(?!#)', text), "something is loaded from elsewhere"
    assert shown(page) == Counter(f.severity.value for f in report.findings)
    assert page.locator("#summary").inner_text() == report.summary()
    rows = page.locator("#overview tbody tr")
    assert rows.count() == len({f.rule for f in report.findings})
    total = sum(int(n) for n in page.locator("#overview td.number").all_inner_texts())
    assert total == len(report.findings)


def test_hostile_text_is_only_text(page: Any) -> None:
    assert page.locator("article h3").first.inner_text() == HOSTILE
    assert page.locator("img").count() == 0


def test_anchors_lead_to_their_changes(page: Any) -> None:
    links = page.locator("#overview a, article h3 a")
    targets = [links.nth(i).get_attribute("href") for i in range(links.count())]
    assert len(set(targets)) == len(targets)
    for target in targets:
        assert page.locator(f"[id='{target[1:]}']").count() == 1
    page.locator("#overview a", has_text="New enumerator").click()
    heading = page.locator("#enumerator-added")
    page.wait_for_function("Math.abs(scrollY) > 0")
    assert 0 <= heading.bounding_box()["y"] < 800


def test_filter_by_severity(report: Report, page: Any) -> None:
    whole = Counter(f.severity.value for f in report.findings)
    additive = page.locator("button[data-severity=additive]")
    additive.click()
    assert additive.get_attribute("aria-pressed") == "false"
    assert shown(page) == Counter({k: n for k, n in whole.items() if k != "additive"})
    assert page.locator("#overview tr:visible").filter(has_text="additive").count() == 0
    additive.click()
    assert shown(page) == whole
    for severity in whole:
        page.locator(f"button[data-severity={severity}]").click()
    assert shown(page) == Counter()
    assert page.locator("main section:visible").count() == 0


def test_filter_by_name(report: Report, page: Any) -> None:
    page.locator("#search").fill("setgraphINPUTS")
    names = page.locator("article:visible h3").all_inner_texts()
    assert names == ["OrtModelEditorApi.SetGraphInputs"]
    page.locator("#search").fill("")
    assert sum(shown(page).values()) == len(report.findings)


def test_the_difference_is_marked_on_both_sides(page: Any) -> None:
    article = page.locator("article", has_text="OrtModelEditorApi.AddNodeToGraph")
    assert article.locator(".decl del").all_inner_texts() == ["_In_"]
    assert article.locator(".decl ins").all_inner_texts() == ["_Inout_"]
    assert set(article.locator(".side pre:not(.decl) ins").all_inner_texts()) == {"_Inout_"}


def _luminance(color: tuple[float, ...]) -> float:
    parts = [c / 255 for c in color[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


_COLORS = """() => {
  const solid = e => { for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; } return "rgb(0,0,0)"; };
  return [...document.querySelectorAll("h1,h2,h3,p,a,button,td,th,pre,del,ins,.n,.soft,input")].map(
    e => [e.tagName + "." + e.className, getComputedStyle(e).color, solid(e)]);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_looks_in_light_and_dark(page: Any, scheme: str, tmp_path: Path) -> None:
    page.emulate_media(color_scheme=scheme)
    image = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
    colors = image.getcolors(maxcolors=1 << 24)
    assert colors is not None
    ground = max(colors)[1]
    assert (_luminance(ground) > 0.9) if scheme == "light" else (_luminance(ground) < 0.02)
    ink = sum(n for n, color in colors if _contrast(color, ground) > 4.5)
    assert 0.005 < ink / (image.width * image.height) < 0.5, "text is missing, or all there is"
    for severity in ("breaking", "contract", "additive"):
        wanted = page.locator(f"button.{severity}").evaluate("e => getComputedStyle(e).color")
        rgb = tuple(int(n) for n in re.findall(r"\d+", wanted)[:3])
        assert rgb in {color for _, color in colors}, f"no {severity} colour in the picture"
    for name, text, behind in page.evaluate(_COLORS):
        pair = [tuple(float(n) for n in re.findall(r"[\d.]+", c)) for c in (text, behind)]
        assert _contrast(pair[0], pair[1]) >= 4.5, f"{name}: {text} on {behind} is hard to read"
    assert page.evaluate("document.documentElement.scrollWidth") <= 1100


def test_nothing_overflows_on_a_narrow_screen(browser: Any, page_file: Path) -> None:
    context = browser.new_context(viewport={"width": 400, "height": 800})
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    context.close()


def test_is_readable_without_scripts(browser: Any, page_file: Path, report: Report) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert page.locator("article:visible").count() == len(report.findings)
    context.close()
