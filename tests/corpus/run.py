"""Take each model of a folder apart, and say in percent how many run, are captured and pass.

    python tests/corpus/run.py tests/corpus/first [--only GLOB] [--workers N] [--output DIR]

A model's outcome is kept in DIR/PACKAGE/MODEL.json: a second run goes on where the first one ended.
Remove a file, or the folder, to run its models anew.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

EAGER = Path(__file__).with_name("eager.py")
KDRUN = [sys.executable, "-c", "import sys; from runner.cli import main; sys.exit(main())"]
EAGER_LIMIT_S = 120
KDRUN_LIMIT_S = 400
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="with files PACKAGE/MODEL.py")
    parser.add_argument("--only", default="*/*.py", metavar="GLOB", help="such as 'timm/*.py'")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="models at a time")
    parser.add_argument("--output", type=Path, help="default: output/corpus/FOLDER")
    options = parser.parse_args()
    output = options.output or Path("output/corpus") / options.folder.resolve().name
    files = sorted(options.folder.glob(options.only))
    if not files:
        parser.error(f"no file {options.only} in {options.folder}")
    outcomes = []
    with ThreadPoolExecutor(options.workers) as pool:
        for future in as_completed(pool.submit(outcome, file, output) for file in files):
            outcomes.append(future.result())
            print("{status:9} {seconds:6.1f} s  {model}  {message}".format(**outcomes[-1]))
            sys.stdout.flush()
    print(summary(outcomes))
    return 0


def outcome(file: Path, output: Path) -> dict:
    """Return how a model fared; `not_eager` is one that fails or varies without kdrun too."""
    model = f"{file.parent.name}/{file.stem}"
    record = output / f"{model}.json"
    if record.exists():
        return json.loads(record.read_text(encoding="utf-8"))
    start = time.monotonic()
    code, _, stderr = run([sys.executable, EAGER, file], EAGER_LIMIT_S)
    if code != 0:
        result = {"status": "not_eager", "reason": last_line(stderr)}
    else:
        options = ["--trials", "1", "--output", record.parent, "--timeout", str(KDRUN_LIMIT_S)]
        command = [*KDRUN, "decompose", file, "--json", *options]
        _, stdout, stderr = run(command, KDRUN_LIMIT_S + 60)
        result = json.loads(stdout or "{}") or {"status": "error", "reason": last_line(stderr)}
    summed_up = {
        "model": model,
        "status": result["status"],
        "captured": (record.parent / f"custom/{file.stem}/decomposition_tree.json").exists(),
        "seconds": round(time.monotonic() - start, 1),
        "message": result.get("reason", ""),
    }
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(summed_up), encoding="utf-8")
    return summed_up


def run(command: list, limit_s: int) -> tuple[int, str, str]:
    try:
        child = subprocess.run(
            command, env=ENVIRONMENT, timeout=limit_s, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return 1, "", f"not done in {limit_s} s"
    return child.returncode, child.stdout, child.stderr


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["ended without a word"])[-1]


def summary(outcomes: list[dict]) -> str:
    eager = [one for one in outcomes if one["status"] != "not_eager"]
    captured = sum(one["captured"] for one in eager)
    passed = sum(one["status"] == "passed" for one in eager)
    percent = 100 / max(len(eager), 1)
    lines = [
        f"\n{len(eager)} of {len(outcomes)} models run in eager mode; of these",
        f"{captured} are captured ({captured * percent:.1f}%)",
        f"{passed} pass ({passed * percent:.1f}%)",
    ]
    groups = defaultdict(list)
    for one in outcomes:
        groups[one["status"]].append(f"  {one['model']}: {one['message']}")
    for status in sorted(groups.keys() - {"passed"}):
        lines += [f"\n{status}: {len(groups[status])}", *sorted(groups[status])]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
