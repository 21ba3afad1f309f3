import json
from dataclasses import replace

from raycosttune.advise import AlgorithmChoice, guide
from raycosttune.train.probe_algorithm import AlgorithmProbe
from raycosttune.train.probe_report import report_data, report_lines
from tests.advise.told import CLUSTER, PROFILE

CHOICE = AlgorithmChoice({"conv": "channels_last", "last": "default"}, 1.0, 0.0)


def test_the_lines_tell_limits_scaling_advice_and_the_sweep() -> None:
    lines = list(report_lines(guide(PROFILE, CLUSTER), None))
    assert lines[0].startswith("compute  740 ms a step of 64")
    assert "      2      1           0.5      1.48         74%" in "\n".join(lines)
    assert '    "num_workers": tune.choice([1, 2, 4, 8]),' in lines
    assert "    CostAwareSearch(goal, max_local_batch=200)" in lines
    assert lines[-1] == "batches of at most 800: an epoch has 6400 samples"


def test_chosen_algorithms_are_told_with_what_they_bring() -> None:
    found = guide(replace(PROFILE, memory=None), CLUSTER)
    told = "\n".join(report_lines(found, AlgorithmProbe({}, CHOICE, 0.8)))
    assert "the step takes 0.80 times as long with\n    conv: channels_last\n" in told
    assert "max_local_batch" not in told
    none = "\n".join(report_lines(found, AlgorithmProbe({}, CHOICE, 1.0)))
    assert "none is faster than PyTorch's own" in none


def test_machines_are_told_the_same() -> None:
    found = guide(PROFILE, CLUSTER)
    told = json.loads(json.dumps(report_data(PROFILE, found, AlgorithmProbe({}, CHOICE, 0.8))))
    assert told["sweep"]["workers"] == [1, 2, 4, 8]
    assert told["advice"] == list(found.advice)
    assert told["algorithms"] == {"chosen": dict(CHOICE.algorithms), "ratio": 0.8}
    assert report_data(PROFILE, found, None)["algorithms"] is None
