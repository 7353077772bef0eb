"""How soon commands answer: `kdrun --help`, and `kdrun decompose` against `import torch` alone.

    python benchmarks/startup.py [--times N]

The goals are 0.3 s, and three times the `import torch`.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOAL_S = 0.3
GOAL_RATIO = 3.0
SAMPLE = Path(__file__).parents[1] / "data/samples/level3/vit_block.py"
KDRUN = [sys.executable, "-c", "from runner.cli import main; main()"]
"""What the installed `kdrun` runs, in this interpreter."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Wall time of commands against its goals.")
    parser.add_argument("--times", type=int, default=10, metavar="N", help="default: %(default)s")
    times = max(1, parser.parse_args().times)
    middle = measure("kdrun --help", [*KDRUN, "--help"], times)
    print(f"{middle:.3f} s of {GOAL_S} s: {middle / GOAL_S:.2f} of the goal")
    torch = measure("import torch", [sys.executable, "-c", "import torch"], times)
    with tempfile.TemporaryDirectory() as output:
        decompose = [*KDRUN, "decompose", str(SAMPLE), "--output", output]
        ratio = measure(f"kdrun decompose {SAMPLE.name}", decompose, times) / torch
    print(f"{ratio:.2f} times `import torch`: {ratio / GOAL_RATIO:.2f} of the goal")
    return 0


def measure(name: str, command: list[str], times: int) -> float:
    """Print the wall time of a command, in seconds, and return the median."""
    run(name, command)  # fills the file cache and writes the bytecode
    seconds = [run(name, command) for _ in range(times)]
    middle = statistics.median(seconds)
    print(f"{name}, {times} times: {middle:.3f} s in the middle", end="")
    print(f", {min(seconds):.3f} s at best, {max(seconds):.3f} s at worst")
    return middle


def run(name: str, command: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        sys.exit(f"{name} failed: {last}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
