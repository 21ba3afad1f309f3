import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from raycosttune.cli import main
from raycosttune.commands.options import SWEEP_S_OWN
from raycosttune.core.cost import NodeHours
from raycosttune.core.dollars import Dollars
from raycosttune.core.goal import Goal
from raycosttune.core.observation import TrialRecord
from raycosttune.core.price_sheet import NodePrice, PriceSheet
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.results.header import header_row
from raycosttune.results.journal import Journal
from raycosttune.results.rows import asked_row, observation_row
from raycosttune.simulate import AnalyticWorkload, simulate
from raycosttune.simulate.policies import policy_names
from tests.simulate.tiny import folder

JOB = AnalyticWorkload(Space((1, 2, 4), (64, 128, 256), workers_per_node=1))
AIM = Goal(metric="accuracy", mode="max", target=0.9, deadline_seconds=1500, planned_runs=100)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["simulate", *map(str, arguments)])


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """Records a sweep as Ray Tune would have it."""
    sessions: list[Session] = []

    def start(clock: object) -> Session:
        assert callable(clock)
        sessions.append(Session(JOB.space, AIM, clock=clock))
        return sessions[0]

    simulate(start, JOB, cost=NodeHours(), deadline_seconds=AIM.deadline_seconds)
    journal = Journal(tmp_path / "mine" / "raycosttune" / "journal.jsonl")
    journal.append(header_row(AIM, "node-hours"))
    for record in sessions[0].records.values():
        write(journal, record)
    return tmp_path / "mine"


def write(journal: Journal, record: TrialRecord) -> None:
    journal.append(asked_row(record))
    journal.append(*(observation_row(record.trial_id, report) for report in record.reports))
    if record.ended:
        journal.append(observation_row(record.trial_id, record.ended))


def test_a_recorded_sweep_is_replayed_under_its_own_goal(sweep: Path) -> None:
    result = call(sweep, "--policies", "ours,random", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.output)
    assert told["workload"] == "mine"
    assert told["unit"] == "node-hours"
    assert told["policies"]["ours"]["bill_ratio"] >= 1
    assert set(told["policies"]) == {"ours", "random"}


def test_the_command_line_overrides_the_recorded_goal(sweep: Path) -> None:
    short, long = (
        json.loads(call(sweep, "--planned-runs", runs, "--json").output)["policies"]["ours"]
        for runs in (1, 100)
    )
    assert short["trials"] < long["trials"]


def test_the_answer_is_words_without_json(sweep: Path) -> None:
    lines = call(sweep).output.splitlines()
    assert lines[0].startswith("oracle: ")
    assert "with 100 planned runs the bill is" in lines[1]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--target", "2"), "no curve reaches the target 2"),
        (("--deadline", "1"), "the fastest needs"),
        (("--target", "nan"), "must be a finite number"),
        (("--policies", "magic"), "a policy must be one of ours, ours-fixed"),
        (("--workload", "absent"), "the workload must be one of []"),
        (("--cost", "beans"), "node-hours"),
        (("--planned-runs", "0"), "planned_runs must"),
        (("--noise", "-1"), "noise"),
        *((("--noise", value), "[0, 1]") for value in ("nan",)),
        *((("--noise", value), "0<=x<=1") for value in ("inf", "1e308", "50")),
        (("--seed", "-1"), "x>=0"),
        (("--cost", "beans"), "or module:Name, a metric or its class, got 'beans'"),
        (("--cost", "no_such_module:Name"), "can't be loaded: ModuleNotFoundError"),
        (("--cost", "math:Name"), "can't be loaded: AttributeError"),
        (("--cost", "math:pi"), "a str `unit`"),
        (("--metric", "other"), "leave out --metric"),
        (("--device", "t4"), "leave out --device"),
        (("--workers-per-node", "0", "--startup", "nan"), "out --workers-per-node, --startup"),
    ],
)
def test_bad_input_is_told_in_one_line_and_exits_with_2(
    sweep: Path, arguments: tuple[str, ...], what: str
) -> None:
    extra = ("--mode", "max", "--target", "1") if "--workload" in arguments else ()
    result = call(sweep, *arguments, *extra)
    assert result.exit_code == 2, result.output
    assert what in result.output
    assert "Traceback" not in result.output


def rescored(sweep: Path, header: object) -> Path:
    """Writes another header over a sweep's own."""
    journal = sweep / "raycosttune" / "journal.jsonl"
    _, *rest = journal.read_text().splitlines()
    journal.write_text("\n".join([json.dumps(header), *rest]) + "\n")
    return sweep


def test_a_sweep_is_replayed_in_its_own_unit(sweep: Path) -> None:
    header = header_row(AIM, "worker-hours")
    assert json.loads(call(rescored(sweep, header), "--json").output)["unit"] == "worker-hours"
    asked = call(sweep, "--json", "--cost", "node-hours")
    assert json.loads(asked.output)["unit"] == "node-hours"


def test_a_sweep_in_money_is_replayed_by_its_prices(sweep: Path) -> None:
    cost = Dollars(PriceSheet((NodePrice(name="a", per_hour=3.0),), "EUR"))
    rescored(sweep, header_row(AIM, "EUR", cost=cost))
    assert json.loads(call(sweep, "--json").output)["unit"] == "EUR"


def test_a_sweep_in_another_unit_needs_its_metric(
    sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rescored(sweep, header_row(AIM, "EUR"))
    refused = call(sweep)
    assert refused.exit_code == 2
    assert (
        "the sweep was scored in EUR, by a metric that its journal doesn't hold. Give it or "
        "another one: cost=..., or --cost module:Name, a metric or its class"
        in " ".join(refused.output.split())
    )
    (tmp_path / "my_prices.py").write_text(
        "class Euros:\n    unit = 'EUR'\n"
        "    def __call__(self, allocation, seconds):\n"
        "        return allocation.workers * seconds / 1000\n"
        "euros = Euros()\n"
        "class Needs:\n    def __init__(self, price): pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("Euros", "euros"):
        result = call(sweep, "--cost", f"my_prices:{name}", "--json")
        assert json.loads(result.output)["unit"] == "EUR"
    assert "can't be loaded: TypeError" in call(sweep, "--cost", "my_prices:Needs").output


@pytest.mark.parametrize(
    ("goal", "what"),
    [
        ("absent", "must hold a goal"),
        (5, "must hold a goal"),
        ({"metric": "a"}, "must hold a goal with a target"),
        ({"target": 1, "mode": "sideways"}, "Goal.mode must be"),
    ],
)
def test_a_header_without_a_goal_is_told_with_its_path(
    sweep: Path, goal: object, what: str
) -> None:
    header = {"row": "header", "version": 1, "unit": "node-hours"}
    result = call(rescored(sweep, header if goal == "absent" else {**header, "goal": goal}))
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert what in result.output
    assert str(sweep / "raycosttune" / "journal.jsonl") in result.output


def test_the_help_lists_every_policy_and_whose_goal_is_taken() -> None:
    text = " ".join(call("--help").output.split())
    named = text.partition("Policies: ")[2].partition(".")[0].split(", ")
    assert [name.partition("@")[0] for name in named] == policy_names()
    assert text.count(SWEEP_S_OWN) == 4


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "raycosttune", "--version"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("raycosttune, version ")


def test_policies_may_stand_apart(sweep: Path) -> None:
    told = json.loads(call(sweep, "--policies", " ours, random", "--json").output)
    assert list(told["policies"]) == ["ours", "random"]


def test_zeus_is_told_the_worker_counts_that_there_are(sweep: Path) -> None:
    pytest.importorskip("raycosttune.simulate.peers.zeus_peer")
    result = call(sweep, "--policies", "zeus@99")
    assert result.exit_code == 2
    assert "workers must be one of" in result.output


def test_a_pipe_is_no_sweep(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = call(tmp_path / "pipe")
    assert result.exit_code == 2
    assert "a journal must be a file" in result.output


def test_a_replay_says_what_it_is_made_of(sweep: Path) -> None:
    assert call(sweep).output.splitlines()[-1] == (
        "replayed: only cells that the sweep measured, at each batch's best recipe"
    )


def test_traces_are_scored_in_node_hours_and_check_their_options(tmp_path: Path) -> None:
    arguments = (folder(tmp_path), "--workload", "tiny", "--mode", "max", "--target", "0.9")
    told = json.loads(call(*arguments, "--json").output)
    assert told["unit"] == "node-hours"
    assert "replayed" not in call(*arguments).output
    for option, value in (("--workers-per-node", "0"), ("--startup", "nan")):
        result = call(*arguments, option, value)
        assert result.exit_code == 2, result.output
        assert option.strip("-").replace("-", "_") in result.output


def test_a_folder_without_a_journal_is_told(tmp_path: Path) -> None:
    result = call(tmp_path)
    assert result.exit_code == 2
    assert "journal" in result.output


def test_traces_need_a_target_and_a_mode(tmp_path: Path) -> None:
    result = call(tmp_path, "--workload", "any")
    assert result.exit_code == 2
    assert "traces need --target and --mode" in result.output
