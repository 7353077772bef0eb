"""Size of a report, and how long a browser takes to open it and its largest problem.

    python benchmarks/report.py RUN|DIR [--output DIR]

Needs playwright and a Chromium (`apt-get install chromium`).
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from runner.report.page import write_page
from runner.report.subject import find_subject

MOST_MB = 15
MOST_S = 2.0
TIMES = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what")
    parser.add_argument("--output", type=Path, default=Path("output"))
    asked = parser.parse_args()
    subject = find_subject(asked.what, asked.output)
    with tempfile.TemporaryDirectory() as aside:
        path = Path(aside) / "report.html"
        started = time.perf_counter()
        write_page(subject, path)
        written_s = time.perf_counter() - started
        megabytes = path.stat().st_size / 1e6
        largest = max(subject.decompositions, key=lambda found: len(found.tree.nodes))
        opened_s, problem_s = in_chromium(path, largest.label)
    print(f"{len(subject.problems)} problems, written in {written_s:.1f} s")
    print(f"{megabytes:.1f} MB (goal: {MOST_MB})")
    print(f"opens in {opened_s:.2f} s (goal: {MOST_S:.0f})")
    print(f"then {largest.label}, {len(largest.tree.nodes)} nodes: {problem_s:.2f} s")
    return int(megabytes > MOST_MB or opened_s > MOST_S)


def in_chromium(path: Path, label: str) -> tuple[float, float]:
    """Median seconds until the page is there, and until the problem is."""
    from playwright.sync_api import sync_playwright

    opened, problem = [], []
    with sync_playwright() as running:
        browser = running.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for _ in range(TIMES):
            page = browser.new_page()
            started = time.perf_counter()
            page.goto(f"file://{path}")
            page.wait_for_selector("html[data-ready]")
            opened.append(time.perf_counter() - started)
            started = time.perf_counter()
            page.evaluate("label => { location.hash = `#/p/${label}` }", label)
            page.wait_for_selector(".canvas[data-nodes]")
            problem.append(time.perf_counter() - started)
            page.close()
        browser.close()
    return statistics.median(opened), statistics.median(problem)


if __name__ == "__main__":
    sys.exit(main())
