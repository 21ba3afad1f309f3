"""The page in a real browser; skipped, with a word, where there is none."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from raycosttune.report import read_sweep, write_page
from tests.report.injections import CORPUS, all_injected
from tests.report.sweeps import empty, finished

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe_module = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-core")
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium"),
]
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}


class Opened:
    """Is a page with everything that it asked for and complained of."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.page = browser.new_context(**options).new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-drawn=yes]", timeout=60_000)
        self.uri = path.as_uri()

    def check_silent(self) -> None:
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith(("data:", "blob:"))] == [
            self.uri
        ]
        assert self.page.evaluate("window.hacked") is None


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    folder = tmp_path_factory.mktemp("page")
    path = write_page(read_sweep(finished(folder / "run")), folder / "page.html", default=(4, 32))
    return Opened(browser, path, viewport=DESKTOP)


def test_every_figure_is_drawn_without_a_complaint_or_a_request(opened: Opened) -> None:
    plots = opened.page.locator(".plot")
    assert plots.count() == 8
    for plot in plots.all():
        assert plot.locator("svg.main-svg").count() >= 1
        assert plot.locator(".trace, .hm, .heatmaplayer image").count() >= 1
    opened.check_silent()


def test_the_mouse_shows_a_configuration(opened: Opened) -> None:
    opened.page.locator("#plot-cost-time").scroll_into_view_if_needed()
    star = opened.page.locator("#plot-cost-time .scatterlayer .trace:last-child path.point").last
    box = star.bounding_box()
    opened.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    label = opened.page.locator("#plot-cost-time .hoverlayer .hovertext")
    label.wait_for()
    assert re.match(r"\d workers?, batch \d+, lr=0.1", label.text_content())
    opened.check_silent()


def test_the_tab_key_goes_through_the_page_in_its_order(opened: Opened) -> None:
    # Where the last click was counts too, so that a mere blur() goes on from there.
    opened.page.evaluate("document.body.tabIndex = -1; document.body.focus()")
    opened.page.evaluate("document.body.removeAttribute('tabindex')")
    wanted = opened.page.evaluate(
        "[...document.querySelectorAll('a[href], button, summary, [tabindex=\"0\"]')]"
        ".filter((each) => each.checkVisibility()).map((each) => each.outerHTML.slice(0, 80))"
    )
    reached = []
    for _ in wanted:
        opened.page.keyboard.press("Tab")
        reached.append(opened.page.evaluate("document.activeElement.outerHTML.slice(0, 80)"))
    assert reached == wanted
    assert "Skip to the plan" in reached[0]


def test_the_arrow_keys_say_each_point(opened: Opened) -> None:
    spoken = opened.page.locator("#spoken")
    for name in ("cost", "curves", "cost-time"):
        opened.page.locator(f"#plot-{name}").focus()
        opened.page.keyboard.press("ArrowRight")
        first = spoken.text_content()
        opened.page.keyboard.press("ArrowRight")
        assert "batch" in first
        assert spoken.text_content() != first
        shown = opened.page.locator(f"#plot-{name} .hoverlayer .hovertext").first
        for key in ("ArrowLeft", "ArrowRight"):  # a figure that is drawn anew takes it away
            try:
                shown.wait_for(timeout=15_000)
            except playwright.TimeoutError:
                opened.page.keyboard.press(key)
        shown.wait_for()
    opened.check_silent()


def test_a_figure_is_saved_as_svg(opened: Opened) -> None:
    with opened.page.expect_download() as download:
        opened.page.locator("button[data-of=cost]").click()
    text = Path(download.value.path()).read_text()
    assert text.startswith("<svg")
    opened.check_silent()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(opened: Opened, scheme: str) -> None:
    opened.page.emulate_media(color_scheme=scheme)
    for summary in opened.page.locator("summary").all():
        summary.evaluate("(each) => { each.parentElement.open = true; }")
    found = axe_module.Axe().run(opened.page, options=RULES).response["violations"]
    assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found] == []


@pytest.mark.parametrize("write", [finished, empty])
def test_a_phone_shows_a_sweep_without_scrolling_sideways(
    write: Any, browser: Any, tmp_path: Path
) -> None:
    path = write_page(read_sweep(write(tmp_path / "run")), tmp_path / "page.html")
    opened = Opened(browser, path, viewport=PHONE, color_scheme="dark")
    width = opened.page.evaluate("document.scrollingElement.scrollWidth")
    assert width <= PHONE["width"]
    opened.check_silent()
    opened.page.context.close()


def test_names_with_markup_do_nothing(browser: Any, tmp_path: Path) -> None:
    path = write_page(read_sweep(all_injected(tmp_path)), tmp_path / "page.html")
    opened = Opened(browser, path, viewport=PHONE)
    seen = set()
    opened.page.locator("#plot-curves").focus()
    for _ in range(3 * len(CORPUS)):
        opened.page.keyboard.press("ArrowRight")
        label = opened.page.locator("#plot-curves .hoverlayer .hovertext").first
        label.wait_for()
        assert label.locator("a, tspan[style*='bold']").count() == 0
        seen.add(opened.page.locator("#spoken").text_content())
    told = " ".join(seen)
    assert all(shown in told for shown in ("<script>", "<a href='https", "%{customdata[0]}"))
    opened.check_silent()
    opened.page.context.close()
