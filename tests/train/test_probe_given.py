from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import l1_loss
from torch.utils.data import DataLoader, TensorDataset

from raycosttune.errors import InvalidAdviceError
from raycosttune.train.probe_given import Criterion, MadeUp, job_of
from raycosttune.train.probe_job import Job, Stepper
from tests.train.probe_jobs import network, small

IMAGES = torch.randn(6, 3, 8, 8)
CLASSES = torch.arange(6) % 5


def stepped(found: object) -> Job:
    """Returns the job once it has taken a step."""
    job = job_of(found)
    stepper = Stepper(job, "cpu")
    stepper.step(job.batch(4))
    assert all(p.grad is not None for p in stepper.model.parameters())
    return job


def shape(job: Job) -> tuple[int, ...]:
    assert isinstance(job.dataset, MadeUp)
    return job.dataset.shape


def test_a_job_is_taken_as_it_is() -> None:
    job = small()
    assert job_of(job) is job


def test_a_model_with_data_and_a_loss_of_outputs_and_targets() -> None:
    targets = torch.randn(6, 5)
    job = stepped((network(), TensorDataset(IMAGES, targets), l1_loss))
    model, batch = job.model, job.batch(4)
    assert job.loss(model, batch) == l1_loss(model(batch[0]), batch[1])


def test_whole_targets_are_classes_and_others_are_values() -> None:
    job = stepped((network(), TensorDataset(IMAGES, CLASSES)))
    found = job.loss(job.model, job.batch(4))
    assert found == nn.functional.cross_entropy(job.model(IMAGES[:4]), CLASSES[:4])
    line = nn.Linear(2, 1)
    inputs, values = torch.randn(6, 2), torch.randn(6)
    job = stepped((line, TensorDataset(inputs, values)))
    assert job.loss(line, job.batch(6)) == ((line(inputs)[:, 0] - values) ** 2).mean()


def test_a_loader_gives_its_dataset_and_how_it_loads() -> None:
    def doubled(samples: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        images, labels = zip(*samples, strict=True)
        return 2 * torch.stack(images), torch.stack(labels)

    loader = DataLoader(TensorDataset(IMAGES, CLASSES), 2, num_workers=3, collate_fn=doubled)
    job = stepped((network(), loader, nn.CrossEntropyLoss()))
    assert job.samples == 6
    assert job.loader["num_workers"] == 3
    torch.testing.assert_close(job.batch(2)[0], 2 * IMAGES[:2])


def test_a_sample_stands_for_data() -> None:
    assert shape(stepped((network(), torch.zeros(3, 8, 8)))) == (3, 8, 8)
    job = stepped((nn.Embedding(9, 2), torch.full((5,), 8)))
    assert shape(job) == (5,)
    assert job.batch(60).max() == 8


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (nn.Linear(7, 2), (7,)),
        (nn.Sequential(nn.ReLU(), nn.Linear(7, 2)), (7,)),
        (network(), (3, 8, 8)),
        (nn.Conv2d(2, 3, 3), (2, 32, 32)),
        (nn.Embedding(9, 2), (128,)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_first_layer_of_a_model_alone_tells_a_sample(
    model: nn.Module, expected: tuple[int, ...]
) -> None:
    assert shape(stepped(model)) == expected


class Many(nn.Linear):
    example_input_array = torch.zeros(16, 2)

    def forward(self, x: Tensor) -> Any:
        found = super().forward(x)
        return {"logits": found, "more": [found.sum(), "text"], "none": None}


def test_outputs_of_many_tensors_all_count_and_an_example_comes_first() -> None:
    assert shape(stepped(Many(2, 3))) == (2,)


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (None, "it must return .* or a model alone, got NoneType"),
        ((network(), small().dataset, 3), r"got \(Sequential, TensorDataset, int\)"),
        ((), r"got \(\)"),
        (nn.LSTM(3, 4), "whose first layer is LSTM, no sample can be told: return"),
        (nn.ReLU(), "whose first layer is ReLU"),
    ],
)
def test_what_is_no_job_is_told_with_what_is(found: object, what: str) -> None:
    with pytest.raises(InvalidAdviceError, match=what):
        job_of(found)


def test_data_that_are_no_pairs_are_told() -> None:
    with pytest.raises(InvalidAdviceError, match="pairs of inputs and targets, got Tensor"):
        stepped((nn.Linear(3, 2), [torch.zeros(3)] * 4, l1_loss))


def test_a_model_that_is_frozen_is_told() -> None:
    frozen = nn.Linear(3, 2).requires_grad_(requires_grad=False)
    with pytest.raises(InvalidAdviceError, match="must have a gradient"):
        job_of(frozen).loss(frozen, torch.zeros(2, 3))


def test_a_usual_loss_of_what_are_no_tensors_is_told() -> None:
    job = job_of((network(), [(torch.zeros(3, 8, 8), "cat")] * 4))

    with pytest.raises(InvalidAdviceError, match="outputs and targets must be tensors, got Tensor"):
        Stepper(job, "cpu").step(job.batch(2))


@pytest.mark.parametrize(
    ("loss", "what"),
    [
        (lambda outputs, _: outputs, "got shape"),
        (lambda outputs, _: outputs.mean().item(), "got "),
        (lambda outputs, _: outputs.mean().detach(), "with a gradient"),
    ],
)
def test_a_loss_that_is_no_number_with_a_gradient_is_told(loss: Criterion, what: str) -> None:
    job = job_of((network(), [(torch.zeros(3, 8, 8), 1)] * 4, loss))

    with pytest.raises(InvalidAdviceError, match=f"the loss must be a tensor of one .*{what}"):
        Stepper(job, "cpu").step(job.batch(2))
