import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from raycosttune.cli import main
from raycosttune.core.cost import NodeHours
from raycosttune.core.goal import Goal
from raycosttune.core.observation import TrialRecord
from raycosttune.core.session import Session
from raycosttune.core.space import Space
from raycosttune.results.journal import Journal
from raycosttune.results.rows import asked_row, header_row, observation_row
from raycosttune.simulate import AnalyticWorkload, simulate

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
        (("--policies", "magic"), "a policy must be one of ours, random"),
        (("--workload", "absent"), "the workload must be one of []"),
        (("--cost", "beans"), "node-hours"),
        (("--planned-runs", "0"), "planned_runs must"),
        (("--noise", "-1"), "noise"),
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


def test_a_folder_without_a_journal_is_told(tmp_path: Path) -> None:
    result = call(tmp_path)
    assert result.exit_code == 2
    assert "journal" in result.output


def test_traces_need_a_target_and_a_mode(tmp_path: Path) -> None:
    result = call(tmp_path, "--workload", "any")
    assert result.exit_code == 2
    assert "traces need --target and --mode" in result.output
