"""What a worker's process is doing now: its loader writes it, its model's hooks read it."""

from dataclasses import dataclass

from raycosttune.train.averaging import Averaging
from raycosttune.train.noise import NoiseMeter
from raycosttune.train.rebalancer import Rebalancer
from raycosttune.train.step import Step, StepClock


@dataclass
class Current:
    """Is the step that runs, and what measures it.

    Attributes:
        step: The part of a step that the loop was given last, None where no loader of this
            package gave it one.
        clock: What times it.
        noise: What looks at its gradients.
        feeder: What decides on the shares of the batches that the loop is given.
        rebalancer: The same for batches that are trained on.
        averaging: What averages weights in place of gradients.
        least_rows: Samples that a model must be given at least, 2 with batch normalisation.
    """

    step: Step | None = None
    clock: StepClock | None = None
    noise: NoiseMeter | None = None
    feeder: Rebalancer | None = None
    rebalancer: Rebalancer | None = None
    averaging: Averaging | None = None
    least_rows: int = 1


CURRENT = Current()
