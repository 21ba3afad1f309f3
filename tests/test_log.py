import io
import logging
import sys

import pytest

import raycosttune
from raycosttune import log
from raycosttune.log import Fallback

SAID = logging.getLogger("raycosttune.tune.said")


def set_up(monkeypatch: pytest.MonkeyPatch, *handlers: logging.Handler) -> None:
    """Sets up the root's logging as a program would, without pytest's own handlers."""
    monkeypatch.setattr(logging.getLogger(), "handlers", list(handlers))


def test_a_warning_names_its_level_and_the_package(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch)
    SAID.warning("%s reports no epoch", "t1")
    assert capsys.readouterr().err == "raycosttune WARNING: t1 reports no epoch\n"


def test_what_is_no_warning_is_not_written(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch)
    monkeypatch.setattr(SAID, "level", logging.INFO)
    SAID.info("t1 stops")
    assert capsys.readouterr().err == ""


def test_an_error_has_its_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch)
    try:
        int("lr")
    except ValueError:
        SAID.exception("a result can't be read")
    text = capsys.readouterr().err
    assert text.startswith("raycosttune ERROR: a result can't be read\nTraceback")
    assert text.endswith("'lr'\n")


@pytest.mark.parametrize("name", ["", "raycosttune", "raycosttune.tune", "raycosttune.tune.said"])
def test_a_program_that_has_set_up_logging_gets_each_warning_once(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch)
    own = io.StringIO()
    logger = logging.getLogger(name)
    monkeypatch.setattr(logger, "handlers", [*logger.handlers, logging.StreamHandler(own)])
    SAID.warning("no epoch")
    assert own.getvalue() == "no epoch\n"
    assert capsys.readouterr().err == ""


def test_a_handler_that_no_warning_reaches_takes_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch, logging.StreamHandler(io.StringIO()))
    monkeypatch.setattr(logging.getLogger("raycosttune"), "propagate", False)
    SAID.warning("no epoch")
    assert capsys.readouterr().err == "raycosttune WARNING: no epoch\n"


def test_a_closed_stream_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    set_up(monkeypatch)
    monkeypatch.setattr(sys, "stderr", closed)
    monkeypatch.setattr(logging, "raiseExceptions", False)  # it would tell the same stream
    SAID.warning("no epoch")


def test_the_package_has_one_fallback() -> None:
    handlers = logging.getLogger(raycosttune.__name__).handlers
    assert [isinstance(handler, Fallback) for handler in handlers] == [True]


def test_a_package_that_is_imported_anew_still_warns_and_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up(monkeypatch)
    package = logging.getLogger("raycosttune")
    monkeypatch.setattr(package, "handlers", list(package.handlers))
    log.set_up(package)
    SAID.warning("t1 stops")
    assert capsys.readouterr().err == "raycosttune WARNING: t1 stops\n"
