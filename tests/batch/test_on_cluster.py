"""Runs on a cluster that exists: a real head with its dashboard, which wants a token."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from commands import wait_for

import runner

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
PLACES = {"folder": "my_models", "store": "s3://results/kdrun", "problem": "vit_block"}
"""What tests replace in the page's commands."""
BIN = Path(sys.executable).parent
OURS = "0.1.0+sent"
TOKEN = "0123456789abcdef" * 4
WAITS = """
import pathlib, time
print("it waits", flush=True)
while pathlib.Path({flag!r}).exists():
    time.sleep(0.1)
"""


class Head:
    """A Ray head, and the machine of somebody who has nothing but kdrun and its address."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.desk = place / "desk"
        self.desk.mkdir()
        ports = free_ports(7)
        self.port, self.client_port, self.gcs_port = ports[:3]
        installed = place / "installed"
        ours = Path(runner.__file__).parent
        not_code = shutil.ignore_patterns("__pycache__", "_data")
        shutil.copytree(ours, installed / "runner", ignore=not_code)
        shutil.copytree(ROOT / "data/samples", installed / "runner/_data/samples")
        package = installed / "runner/__init__.py"
        package.write_text(f'{package.read_text()}__version__ = "{OURS}"\n')
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
        self.environment = plain | token | {"PATH": f"{BIN}:{os.environ['PATH']}"}
        self.environment |= {"RAY_API_SERVER_ADDRESS": f"http://127.0.0.1:{self.port}"}
        self.elsewhere = {"PYTHONPATH": str(installed)}
        """Variables with which `kdrun` is the copy: a worker that used the checkout would show."""
        # Ports that are given need not be waited for, and a busy machine does not starve workers.
        names = ("port", "dashboard-agent-listen-port", "dashboard-agent-grpc-port")
        names += ("metrics-export-port", "runtime-env-agent-port")
        command = [str(BIN / "ray"), "start", "--head", "--block", "--disable-usage-stats"]
        # A socket's path may have 107 characters, so pytest's folders are too deep.
        self.folder = Path(tempfile.mkdtemp(prefix="kdrun-head-", dir="/tmp"))
        command += ["--num-cpus", "2", "--memory", str(3 << 30), "--temp-dir", str(self.folder)]
        command += ["--object-store-memory", str(80 << 20), f"--dashboard-port={self.port}"]
        command += [f"--ray-client-server-port={self.client_port}"]
        command += [f"--{name}={port}" for name, port in zip(names, ports[2:], strict=True)]
        self.metrics = f"http://127.0.0.1:{ports[2 + names.index('metrics-export-port')]}/metrics"
        self.log = place / "head.log"
        more = {
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "RAY_worker_niceness": "0",
            "RAY_memory_monitor_refresh_ms": "0",
            "RAY_metrics_report_interval_ms": "1000",
            "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",  # 30 s, for nobody
        }
        for _ in range(3):  # Ray gives it half a minute, and a busy machine needs more
            self._start(command, plain | token | more)
            wait_for(lambda: self.up or self.process.poll() is not None)
            if self.up:
                break
            self._kill()
        assert self.up, self.log.read_text()

    def _start(self, command: list[str], environment: dict[str, str]) -> None:
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.place,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment,
            )

    @property
    def up(self) -> bool:
        return "Ray runtime started" in self.log.read_text()

    def call(self, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.desk,
            env=self.environment | more,
            capture_output=True,
            text=True,
            timeout=600,
        )

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """The same, while it runs."""
        return subprocess.Popen(
            arguments,
            cwd=self.desk,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=15)
        self._kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def free_ports(count: int) -> list[int]:
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in taken]
    for each in taken:
        each.close()
    return ports


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    started = Head(tmp_path_factory.mktemp("cluster"))
    yield started
    started.end()


@pytest.fixture
def waits(head: Head, write: Callable[..., Path]) -> tuple[Path, Path]:
    """A problem that waits until a file is gone, and that file."""
    flag = head.place / "waits"
    flag.touch()
    problem = write("waits", head.desk)
    problem.write_text(problem.read_text() + WAITS.format(flag=str(flag)))
    return problem, flag


def commands_of_the_page(**replaced: str) -> list[list[str]]:
    """The commands of docs/clusters.md, with other places, but else to the letter."""
    page = (ROOT / "docs/clusters.md").read_text()
    (block,) = re.findall(r"^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for old, new in replaced.items():
        block = block.replace(PLACES[old], new)
    return [shlex.split(line) for line in block.splitlines() if not line.startswith("export ")]


def test_the_page_s_commands_send_a_run_show_it_stop_it_and_finish_it(
    head: Head, waits: tuple[Path, Path]
) -> None:
    _, flag = waits
    store = head.place / "store"
    submit, logs, stop, status, log, pull = commands_of_the_page(
        folder=str(head.desk), store=str(store), problem="waits"
    )
    sent = head.call(*submit)
    assert sent.returncode == 0, sent.stdout + sent.stderr
    follower = head.begin(*logs)
    wait_for(
        lambda: (
            "it waits" in head.call(*log).stdout
            or list(store.rglob("stage"))
            or list(head.folder.rglob(".waits.nightly/stage"))
        )
    )
    figures_of(head, r'^ray_kdrun_\w+\{.*run="nightly"')
    stopped = head.call(*stop)
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    said, errors = follower.communicate(timeout=300)
    assert "1 selected, 1 to run" in said + errors
    manifest = json.loads((store / "nightly/manifest.json").read_text())
    assert manifest["state"] == "interrupted"
    assert [row["status"] for row in manifest["rows"]] == ["cancelled"]
    assert re.search(r"nightly +interrupted", head.call(*status).stdout)
    flag.unlink()
    again = [part for part in submit if part != "--no-wait"]
    again[again.index("--submission-id") + 1] = "nightly-2"
    finished = head.call(*again)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert re.search(r"nightly +finished", head.call(*status).stdout)
    assert head.call(*log).stdout == "it waits\n" * 2
    assert head.call(*pull).returncode == 0
    result = json.loads((head.desk / "here/level1/waits/result.json").read_text())
    assert result["status"] == "passed"


def figures_of(head: Head, line: str) -> re.Match[str]:
    """A line of Prometheus' figures, once it is there; Ray tells one figure at a time."""

    def figures() -> str:
        try:
            with urllib.request.urlopen(head.metrics, timeout=60) as answer:
                return str(answer.read().decode())
        except OSError:  # a busy machine
            return ""

    found: re.Match[str] = wait_for(lambda: re.search(line, figures(), re.MULTILINE))
    return found


def test_a_run_s_figures_are_there_for_prometheus_while_it_goes_on(
    head: Head, write: Callable[..., Path], waits: tuple[Path, Path]
) -> None:
    problem, flag = waits
    chosen = ("--problem", str(write("counted", head.desk)), "--problem", str(problem))
    submit = ("submit", *chosen, "--run-id", "counted", "--store", "store")
    run = head.begin("kdrun", *submit, "--address", f"127.0.0.1:{head.gcs_port}")
    mine = r'\{(?=.*run="counted").*'
    figures_of(head, rf'^ray_kdrun_problems_total{mine}status="passed".*\}} 1\.0$')
    figures_of(head, rf'^ray_kdrun_stage_seconds_bucket{mine}stage="verify".*\}} 1\.0$')
    uploaded = figures_of(head, rf"^ray_kdrun_uploaded_bytes_total{mine}\}} (\S+)$")
    assert float(uploaded[1]) > 1000
    flag.unlink()
    _, errors = run.communicate(timeout=600)
    assert run.returncode == 0, errors


def test_ray_s_client_drives_a_cluster_with_this_code_and_a_store(
    head: Head, write: Callable[..., Path]
) -> None:
    problem = write("client", head.desk)
    command = ("submit", "--problem", str(problem), "--run-id", "client")
    address = ("--address", f"ray://127.0.0.1:{head.client_port}")
    refused = head.call("kdrun", *command, *address)
    assert refused.returncode == 2
    assert "results must go where both sides reach them" in refused.stderr
    done = head.call("kdrun", *command, *address, "--store", "store", **head.elsewhere)
    assert done.returncode == 0, done.stderr
    result = json.loads((head.desk / "store/client/level1/client/result.json").read_text())
    assert (result["status"], result["kdrun_version"]) == ("passed", OURS)


@pytest.mark.parametrize(
    "ours", [{"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_TOKEN": "another"}], ids=str
)
@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_ray_that_is_driven_from_here_says_within_seconds_that_it_wants_a_token(
    head: Head, write: Callable[..., Path], scheme: str, ours: dict[str, str]
) -> None:
    address = f"{scheme}127.0.0.1:{head.client_port if scheme else head.gcs_port}"
    began = time.monotonic()
    done = head.call(
        *("kdrun", "submit", "--problem", str(write("token", head.desk)), "--run-id", "token"),
        *("--address", address, "--store", "wants-a-token"),
        **ours,
    )
    assert time.monotonic() - began < 15
    assert done.returncode == 2
    *_, run, refused = done.stderr.splitlines()
    assert run.startswith("run token in ")  # and no warning between them
    assert refused == (
        f"kdrun: Ray at {address} asks for a token, and got none or a wrong one; set "
        "RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to what `ray get-auth-token` says there"
    )
