"""Sessions that may profile, and what trials and profiles of a known job tell them."""

from collections.abc import Iterable, Sequence

from raycosttune.core.abilities import Abilities
from raycosttune.core.cost import CostMetric, WorkerHours
from raycosttune.core.decision import Run
from raycosttune.core.goal import Goal
from raycosttune.core.held import present, resized
from raycosttune.core.knowledge import Knowledge
from raycosttune.core.observation import EndCause, Ended, Report, TrialRecord
from raycosttune.core.profile import Profile, Profiled, ProfileRecord
from raycosttune.core.proposer import Proposer
from raycosttune.core.session import Session
from raycosttune.core.space import Allocation, Space
from tests.core.drive import Job, goal

SAMPLES = 10_000.0


def shown(job: Job, profile: Profile, left_out: Iterable[Allocation] = ()) -> Profiled:
    """Returns what a profile of a job shows, but for some cells."""
    timed = {c: job.epoch_seconds[c] for c in profile.cells if c not in left_out}
    steps = sum(s * cell.batch_size / SAMPLES for cell, s in timed.items())
    seconds = job.startup_seconds + profile.steps * steps
    return Profiled(timed, seconds, job.startup_seconds)


def profiled(job: Job, cells: Sequence[Allocation], name: str = "p") -> ProfileRecord:
    """Returns a profile of some cells that is over."""
    record = ProfileRecord(name, Profile(tuple(cells)))
    record.show(shown(job, record.profile))
    return record


def know(
    space: Space,
    job: Job,
    cells: Sequence[Allocation],
    records: Sequence[TrialRecord] = (),
    *,
    limits: Goal | None = None,
    cost: CostMetric | None = None,
) -> Knowledge:
    """Returns what is known after a profile of some cells and some trials."""
    profiles = (profiled(job, cells),)
    return Knowledge(records, space, limits or goal(), cost or WorkerHours(), profiles=profiles)


def begun(job: Job, cell: Allocation, epochs: int, name: str = "t") -> TrialRecord:
    """Returns a trial that runs, and has made some epochs in vain."""
    reports = [job.report(goal(), cell, {}, k) for k in range(1, epochs + 1)]
    return TrialRecord(name, cell, {}, 0, reports)


def vain(job: Job, cell: Allocation, epochs: int, name: str = "t") -> TrialRecord:
    """Returns a trial that was stopped before the target."""
    record = begun(job, cell, epochs, name)
    record.ended = Ended(EndCause.STOPPED)
    return record


def session(
    space: Space,
    limits: Goal | None = None,
    *,
    resize: bool = False,
    cost: CostMetric | None = None,
    proposer: Proposer | None = None,
    max_concurrent: int | None = None,
) -> Session:
    """Returns a session whose driver can profile."""
    return Session(
        space,
        limits or goal(),
        cost=cost or WorkerHours(),
        proposer=proposer,
        max_concurrent=max_concurrent,
        abilities=Abilities(profile=True, resize=resize),
        clock=float,
    )


def asked(sweep: Session, name: str) -> Profile:
    """Asks for a profile."""
    answer = sweep.ask(name)
    assert isinstance(answer, Profile)
    return answer


def first_run(sweep: Session, job: Job) -> tuple[str, Run, list[Profile]]:
    """Answers profiles until a run is asked for; returns its name, itself and the profiles."""
    profiles: list[Profile] = []
    for k in range(30):
        answer = sweep.ask(f"t{k}")
        if isinstance(answer, Run):
            return f"t{k}", answer, profiles
        assert isinstance(answer, Profile)
        profiles.append(answer)
        sweep.tell_profile(f"t{k}", shown(job, answer))
    message = "no run after 30 profiles"
    raise AssertionError(message)


def report(sweep: Session, job: Job, name: str, epoch: int, workers: int | None = None) -> None:
    """Tells an epoch of a trial, on other workers where given; these start first."""
    record = sweep.records[name]
    told = job.report(sweep.goal, record.allocation, record.recipe, epoch)
    before = present(record, sweep.space)
    cell = resized(sweep.space, before, workers or before.workers)
    attempt = record.reports[-1].attempt if record.reports else 1
    startup = told.startup_seconds
    if cell != before:
        attempt, startup = attempt + 1, job.startup_seconds
    seconds = job.epoch_seconds[cell] + startup
    sweep.tell(
        name,
        Report(told.epoch, told.value, seconds, startup, attempt, name, workers=cell.workers),
    )
