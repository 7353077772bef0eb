"""How long `kdrun --help` takes, which is what every command takes before it begins.

    python benchmarks/startup.py [--times N]

The goal is 0.3 s.
"""

import argparse
import statistics
import subprocess
import sys
import time

GOAL_S = 0.3
COMMAND = [sys.executable, "-c", "from runner.cli import main; main()", "--help"]
"""What the installed `kdrun` runs, in this interpreter."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Seconds of kdrun --help against its goal.")
    parser.add_argument("--times", type=int, default=10, metavar="N", help="default: %(default)s")
    times = max(1, parser.parse_args().times)
    seconds_once()  # fills the file cache and writes the bytecode
    seconds = [seconds_once() for _ in range(times)]
    middle = statistics.median(seconds)
    print(f"kdrun --help, {times} times: {middle:.3f} s in the middle", end="")
    print(f", {min(seconds):.3f} s at best, {max(seconds):.3f} s at worst")
    print(f"{middle:.3f} s of {GOAL_S} s: {middle / GOAL_S:.2f} of the goal")
    return 0


def seconds_once() -> float:
    start = time.perf_counter()
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        sys.exit(f"kdrun --help failed: {last}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
