import torch

from raycosttune.train.probe_job import Job, Stepper, moved
from tests.train.probe_jobs import SAMPLES, loss, small


def test_a_batch_goes_on_from_the_start_after_the_last_sample() -> None:
    job = small()
    images, labels = job.batch(5, first=SAMPLES - 2)
    assert labels.tolist() == [(k % SAMPLES) % 5 for k in range(SAMPLES - 2, SAMPLES + 3)]
    assert images.shape == (5, 3, 8, 8)


def test_a_batch_is_collated_as_the_loader_does() -> None:
    job = small()
    own = Job(job.model, job.dataset, loss, loader={"collate_fn": len})
    assert own.batch(7) == 7


def test_the_bytes_of_gradients_are_those_of_trained_parameters() -> None:
    job = small()
    trained = sum(p.numel() for p in job.model.parameters())
    assert job.parameter_bytes == 4 * trained
    first = next(job.model.parameters())
    first.requires_grad = False
    assert job.parameter_bytes == 4 * (trained - first.numel())


def test_steps_train() -> None:
    job = small()
    stepper = Stepper(job, "cpu")
    batch = job.batch(SAMPLES)
    before = loss(stepper.model, batch).item()
    for _ in range(20):
        stepper.step(batch)
        stepper.wait()
    assert loss(stepper.model, batch).item() < before


def test_tensors_are_moved_wherever_they_lie() -> None:
    x = torch.zeros(2)
    meta = torch.device("meta")
    found = moved({"a": [x, (x, 3)], "b": "text"}, meta)
    assert found["a"][0].device == meta
    assert found["a"][1][0].device == meta
    assert (found["a"][1][1], found["b"]) == (3, "text")
