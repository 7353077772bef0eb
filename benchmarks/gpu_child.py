"""Runs and times the emitted files of one problem on a device, for benchmarks/gpu.py.

Children import this file: CUDA starts in them alone, and what breaks it ends with them.
"""

import gc
import json
import math
import platform
import time
from pathlib import Path
from typing import Any

import torch
from gpu import AS_WRITTEN, TOLERANCE, one_line
from torch.utils._pytree import tree_map_only

import runner
from runner.batch.machine import cores
from runner.problems import load_problem, read_problem, seed
from runner.report import stopwatch
from runner.verify.gates.compare import Tolerance, compare
from runner.verify.gates.weights import snapshot_weights, transfer_weights
from runner.verify.layout import read_weight_map
from runner.verify.loading_files import Files
from runner.verify.runtime.input_moves import move_inputs


def do_items(argument: str) -> str:
    """In a child: append a line for each item to a file."""
    asked = json.loads(argument)
    torch.set_num_threads(asked["threads"])
    torch.backends.mha.set_fastpath_enabled(False)
    directory, device = Path(asked["directory"]), asked["device"]
    work = {"run_file": run_file, "time_file": time_file}[asked["function"]]
    with Files(directory) as files, Path(asked["rows"]).open("a") as rows:
        for item in asked["items"]:
            if time.time() > asked["until"]:
                break
            try:
                answer = work(item, files, directory, device)
            except Exception as error:  # the answer is why the file does not run
                answer = {"status": "error", "reason": one_line(error)}
            print(json.dumps(item | answer), file=rows, flush=True)
            gc.collect()
            if answer["status"] in ("error", "unable") and is_broken(device):
                break  # another child goes on
    return ""


def is_broken(device: str) -> bool:
    """Whether an error left the device unusable for this process, as a failed assertion does."""
    try:
        torch.zeros(1, device=device).item()
    except RuntimeError:
        return True
    return False


def run_file(item: dict[str, Any], files: Files, directory: Path, device: str) -> dict[str, Any]:
    """Compare a step or the composition with its original, or run a kernel's file."""
    with torch.no_grad():
        if item["what"].startswith("level_"):
            return run_kernel(item, files, directory, device)
        return run_pair(item, files, directory, device)


def run_pair(item: dict[str, Any], files: Files, directory: Path, device: str) -> dict[str, Any]:
    """Run a model and what is put together from its parts, on the same weights and inputs.

    As in KernelBench's harness both are built on the CPU, cast and moved; unlike there integers
    stay integers, and weights are shared by name.
    """
    seed(0)
    is_step = item["what"].startswith("steps/")
    if is_step:
        step = directory / item["what"]
        parent = files.load(step / "original.py")
        original, args, kwargs = parent.Model(), parent.get_inputs(), {}
        other, mapping = files.load_step(step).RefactoredModel(), read_weight_map(step)
    else:
        problem = load_problem(read_problem(directory / "original.py"))
        original, (args, kwargs) = problem.build(), problem.get_inputs()
        test = files.load(directory / item["what"])
        other, mapping = test.ComposedModel(), test.WEIGHTS
    precision = item["precision"]
    args, kwargs = placed((args, kwargs), precision, device)
    backend = torch.get_device_module(device)
    counts = hasattr(backend, "reset_peak_memory_stats")
    original = placed_model(original, precision, device)
    if counts:
        backend.reset_peak_memory_stats()
    held = {name: placed(t, precision, device) for name, t in snapshot_weights(original).items()}
    try:
        seed(1)
        expected = original(*args, **kwargs)
    except Exception as error:
        if is_step:  # its original is one of the emitted files
            raise
        return {"status": "unable", "reason": f"the original: {one_line(error)}"}
    peak = backend.max_memory_allocated() if counts else None
    del original
    other = placed_model(other, precision, device)
    transfer_weights(held, other, mapping)
    seed(1)
    allowed = Tolerance(TOLERANCE[precision], TOLERANCE[precision])
    floating = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    found = compare(expected, other(*args, **kwargs), dict.fromkeys(floating, allowed))
    answer: dict[str, Any] = {"status": "wrong" if found.reason else "right"}
    if found.reason:
        answer["reason"] = found.reason
    if peak and not is_step and precision == AS_WRITTEN:
        answer["forward_peak_bytes"] = peak
    largest = found.max_diff if math.isfinite(found.max_diff) else None  # JSON has no infinity
    return answer | {"max_diff": largest, "bitwise_equal": found.bitwise_equal}


def run_kernel(item: dict[str, Any], files: Files, directory: Path, device: str) -> dict[str, Any]:
    """Run a kernel's file: its outputs have their shapes, and are finite where they were."""
    module = files.load(directory / item["what"])

    def outputs(precision: str) -> list[torch.Tensor]:
        seed(0)
        model = placed_model(module.Model(*module.get_init_inputs()), precision, device)
        made = model(*placed(module.get_inputs(), precision, device))
        return list(made) if isinstance(made, tuple) else [made]

    made = outputs(item["precision"])
    shapes = [tuple(output.shape) for output in made]
    if shapes != module.get_expected_output_shape():
        return {"status": "wrong", "reason": f"output shapes {shapes}"}
    if item["precision"] != AS_WRITTEN and not finite(made) and finite(outputs(AS_WRITTEN)):
        return {"status": "wrong", "reason": "not finite, and finite as it is written"}
    return {"status": "right"}


def finite(outputs: list[torch.Tensor]) -> bool:
    return all(bool(output.isfinite().all()) for output in outputs)


def placed_model(model: torch.nn.Module, precision: str, device: str) -> torch.nn.Module:
    dtype = None if precision == AS_WRITTEN else getattr(torch, precision)
    return model.eval().to(device=device, dtype=dtype)


def placed(values: Any, precision: str, device: str) -> Any:
    """Cast what is floating-point, and move everything as it is laid out."""
    if precision != AS_WRITTEN:
        dtype = getattr(torch, precision)
        values = tree_map_only(
            torch.Tensor, lambda t: t.to(dtype) if t.is_floating_point() else t, values
        )
    return move_inputs(values, device)


def time_file(item: dict[str, Any], files: Files, directory: Path, device: str) -> dict[str, Any]:
    """Return the median of many runs, and what the kernel reached."""
    asked = {"file": str(directory / item["what"]), "mode": "eval", "device": device}
    answer = json.loads(stopwatch.time_file(json.dumps(asked | {"threads": cores()})))
    if "error" in answer:
        return {"status": "error", "reason": answer["error"]}
    median_s = answer["median_s"]
    reached = {"flops_per_s": item["flops"] / median_s, "bytes_per_s": item["bytes"] / median_s}
    return {"status": "timed"} | answer | reached


def device_facts(device: str) -> str:
    """In a child: versions, and the device's memory where it says."""
    facts = {
        "kdrun": runner.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }
    backend = torch.get_device_module(device)
    if hasattr(backend, "mem_get_info"):
        facts["free_bytes"], facts["memory_bytes"] = backend.mem_get_info()
    if hasattr(backend, "get_device_capability"):
        facts["capability"] = str(backend.get_device_capability())
    return json.dumps(facts)
