import json
import os
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from raycosttune.cli import main
from tests.report.injections import injected
from tests.report.sweeps import broken_off, empty, finished, running

COLUMNS = "trial,workers,batch_size,epoch,seconds,value,lr\n"
OBSERVED = COLUMNS + (
    "a,2,32,1,12,0.5,0.1\na,2,32,2,2,0.92,0.1\nb,1,64,1,13,0.4,0.1\nb,1,64,2,3,0.6,0.1\n"
)
ASKED = ("--target", "0.9", "--mode", "max")


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


@pytest.fixture
def observed(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(OBSERVED)
    return path


def test_the_plan_of_a_sweep_is_printed(tmp_path: Path) -> None:
    result = call("plan", finished(tmp_path))
    assert result.exit_code == 0, result.output
    assert result.output.startswith("1 worker, batch 32, lr=0.1, 3 epochs: ")
    told = json.loads(call("plan", tmp_path, "--json").output)
    assert told["allocation"] == {"workers": 1, "batch_size": 32, "nodes": 1}
    assert told["text"] == result.output.strip()


def test_the_json_of_a_plan_has_the_config_that_was_searched(tmp_path: Path) -> None:
    journal = finished(tmp_path) / "raycosttune" / "journal.jsonl"
    header, *rows = journal.read_text().splitlines()
    paths = {"n": ["n"], "b": ["b"], "lr": ["optimizer", "lr"]}
    space = {"workers_key": "n", "batch_key": "b", "paths": paths}
    journal.write_text("\n".join([json.dumps({**json.loads(header), "space": space}), *rows, ""]))
    told = json.loads(call("plan", tmp_path, "--json").output)
    assert told["config"] == {"n": 1, "b": 32, "optimizer": {"lr": 0.1}}


def test_without_a_plan_the_exit_code_says_so(tmp_path: Path) -> None:
    result = call("plan", empty(tmp_path))
    assert (result.exit_code, result.output[:8]) == (1, "no plan:")
    assert call("plan", tmp_path, "--json").exit_code == 1


def test_another_deadline_may_change_the_plan(tmp_path: Path) -> None:
    result = call("plan", finished(tmp_path), "--deadline", 17)
    assert result.output.startswith("2 workers, batch 32")


def test_observations_are_planned_too(observed: Path) -> None:
    result = call("plan", observed, *ASKED, "--cost", "worker-hours", "--workers", "1,2,4")
    assert result.exit_code == 0, result.output
    assert "batch 32, lr=0.1, 2 epochs" in result.output
    assert "nothing untried can save more than" in result.output


def test_observations_are_not_simulated_and_it_is_said_what_reads_them(observed: Path) -> None:
    result = call("simulate", observed, *ASKED)
    assert result.exit_code == 2
    told = " ".join(result.output.split())
    assert "simulate replays a sweep's folder" in told
    assert "not observations" in told


def test_observations_need_a_target_and_a_mode(observed: Path) -> None:
    result = call("plan", observed)
    assert result.exit_code == 2
    assert "observations need --target and --mode" in result.output


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--metric", "accuracy"), "missing accuracy"),
        (("--workers", "a few"), "--workers must be whole numbers with commas between"),
        (("--cost", "nowhere:Cost"), "can't be loaded"),
    ],
)
def test_what_observations_can_t_be_read_with_is_said(
    observed: Path, arguments: tuple[str, ...], what: str
) -> None:
    result = call("plan", observed, *ASKED, *arguments)
    assert result.exit_code == 2
    assert what in result.output


def test_a_recorded_sweep_says_its_metric_itself(tmp_path: Path) -> None:
    result = call("explain", finished(tmp_path), "--metric", "loss", "--workers", "1")
    assert result.exit_code == 2
    assert "leave out --metric, --workers" in " ".join(result.output.split())


def test_a_sweep_is_explained(tmp_path: Path) -> None:
    lines = call("explain", finished(tmp_path)).output.splitlines()
    assert lines[1].startswith("a: 2 workers, batch 32, lr=0.1, 3 epochs")
    assert json.loads(call("explain", tmp_path, "--json").output) == lines


def test_a_page_is_written_where_it_is_asked_for(tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    result = call("report", broken_off(tmp_path / "mine"), "--out", out, "--default", "4x64")
    assert result.exit_code == 0, result.output
    assert result.output.strip() == str(out)
    assert "your default" in out.read_text()


def test_a_page_s_data_is_printed_as_json(tmp_path: Path, observed: Path) -> None:
    told = json.loads(call("report", finished(tmp_path / "mine"), "--json").output)
    assert (told["name"], told["status"], len(told["trials"])) == ("mine", "finished", 5)
    told = json.loads(call("report", observed, *ASKED, "--json").output)
    assert told["name"] == "runs"


def test_a_page_that_can_t_be_written_is_an_error_of_its_own(tmp_path: Path) -> None:
    out = tmp_path / "none" / "page.html"
    result = call("report", finished(tmp_path / "mine"), "--out", out)
    assert result.exit_code == 1
    assert f"can't be written @ {out}: No such file or directory. Name a file" in result.output


@pytest.mark.parametrize("pair", ["4", "0x64", "-1x64", "4xmany"])
def test_workers_and_batch_are_written_as_a_pair(pair: str, tmp_path: Path) -> None:
    result = call("report", finished(tmp_path), "--default", pair)
    assert result.exit_code == 2
    assert "must be workers and batch as 4x256" in result.output


def test_a_folder_without_a_journal_is_a_usage_error(tmp_path: Path) -> None:
    for command in ("plan", "explain", "report"):
        result = call(command, tmp_path)
        assert result.exit_code == 2
        assert "must have a journal" in result.output


def test_a_terminal_is_sent_no_command(tmp_path: Path) -> None:
    told = call("explain", injected(tmp_path, "\x1b[2J\x07\u202e<b>")).output
    assert "<b>" in told
    assert not set("\x1b\x07\u202e") & set(told)


def test_a_finished_sweep_is_watched_to_its_end_at_once(tmp_path: Path) -> None:
    result = call("watch", finished(tmp_path))
    assert result.exit_code == 0
    assert "best so far: 1 worker, batch 32" in result.output

    none = call("watch", empty(tmp_path / "none"), "--once")
    assert (none.exit_code, none.output[:31]) == (1, "no plan: no trial has started. ")
    assert call("watch", tmp_path / "none", "--once", "--json").output.startswith("{")


def test_a_sweep_is_waited_for_until_it_begins(tmp_path: Path) -> None:
    folder = tmp_path / "none" / "yet"
    timer = threading.Timer(0.5, lambda: finished(folder))
    timer.start()
    result = call("watch", folder)
    timer.join()
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"waiting up to 60 s for a sweep to begin @ {folder}")
    assert "best so far: 1 worker, batch 32" in result.output


@pytest.mark.parametrize("limit", [("--wait", "0.3"), ("--once",)])
def test_a_sweep_that_never_begins_is_not_waited_for_for_ever(
    limit: tuple[str, ...], tmp_path: Path
) -> None:
    result = call("watch", tmp_path / "none", *limit)
    assert result.exit_code == 2
    assert "must have a journal, found none" in " ".join(result.output.split())
    assert ("waiting up to 0.3 s" in result.output) == ("--wait" in limit)


def test_a_terminal_is_sent_no_command_by_an_error_either(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    row = "\x1b[2J,1,64,1,5,0.5"
    path.write_text(f"trial,workers,batch_size,epoch,seconds,value\n{row}\n{row}\n")
    options = ("--target", "0.9", "--mode", "max")
    result = CliRunner().invoke(main, ["plan", str(path), *options], color=True)
    assert result.exit_code == 2
    assert "was there before" in " ".join(result.output.split())
    assert "\x1b" not in result.output


def test_a_home_that_nobody_has_is_told() -> None:
    result = call("watch", Path("~nobody-has-this-name"), "--once")
    assert result.exit_code == 2
    assert "must have a journal, found none" in " ".join(result.output.split())


def test_a_sweep_that_was_broken_off_is_not_watched_for_ever(tmp_path: Path) -> None:
    result = call("watch", broken_off(tmp_path))
    assert result.exit_code == 0
    assert "broken off: 1 trial without an end" in result.output


def test_a_sweep_that_tune_itself_has_ended_is_not_watched_for_ever(tmp_path: Path) -> None:
    journal = empty(tmp_path) / "raycosttune" / "journal.jsonl"
    os.utime(journal, (1e9, 1e9))
    result = call("watch", tmp_path)
    assert result.exit_code == 1
    assert "nothing runs, and nothing was written for" in result.output
    assert "broken off" not in result.output


def test_a_running_sweep_is_watched_until_it_ends(tmp_path: Path) -> None:
    journal = running(tmp_path) / "raycosttune" / "journal.jsonl"
    ended = {"row": "ended", "trial_id": "b", "cause": "failed", "reason": "boom", "seconds": 1}
    rows = [ended, {"row": "over", "why": "enough"}]

    def end() -> None:
        with journal.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)

    timer = threading.Timer(1.0, end)
    timer.start()
    result = call("watch", tmp_path, "--every", "0.1", "--json")
    timer.join()
    told = [json.loads(line) for line in result.output.splitlines()]
    assert [len(each["running"]) for each in told] == [1, 0]
    assert told[-1]["ends"] == {"reached": 1, "failed": 1}
    assert result.exit_code == 0


@pytest.mark.parametrize("command", ["simulate", "advise"])
def test_no_command_sends_a_terminal_what_an_error_quotes(command: str, tmp_path: Path) -> None:
    named = tmp_path / "a\x1b[2Jname"
    named.mkdir()
    options = ["--batch", "8"] if command == "advise" else []
    result = CliRunner().invoke(main, [command, str(named), *options], color=True)
    assert result.exit_code == 2
    assert "name" in result.output
    assert "\x1b" not in result.output
