import pytest

from raycosttune.core.memory import is_out_of_memory, says_out_of_memory


@pytest.mark.parametrize(
    "text",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "RuntimeError: [enforce fail at alloc_cpu.cpp] can't allocate memory",
        "RuntimeError: CUDNN_STATUS_ALLOC_FAILED",
        "Worker exit type: NODE_OUT_OF_MEMORY",
        "OSError: [Errno 12] Cannot allocate memory",
        "pod terminated: OOMKilled",
    ],
)
def test_the_words_of_every_library_are_known(text: str) -> None:
    assert says_out_of_memory(text)
    assert is_out_of_memory(RuntimeError(text))


def test_a_killed_worker_is_not_taken_for_one_without_memory() -> None:
    text = "The actor died: SIGKILL by the OOM killer, or a crash"
    assert not says_out_of_memory(text)
    assert not is_out_of_memory(None)
    assert not is_out_of_memory(ValueError("no"))


def test_the_cause_of_an_error_counts() -> None:
    error = RuntimeError("the step failed")
    error.__cause__ = MemoryError()
    assert is_out_of_memory(error)
