"""Finds the device that `--device` stands for, by asking torch in a child process."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from runner.batch.child.child_process import Request, run_child
from runner.batch.machine import GIB, cores, processor_name
from runner.errors import UsageError


@dataclass(frozen=True, slots=True)
class Device:
    """A device of this machine."""

    type: str
    """Device type in torch's terms: cpu, cuda, xpu, mps, or a type that another package adds."""
    name: str
    """Name for people, with the version of torch."""


def look_for_device(device_type: str) -> Device:
    """Return this machine's device of a type, or of the best type for `auto`.

    Raises:
        UsageError: torch finds no such device.
    """
    with tempfile.TemporaryDirectory(prefix="kdrun-") as temporary_folder:
        directory = Path(temporary_folder)
        outcome = run_child(
            Request(
                function="runner.batch.child.device:describe_device",
                argument=device_type,
                directory=directory,
                log=directory / "log",
                memory_bytes=4 * GIB,
                timeout_s=120,
            )
        )
    if outcome.answer is None:
        raise UsageError(f"--device {device_type}: asking torch for it {outcome.describe_end()}")
    answer = json.loads(outcome.answer)
    if "error" in answer:
        raise UsageError(answer["error"])
    return Device(**answer)


def describe_device(device_type: str) -> str:
    """Return the fields of Device, or `error`, as JSON; runs in a child, as it imports torch."""
    import torch

    try:
        found_type = find_device(device_type)
    except UsageError as error:
        return json.dumps({"error": str(error)})
    if found_type == "cpu":
        threads = f"{cores()} threads" if cores() > 1 else "1 thread"
        name = f"{processor_name()}, {threads}"
    else:
        module = torch.get_device_module(found_type)
        name = module.get_device_name() if hasattr(module, "get_device_name") else found_type
    return json.dumps({"type": found_type, "name": f"{name}, torch {torch.__version__}"})


def find_device(device_type: str) -> str:
    """Return the device type to compute on; `auto` is torch's accelerator, or the CPU without one.

    Raises:
        UsageError: torch finds no such device.
    """
    import torch

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    available_types = ["cpu", accelerator.type] if accelerator else ["cpu"]
    if device_type == "auto":
        return available_types[-1]
    if device_type not in available_types and not _has_device(device_type):
        raise UsageError(
            f"--device {device_type}: torch finds no such device here "
            f"(it finds: {', '.join(available_types)})",
            hint=explain_missing_gpu() if device_type == "cuda" else "use --device cpu",
        )
    return device_type


def _has_device(device_type: str) -> bool:
    """Whether torch has a device of a type other than its current accelerator."""
    import torch

    try:
        return bool(torch.get_device_module(device_type).is_available())
    except RuntimeError:  # No device type has this name.
        return False


def explain_missing_gpu() -> str:
    """Return advice for a machine on which torch finds no CUDA device."""
    import torch

    if torch.version.cuda is None:
        return "this PyTorch is a build without CUDA: `make setup DEVICE=cuda` brings the other"
    return "does `nvidia-smi` answer?"
