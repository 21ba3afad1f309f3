import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from raycosttune.errors import PowerUnknownError
from raycosttune.train.power import EnergyMeter, measure_watts


class NVMLError(Exception):
    pass


class FakeNvml(SimpleNamespace):
    """Stands for a machine whose GPUs draw 100 J between two readings; an old one can't tell."""

    def __init__(self, gpus: int, *, old: int = -1) -> None:
        super().__init__(NVMLError=NVMLError)
        self.gpus, self.old, self.reads = gpus, old, 0

    def nvmlInit(self) -> None:  # noqa: N802 - NVML's name
        if self.gpus == 0:
            message = "Driver Not Loaded"
            raise NVMLError(message)

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802 - likewise
        return self.gpus

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802 - likewise
        return index

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:  # noqa: N802 - likewise
        if handle == self.old:
            message = "Not Supported"
            raise NVMLError(message)
        self.reads += 1
        return self.reads * 100_000


def zone(folder: Path, name: str, kind: str, *, energy: int, most: int = 10_000_000) -> Path:
    place = folder / name
    place.mkdir(parents=True)
    (place / "name").write_text(f"{kind}\n")
    (place / "energy_uj").write_text(f"{energy}\n")
    (place / "max_energy_range_uj").write_text(f"{most}\n")
    return place


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(0))


@pytest.mark.usefixtures("no_gpu")
def test_processors_are_counted_once_and_across_a_wrap(tmp_path: Path) -> None:
    first = zone(tmp_path, "intel-rapl:0", "package-0", energy=9_000_000)
    zone(tmp_path, "intel-rapl:0:0", "core", energy=5)
    zone(tmp_path, "intel-rapl:1", "psys", energy=5)
    (tmp_path / "intel-rapl:2").mkdir()
    with EnergyMeter(tmp_path) as meter:
        (first / "energy_uj").write_text("2000000\n")
    assert meter.sources == ("intel-rapl:0",)
    assert meter.joules == pytest.approx(3.0)
    assert meter.watts == pytest.approx(3.0 / meter.seconds)
    assert meter.missing == ["NVML: Driver Not Loaded"]


def test_gpus_that_tell_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(2, old=1))
    with EnergyMeter(tmp_path) as meter:
        pass
    assert meter.sources == ("GPU 0",)
    assert meter.joules == pytest.approx(100.0)
    assert meter.missing == ["GPU 1: Not Supported", f"RAPL: nothing @ {tmp_path}"]


@pytest.mark.parametrize("module", [None, FakeNvml(0)])
def test_where_nothing_tells_the_error_says_what_to_do(
    module: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    (tmp_path / "energy_uj").mkdir()
    broken = zone(tmp_path, "intel-rapl:0", "package-0", energy=1)
    (broken / "energy_uj").write_text("none")
    with EnergyMeter(tmp_path) as meter:
        pass
    with pytest.raises(PowerUnknownError, match=r"NVML: .*RAPL: .*EnergyKWh\(watts_per_node"):
        _ = meter.watts


def test_an_open_block_has_no_watts_yet(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0", energy=1)
    with EnergyMeter(tmp_path) as meter, pytest.raises(PowerUnknownError):
        _ = meter.watts


def test_watts_of_some_seconds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(1))
    assert 100 < measure_watts(0.01, tmp_path) <= 10_000  # 100 J in at least 10 ms
