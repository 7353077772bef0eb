"""Runs that are sent to a cluster: a real head with its dashboard, from where there is no checkout.

kdrun is a copy with a version of its own: a worker that used the checkout would give itself away.
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from commands import wait_for
from object_server import BUCKET, KEY, SECRET, Server

import runner

pytestmark = pytest.mark.cluster

SAMPLES = Path(__file__).parents[2] / "data/samples"
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
        self.address = f"http://127.0.0.1:{self.port}"
        installed = place / "installed"
        ours = Path(runner.__file__).parent
        not_code = shutil.ignore_patterns("__pycache__", "_data")
        shutil.copytree(ours, installed / "runner", ignore=not_code)
        shutil.copytree(SAMPLES, installed / "runner/_data/samples")  # as in the wheel
        package = installed / "runner/__init__.py"
        package.write_text(f'{package.read_text()}__version__ = "{OURS}"\n')
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN}
        self.environment = plain | token | {"PYTHONPATH": str(installed)}
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

    def kdrun(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [BIN / "kdrun", *arguments],
            cwd=self.desk,
            env=self.environment | more,
            capture_output=True,
            text=True,
            timeout=600,
        )

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """The same, while it runs."""
        return subprocess.Popen(
            [BIN / "kdrun", *arguments],
            cwd=self.desk,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # a shell's background job ignores SIGINT, and so would what it starts
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
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


class Relay:
    """A way to the head that can be cut."""

    def __init__(self, port: int) -> None:
        self.to = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.cut = False
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            ours, _ = self.listener.accept()
            if self.cut:
                ours.close()
                continue
            theirs = socket.create_connection(("127.0.0.1", self.to))
            for pair in ((ours, theirs), (theirs, ours)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def test_a_run_in_a_bucket_is_sent_with_its_code_and_credentials_and_found_by_the_address_alone(
    head: Head, write: Callable[..., Path], server: Server, somewhere: str
) -> None:
    problem = write("tells", head.desk)
    told = "import os\nprint('told:', sorted(os.environ), open('/proc/self/environ').read())\n"
    problem.write_text(problem.read_text() + told)
    store = f"s3://{BUCKET}/{somewhere}"
    address = ("--on-cluster", head.address)
    more = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    more |= {"KDRUN_S3_ENDPOINT_URL": server.url}
    sent = head.kdrun(
        *("submit", "--problem", str(problem), "--run-id", "sent", "--store", store),
        *(*address, "--send-credentials", "--json"),
        **more,
    )
    assert sent.returncode == 0, sent.stderr
    lines = sent.stderr.splitlines()
    assert any(line.startswith("[1/1] passed     level1/tells") for line in lines)
    manifest = json.loads(sent.stdout)
    assert manifest["versions"]["kdrun"] == OURS  # the driver's own, not the checkout's
    assert manifest["job"]["address"] == head.address
    assert manifest["arguments"]["on_cluster"] == head.address
    assert SECRET not in sent.stdout
    pulled = head.kdrun("pull", "sent", "here", "--store", store, **more)
    assert pulled.returncode == 0, pulled.stderr
    result = json.loads((head.desk / "here/level1/tells/result.json").read_text())
    assert (result["status"], result["kdrun_version"]) == ("passed", OURS)
    log = head.kdrun("logs", "sent", "tells", *address, **more)
    assert "told:" in log.stdout
    assert KEY not in log.stdout + log.stderr
    assert "AWS_" not in log.stdout
    status = head.kdrun("status", "sent", *address, **more)
    assert re.search(r"sent +succeeded", status.stdout), status.stderr
    assert re.search(r"sent +finished", status.stdout)
    assert "[1/1] passed" in head.kdrun("logs", "sent", *address).stdout
    assert list(Path("/tmp").glob("kdrun-sent-*")) == []  # nothing is left where it was made


def test_a_lost_connection_is_made_again_and_ctrl_c_leaves_the_run_to_be_found_and_stopped(
    head: Head, waits: tuple[Path, Path]
) -> None:
    problem, flag = waits
    relay = Relay(head.port)
    command = ("submit", "--problem", str(problem), "--run-id", "left", "--store", "store")
    follower = head.begin(*command, "--on-cluster", f"127.0.0.1:{relay.port}")
    assert follower.stderr is not None
    heard: list[str] = []
    listener = threading.Thread(target=lambda: heard.extend(iter(follower.stderr.readline, "")))
    listener.start()
    wait_for(lambda: list(Path("/tmp").glob("kdrun-left-*/level1/.waits.left/stage")))
    relay.cut = True
    wait_for(lambda: any("trying again (the run goes on there)" in line for line in heard))
    relay.cut = False
    wait_for(lambda: any("answers again" in line for line in heard))
    follower.send_signal(signal.SIGINT)
    assert follower.wait(timeout=300) == 130
    listener.join(300)
    assert heard[-1].startswith("run left goes on at http://127.0.0.1:")
    assert "kdrun stop left" in heard[-1]
    again = head.kdrun(*command, "--on-cluster", head.address)
    assert again.returncode == 2
    assert "run left is being worked on at" in again.stderr
    listed = json.loads(head.kdrun("status", "--on-cluster", head.address, "--json").stdout)
    assert ("left", "running") in {(job["run_id"], job["state"]) for job in listed["jobs"]}
    stopped = head.kdrun("stop", "left", "--store", "store")  # its manifest knows the address
    assert stopped.stdout.startswith("run left interrupted: 0 of 1 passed"), stopped.stderr
    (row,) = json.loads((head.desk / "store/left/manifest.json").read_text())["rows"]
    assert row["status"] == "cancelled"
    ended = head.kdrun("stop", "left", "--on-cluster", head.address)
    assert ended.returncode == 2
    assert ended.stderr == f"kdrun: run left has ended at {head.address}: stopped\n"
    flag.unlink()
    finished = head.kdrun(*command, "--on-cluster", head.address)
    assert finished.returncode == 0, finished.stderr
    assert head.kdrun("logs", "left", "waits", "--store", "store").stdout == "it waits\n" * 2


def test_a_run_s_figures_are_there_for_prometheus_while_it_goes_on(
    head: Head, write: Callable[..., Path], waits: tuple[Path, Path]
) -> None:
    problem, flag = waits
    chosen = ("--problem", str(write("counted", head.desk)), "--problem", str(problem))
    submit = ("submit", *chosen, "--run-id", "counted", "--store", "store")
    run = head.begin(*submit, "--on-cluster", head.address)

    def figures() -> str:
        try:
            with urllib.request.urlopen(head.metrics, timeout=60) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:  # a busy machine
            return ""
        return "\n".join(line for line in lines if 'run="counted"' in line)

    def shown(line: str) -> re.Match[str]:
        """Ray tells one figure at a time."""
        found: re.Match[str] = wait_for(lambda: re.search(line, figures(), re.MULTILINE))
        return found

    shown(r'^ray_kdrun_problems_total\{.*status="passed".*\} 1\.0$')
    shown(r'^ray_kdrun_stage_seconds_bucket\{.*stage="verify".*\} 1\.0$')
    uploaded = shown(r"^ray_kdrun_uploaded_bytes_total\{.*\} (\S+)$")
    assert float(uploaded[1]) > 1000
    flag.unlink()
    _, errors = run.communicate(timeout=600)
    assert run.returncode == 0, errors


def test_a_job_that_dies_is_one_line_and_the_same_command_again_does_what_is_left(
    head: Head, waits: tuple[Path, Path]
) -> None:
    problem, flag = waits
    command = ("submit", "--problem", str(problem), "--run-id", "dies", "--output", "mine")
    run = head.begin(*command, "--on-cluster", head.address)
    manifest = head.desk / "mine/runs/dies/manifest.json"
    wait_for((head.desk / "mine/level1/.waits.dies/stage").exists)
    os.kill(json.loads(manifest.read_text())["driver_pid"], signal.SIGKILL)
    _, errors = run.communicate(timeout=600)
    assert run.returncode == 2
    last = errors.splitlines()[-1]
    assert re.fullmatch(
        rf"kdrun: kdrun-dies-\w+ at {head.address} failed: Job entrypoint command failed with exit "
        r"code -9; the same command again does what is left",
        last,
    )
    assert "Traceback" not in errors
    assert json.loads(manifest.read_text())["state"] == "interrupted"
    flag.unlink()
    again = head.kdrun(*command, "--on-cluster", head.address)
    assert again.returncode == 0, again.stderr
    assert json.loads((head.desk / "mine/level1/waits/result.json").read_text())["kdrun_version"]


def test_ray_s_client_drives_a_cluster_with_this_code_and_a_store(
    head: Head, write: Callable[..., Path]
) -> None:
    problem = write("client", head.desk)
    command = ("submit", "--problem", str(problem), "--run-id", "client")
    address = ("--address", f"ray://127.0.0.1:{head.client_port}")
    refused = head.kdrun(*command, *address)
    assert refused.returncode == 2
    assert "results must go where both sides reach them" in refused.stderr
    done = head.kdrun(*command, *address, "--store", "store")
    assert done.returncode == 0, done.stderr
    result = json.loads((head.desk / "store/client/level1/client/result.json").read_text())
    assert (result["status"], result["kdrun_version"]) == ("passed", OURS)


def test_a_cluster_that_asks_for_a_token_says_how_to_give_it(head: Head) -> None:
    done = head.kdrun("status", "--on-cluster", head.address, RAY_AUTH_MODE="disabled")
    assert done.returncode == 2
    assert done.stderr.startswith(f"kdrun: {head.address} asks for a token, and got none or a wro")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "ours", [{"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_TOKEN": "another"}], ids=str
)
@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_a_ray_that_is_driven_from_here_says_within_seconds_that_it_wants_a_token(
    head: Head, write: Callable[..., Path], scheme: str, ours: dict[str, str]
) -> None:
    address = f"{scheme}127.0.0.1:{head.client_port if scheme else head.gcs_port}"
    began = time.monotonic()
    done = head.kdrun(
        *("submit", "--problem", str(write("token", head.desk)), "--run-id", "token"),
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


def test_a_run_that_was_never_sent_is_not_found(head: Head) -> None:
    for command in (("stop", "nowhere"), ("logs", "nowhere"), ("logs", "nowhere", "relu")):
        done = head.kdrun(*command, "--on-cluster", head.address)
        assert done.returncode == 2
        assert done.stderr.startswith(f"kdrun: no run 'nowhere' at {head.address}; the last ones")
