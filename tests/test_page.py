"""The report page in a real browser: what it shows, and that everybody gets at it."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import World

from bench import browser
from bench import page as pages
from bench.browser import Page
from pipeline import ledger, timeline
from pipeline.reports import page

pytestmark = pytest.mark.xdist_group("browser")

HOSTILE = (
    "</script><script>window.bad = 1</script><img src=x onerror='window.bad = 2'> \"{n}\" & <!-- żółw \u2028 \udc80"
)
DEEP = """(() => { const found = []; const walk = (root) => { for (const node of root.querySelectorAll("*")) {
  found.push(node); if (node.shadowRoot) walk(node.shadowRoot); } };
  walk(document.querySelector("iframe").contentDocument); return found; })()"""
CONTRAST = """(() => { const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => { paint.clearRect(0, 0, 1, 1); paint.fillStyle = color; paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data]; };
  const light = (rgb) => rgb.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const svg = node instanceof SVGElement;
    const own = [...node.childNodes].some((c) => c.nodeType === 3 && c.data.trim());
    if (svg ? node.localName !== "text" : !own) continue;
    if (!node.getClientRects().length || ["NOSCRIPT", "OPTION"].includes(node.tagName)) continue;
    const layers = [];
    for (let at = node; at; at = at.parentElement) layers.unshift(rgba(getComputedStyle(at).backgroundColor));
    const under = layers.reduce((rgb, [r, g, b, a]) =>
      rgb.map((c, i) => c + ([r, g, b][i] - c) * a / 255), [255, 255, 255]);
    const style = getComputedStyle(node), over = rgba(svg ? style.fill : style.color).slice(0, 3);
    const [a, b] = [light(under), light(over)].sort((x, y) => y - x), ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found.push([node.tagName, node.className, node.textContent.slice(0, 40), ratio]);
  }
  return found; })()"""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Page]:
    if browser.chromium() is None:
        pytest.skip(f"no browser: none of {', '.join(browser.NAMES)} is on PATH")
    with browser.opened() as tab:
        yield tab


@pytest.fixture
def tab(chromium: Page) -> Iterator[Page]:
    """The one browser; whatever a test did in it, there was no error, and the network was not asked for anything."""
    chromium.errors.clear()
    chromium.requests.clear()
    chromium.size(1280, 900)
    chromium.scheme("light")
    yield chromium
    assert chromium.errors == []
    assert {url.partition(":")[0] for url in chromium.requests} <= {"file", "about", "data"}
    assert all(url.endswith((".html", "srcdoc")) for url in chromium.requests if not url.startswith("data:"))


@pytest.fixture(scope="session")
def real(driven_once: World) -> Path:
    """The page that a real drive wrote when it ended."""
    return driven_once.root / "cache" / page.PATH


def islands(path: Path) -> dict[str, Any]:
    """The data of a page."""
    text = path.read_text(encoding="utf-8")
    return {
        name: json.loads(it) for name, it in re.findall(r'<script type="application/json" id="d-(\w+)">(.*?)<', text)
    }


def opened(tab: Page, section: str) -> None:
    tab.js(f"document.querySelector('#{section} > details').open = true")
    tab.wait(f"!!document.querySelector('#{section} > details > div').firstChild")


def rows(tab: Page, section: str) -> list[str]:
    """The first column of a section's table."""
    of = f"#{section} tbody > tr:not(.more) > th"
    found: list[str] = tab.js(f"[...document.querySelectorAll('{of}')].map((th) => th.innerText)")
    return found


def typed(tab: Page, section: str, text: str) -> str:
    """What the table says of itself once its filter holds the text."""
    tab.js(f"document.querySelector('#{section} input').focus()")
    tab.js("document.activeElement.select()")
    tab.call("Input.insertText", text=text)
    return str(tab.js(f"document.querySelector('#{section} caption').textContent"))


def test_every_slot_of_the_timeline_is_full_from_start_to_end_and_sums_to_the_figures(real: Path) -> None:
    data = islands(real)
    told, time = data["page"]["figures"], data["time"]
    assert not told["killed"]
    for lane, drawn in zip(told["lanes"], time["lanes"], strict=True):
        assert len(drawn["rows"]) == lane["slots"]
        sums: dict[tuple[str, ...], float] = defaultdict(float)
        pieces = 0
        for row in drawn["rows"]:
            at = 0
            for start, end, what, _ in row:
                assert start == pytest.approx(at, abs=2)
                sums[tuple(time["whats"][what])] += (end - start) / 1000
                at, pieces = end, pieces + 1
            assert at == pytest.approx(time["span"], abs=2)
        for each in lane["rows"]:
            assert sums[each["sort"], each["label"], each["cause"]] == pytest.approx(each["seconds"], abs=pieces / 1000)


def test_the_page_of_a_drive_says_what_the_drive_has_done_and_its_links_lead_there(tab: Page, real: Path) -> None:
    tab.open(real)
    data = islands(real)["page"]
    said = tab.js("document.querySelector('#summary').innerText")
    assert f"{data['before']['survivors']} → {data['after']['survivors']}" in said
    assert rows(tab, "scopes") == ["src/cart.js", "src/label.js", "src/price.js"]
    links = tab.js("[...document.querySelectorAll('nav a')].map((a) => a.getAttribute('href'))")
    assert links == tab.js("[...document.querySelectorAll('main > section')].map((s) => '#' + s.id)")
    assert tab.js("document.querySelectorAll('#tests table').length") == 0  # made when it is opened
    tab.js("document.querySelector('nav a[href=\"#tests\"]').click()")
    tab.wait("!!document.querySelector('#tests table')")
    titles = rows(tab, "tests")
    assert len(titles) == data["tests"] > 0
    tab.js("document.querySelector('#tests tbody button').click()")
    proof = tab.js("document.querySelector('#tests tr.more').innerText")
    assert titles[0] in proof and "it fails; without, it passes" in proof and "assertion" in proof
    tab.js("document.querySelector('#scopes tbody button').click()")
    assert "Tests that landed" in tab.js("document.querySelector('#scopes tr.more').innerText")
    tab.js("document.querySelector('#scopes tbody button').click()")
    assert tab.js("document.querySelector('#scopes tr.more')") is None


def test_tables_sort_and_filter(tab: Page, real: Path) -> None:
    tab.open(real)
    tab.js("[...document.querySelectorAll('#scopes thead button')].find((b) => b.textContent === 'mutants').click()")
    most = rows(tab, "scopes")
    assert tab.js("document.querySelector('#scopes th[aria-sort]').getAttribute('aria-sort')") == "descending"
    tab.js("document.querySelector('#scopes th[aria-sort] button').click()")
    assert rows(tab, "scopes") == most[::-1] != most
    numbers = {s["scope"]: s["after"]["mutants"] for s in islands(real)["page"]["scopes"]}
    assert most == sorted(numbers, key=lambda scope: -numbers[scope])
    assert typed(tab, "scopes", "LABEL") == "Scopes: 1 of 3" and rows(tab, "scopes") == ["src/label.js"]
    assert typed(tab, "scopes", "nothing of the kind") == "Scopes: 0 of 3" and rows(tab, "scopes") == []


def test_a_piece_of_the_timeline_shows_the_others_of_its_scope(tab: Page, real: Path) -> None:
    tab.open(real)
    tab.js(
        "[...document.querySelectorAll('#timeline rect')].find((r) => r.ariaLabel?.includes('land:src/label')).focus()"
    )
    assert "land:src/label.js" in tab.js("document.querySelector('.read').textContent")
    hit = tab.js("[...document.querySelectorAll('rect.hit')].map((r) => r.getAttribute('aria-label'))")
    assert any("search:src/label.js" in label for label in hit) and not any(
        "search:src/cart.js" in label for label in hit
    )
    assert tab.js("document.querySelector('.link').getAttribute('d')").count("L") >= 2
    before = tab.js("document.activeElement.getAttribute('aria-label')")
    tab.press("ArrowLeft")
    assert tab.js("document.activeElement.getAttribute('aria-label')") not in (before, None)
    tab.js("document.querySelector('#timeline details').open = true")
    assert tab.wait("document.querySelectorAll('#timeline tbody tr').length") > 10  # the same as a table


def test_the_mutant_browser_is_started_when_it_is_asked_for_and_shows_the_survivors(tab: Page, real: Path) -> None:
    tab.open(real)
    assert tab.js("document.querySelector('iframe')") is None
    tab.js("document.querySelector('#browser > details').open = true")
    tab.wait("!!document.querySelector('iframe')?.contentDocument.querySelector('mutation-test-report-app')")
    link = f"{DEEP}.find((n) => n.localName === 'a' && n.textContent.trim().endsWith('label.js'))"
    tab.wait(f"!!{link}")
    tab.js(f"{link}.click()")
    files = islands(real)["elements"]["files"]
    left = [m for m in files["src/label.js"]["mutants"] if m["status"] in ("Survived", "NoCoverage")]
    dots = f"{DEEP}.filter((n) => n.matches('svg.mutant-dot.Survived, svg.mutant-dot.NoCoverage')).length"
    assert tab.wait(dots) == len(left) > 0
    assert tab.js("location.hash") == ""  # its links are its own


def test_keys_alone_reach_everything_and_what_has_the_focus_is_seen(tab: Page, real: Path) -> None:
    tab.open(real)
    ways = (
        "[...document.querySelectorAll(\"a[href], button, input, select, summary, [tabindex='0']\")]"
        ".filter((n) => n.checkVisibility() && !n.dataset.seen)"
    )
    look = (
        "(() => { const n = document.activeElement, s = getComputedStyle(n); n.dataset.seen = 'yes';"
        "return [n.localName, n.textContent, s.outlineStyle !== 'none' || s.strokeWidth === '2px'] })()"
    )
    seen = []
    for _ in range(tab.js(f"{ways}.length")):
        tab.press("Tab")
        seen.append(tab.js(look))
    assert seen[0][:2] == ["a", "Skip to the summary"]
    assert [each for each in seen if not each[2]] == []
    assert tab.js(f"{ways}.map((n) => n.outerHTML.slice(0, 80))") == []
    tab.js("document.querySelector('#scopes tbody button').focus()")
    tab.press("Enter")
    assert tab.js("document.activeElement.getAttribute('aria-expanded')") == "true"


def test_a_screen_reader_has_names_for_all_that_it_comes_to(tab: Page, real: Path) -> None:
    tab.open(real)
    for section in ("tests", "survivors"):
        opened(tab, section)
    tab.js("document.querySelectorAll('tbody button').forEach((b) => b.click())")
    nodes = tab.call("Accessibility.getFullAXTree")["nodes"]
    roles = defaultdict(list)
    for node in nodes:
        if not node["ignored"]:
            roles[node["role"]["value"]].append(node.get("name", {}).get("value", ""))
    assert {"banner", "navigation", "main", "contentinfo", "heading", "table", "columnheader", "rowheader"} <= set(
        roles
    )
    for role in (
        "button",
        "link",
        "textbox",
        "searchbox",
        "combobox",
        "region",
        "table",
        "image",
        "navigation",
    ):
        assert all(roles[role]), role
    assert tab.js("[...document.querySelectorAll('th')].filter((th) => !th.scope).length") == 0
    assert tab.js("document.querySelectorAll(':is(svg, g, div)[role]:not([aria-label])').length") == 0
    levels = tab.js("[...document.querySelectorAll('h1, h2, h3')].map((n) => +n.localName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_read_on_a_phone_in_both_schemes(tab: Page, real: Path, scheme: str) -> None:
    tab.scheme(scheme)
    tab.size(390, 844)
    tab.open(real)
    for section in ("tests", "survivors"):
        opened(tab, section)
    tab.js("document.querySelectorAll('tbody button').forEach((b) => b.click())")
    assert tab.js(CONTRAST) == []
    assert tab.js("document.documentElement.scrollWidth") <= 390


def test_what_comes_from_data_is_text_whatever_it_holds(tab: Page, tmp_path: Path) -> None:
    report, found = pages.report(3, 60, title=HOSTILE, why=HOSTILE), timeline.of(ledger.by_event(pages.events(3)))
    path = tmp_path / "index.html"
    path.write_bytes(page.html(HOSTILE, report, found, {}, "", HOSTILE))
    tab.open(path)
    for section in ("tests", "survivors", "browser"):
        opened(tab, section)
    tab.js("document.querySelectorAll('tbody button').forEach((b) => b.click())")
    assert tab.js("window.bad") is None
    assert tab.js("document.querySelectorAll('img').length") == 0
    asked = HOSTILE.format(n=0).replace("\u2028", "").partition(" \udc80")[0]
    assert asked[:60] in rows(tab, "tests")[0]
    for section in ("parked", "browser"):
        assert "<script>window.bad = 1</script>" in tab.js(f"document.querySelector('#{section}').textContent")


def test_a_thousand_scopes_and_fifty_thousand_mutants_open(tab: Page, tmp_path: Path) -> None:
    path = tmp_path / "index.html"
    pages.big(path)
    tab.open(path)
    assert len(rows(tab, "scopes")) == 100
    assert "1,000, the first 100 shown" in tab.js("document.querySelector('#scopes caption').textContent")
    assert typed(tab, "scopes", "module99") == "Scopes: 11 of 1,000"
    assert tab.js("document.querySelectorAll('#timeline rect').length") < 8000
    opened(tab, "survivors")
    assert typed(tab, "survivors", "module999.js:42") == "Survivors left: 1 of 5,000"


def test_the_mutant_browser_is_found_in_an_assembly() -> None:
    def resource(text: str) -> bytes:
        content = text.encode()
        return len(content).to_bytes(4, "little") + content

    name = "mutation-test-report-app"
    program = f'var A=1;customElements.define("{name}", "żółw");'
    held = [resource(f"<{name}/>"), resource(program), b"\0" * 7, name.encode("utf-16-le"), name.encode()]
    assert page.embedded(b"MZ\0\0" + b"\0\0\0".join(held)) == program
    assert page.embedded(b"\0".join(held[2:])) == page.embedded(name.encode()) == page.embedded(b"") == ""


def test_a_page_that_cannot_be_written_is_said_and_fails_nothing(driven: World) -> None:
    assert "page: cache/report/index.html" in driven.doit("report").out.splitlines()
    written = driven.root / "cache" / page.PATH
    written.unlink()
    written.mkdir()
    done = driven.doit("report")
    assert f"page: not written: {written}: Is a directory" in done.err
