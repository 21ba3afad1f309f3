import json
from pathlib import Path

import pytest

from raycosttune.errors import InvalidAdviceError
from raycosttune.train.probe_child import ProbeError, ProbeMemoryError, main, run_children

HERE = "tests.train.probe_ends"


def test_processes_know_of_one_another_and_a_prefix_comes_before_the_command() -> None:
    told = run_children(f"{HERE}:echo", {"word": "hello"}, workers=2, prefix=["env", "OF_ALL=7"])
    assert [each["word"] for each in told] == ["hello", "hello"]
    assert [each["RANK"] for each in told] == ["0", "1"]
    assert {each["WORLD_SIZE"] for each in told} == {"2"}
    assert {each["OF_ALL"] for each in told} == {"7"}
    assert len({each["RAYCOSTTUNE_STORE"] for each in told}) == 1


@pytest.mark.parametrize(
    ("name", "arguments", "error", "what"),
    [
        ("fail", {"word": "no luck"}, ProbeError, "it raised ValueError: no luck .*probe_ends.py"),
        ("be_killed", {}, ProbeMemoryError, "was killed"),
        ("leave", {}, ProbeError, "exit status 3: last words"),
        ("refuse", {}, InvalidAdviceError, "^nothing fits$"),
    ],
)
def test_how_a_process_ended_is_told(
    name: str, arguments: dict[str, str], error: type[Exception], what: str
) -> None:
    with pytest.raises(error, match=what) as caught:
        run_children(f"{HERE}:{name}", arguments)
    assert type(caught.value) is error


def test_the_first_to_fail_says_why_and_ends_the_others() -> None:
    with pytest.raises(InvalidAdviceError, match="nothing fits on rank 1"):
        run_children(f"{HERE}:fail_on_one", {}, workers=2, timeout_seconds=60)


def test_the_job_that_a_process_failed_on_is_named() -> None:
    with pytest.raises(ProbeError, match=r"a probe of a:b must run to its end, .*status 4: it wro"):
        run_children(f"{HERE}:leave_at_once", {"target": "a:b"})


def test_a_process_that_hangs_is_ended() -> None:
    with pytest.raises(ProbeError, match=r"must end within 0.1 s\. See that"):
        run_children(f"{HERE}:hang", {}, timeout_seconds=0.1)


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("echo", {"word": "x"}, {"answer"}),
        ("fail", {"word": "why"}, {"error", "out_of_memory"}),
        ("refuse", {}, {"error", "out_of_memory", "invalid"}),
        ("absent", {}, {"error", "out_of_memory"}),
        ("run_out", {}, {"error", "out_of_memory"}),
    ],
)
def test_what_came_of_a_function_is_written_as_json(
    name: str,
    arguments: dict[str, str],
    told: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key in ("RANK", "WORLD_SIZE", "RAYCOSTTUNE_STORE", "OF_ALL"):
        monkeypatch.setenv(key, "0")
    main(f"{HERE}:{name}", json.dumps(arguments), str(tmp_path / "told"))
    found = json.loads((tmp_path / "told").read_text())
    assert found.keys() == told
    assert found.get("out_of_memory") in (None, name == "run_out")
