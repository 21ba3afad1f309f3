import math
from dataclasses import replace

from raycosttune.train.step import Count, Step, StepClock, Timing


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


STEP = Step(samples=4, total=12, share=4, workers=3)


def run(clock: StepClock, time: Clock, step: Step, compute: float, wait: float) -> None:
    clock.fetch()
    clock.start(step)
    clock.train()
    time.now += compute
    clock.reduce()
    time.now += wait


def test_compute_is_told_apart_from_the_wait_for_others() -> None:
    time = Clock()
    clock = StepClock(clock=time)
    for compute in (5.0, 1.0, 1.5):
        run(clock, time, STEP, compute, 2.0)
    clock.fetch()
    assert clock.read() == Timing(1.5, 3, 4, 3, 12, 7.5, 13.5)
    assert math.isnan(clock.read().step_seconds)


def test_a_last_batch_that_is_smaller_says_nothing_of_a_full_step() -> None:
    time = Clock()
    clock = StepClock(clock=time)
    run(clock, time, STEP, 1.0, 0.0)
    run(clock, time, Step(1, 2, 1, 2, is_full=False), 0.2, 0.0)
    timing = clock.read()
    assert (timing.step_seconds, timing.full_steps, timing.full_share) == (1.0, 1, 4)
    assert (timing.steps, timing.samples, timing.compute_seconds) == (2, 5, 1.2)


def test_only_steps_of_the_latest_share_count_as_its_time() -> None:
    time = Clock()
    clock = StepClock(clock=time)
    run(clock, time, STEP, 1.0, 0.0)
    run(clock, time, Step(8, 12, 8, 3), 2.0, 0.0)
    timing = clock.read()
    assert (timing.step_seconds, timing.full_steps, timing.full_share) == (2.0, 1, 8)


def test_parts_of_a_step_are_timed_together() -> None:
    time = Clock()
    clock = StepClock(clock=time)
    for part in range(3):
        clock.fetch()
        clock.start(Step(2, 12, 6, 2, part=part, parts=3))
        clock.train()
        time.now += 1.0
    clock.reduce()
    timing = clock.read()
    assert (timing.steps, timing.step_seconds, timing.samples) == (1, 3.0, 6)


def test_without_an_exchange_a_step_ends_when_the_next_batch_is_asked_for() -> None:
    time = Clock()
    clock = StepClock(clock=time)
    for _ in range(2):
        clock.fetch()
        clock.start(STEP)
        clock.train()
        time.now += 3.0
    clock.fetch()
    assert clock.read().compute_seconds == 6.0


def test_batches_that_are_not_trained_on_are_no_steps() -> None:
    time = Clock()
    clock = StepClock(clock=time)
    for _ in range(2):
        clock.fetch()
        clock.start(STEP)
        time.now += 3.0
    clock.fetch()
    assert clock.read().steps == 0


def test_a_wait_inside_a_step_can_be_left_out() -> None:
    time = Clock()
    clock = StepClock(clock=time)
    clock.fetch()
    time.now += 2.0
    clock.exclude(1.5)
    clock.start(STEP)
    clock.train()
    time.now += 1.0
    clock.reduce()
    assert clock.read().compute_seconds == 1.5


def test_of_several_exchanges_in_a_step_no_wait_counts() -> None:
    time = Clock()
    clock = StepClock(clock=time)
    for _ in range(2):
        clock.fetch()
        clock.start(STEP)
        for compute in (3.0, 2.0):
            clock.train()
            time.now += compute
            clock.reduce()
            time.now += 7.0
            clock.resume()
        time.now += 0.5  # such as the optimizer's step, which the next call for a batch ends
    clock.fetch()
    assert clock.read() == Timing(5.0, 2, 4, 2, 8, 10.0, 39.0)


def test_models_of_one_backward_pass_are_timed_to_the_last() -> None:
    time = Clock()
    clock = StepClock(clock=time)
    clock.fetch()
    clock.start(STEP)
    clock.train()
    time.now += 3.0
    clock.reduce()
    time.now += 2.0
    clock.reduce()
    time.now += 7.0
    clock.resume()
    clock.resume()
    assert clock.read().compute_seconds == 5.0


def test_an_exchange_outside_of_a_step_is_not_timed() -> None:
    clock = StepClock(clock=Clock())
    clock.reduce()
    clock.resume()
    clock.start(STEP)
    clock.reduce()
    assert clock.read().steps == 1
    clock.start(STEP)
    clock.reduce()
    assert clock.read().steps == 0


def test_a_part_weighs_what_counts_in_the_loss() -> None:
    step = Step(samples=4, total=12, share=6, workers=3, part=0, parts=2)
    assert (step.weight, step.fraction) == (2 / 3, 1 / 2)
    counted = replace(step, count=Count(own=5.0, share=10.0, total=100.0))
    assert (counted.weight, counted.fraction) == (0.1, 0.1)
    assert replace(step, count=Count(0.0, 0.0, 0.0)).weight == step.weight
