"""The files of a tiny job."""

from pathlib import Path
from typing import Any

import pytest

from raycosttune.errors import InvalidWorkloadError
from raycosttune.simulate.trace import TraceWorkload

TIMES = """workload,device,workers,batch_size,step_seconds,epoch_seconds
tiny,t4,1,32,0.5,100
tiny,t4,2,32,0.3,60
tiny,t4,1,64,0.9,90
"""
CURVES = """workload,batch_size,seed,epoch,metric_name,metric
tiny,32,0,1,accuracy,0.5
tiny,32,0,2,accuracy,0.9
tiny,64,0,1,accuracy,0.6
"""


def folder(
    path: Path, times: str | bytes = TIMES, curves: str | bytes = CURVES, name: str = "tiny"
) -> Path:
    """Writes the files of a job and returns their folder."""
    for kind, text in (("times", times), ("curves", curves)):
        data = text if isinstance(text, bytes) else text.encode()
        (path / f"{name}.{kind}.csv").write_bytes(data)
    return path


def problems(path: Path, **arguments: Any) -> list[str]:
    """Returns the lines of the message with which a folder is refused."""
    with pytest.raises(InvalidWorkloadError) as caught:
        TraceWorkload.read(path, "tiny", **arguments)
    return str(caught.value).splitlines()
