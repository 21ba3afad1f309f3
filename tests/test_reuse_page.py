import re
from functools import partial
from pathlib import Path

import pytest

import raycosttune
from raycosttune.tune.search import CostAwareSearch
from tests.test_cost_page import SHEET, run
from tests.tune.test_known import swept

TEXT = (Path(__file__).parents[1] / "docs" / "reuse.md").read_text()
AGAIN, KNOWN = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def in_place_of_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the page read a sweep, whatever path it names."""
    swept(tmp_path / "NAME")
    monkeypatch.chdir(tmp_path)
    Path("prices.yaml").write_text(SHEET)
    read = partial(raycosttune.read_sweep, tmp_path / "NAME")
    monkeypatch.setattr(raycosttune, "read_sweep", lambda _: read(), raising=False)


@pytest.mark.usefixtures("in_place_of_name")
def test_the_page_plans_under_another_price(capsys: pytest.CaptureFixture[str]) -> None:
    run(AGAIN)
    said = capsys.readouterr().out
    assert said.count("plan: ") == 1
    assert "USD" in said
    assert "no plan" not in said


@pytest.mark.usefixtures("in_place_of_name")
def test_the_page_lets_a_search_begin_with_an_old_one() -> None:
    assert isinstance(run(KNOWN)["search"], CostAwareSearch)
