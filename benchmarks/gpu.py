"""What kdrun's files do on a GPU: verdicts, each file in two precisions, times, memory.

    python benchmarks/gpu.py                     # in a clone; CUDA, at most ten minutes
    python benchmarks/gpu.py --device cpu --problem samples/silu --problem samples/lstm

Needs neither Ray nor a network. Prints tables and writes all figures into OUTPUT/gpu.json, after
each problem, so that whatever ends it leaves what is known. docs/gpu.md explains every column.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # a clone that is not installed will do

if TYPE_CHECKING:
    from runner.problems import Problem
    from runner.store.result import ProblemResult
    from runner.tree.document import Tree

GIB = 1 << 30
NAMED = (
    *("gpt_oss", "llama", "48_Mamba2ReturnY", "35_LSTM", "44_MiniGPTBlock", "9_ResNet18"),
    *("30_SwinTransformerV2", "28_VisionTransformer", "39_GRU", "22_EfficientNetB0"),
    *("45_UNetSoftmax", "15_DenseNet121"),
)
"""The problems that come first; llama is one of the samples."""
HEAVIEST = 10
"""Kernels of a problem that are timed."""
BALANCE = 20
"""Operations in float32 that a large GPU does while it moves a byte: what makes a kernel heavy."""
AS_WRITTEN = "as written"
TOLERANCE = {AS_WRITTEN: 1e-4, "bfloat16": 1e-2}
"""Relative and absolute, as KernelBench's harness compares in float32 and in bfloat16."""
SHARE = 1 / 10
"""Most of all time that verifying a problem may take, and that running its files may."""
UNTIL_TIMES = 0.7
"""Share of the time after which no problem is begun, and kernels are timed."""


@dataclass
class Row:
    """One problem."""

    problem: str
    directory: str = ""
    status: str = "not run"
    reason: str | None = None
    """Why it did not pass on the device."""
    max_diff: float | None = None
    bitwise_equal: bool | None = None
    seconds: float = 0.0
    cpu: dict[str, Any] | None = None
    """The CPU's verdict on the same directory: status, reason, max_diff, bitwise_equal."""
    estimated_peak_bytes: int | None = None
    """Of one forward pass of the original; `forward_peak_bytes` is what it took."""
    forward_peak_bytes: int | None = None
    verify_peak_bytes: int | None = None
    """The most that all gates together took of the device."""
    files: list[dict[str, Any]] = field(default_factory=list)
    times: list[dict[str, Any]] = field(default_factory=list)

    @property
    def decomposed(self) -> bool:
        return self.estimated_peak_bytes is not None

    def wrong(self, precision: str) -> list[dict[str, Any]]:
        rows = [row for row in self.files if row["precision"] == precision]
        return [row for row in rows if row["status"] not in ("right", "unable")]


@dataclass
class Report:
    """All that is known; the JSON file has these fields."""

    device: str
    facts: dict[str, Any]
    problems: list[Row] = field(default_factory=list)
    sharing: dict[str, Any] = field(default_factory=dict)
    too_large: dict[str, Any] = field(default_factory=dict)
    not_done: list[str] = field(default_factory=list)
    """Sentences: what was not done, and why."""
    seconds: float = 0.0

    def write(self, folder: Path) -> None:
        (folder / "gpu.json").write_text(json.dumps(asdict(self), indent=1) + "\n")


class Clock:
    """The time that there is."""

    def __init__(self, minutes: float) -> None:
        self.started, self.all_s = time.monotonic(), 60 * minutes

    @property
    def spent_s(self) -> float:
        return time.monotonic() - self.started

    def left_s(self, part: float = 1.0) -> float:
        """Seconds until so much of all time is spent."""
        return part * self.all_s - self.spent_s

    def share_s(self, part: float = 1.0) -> float:
        return max(1.0, min(SHARE * self.all_s, self.left_s(part)))


def main() -> int:
    options = arguments()
    os.environ["PYTHONPATH"] = os.pathsep.join(  # children find gpu_child by its name
        filter(None, [str(HERE), str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    )
    from runner.batch.child.device import look_for_device
    from runner.errors import KdrunError
    from runner.problems import data_root, select_problems

    clock = Clock(options.minutes)
    try:
        device = look_for_device(options.device)
        root = data_root()
        problems = (
            select_problems(root, patterns=options.problem)
            if options.problem
            else default_problems()
        )
        options.output.mkdir(parents=True, exist_ok=True)
    except (KdrunError, OSError) as error:
        print(error, file=sys.stderr)
        return error.exit_code if isinstance(error, KdrunError) else 2
    options.device = device.type
    report = Report(device.name, ask_device(options))
    if not options.problem and root.kind != "kernelbench":
        report.not_done.append("KernelBench is not in data/kernelbench: only samples were run.")
    print(f"{device.name}{memory_said(report)}: {len(problems)} problems, {clock.all_s / 60:g} min")
    try:
        run(problems, options, clock, report)
        as_expected = report.sharing.get("status") in (
            None,
            "passed",
            "not tried",
        ) and report.too_large.get("status") in (None, "too_large", "not tried")
        code = 0 if as_expected and all(passed(row) for row in report.problems) else 1
    except KeyboardInterrupt:
        report.not_done.append("All that was left when it was interrupted.")
        code = 130
    report.seconds = clock.spent_s
    report.write(options.output)
    print_report(report)
    print(f"\n{clock.spent_s:.0f} s; all figures: {options.output / 'gpu.json'}")
    return code


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Runs samples and twelve large problems on a GPU, and says what came out.",
        epilog="Exits with 1 where a problem, a file as it is written, or a trial failed.",
    )
    parser.add_argument("--device", default="cuda", help="default cuda; cpu is a dry run")
    parser.add_argument("--minutes", type=float, default=10.0, help="default 10")
    parser.add_argument("--problem", action="append", default=[], metavar="GLOB", help="repeatable")
    parser.add_argument("--output", type=Path, default=Path("output/gpu"), metavar="DIR")
    return parser.parse_args()


def default_problems() -> list[Problem]:
    """Return the named problems that are here, and then the samples."""
    from runner.errors import UsageError
    from runner.problems import data_root, select_problems

    root = data_root()
    found: list[Problem] = []
    for name in NAMED:
        try:
            found += select_problems(root, patterns=[name])
        except UsageError:
            continue  # KernelBench is not here, which is said once
    paths = {problem.path for problem in found}
    return found + [p for p in select_problems(root.samples or root) if p.path not in paths]


def run(problems: list[Problem], options: argparse.Namespace, clock: Clock, report: Report) -> None:
    """Verify all problems and run their files; try what two and what one too large do; time."""
    cpu = CpuVerdicts(options, clock)
    pairs = [(problem, Row(label(problem))) for problem in problems]
    report.problems = [row for _, row in pairs]
    special = min(len(NAMED), len(pairs))
    for number, (problem, row) in enumerate(pairs):
        if clock.left_s(UNTIL_TIMES) <= 0:
            break
        with recording(row):
            verify(problem, row, options, clock)
            if row.decomposed:
                if options.device != "cpu":
                    cpu.judge(row)
                run_files(row, options, clock)
        print_problem(row)
        report.write(options.output)
        if number + 1 == special:
            with recording(report.sharing):
                report.sharing |= share(pairs[:special], options, clock)
            with recording(report.too_large):
                report.too_large |= try_too_large(report, options, clock)
    missed = [row.problem for row in report.problems if row.status == "not run"]
    if missed:
        report.not_done.append(f"No time for: {', '.join(missed)}.")
    late = [row for row in report.problems if any(f["status"] == "left out" for f in row.files)]
    if late:
        report.not_done.append(f"No time for some files of: {', '.join(r.problem for r in late)}.")
    cpu.close(report)
    print("kernels are timed", flush=True)
    for row in report.problems:
        with recording(row):
            if row.decomposed:
                time_kernels(row, options, clock)
        report.write(options.output)
    untimed = [row.problem for row in report.problems if row.decomposed and not row.times]
    if untimed:
        report.not_done.append(f"No time to time the kernels of: {', '.join(untimed)}.")


@contextmanager
def recording(row: Row | dict[str, Any]) -> Iterator[None]:
    """Record whatever goes wrong with one problem, and go on with the next."""
    try:
        yield
    except Exception as error:
        traceback.print_exc()
        if isinstance(row, Row):
            row.status, row.reason = "error", one_line(error)
        else:
            row |= {"status": "error", "reason": one_line(error)}


def label(problem: Problem) -> str:
    """Return `samples/level3/llama`: samples and KernelBench have problems of the same name."""
    folder = problem.path.parent.parent.name
    kind = folder if folder in ("samples", "kernelbench") else "files"
    return f"{kind}/{problem.source_level}/{problem.name}"


def verify(problem: Problem, row: Row, options: argparse.Namespace, clock: Clock) -> None:
    """Do what `kdrun decompose --device` does, in a child."""
    place = options.output / row.problem.partition("/")[0]
    started, timeout_s = time.monotonic(), clock.share_s(UNTIL_TIMES)
    result, directory = decompose(problem.path, place, options, timeout_s)
    if result.status == "timeout" and timeout_s < SHARE * clock.all_s:
        return  # the last one had less than its share: it was not run
    row.seconds, row.directory = time.monotonic() - started, str(directory)
    row.status, row.reason = result.status, result.reason
    row.max_diff, row.bitwise_equal = result.max_diff, result.bitwise_equal
    row.verify_peak_bytes = result.peak_device_bytes
    if result.figures and (directory / "decomposition_tree.json").is_file():
        row.estimated_peak_bytes = result.figures.estimated_peak_bytes


def decompose(
    file: Path, place: Path, options: argparse.Namespace, timeout_s: float
) -> tuple[ProblemResult, Path]:
    from runner.batch import local_execution
    from runner.config import Settings

    settings = Settings(output=place, device=options.device, timeout=timeout_s)
    done = local_execution.decompose(file, settings)
    return done.result, done.directory


class CpuVerdicts:
    """Judges directories on the CPU, one after the other, while the device does something else."""

    def __init__(self, options: argparse.Namespace, clock: Clock) -> None:
        self.options, self.clock = options, clock
        self.rows: queue.Queue[Row | None] = queue.Queue()
        self.waiting: list[Row] = []
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def judge(self, row: Row) -> None:
        self.waiting.append(row)
        self.rows.put(row)

    def close(self, report: Report) -> None:
        """Wait until all is judged, or for what is left of the time; kernels are timed alone."""
        self.rows.put(None)
        self.thread.join(max(0.0, self.clock.left_s(UNTIL_TIMES)) + self.clock.share_s())
        missed = [row.problem for row in self.waiting if row.cpu is None]
        if missed:
            report.not_done.append(f"No time for the CPU's verdict on: {', '.join(missed)}.")

    def _work(self) -> None:
        from runner.batch import local_execution
        from runner.batch.child.child_process import close_fork_server
        from runner.config import Settings

        while (row := self.rows.get()) is not None:
            if self.clock.left_s(UNTIL_TIMES) <= 0:
                continue
            settings = Settings(device="cpu", timeout=self.clock.share_s(UNTIL_TIMES))
            try:
                record = local_execution.verify(Path(row.directory), settings).answer
            except Exception as error:  # recorded, and the next one is judged
                row.cpu = {"status": "error", "reason": one_line(error)}
                continue
            fields = ("status", "reason", "max_diff", "bitwise_equal")
            row.cpu = {name: getattr(record, name) for name in fields}
        close_fork_server()


def run_files(row: Row, options: argparse.Namespace, clock: Clock) -> None:
    """Run every emitted file as it is written and in bfloat16."""
    tree = read_tree(row)
    kernels = sorted({node.path for node in tree.nodes.values() if not node.children})
    steps = sorted(p.name for p in Path(row.directory, "steps").glob("step_*"))
    whats = ["verification/composition_test.py", *(f"steps/{step}" for step in steps), *kernels]
    items = [{"what": what, "precision": p} for what in whats for p in TOLERANCE]
    row.files = in_children("run_file", items, row, options, clock.share_s(UNTIL_TIMES))
    peaks = [file.get("forward_peak_bytes") for file in row.files]
    row.forward_peak_bytes = next((peak for peak in peaks if peak), None)


def time_kernels(row: Row, options: argparse.Namespace, clock: Clock) -> None:
    """Time the heaviest kernels as they are written, with nothing else on the device."""
    kernels = {node.path: node for node in read_tree(row).nodes.values() if not node.children}
    heaviest = sorted(kernels.values(), key=lambda n: -max(n.flops, BALANCE * n.bytes))
    items = [
        {"what": n.path, "instances": n.instance_count, "flops": n.flops, "bytes": n.bytes}
        for n in heaviest[:HEAVIEST]
    ]
    if clock.left_s() > 0:
        row.times = in_children("time_file", items, row, options, clock.share_s())


def in_children(
    function: str,
    items: list[dict[str, Any]],
    row: Row,
    options: argparse.Namespace,
    seconds: float,
) -> list[dict[str, Any]]:
    """Do something with each item in a child, and in another one after each that breaks it.

    An error on a GPU may leave nothing of CUDA usable in that process; a crash ends it.
    """
    from runner.batch.child.child_process import Request, run_child
    from runner.batch.cluster import usable_bytes
    from runner.batch.machine import cores

    aside = options.output / "aside"
    aside.mkdir(exist_ok=True)
    rows = aside / "rows"
    done: list[dict[str, Any]] = []
    until = time.time() + seconds
    while len(done) < len(items) and time.time() < until:
        rows.unlink(missing_ok=True)
        asked = {
            **{"function": function, "items": items[len(done) :], "rows": str(rows.absolute())},
            **{"directory": str(Path(row.directory).absolute()), "device": options.device},
            **{"until": until, "threads": cores()},
        }
        outcome = run_child(
            Request(
                function="gpu_child:do_items",
                argument=json.dumps(asked),
                directory=aside,
                log=aside / "log",
                memory_bytes=usable_bytes(None),
                timeout_s=until - time.time() + 10,
            )
        )
        if rows.is_file():
            done += map(json.loads, rows.read_text().splitlines())
        if outcome.answer is None and len(done) < len(items):
            how = "took too long" if outcome.timed_out else outcome.describe_end()
            done.append(items[len(done)] | {"status": "crashed", "reason": how})
    late = {"status": "left out", "reason": "no time"}
    return done + [item | late for item in items[len(done) :]]


def one_line(error: BaseException) -> str:
    text = f"{type(error).__name__}: {str(error).strip()}".partition("\n")[0]
    return text if len(text) <= 200 else f"{text[:199]}…"


def read_tree(row: Row) -> Tree:
    from runner.tree.document import Tree

    return Tree.read(Path(row.directory))


def share(
    pairs: list[tuple[Problem, Row]], options: argparse.Namespace, clock: Clock
) -> dict[str, Any]:
    """Verify two problems that passed alone at once, each in a child, on the same device."""
    from runner.batch.child.child_process import close_fork_server
    from runner.batch.child.device import look_for_device

    both = [(problem, row) for problem, row in pairs if row.status == "passed"][:2]
    if len(both) < 2 or clock.left_s(UNTIL_TIMES) <= 0:
        return {"status": "not tried", "reason": "no time, or fewer than two problems passed"}
    timeout_s = clock.share_s(UNTIL_TIMES)

    together = threading.Barrier(2, timeout=timeout_s)

    def one(number: int) -> ProblemResult:
        look_for_device("cpu")  # This thread's children can start at once after this one.
        together.wait()
        place = options.output / f"sharing/{number}"
        return decompose(both[number][0].path, place, options, timeout_s)[0]

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(one, 1)
        results = [one(0), other.result()]
        pool.submit(close_fork_server)
    starts = [result.started.timestamp() for result in results]
    ends = [start + result.total_s for start, result in zip(starts, results, strict=True)]
    same = [r.max_diff == row.max_diff for r, (_, row) in zip(results, both, strict=True)]
    return {
        "status": "passed" if all(r.status == "passed" for r in results) else "failed",
        "problems": [row.problem for _, row in both],
        "statuses": [r.status for r in results],
        "reasons": [r.reason for r in results if r.reason],
        "same_differences_as_alone": all(same),
        "overlap_s": max(0.0, min(ends) - max(starts)),
    }


TOO_LARGE = """\
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y):
        return x + y


def get_inputs():
    return [torch.randn({rows}, 1), torch.randn(1, 1024)]


def get_init_inputs():
    return []
"""


def try_too_large(report: Report, options: argparse.Namespace, clock: Clock) -> dict[str, Any]:
    """Give kdrun a problem whose output needs a tenth more than all memory of the device."""
    from runner.batch.cluster import usable_bytes

    memory = report.facts.get("memory_bytes")
    if options.device == "cpu" or memory is None:
        return {"status": "not tried", "reason": "the device has no memory of its own, or hides it"}
    needed = int(1.1 * memory)
    if needed + 4 * GIB > usable_bytes(None):
        said = f"the machine has too little memory ({usable_bytes(None) / GIB:.0f} GiB) to tell"
        return {"status": "not tried", "reason": f"{said} its own limit from the device's"}
    file = options.output / "too_large.py"
    file.write_text(TOO_LARGE.replace("{rows}", str(needed // 4096)))
    result, _ = decompose(file, options.output / "too_large", options, clock.share_s(UNTIL_TIMES))
    return {"status": result.status, "reason": result.reason, "output_bytes": needed}


def ask_device(options: argparse.Namespace) -> dict[str, Any]:
    """Return what torch says of the device; a child asks it, so that CUDA starts there alone."""
    from runner.batch.child.child_process import Request, run_child

    aside = options.output / "aside"
    aside.mkdir(exist_ok=True)
    outcome = run_child(
        Request("gpu_child:device_facts", options.device, aside, aside / "log", 8 * GIB, 120)
    )
    return json.loads(outcome.answer) if outcome.answer else {"error": outcome.describe_end()}


def passed(row: Row) -> bool:
    """Whether what was run of a problem is right; what had no time is told, and no failure."""
    if row.status == "not run":
        return True
    wrong = [file for file in row.wrong(AS_WRITTEN) if file["status"] != "left out"]
    return row.status == "passed" and not wrong


def memory_said(report: Report) -> str:
    memory = report.facts.get("memory_bytes")
    return f", {memory / GIB:.1f} GiB" if memory else ""


COLUMNS = f"{'problem':<44} {'device':<18} {'cpu':<18} {'written':>8} {'bf16':>8} {'peak':>16}"


def print_problem(row: Row) -> None:
    print(f"{row.problem:<44.44} {verdict_said(asdict(row)):<18} {row.seconds:6.1f} s", flush=True)


def print_report(report: Report) -> None:
    print(f"\n{COLUMNS}")
    for row in report.problems:
        if row.status != "not run":
            print(
                f"{row.problem:<44.44} {verdict_said(asdict(row)):<18} {verdict_said(row.cpu):<18}"
                f" {count_said(row, AS_WRITTEN):>8} {count_said(row, 'bfloat16'):>8}"
                f" {peak_said(row):>16}"
            )
    print_times(report)
    print_wrong(report)
    for name, found in (("two at once", report.sharing), ("too large", report.too_large)):
        if found:
            details = found.get("reason") or ", ".join(found.get("problems", []))
            print(f"\n{name}: {found['status']}: {details}")
    if report.not_done:
        print("\nnot done:", *report.not_done, sep="\n  ")


def verdict_said(verdict: dict[str, Any] | None) -> str:
    if verdict is None:
        return "-"
    largest = verdict.get("max_diff")
    if verdict.get("bitwise_equal"):
        return f"{verdict['status']}, bitwise"
    return verdict["status"] + ("" if largest is None else f", {largest:.2g}")


def count_said(row: Row, precision: str) -> str:
    """`41/41`: files that are right, of those that were run."""
    rows = [file for file in row.files if file["precision"] == precision]
    ran = [file for file in rows if file["status"] != "left out"]
    return f"{sum(file['status'] == 'right' for file in ran)}/{len(ran)}" if ran else "-"


def peak_said(row: Row) -> str:
    """What a forward pass took of the device, and the estimate as a ratio to it."""
    if not row.forward_peak_bytes or row.estimated_peak_bytes is None:
        return "-"
    ratio = row.estimated_peak_bytes / row.forward_peak_bytes
    return f"{row.forward_peak_bytes / (1 << 20):.0f} MiB, × {ratio:.2f}"


def print_times(report: Report) -> None:
    print(f"\n{'kernel, times in its model':<60} {'median ms':>10} {'TFLOP/s':>8} {'GB/s':>8}")
    for row in report.problems:
        if row.times:
            print(row.problem)
        for kernel in row.times:
            name = f"  {Path(kernel['what']).stem} × {kernel['instances']}"
            if kernel["status"] != "timed":
                print(f"{name:<60.60} {kernel['status']}: {kernel['reason']}")
                continue
            tera, giga = kernel["flops_per_s"] / 1e12, kernel["bytes_per_s"] / 1e9
            print(f"{name:<60.60} {1e3 * kernel['median_s']:>10.4f} {tera:>8.2f} {giga:>8.1f}")


def print_wrong(report: Report) -> None:
    """Why problems and files are not right."""
    for row in report.problems:
        for where, verdict in (("device", asdict(row)), ("cpu", row.cpu)):
            if verdict and verdict.get("reason"):
                print(f"\n{row.problem}, {where}: {verdict['status']}: {verdict['reason']}")
        for file in row.files:
            if file["status"] not in ("right", "left out"):
                said = f"{file['what']}, {file['precision']}: {file['status']}: {file['reason']}"
                print(f"  {row.problem}: {said}")


if __name__ == "__main__":
    sys.exit(main())
