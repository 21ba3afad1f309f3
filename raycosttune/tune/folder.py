"""Where the files of an experiment lie on this machine."""

from pathlib import Path
from typing import Any

from raycosttune.train.keys import FOLDER


def local_folder(storage: Any) -> Path:  # noqa: ANN401 - Ray's StorageContext is private
    """Returns the experiment's folder where it is local, Tune's staging folder where not."""
    if getattr(storage.storage_filesystem, "type_name", "") == "local":
        return Path(storage.experiment_fs_path)
    return Path(storage.experiment_driver_staging_path)


def run_journal(experiment: Path, trial_id: str) -> Path:
    """Returns where a metered run writes its own reports."""
    return experiment / FOLDER / "trials" / f"{trial_id}.jsonl"
