"""What `kdrun evaluate` costs beside the forwards that it needs.

    python benchmarks/evaluation.py output      # of evaluations that are in a directory already

The forwards are those of the comparisons (components, their copies in float64, solutions twice, the
original, the models with solutions) and those of the measured pairs, with what compilers do in
them. The rest is starting processes, drawing and sending inputs and weights, flushing caches, and
comparing outputs. The goal: the rest takes at most a fifth of the forwards' time, over all
evaluations together. Exit code 1 if it takes more.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from runner.store.evaluation import EVALUATION_FILE, Evaluation

GOAL = 0.2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=Path)
    directory: Path = parser.parse_args().directory
    total_s = forward_s = 0.0
    print(f"{'problem':<44} {'solutions':>9} {'seconds':>8} {'forwards':>9} {'rest':>6}")
    for path in sorted(directory.rglob(EVALUATION_FILE)):
        evaluation = Evaluation.read(path.parent)
        if evaluation is None:
            continue
        total_s += evaluation.seconds
        forward_s += evaluation.forward_seconds
        print(
            f"{evaluation.problem:<44} {len(evaluation.solutions):>9} {evaluation.seconds:>8.1f} "
            f"{evaluation.forward_seconds:>9.1f} "
            f"{evaluation.seconds / evaluation.forward_seconds - 1:>6.0%}"
        )
    if not forward_s:
        print(f"{directory}: no {EVALUATION_FILE}; `kdrun evaluate` writes it", file=sys.stderr)
        return 2
    overhead = total_s / forward_s - 1
    print(f"all: {total_s:.1f} s, {forward_s:.1f} s of it in forwards: {overhead:.0%} beside them")
    return 0 if overhead <= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
