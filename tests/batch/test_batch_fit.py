"""`--fit`: the largest batch that fits, found by estimate."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from runner.batch.batch_fit import PROCESS_BYTES, MemoryLimit, fit_choice
from runner.batch.child.answer import Answer
from runner.batch.child.problem_work import estimate
from runner.batch.child.task import Task
from runner.problems import Problem, identify_problem, read_variant
from runner.problems.variants import VariantChoice, write_choice
from runner.store.result import RunOptions

MIB = 1 << 20
SOURCE = """
import torch

{constants}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(1024, 1024)

    def forward(self, x{more}):
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


def forecast(problem: Problem) -> Answer:
    folder = problem.path.parent
    task = Task(
        problem=problem.path,
        label=f"level1/{problem.name}",
        directory=folder / "directory",
        scratch=folder,
        options=RunOptions(),
        memory_bytes=4 << 30,
        most_memory_bytes=4 << 30,
        timeout_s=60,
    )
    return TypeAdapter(Answer).validate_json(estimate(task.model_dump_json()))


def fitted(
    folder: Path, memory_mib: int, dtype: str | None = None, **source: str
) -> tuple[Problem, str | None]:
    path = folder / "level1" / "net.py"
    path.parent.mkdir()
    path.write_text(SOURCE.format(**{"more": "", "result": "self.fc(x)"} | source))
    choice = VariantChoice(identify_problem(path), {}, dtype)
    limit = MemoryLimit(memory_mib * MIB, f"{memory_mib}MiB", folder / "out")
    return fit_choice(choice, limit, forecast)


CONSTANTS = "width = 1024\nbatch_size = 1024 * 256"
"""An input of a GiB and an output of a GiB."""
INPUTS = "torch.randn(batch_size, width)"


def test_the_largest_batch_that_fits_is_chosen_and_told(tmp_path: Path) -> None:
    problem, note = fitted(tmp_path, 1024, constants=CONSTANTS, inputs=INPUTS)
    record = read_variant(problem.path)
    assert record is not None
    assert (record.fit, record.fitted) == ("1024MiB", "batch_size")
    chosen = int(record.constants["batch_size"].after)
    assert f"batch_size = {chosen}  # 1024 * 256 in net.py" in problem.path.read_text()
    assert note is not None
    assert note.startswith(f"level1/net: batch_size = {chosen} instead of 1024 * 256 (1")
    original = identify_problem(tmp_path / "level1/net.py")
    for value, fits in ((chosen, True), (chosen + 1, False)):
        again = write_choice(VariantChoice(original, {"batch_size": str(value)}), tmp_path / "out")
        needed = forecast(again).forecast
        assert needed is not None
        needed = needed.model_copy(update={"process_bytes": PROCESS_BYTES})
        assert (needed.expected_bytes <= 1024 * MIB) == fits


def test_a_problem_that_fits_stays_itself(tmp_path: Path) -> None:
    problem, note = fitted(tmp_path, 3072, constants=CONSTANTS, inputs=INPUTS)
    assert (problem.name, note) == ("net", None)


@pytest.mark.long
def test_half_precision_fits_twice_the_batch(tmp_path: Path) -> None:
    half, _ = fitted(tmp_path, 1024, "bf16", constants=CONSTANTS, inputs=INPUTS)
    record = read_variant(half.path)
    assert record is not None
    assert record.dtype == "bf16"
    assert int(record.constants["batch_size"].after) > 45_000


@pytest.mark.long
def test_a_batch_whose_half_does_not_run_may_be_1(tmp_path: Path) -> None:
    problem, note = fitted(
        tmp_path,
        1024,
        constants="batch_size = 16384\nwidth = 16384",
        more=", y",
        result="x * y",  # (16384, 16384) * (16384,) runs by accident, and so does a batch of 1
        inputs="torch.randn(batch_size, width), torch.randn(batch_size)",
    )
    assert problem.name == "net+batch_size=1"
    assert note is not None
    assert note.endswith("; larger ones fail)")


@pytest.mark.parametrize(
    ("constants", "inputs", "reason"),
    [
        ("", "torch.randn(262144, 1024)", "and no constant of the file scales its batch"),
        ("batch = 2", "torch.randn(batch, 131072, 1024)", "needs more than 768MiB even with batch"),
    ],
)
def test_a_problem_that_cannot_fit_says_so_in_its_row(
    tmp_path: Path, constants: str, inputs: str, reason: str
) -> None:
    problem, note = fitted(tmp_path, 768, constants=constants, inputs=inputs)
    assert problem.name == "net+fit=768MiB"
    assert note is not None
    assert reason in note
    record = forecast(problem)
    assert record.status == "too_large"
    assert record.reason is not None
    assert reason in record.reason
