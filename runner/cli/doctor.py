"""Checks everything that a run needs on this machine, for `kdrun doctor`."""

import importlib.util
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner import __version__
from runner.batch.child.device import explain_missing_gpu, find_device
from runner.batch.cluster import usable_bytes
from runner.batch.machine import GIB, available_bytes, cores, total_bytes
from runner.batch.stored_results import open_store
from runner.config import Settings
from runner.errors import KdrunError, UsageError, unwritable_error
from runner.problems import data_root, select_problems
from runner.quantities import pluralize
from runner.store.objects import SCHEME

LEAST_SCRATCH_BYTES = GIB
"""Least free disk space to begin a run; a run of all of KernelBench writes a few GiB."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one check."""

    what: str
    well: bool
    said: str
    """Line for people: the value that was found, or what is wrong and what to do."""


def examine(settings: Settings) -> Iterator[Finding]:
    """Yield the finding of each check; a check neither raises nor leaves files behind."""
    checks: Sequence[tuple[str, Callable[[Settings], str]]] = (
        ("kdrun", lambda _: __version__),
        ("python", lambda _: f"{platform.python_version()} on {platform.machine()}"),
        ("torch", _torch),
        ("ray", _ray),
        ("cores", lambda _: str(cores())),
        ("memory", _memory),
        ("gpus", _gpus),
        *([("device", _device)] if settings.device != "cpu" else []),
        ("scratch", _scratch),
        ("dataset", _dataset),
        *([("store", _store)] if settings.store is not None else []),
    )
    for name, check in checks:
        try:
            yield Finding(name, True, check(settings))
        except (KdrunError, OSError, ImportError) as error:
            yield Finding(name, False, " ".join(str(error).split()))


def _torch(settings: Settings) -> str:
    import torch
    from torch.torch_version import TorchVersion

    from runner.torch_internals import NEWEST_TESTED

    cuda = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "without CUDA"
    release = TorchVersion(torch.__version__.partition("+")[0])
    newer = f", newer than {NEWEST_TESTED}, the newest that was tested"
    return f"{torch.__version__}{newer if release > NEWEST_TESTED else ''}, {cuda}"


def _ray(settings: Settings) -> str:
    """Return Ray's version; a missing Ray is no failure, since only `kdrun submit` needs it."""
    if importlib.util.find_spec("ray") is None:
        return "not installed; only kdrun submit needs it: pip install 'kdrun[cluster]'"
    return str(importlib.import_module("ray").__version__)


def _memory(settings: Settings) -> str:
    usable = usable_bytes(settings.memory)
    free, total = available_bytes() / GIB, total_bytes() / GIB
    return f"{free:.1f} of {total:.1f} GiB free, {usable / GIB:.1f} GiB of it for problems"


def _gpus(settings: Settings) -> str:
    """Return the GPUs' names; having none is no failure unless --num-gpus asks for some."""
    import torch

    names = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    if len(names) < settings.num_gpus:
        option = f"--num-gpus {settings.num_gpus:g}"
        raise UsageError(f"{option}: there are {len(names)} here", hint=explain_missing_gpu())
    return ", ".join(names) or "none"


def _device(settings: Settings) -> str:
    """Return the type of device that --device means here."""
    return find_device(settings.device)


def _scratch(settings: Settings) -> str:
    """Return the free space for results; their folder, and /tmp for Ray, must be writable."""
    free = shutil.disk_usage(_require_writable(settings.output, "--output")).free
    _require_writable(Path("/tmp"), "machine: Ray needs it")
    if free < LEAST_SCRATCH_BYTES:
        raise UsageError(
            f"{settings.output}: only {free / GIB:.1f} GiB free",
            hint="free some space there, or choose another --output",
        )
    return f"{settings.output}: {free / GIB:.1f} GiB free"


def _require_writable(path: Path, setting: str) -> Path:
    """Check that a folder can be written to or created; return the nearest folder that exists.

    Raises:
        StoreError: the folder cannot be written to.
    """
    path = path.absolute()
    try:
        nearest = next(folder for folder in (path, *path.parents) if folder.exists())
        with tempfile.TemporaryFile(dir=nearest) as probe:
            probe.write(b"kdrun")
    except OSError as error:
        raise unwritable_error(path, error, setting) from error
    return nearest


def _dataset(settings: Settings) -> str:
    root = data_root(settings.data)
    return f"{root}: {pluralize(len(select_problems(root, settings.level)), 'problem')}"


def _store(settings: Settings) -> str:
    """Return whether the store answers to these credentials; nothing is written to it."""
    store = open_store(settings, patient=False)
    assert store is not None
    assert settings.store is not None
    if not settings.store.startswith(SCHEME):
        _require_writable(Path(settings.store), "--store")
    if store.is_new():
        return f"{store}: nothing there yet; the first run makes it a store"
    store.check_layout()
    runs = len(store.run_ids())
    return f"{store}: answers, {pluralize(runs, 'run')}"
