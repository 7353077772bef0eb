"""Finds the device that `--device` stands for. Only torch knows, which only a child imports."""

import json
import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path

from runner.batch.child.child_process import Request, run_child
from runner.batch.machine import GIB, cores
from runner.errors import UsageError


@dataclass(frozen=True, slots=True)
class Device:
    """A device of this machine."""

    type: str
    """What torch calls it: cpu, cuda, xpu, mps, or a type that another package brings."""
    name: str
    """For people."""


def look_for_device(wanted: str) -> Device:
    """Return this machine's device of a type; a child asks torch for it.

    Raises:
        UsageError: torch finds no such device.
    """
    with tempfile.TemporaryDirectory(prefix="kdrun-") as aside:
        directory = Path(aside)
        outcome = run_child(
            Request(
                function="runner.batch.child.device:describe_device",
                argument=wanted,
                directory=directory,
                log=directory / "log",
                memory_bytes=4 * GIB,
                timeout_s=120,
            )
        )
    if outcome.answer is None:
        raise UsageError(f"--device {wanted}: asking torch for it {outcome.how()}")
    answer = json.loads(outcome.answer)
    if "error" in answer:
        raise UsageError(answer["error"])
    return Device(**answer)


def describe_device(wanted: str) -> str:
    """Find a device, in a child; JSON: the fields of Device, or `error`."""
    import torch

    try:
        kind = find_device(wanted)
    except UsageError as error:
        return json.dumps({"error": str(error)})
    if kind == "cpu":
        threads = f"{cores()} threads" if cores() > 1 else "1 thread"
        name = f"{_processor() or platform.machine()}, {threads}"
    else:
        module = torch.get_device_module(kind)
        name = module.get_device_name() if hasattr(module, "get_device_name") else kind
    return json.dumps({"type": kind, "name": f"{name}, torch {torch.__version__}"})


def find_device(wanted: str) -> str:
    """Return the type of device to compute on; `auto` is torch's accelerator here, else the CPU.

    Raises:
        UsageError: torch finds no such device.
    """
    import torch

    accelerator = torch.accelerator.current_accelerator(check_available=True)
    here = ["cpu", accelerator.type] if accelerator else ["cpu"]
    if wanted == "auto":
        return here[-1]
    if wanted not in here and not _has_device(wanted):
        raise UsageError(
            f"--device {wanted}: torch finds no such device here (it finds: {', '.join(here)})",
            hint=why_no_gpu() if wanted == "cuda" else "use --device cpu",
        )
    return wanted


def _has_device(kind: str) -> bool:
    """Whether torch has a device of a type that is not its accelerator of choice."""
    import torch

    try:
        return bool(torch.get_device_module(kind).is_available())
    except RuntimeError:  # no type of device is called that
        return False


def why_no_gpu() -> str:
    """Return what to do where torch finds no CUDA device."""
    import torch

    if torch.version.cuda is None:
        return "this PyTorch is a build without CUDA: `make setup DEVICE=cuda` brings the other"
    return "does `nvidia-smi` answer?"


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
