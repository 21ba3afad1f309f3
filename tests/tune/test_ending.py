import pytest

from raycosttune.core.observation import EndCause
from raycosttune.tune.ending import MOST, failure

TRACED = """Failure # 1 (occurred at 2026-11-30_09-03-30)
ray::ImplicitFunc.train() (pid=19263, repr=train)
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/work/trainable.py", line 329, in train
    raise skipped from exception_cause(skipped)
  File "/work/mine.py", line 28, in train
    raise ValueError(text)
          ^^^^^^^^^^^^^^^^
"""


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("ValueError: no", "ValueError: no"),
        ("ValueError: lower the rate\nor clip\n", "ValueError: lower the rate or clip"),
        ("MyError: two things:\n  a\n  b", "MyError: two things: a b"),
        ("KeyError: 'lr'", "KeyError: 'lr'"),
        ("", "^^^^^^^^^^^^^^^^"),
    ],
)
def test_a_failure_says_all_that_follows_its_traceback(said: str, reason: str) -> None:
    cause, told = failure(TRACED + said)
    assert (cause, told.strip()) == (EndCause.FAILED, reason)


def test_of_several_tracebacks_the_last_one_counts() -> None:
    told = failure(f"{TRACED}OSError: first\n\nDuring handling ...\n{TRACED}ValueError: then")
    assert told == (EndCause.FAILED, "ValueError: then")


def test_without_a_traceback_the_last_line_counts() -> None:
    died = "The actor died.\n\tpid: 3\nIts worker process has died."
    assert failure(died) == (EndCause.FAILED, "Its worker process has died.")
    assert failure(" \n") == (EndCause.FAILED, "it failed")


def test_what_an_error_says_is_cut_where_it_is_long() -> None:
    _, told = failure(f"{TRACED}ValueError: {'x' * 5000}")
    assert (len(told), told[-1]) == (MOST, "…")
    cause, _ = failure(f"{TRACED}RuntimeError: CUDA out of memory. {'x' * 5000}")
    assert cause is EndCause.OUT_OF_MEMORY
