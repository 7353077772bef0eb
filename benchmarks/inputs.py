"""How like the inputs that arrive in a model are those that its kernel files draw.

    python benchmarks/inputs.py [DATA|GLOB]... [--worst N]

Takes each problem apart, runs its kernels put together with the author's own initial weights and
inputs, and compares what arrives at each kernel with what that kernel's file draws. The goals: the
structure of 98% of all kernel inputs is right, the standard deviation of 90% within 3 times.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from runner.problems import Problem

STRUCTURE_GOAL, SCALE_GOAL = 0.98, 0.90
FACTOR = 3
"""Within so many times, either way, a share or a standard deviation is right."""
FEW = 0.02
"""A share below this one is none."""
MOST_BYTES = 6 << 30
SAMPLE = 1 << 21
"""Elements of a large tensor whose statistics are taken."""
for threads in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # read by torch as it is imported
    os.environ[threads] = "1"


@dataclass(frozen=True, slots=True)
class Facts:
    """What a tensor looks like; shares are of all its elements."""

    dtype: str
    zeros: float
    minus_inf: float
    negative: float
    positive: float
    low: float
    high: float
    std: float
    edge: float
    """Share of elements in the outermost tenth of the range: a bounded range has some."""
    triangle: str
    """The triangle of its matrices that is nothing but zero or -inf: `upper`, `lower` or none."""
    sums_to_one: bool
    one_hot: bool
    is_sorted: bool


@dataclass(frozen=True, slots=True)
class Row:
    """An input of one kernel instance, and what is wrong with the values that its file draws."""

    problem: str
    kernel: str
    input: str
    structure: str
    """What is wrong with the structure; nothing where it is right."""
    scale: float
    """Standard deviation of what is drawn, in those of what arrives."""
    file: str
    arriving: Facts


def main() -> int:
    options = arguments()
    if options.child:
        print(json.dumps([list(row) for row in judged(options.child)]))
        return 0
    rows, failed = [], []
    problems = selected(options.data)
    for number, path in enumerate(problems):
        if sys.stderr.isatty():
            print(f"\r\x1b[K{number + 1} of {len(problems)}: {path.stem}", end="", file=sys.stderr)
        command = [sys.executable, __file__, "--child", str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            failed.append((path.stem, (run.stderr.strip() or "killed").splitlines()[-1]))
        else:
            for *row, arriving in json.loads(run.stdout.splitlines()[-1]):
                rows.append(Row(*row, Facts(*arriving)))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    return report(rows, failed, options.worst)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare what kernel files draw with what arrives at their place in the model.",
        epilog="Exits with 1 where a goal is missed.",
    )
    parser.add_argument(
        "data",
        nargs="*",
        help="problem files, folders or globs; default: level 3 of what kdrun submit takes",
    )
    parser.add_argument("--worst", type=int, default=20, metavar="N", help="list so many")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def selected(data: list[str]) -> list[Path]:
    """The problem files that the command line names."""
    from runner.problems import data_root, select_problems

    if not data:
        return [problem.path for problem in select_problems(data_root(None), [3])]
    found: list[Path] = []
    for name in data:
        for path in map(Path, sorted(glob.glob(name))):  # noqa: PTH207, as a shell would
            found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found


# --- one problem, in a process of its own -------------------------------------------------------


def judged(path: Path) -> Iterator[tuple[object, ...]]:
    """A row for each input of each kernel instance of one problem."""
    import torch

    from runner.emit import decompose
    from runner.graph.normalize import normalize
    from runner.graph.peak_memory import estimate_graph
    from runner.graph.tracing.capture import capture
    from runner.problems import read_problem

    problem = read_problem(path)
    needed = estimate_graph(normalize(capture(problem))).peak.resident_bytes
    if needed > MOST_BYTES:
        raise SystemExit(f"skipped: it needs {needed / 2**30:.1f} GiB")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as room:
        decompose(problem, Path(room))
        drawn: dict[str, list[Facts]] = {}
        for kernel, file, names, arrived in arrivals(problem, Path(room)):
            if file.stem not in drawn:
                torch.manual_seed(0)
                tensors = loaded(file).get_inputs()
                drawn[file.stem] = [facts(t) for t in tensors]
            for name, theirs, ours in zip(names, arrived, drawn[file.stem], strict=True):
                ratio = scale(theirs, ours)
                place = f"{file.stem} ({kernel})"
                wrong = "; ".join(mistakes(theirs, ours))
                yield problem.name, place, name, wrong, ratio, file.stem, astuple(theirs)


def arrivals(problem: Problem, directory: Path) -> list[tuple[str, Path, list[str], list[Facts]]]:
    """For each kernel instance: its name, its file, and its inputs' names and facts."""
    import torch

    from runner.problems import load_problem, seed
    from runner.tree.document import Tree

    composition = loaded(directory / "verification" / "composition_test.py")
    names = {Path(n.path).stem: n for n in Tree.read(directory).nodes.values()}
    seed(0)
    problem_file = load_problem(problem)
    model = problem_file.build().eval()
    seed(0)
    args, kwargs = problem_file.get_inputs()
    composed = composition.ComposedModel().eval()
    mine = {
        **dict(composed.named_parameters(remove_duplicate=False)),
        **dict(composed.named_buffers(remove_duplicate=False)),
    }
    for name, source in composition.WEIGHTS.items():
        mine[name].data = found(model, source)
    seen = []

    def note(module: Any, inputs: tuple[Any, ...], path: str) -> None:
        node = names[Path(type(module).forward.__globals__["__file__"]).stem]
        tensors = [t for t in inputs if isinstance(t, torch.Tensor)]
        assert len(tensors) == len(node.input_shapes), path
        seen.append(
            (path, directory / node.path, list(node.input_shapes), list(map(facts, tensors)))
        )

    for path, module in composed.named_modules():
        if type(module).__name__ == "Model":
            module.register_forward_pre_hook(lambda m, i, path=path: note(m, i, path))
    with torch.no_grad():
        composed(*args, **kwargs)
    return seen


def found(model: Any, path: str) -> torch.Tensor:
    """A parameter, a buffer or another tensor of the model, by its dotted path."""
    place = model
    for step in path.split("."):
        if isinstance(place, dict):
            place = place[step] if step in place else place[int(step)]
        elif isinstance(place, (list, tuple)):
            place = place[int(step)]
        else:
            place = getattr(place, step)
    return place.detach() if hasattr(place, "detach") else place


def loaded(path: Path) -> Any:
    """A Python file as a module."""
    import importlib.util

    if path.stem not in sys.modules:
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[path.stem] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[path.stem]


def facts(tensor: torch.Tensor) -> Facts:
    """What a tensor looks like."""
    import torch

    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    flat = tensor.reshape(-1)
    if flat.numel() > SAMPLE:  # an odd step meets every channel
        flat = flat[:: (flat.numel() // SAMPLE) | 1]
    flat = flat.double()
    finite = flat[flat.isfinite()]
    if not finite.numel():
        finite = torch.zeros(1, dtype=torch.float64)
    high = finite.abs().max().item()
    return Facts(
        dtype,
        zeros=share(flat == 0),
        minus_inf=share(flat == float("-inf")),
        negative=share(flat < 0),
        positive=share(flat > 0),
        low=finite.min().item(),
        high=finite.max().item(),
        std=finite.std(unbiased=False).item(),
        edge=share(finite.abs() > 0.9 * high) if high else 0.0,
        triangle=triangle(tensor),
        sums_to_one=sums_to_one(tensor),
        one_hot=sums_to_one(tensor) and share((flat == 0) | (flat == 1)) == 1,
        is_sorted=is_sorted(tensor),
    )


def share(of: torch.Tensor) -> float:
    return of.double().mean().item() if of.numel() else 0.0


def triangle(tensor: torch.Tensor) -> str:
    """The triangle that is nothing but zero or -inf in matrices that are full but for it."""
    if tensor.dim() < 2 or tensor.shape[-1] != tensor.shape[-2] or tensor.shape[-1] < 3:
        return ""
    matrices = tensor.reshape(-1, *tensor.shape[-2:])
    matrices = matrices[:: max(1, len(matrices) // 8)]
    empty = (matrices == 0) | (matrices == float("-inf"))
    size = matrices.shape[-1]
    within = len(matrices) * size * (size - 1) // 2
    upper, lower = int(empty.triu(1).sum()), int(empty.tril(-1).sum())
    if max(upper, lower) < within or min(upper, lower) > FEW * within:
        return ""
    return "upper" if upper == within else "lower"


def sums_to_one(tensor: torch.Tensor) -> bool:
    """Whether its elements are shares of 1 along one of its dimensions."""
    if not tensor.is_floating_point() or tensor.dim() < 1 or not tensor.numel():
        return False
    if tensor.min() < 0 or tensor.max() > 1.01:
        return False
    long = [d for d in range(tensor.dim()) if tensor.shape[d] > 1]
    return any(bool(((tensor.sum(d).float() - 1).abs() < 0.02).all()) for d in long)


def is_sorted(tensor: torch.Tensor) -> bool:
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dim() != 1 or len(tensor) < 4:
        return False
    steps = tensor.double().diff()
    return bool((steps >= 0).all()) and bool((steps > 0).any())


def mistakes(theirs: Facts, ours: Facts) -> Iterator[str]:
    """What is wrong with the structure of what is drawn, in words."""
    if not near(theirs.zeros, ours.zeros):
        yield f"{ours.zeros:.0%} zeros, not {theirs.zeros:.0%}"
    if not near(theirs.minus_inf, ours.minus_inf):
        yield f"{ours.minus_inf:.0%} -inf, not {theirs.minus_inf:.0%}"
    if theirs.triangle != ours.triangle:
        yield f"{ours.triangle or 'no'} triangle, not {theirs.triangle or 'none'}"
    if theirs.one_hot != ours.one_hot:
        yield "one-hot" if ours.one_hot else "not one-hot"
    elif theirs.sums_to_one != ours.sums_to_one:
        yield "sums to 1" if ours.sums_to_one else "does not sum to 1"
    if theirs.dtype.startswith(("int", "uint")):
        if theirs.is_sorted and not ours.is_sorted:
            yield "not sorted"
        if ours.low < theirs.low or ours.high > theirs.high * FACTOR:
            yield f"from {ours.low:g} to {ours.high:g}, not {theirs.low:g} to {theirs.high:g}"
        return
    for sign in ("negative", "positive"):
        of_theirs, of_ours = getattr(theirs, sign), getattr(ours, sign)
        if (of_theirs == 0) != (of_ours == 0) and max(of_theirs, of_ours) > FEW:
            yield f"{of_ours:.0%} {sign}, not {of_theirs:.0%}"
    for limit in (1, 6):
        reached = max(-theirs.low, theirs.high)
        if 0.9 * limit < reached <= limit and theirs.edge > FEW:
            if max(-ours.low, ours.high) > 1.01 * limit:
                yield f"up to {max(-ours.low, ours.high):.3g}, not {limit}"
            break


def near(theirs: float, ours: float) -> bool:
    """Whether two shares, and what is left of each, are within the factor; few is none."""
    return all(
        max(a, b) <= FEW or (min(a, b) > 0 and max(a, b) / min(a, b) <= FACTOR)
        for a, b in ((theirs, ours), (1 - theirs, 1 - ours))
    )


def scale(theirs: Facts, ours: Facts) -> float:
    """How many times as spread as in the model; whole numbers and booleans are judged otherwise."""
    if not theirs.dtype.startswith(("float", "bfloat", "complex")):
        return 1.0
    if theirs.std < 1e-30:
        return 1.0 if ours.std < 1e-30 else float("inf")
    return ours.std / theirs.std


# --- all of them --------------------------------------------------------------------------------


def report(rows: list[Row], failed: list[tuple[str, str]], worst: int) -> int:
    """Print the totals and the worst; the exit code."""
    for name, reason in failed:
        print(f"not judged: {name}: {reason}")
    if not rows:
        print("no kernel input was judged")
        return 1
    wrong = [row for row in rows if row.structure]
    far = sorted((row for row in rows if not is_near(row)), key=lambda row: -distance(row))
    print(f"\n{'problem':<36} {'inputs':>6} {'structure':>9} {'scale':>6}")
    for name in sorted({row.problem for row in wrong + far}):
        of = [row for row in rows if row.problem == name]
        bad, off = sum(1 for row in of if row.structure), sum(1 for row in of if not is_near(row))
        print(f"{name:<36} {len(of):>6} {bad:>9} {off:>6}")
    for title, chosen in (("structure", wrong), ("scale", far)):
        if chosen and worst:
            print(f"\n{title}")
        for row in chosen[:worst]:
            text = row.structure if chosen is wrong else f"{row.scale:.2g} times the spread"
            print(f"  {row.problem}: {row.kernel}, {row.input}: {text}")
    structure, spread = 1 - len(wrong) / len(rows), 1 - len(far) / len(rows)
    print(
        f"\nstructure right for {structure:.1%} of {len(rows)} kernel inputs "
        f"(goal {STRUCTURE_GOAL:.0%}), scale within {FACTOR} times for {spread:.1%} "
        f"(goal {SCALE_GOAL:.0%})"
    )
    different = unlike_the_others(rows)
    print(
        f"No file can be right for {different:.1%}: one file serves instances whose inputs differ "
        "in structure, and draws like most of them."
    )
    return 0 if structure >= STRUCTURE_GOAL and spread >= SCALE_GOAL and not errors(failed) else 1


def unlike_the_others(rows: list[Row]) -> float:
    """The share of inputs whose structure is another than that of most instances of their file.

    Whatever that file draws is wrong for so many of them at least; they count as mistakes.
    """
    groups: dict[tuple[str, ...], list[Facts]] = {}
    for row in rows:
        groups.setdefault((row.problem, row.file, row.input), []).append(row.arriving)
    lost = sum(
        len(group) - max(sum(not any(mistakes(other, one)) for other in group) for one in group)
        for group in groups.values()
    )
    return lost / len(rows)


def errors(failed: list[tuple[str, str]]) -> bool:
    return any(not reason.startswith("skipped") for _, reason in failed)


def is_near(row: Row) -> bool:
    return 1 / FACTOR <= row.scale <= FACTOR


def distance(row: Row) -> float:
    return max(row.scale, 1 / row.scale) if row.scale else float("inf")


if __name__ == "__main__":
    sys.exit(main())
