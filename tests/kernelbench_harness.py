"""A test double of KernelBench's harness: how it finds problems, and judges an answer to one.

It follows what the harness' public source does (its dataset, its evaluation, its static checker of
answers), on any device and without its timing. Both files are executed in one namespace; every
tensor among the inputs is cast, integers and masks too; the outputs must be one tensor each; nobody
calls `eval()`; the generator is seeded before Model runs and not again before ModelNew does.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
REFUSED = {
    "try": r"\btry\s*:|\bexcept\b\s*(:|\w)",
    "pass": r"\bpass\b",
    "threads": r"import\s+(threading|multiprocessing)|concurrent\.futures|(Thread|Process)Pool",
    "a subclass of Tensor": r"_make_subclass|class\s+\w+.*\((torch\.)?Tensor\)|Tensor\.__new__",
    "a timer replaced": r"(cuda\.Event(\.\w+)?|cuda\.synchronize|time\.(time|perf_counter))\s*=",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an answer is right, and why it is not."""

    right: bool
    reason: str = ""


def problems(folder: Path, level: int) -> dict[int, str]:
    """The text of each problem of a level, by the number that its file's name begins with."""
    found = {}
    for file in (folder / f"level{level}").glob("*.py"):
        number = file.name.split("_")[0]
        if number.isdigit():
            found[int(number)] = file.read_text(encoding="utf-8")
    return found


def refusals(answer: str) -> list[str]:
    """What the static checker refuses an answer for, before anything runs."""
    code = re.sub(r"(#|//).*", "", answer)
    return [name for name, pattern in REFUSED.items() if re.search(pattern, code)]


def judge(
    problem: str,
    answer: str,
    *,
    dtype: torch.dtype = torch.float32,
    device: str = "cpu",
    trials: int = 5,
    seed: int = 42,
) -> Verdict:
    """Run `Model` of a problem and `ModelNew` of an answer on the same inputs, and compare.

    Whatever fails in the problem or in the answer makes the answer wrong; nothing is raised.
    """
    names: dict[str, Any] = {}
    try:
        exec(compile(problem, "<problem>", "exec"), names)
        get_inputs, first_class = names["get_inputs"], names["Model"]
        torch.manual_seed(seed)
        arguments = _cast(names["get_init_inputs"](), device, dtype)
        with torch.no_grad():
            torch.manual_seed(seed)
            model = first_class(*arguments)
            exec(compile(answer, "<answer>", "exec"), names)
            torch.manual_seed(seed)
            model_new = names["ModelNew"](*arguments)
            model.to(device=device, dtype=dtype)
            model_new.to(device=device, dtype=dtype)
            torch.manual_seed(seed)
            seeds = [int(torch.randint(0, 2**32 - 1, (1,))) for _ in range(trials)]
            reasons = [_trial(model, model_new, get_inputs, one, device, dtype) for one in seeds]
    except Exception as error:  # the harness, too: whatever goes wrong is the answer's fault
        return Verdict(False, f"{type(error).__name__}: {error}".partition("\n")[0])
    return next((Verdict(False, reason) for reason in reasons if reason), Verdict(True))


def _trial(
    model: Any, model_new: Any, get_inputs: Any, seed: int, device: str, dtype: torch.dtype
) -> str:
    """Why the outputs differ; empty where they do not."""
    torch.manual_seed(seed)
    inputs = _cast(get_inputs(), device, dtype)
    torch.manual_seed(seed)
    expected = model(*inputs)
    actual = model_new(*inputs)
    if expected.shape != actual.shape:
        return f"shape {tuple(actual.shape)}, not {tuple(expected.shape)}"
    tolerance = TOLERANCE[dtype]
    if torch.allclose(expected, actual, atol=tolerance, rtol=tolerance):
        return ""
    difference = torch.abs(expected - actual)
    return f"off by {difference.max().item():.3g}, {torch.mean(difference).item():.3g} on average"


def _cast(values: list[Any], device: str, dtype: torch.dtype) -> list[Any]:
    """Copies of all tensors: to the CPU too, as a move to a GPU would be."""
    return [
        value.to(dtype).to(device, copy=True) if isinstance(value, torch.Tensor) else value
        for value in values
    ]
