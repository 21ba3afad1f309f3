import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from raycosttune.core.dollars import Dollars
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.report import read_sweep, render_page, write_page
from raycosttune.report.page import _percent
from raycosttune.report.text import plain
from tests.report.injections import CORPUS, injected
from tests.report.sweeps import KINDS, broken_off, empty, finished


class Page(HTMLParser):
    """Reads a page's tags, attributes and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        start = page.index("* plotly.js v")  # megabytes that take long to read
        self.feed(page[:start] + page[page.index("</script>", start) :])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data
        else:
            self.texts.append(data)


@pytest.mark.parametrize("write", KINDS)
def test_the_page_of_every_sweep_has_every_section(write: object, tmp_path: Path) -> None:
    assert callable(write)
    page = Page(render_page(read_sweep(write(tmp_path))))
    ids = {value for name, value in page.attributes if name == "id"}
    assert {"plan", "figures", "why", "savings", "audit", "ledger", "reproduce"} <= ids
    assert page.tags.count("figure") == 8
    assert len([1 for name, _ in page.attributes if name == "aria-label"]) >= 16


def test_the_page_tells_the_plan_the_ledger_and_the_goal(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path))
    text = " ".join(Page(render_page(view, default=(4, 32))).texts)
    assert view.summary in text
    assert "your default" in text
    assert "failed: ValueError: no" in text
    assert '"deadline_seconds": 100.0' in text
    assert "/model/3" in text


def test_a_ledger_says_where_its_rows_do_not_add_up_to_the_bill(tmp_path: Path) -> None:
    sheet = PriceSheet((NodePrice(name="a", per_hour=3.6, minimum_seconds=1000.0),))
    path = finished(tmp_path)
    used, held = Dollars(sheet), Dollars(sheet, billing="held")
    for cost, is_told in ((used, False), (held, True)):
        page = render_page(read_sweep(path, cost))
        assert ("the sweep is billed as a whole" in page) is is_told
        shares = [float(share) for share in re.findall(r"<td>(\d+)%</td>", page)]
        assert sum(shares) == pytest.approx(100, abs=len(shares))


def test_states_are_told_in_words(tmp_path: Path) -> None:
    assert "No plan yet" in render_page(read_sweep(empty(tmp_path / "a")))
    broken = read_sweep(broken_off(tmp_path / "b"))
    assert "nothing was written for" in render_page(broken)
    told = " ".join(" ".join(Page(render_page(broken)).texts).split())
    assert "broken off: the sweep broke off" in told
    assert "reached the target 0.9" in told
    assert "reached: reached" not in told
    ended = " ".join(Page(render_page(replace(broken, plan=None))).texts)
    assert "No plan" in ended
    assert "No plan yet" not in ended


@pytest.mark.parametrize(
    ("part", "of", "told"),
    [(1, 2, "50%"), (0.001, 1, "<1%"), (0.006, 1, "1%"), (0, 1, "0%"), (1, 0, "-")],
)
def test_a_share_is_never_rounded_to_nothing(part: float, of: float, told: str) -> None:
    assert _percent(part, of) == told


def test_many_breaks_of_an_assumption_are_folded(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path))
    first, *rest = view.assumptions
    many = replace(first, breaks=tuple(f"measurement {k} breaks it" for k in range(70)))
    page = Page(render_page(replace(view, assumptions=(many, *rest))))
    told = " ".join(page.texts)
    assert "70 measurements break it" in told
    assert "45 more" in told
    assert "measurement 49 breaks it" in told
    assert "measurement 50 breaks it" not in told


def test_the_page_loads_nothing(tmp_path: Path) -> None:
    page = Page(render_page(read_sweep(finished(tmp_path))))
    for name, value in page.attributes:
        if name in {"src", "href", "action", "data", "srcset", "poster"}:
            assert value == "data:," or str(value).startswith("#")
    policy = next(v for n, v in page.attributes if n == "content" and "default-src" in str(v))
    assert str(policy).startswith("default-src 'none'; script-src 'nonce-")


def test_plotly_is_there_once(tmp_path: Path) -> None:
    page = render_page(read_sweep(finished(tmp_path)))
    assert page.count("* plotly.js v") == 1
    assert len(page.encode()) < 6e6


@pytest.fixture(scope="module")
def plainly(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return Page(render_page(read_sweep(injected(tmp_path_factory.mktemp("plain"), "word"))))


@pytest.mark.parametrize("text", CORPUS, ids=range(len(CORPUS)))
def test_names_with_markup_are_text(text: str, plainly: Page, tmp_path: Path) -> None:
    page = Page(render_page(read_sweep(injected(tmp_path / "evil", text))))
    assert page.tags == plainly.tags
    assert {n for n, _ in page.attributes} == {n for n, _ in plainly.attributes}
    assert plain(text, 60) in " ".join(page.texts)
    figures = json.loads(page.scripts[0])
    assert list(figures) == list(json.loads(plainly.scripts[0]))
    shown = json.dumps(figures)
    assert not re.search(r"<(?!br>|/?extra>)", shown)
    assert not re.search(r"hovertemplate\"[^}]*example\.com", shown)


def test_a_page_that_can_t_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    view = read_sweep(finished(tmp_path / "run"))
    path = write_page(view, tmp_path / "page.html")
    before = path.read_text()
    assert write_page(view, tmp_path / "page.html") == path
    assert path.read_text() != before  # another nonce
    with pytest.raises(OSError, match="none"):
        write_page(view, tmp_path / "none" / "page.html")
