"""Times one component file, or the device itself; runs in a child process, which imports torch."""

import functools
import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

WARM_UP_RUNS = 3
WARM_UP_S = 0.05
FEWEST_RUNS = 10
MOST_RUNS = 200
ENOUGH_S = 0.5
"""Timing ends after at least FEWEST_RUNS runs that took ENOUGH_S seconds together."""
BUDGET_S = 20.0
"""Timing of a slow kernel ends after this time, however few runs there are."""
SMALLEST_PRODUCT, LARGEST_PRODUCT = 512, 16384
"""Rows and columns of the matrices whose product is measured as a roof."""
ROOF_S = 0.05
COPIED_BYTES = 256 << 20
"""More than caches hold."""
SMALLEST_COPY_BYTES = 1 << 20
OUTLIER_DEVIATIONS = 5.0
"""An outlier is more than this many scaled median deviations above the median."""


def time_file(argument: str) -> str:
    """Time the component in `argument` (JSON): `file`, `mode`, `device`, `threads`.

    Return JSON: the fields of Timing, or `error`. A child process calls it.
    """
    import torch

    from runner.verify.guard.program_values import import_file
    from runner.verify.runtime.input_moves import move_inputs

    request: dict[str, Any] = json.loads(argument)
    torch.set_num_threads(request["threads"])
    torch.manual_seed(0)
    device = torch.device(request["device"])
    try:
        module = import_file(Path(request["file"]), "component")
        model = module.Model().to(device)
        model.train(request["mode"] == "train")
        inputs = move_inputs(module.get_inputs(), request["device"])
        with torch.no_grad():
            runs = time_runs(lambda: model(*inputs), _clock(device))
    except Exception as error:  # the file may be anybody's code: its error is the answer
        return json.dumps({"error": _short(error)})
    return json.dumps(summarise_times(runs))


def measure_roofs(argument: str) -> str:
    """Measure the fastest matrix product and copy of a device.

    `argument` is JSON: `device`, `dtypes`, `threads`. Return JSON: the fields of Roofs. The product
    grows until it takes ROOF_S: a fast device is busy, a slow one does not take minutes.
    """
    import torch

    request: dict[str, Any] = json.loads(argument)
    torch.set_num_threads(request["threads"])
    device = torch.device(request["device"])
    clock = _clock(device)
    flops_per_s = {}
    for name in request["dtypes"]:
        size, seconds = SMALLEST_PRODUCT // 2, 0.0
        while seconds < ROOF_S and size < LARGEST_PRODUCT:
            size *= 2
            left, right = (
                torch.rand(size, size, device=device).to(getattr(torch, name)) for _ in range(2)
            )
            product = torch.empty_like(left)
            run = functools.partial(torch.matmul, left, right, out=product)
            clock(run)
            seconds = min(clock(run) for _ in range(3))
        flops_per_s[name] = 2 * size**3 / min(seconds, *(clock(run) for _ in range(5)))
    source, target = _buffers(device)
    seconds = min(time_runs(lambda: target.copy_(source), clock))
    return json.dumps({"flops_per_s": flops_per_s, "bytes_per_s": 2 * source.numel() / seconds})


def _buffers(device: Any) -> tuple[Any, Any]:
    """Return two buffers of COPIED_BYTES; of fewer where the device has no memory for them."""
    import torch

    size = COPIED_BYTES
    while True:
        try:
            source = torch.zeros(size, dtype=torch.uint8, device=device)
            return source, torch.empty_like(source)
        except torch.OutOfMemoryError:
            if size < SMALLEST_COPY_BYTES:
                raise
            size //= 2


def time_runs(
    run: Callable[[], object], clock: Callable[[Callable[[], object]], float]
) -> list[float]:
    """Return the seconds of each run after the warm-up."""
    started = time.monotonic()
    for count in range(MOST_RUNS):
        spent = time.monotonic() - started
        if spent > BUDGET_S / 2 or (count >= WARM_UP_RUNS and spent > WARM_UP_S):
            break
        clock(run)
    seconds: list[float] = []
    started = time.monotonic()
    while len(seconds) < MOST_RUNS:
        seconds.append(clock(run))
        spent = time.monotonic() - started
        if spent > BUDGET_S or (len(seconds) >= FEWEST_RUNS and spent > ENOUGH_S):
            break
    return seconds


def summarise_times(seconds: Sequence[float]) -> dict[str, float | int]:
    """Return the fields of Timing; outliers are far above the median, measured by the spread."""
    median = statistics.median(seconds)
    deviation = statistics.median(abs(s - median) for s in seconds) * 1.4826
    limit = median + OUTLIER_DEVIATIONS * max(deviation, 0.02 * median)
    return {
        "median_s": median,
        "fastest_s": min(seconds),
        "slowest_s": max(seconds),
        "runs": len(seconds),
        "outliers": sum(s > limit for s in seconds),
    }


def _clock(device: Any) -> Callable[[Callable[[], object]], float]:
    import torch

    module = torch.get_device_module(device)

    def by_clock(run: Callable[[], object]) -> float:
        module.synchronize()
        started = time.perf_counter()
        run()
        module.synchronize()
        return time.perf_counter() - started

    def by_events(run: Callable[[], object]) -> float:
        begin, end = module.Event(enable_timing=True), module.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        module.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    return by_events if device.type != "cpu" and hasattr(module, "Event") else by_clock


def _short(error: BaseException) -> str:
    first = str(error).strip().partition("\n")[0] or type(error).__name__
    return first if len(first) <= 160 else f"{first[:157]}..."
