import pytest

from raycosttune.report.text import plain, shown
from raycosttune.report.thin import chosen, every


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\n b\tc", "a b c"),
        ("x" * 400, "x" * 299 + "…"),
        ("a\x00b\u202ec\u2028d\ud800", "a b c d"),
        (0.5, "0.5"),
        ("", ""),
    ],
)
def test_text_is_one_visible_line(text: object, told: str) -> None:
    assert plain(text) == told


def test_markup_is_shown_as_it_is() -> None:
    assert shown("<b>&amp;</b>") == "&lt;b&gt;&amp;amp;&lt;/b&gt;"


def test_thinning_keeps_the_ends_and_the_best() -> None:
    assert every([1, 2, 3, 4, 5], 3) == [1, 3, 5]
    assert every([1, 2], 3) == [1, 2]
    assert chosen([3, 1, 2], 2, float) == [3, 2]
    assert chosen([3, 1], 2, float) == [3, 1]
