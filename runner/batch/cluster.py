"""Connects to a Ray cluster, or starts and stops a local Ray."""

import fcntl
import importlib.metadata
import logging
import math
import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import runner
from runner.batch.machine import GIB, available_bytes, cores
from runner.config import LEAST_MEMORY, Settings
from runner.errors import ClusterError, UsageError
from runner.quantities import pluralize
from runner.store.manifest_row import Cause

OBJECT_STORE_BYTES = 100 << 20
"""Size of a local Ray's object store; kdrun needs a few kilobytes a problem, and Ray's default
would take a third of the machine."""
MEMORY_SHARE = 0.85
"""Share of the free memory for problems; the rest is for Ray's processes and other programs."""
START_TRIES = 2
"""Tries to start a local Ray, which gives up if its processes take more than half a minute."""
CONNECT_TIMEOUT_S = 5.0
"""Seconds that an address gets to answer."""

_DIRECTORY_PREFIX = "kdrun-ray-"
_CLIENT_SCHEME = "ray://"
_LOCK_FILE = "lock"
_RAY_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # The manifest lists all errors; Ray's error channel would print them on stdout again.
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",
    # Each child has its own memory limit; Ray's monitor would kill a task for what others use.
    "RAY_memory_monitor_refresh_ms": "0",
    # Otherwise a driver that gets SIGTERM waits half a minute for its node to drain.
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
    # On a busy machine Ray's processes start more slowly than its defaults allow.
    "RAY_raylet_start_wait_time_s": "180",
    "RAY_agent_register_timeout_ms": "180000",
    "RAY_worker_register_timeout_seconds": "180",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """Resources of a Ray cluster at one moment."""

    address: str | None
    """Address of the cluster; None for a local Ray that kdrun started."""
    nodes: int
    cores: int
    memory_bytes: int
    """Bytes of memory for problems on all nodes together."""
    node_memory_bytes: int
    """Bytes of memory on the largest node: the most that one problem can get."""
    node_cores: int
    gpus: float
    node_gpus: float
    ray_version: str

    def __str__(self) -> str:
        place = f"Ray at {self.address}" if self.address else "a local Ray"
        nodes = pluralize(self.nodes, "node")
        gpus = f", {self.gpus:g} GPUs" if self.gpus else ""
        resources = (
            f"{pluralize(self.cores, 'core')}, {self.memory_bytes / GIB:.1f} GiB for problems{gpus}"
        )
        return f"{place}: {nodes}, {resources}"


def no_cluster() -> Cluster:
    """Return the empty cluster of a run without pending problems."""
    return Cluster(None, 0, 0, 0, 0, 0, 0, 0, importlib.metadata.version("ray"))


def usable_bytes(memory_bytes: int | None = None) -> int:
    """Return the bytes of this machine's memory for problems, never more than is free.

    `memory_bytes` is the amount from the settings; None stands for a share of the free memory.

    Raises:
        ClusterError: too little memory is free.
    """
    available = available_bytes()
    usable = int(available * MEMORY_SHARE) if memory_bytes is None else min(memory_bytes, available)
    if usable < LEAST_MEMORY:
        raise ClusterError(
            f"only {available / GIB:.1f} GiB of memory are free here",
            hint="end something that takes memory",
        )
    return usable


@contextmanager
def connect(settings: Settings) -> Iterator[Cluster]:
    """Connect to the Ray at the settings' address, or start a local one and stop it at the end.

    Raises:
        ClusterError: no Ray answers there, none starts, or it lacks the requested resources.
    """
    address = settings.address
    if address is not None:
        refuse_unreachable(address)
    os.environ.update(
        {name: os.environ.get(name, value) for name, value in _RAY_ENVIRONMENT.items()}
    )
    import ray

    with ExitStack() as stack:
        options: dict[str, Any] = {"address": address}
        if address is None:
            options = {
                "address": "local",
                "num_cpus": _local_cores(settings),
                "_memory": usable_bytes(settings.memory),
                "object_store_memory": OBJECT_STORE_BYTES,
                "_temp_dir": stack.enter_context(_ray_directory()),
                "include_dashboard": False,
            }
        elif is_client(address):
            # The nodes may have no kdrun, or another version, so they get this one.
            options["runtime_env"] = {"py_modules": [str(Path(runner.__file__).parent)]}
        stack.callback(ray.shutdown)
        try:
            if address is not None and address != "auto":
                # The probe uses private parts of Ray; without them `ray.init` reports it later.
                with _silence_stderr(), suppress(ImportError):
                    _probe_address(address)
            _initialize_ray(options, tries=1 if address else START_TRIES)
        except authentication_error() as error:
            raise token_error(f"Ray at {address}") from error
        except ClusterError:
            raise
        except Exception as error:  # Ray raises exceptions of many types.
            _refuse_version_mismatch(address, str(error))
            line = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
            failure = f"no Ray at {address}" if address else "Ray does not start"
            hint = _port_hint(address) if address else "try it again"
            raise ClusterError(f"{failure}: {line}", hint=hint) from error
        cluster = describe_cluster(address)
        _refuse_missing_resources(cluster, settings)
        yield cluster


def _initialize_ray(options: dict[str, Any], tries: int) -> None:
    """Call `ray.init` up to `tries` times; raise the last exception if all fail."""
    import ray

    for remaining_tries in reversed(range(tries)):
        try:
            with _silence_stderr():
                ray.init(**options, logging_level=logging.ERROR, log_to_driver=False)
            return
        except Exception:
            if not remaining_tries:
                raise
            ray.shutdown()


def _probe_address(address: str) -> None:
    """Send one request to the Ray at an address, so that a refused token is reported at once.

    `ray.init` would repeat such a request for minutes, whatever the answer.

    Raises:
        ClusterError: Ray refuses the token, or the lack of one.
        RayError: the same, or no Ray answers there.
    """
    from ray._private.authentication.authentication_token_setup import ensure_token_if_auth_enabled

    # Without this call, RAY_AUTH_MODE=token without a token ends this process in C++.
    ensure_token_if_auth_enabled(None, create_token_if_missing=False)
    if not is_client(address):
        from ray._raylet import GcsClient  # type: ignore[attr-defined, unused-ignore]

        GcsClient(address=address)
        return
    import grpc  # type: ignore[import-untyped, unused-ignore]
    from ray._private.grpc_utils import init_grpc_channel

    question = "/ray.rpc.RayletDriver/ClusterInfo"
    try:
        with init_grpc_channel(address.removeprefix(_CLIENT_SCHEME)) as channel:
            channel.unary_unary(question)(b"", timeout=CONNECT_TIMEOUT_S)
    except grpc.RpcError as error:  # The request is empty, so other errors tell nothing.
        if error.code() == grpc.StatusCode.UNAUTHENTICATED:
            raise token_error(f"Ray at {address}") from error


@contextmanager
def _silence_stderr() -> Iterator[None]:
    """Redirect stderr to /dev/null, because Ray's C++ code writes there, and repeatedly."""
    sys.stderr.flush()
    saved_stderr = os.dup(2)
    with Path(os.devnull).open("w") as null_device:
        os.dup2(null_device.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved_stderr, 2)
        os.close(saved_stderr)


def token_error(server: str) -> ClusterError:
    """Return the error for a Ray that requires a token and got none or a wrong one."""
    return ClusterError(
        f"{server} asks for a token, and got none or a wrong one",
        hint="set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to what `ray get-auth-token` says there",
    )


def authentication_error() -> type[Exception] | tuple[()]:
    """Return Ray's error for a missing or wrong token; an empty tuple before Ray 2.52."""
    import ray.exceptions

    return getattr(ray.exceptions, "AuthenticationError", ())


def _local_cores(settings: Settings) -> int:
    """Return the cores of a local Ray: enough for the requested number of workers."""
    if settings.workers is None:
        return cores()
    return max(1, math.ceil(settings.workers * settings.num_cpus))


@contextmanager
def _ray_directory() -> Iterator[str]:
    """Make a directory for a local Ray's sockets and logs; remove those that killed drivers left.

    A directory whose driver is alive holds a locked file. A process id would not do, because the
    driver may run in another container.
    """
    # A socket's path has at most 107 characters, so TMPDIR may be too long.
    parent = Path("/tmp")
    for old_lock in parent.glob(f"{_DIRECTORY_PREFIX}*/{_LOCK_FILE}"):
        if (lock := _try_lock(old_lock)) is not None:
            shutil.rmtree(old_lock.parent, ignore_errors=True)
            os.close(lock)
    unlocked = Path(tempfile.mkdtemp(prefix="kdrun-new-", dir=parent))
    lock = _try_lock(unlocked / _LOCK_FILE)
    # It is locked before it gets its final name.
    directory = unlocked.rename(parent / unlocked.name.replace("kdrun-new-", _DIRECTORY_PREFIX))
    try:
        yield str(directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _try_lock(path: Path) -> int | None:
    """Lock a file and return the descriptor that holds the lock; None if that fails."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # The file is another user's.
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def is_client(address: str | None) -> bool:
    """Whether an address is for Ray's client, which drives a cluster from outside."""
    return address is not None and address.startswith(_CLIENT_SCHEME)


def refuse_unreachable(address: str) -> None:
    """Check that something listens at an address, because Ray itself would try for minutes.

    Raises:
        UsageError: the text is not an address.
        ClusterError: nothing answers there.
    """
    host, _, port = address.removeprefix(_CLIENT_SCHEME).rpartition(":")
    if address == "auto":
        return
    if not host or not port.isdigit():
        raise UsageError(f"--address {address}: not an address", hint="such as 10.0.0.5:6379")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"no Ray at {address}: {error}", hint=_port_hint(address)) from error


def _port_hint(address: str) -> str:
    """Return a hint about which port an address needs, and what the alternative is."""
    if is_client(address):
        return "the head's client port, 10001 by default"
    return "the head's own port, 6379 by default"


def list_nodes() -> list[dict[str, Any]]:
    """Return Ray's description of every node that ever joined."""
    import ray

    return list(ray.nodes())  # type: ignore[no-untyped-call]


def describe_cluster(address: str | None) -> Cluster:
    """Return the present resources of the Ray that this process has joined."""
    alive = [node["Resources"] for node in list_nodes() if node["Alive"]]
    # A head that runs no tasks may have more memory than any node that runs some.
    resources = [node for node in alive if node.get("CPU", 0)]

    def largest(name: str) -> float:
        return max((node.get(name, 0) for node in resources), default=0)

    return Cluster(
        address=address,
        nodes=len(resources),
        cores=int(sum(node.get("CPU", 0) for node in resources)),
        memory_bytes=int(sum(node.get("memory", 0) for node in resources)),
        node_memory_bytes=int(largest("memory")),
        node_cores=int(largest("CPU")),
        gpus=sum(node.get("GPU", 0) for node in resources),
        node_gpus=largest("GPU"),
        ray_version=importlib.metadata.version("ray"),
    )


def _refuse_missing_resources(cluster: Cluster, settings: Settings) -> None:
    """Raise ClusterError if no node has the requested resources and the run waits for none."""
    if settings.wait_for_nodes:
        return
    is_local = cluster.address is None
    owner = "this machine" if is_local else "the largest node"
    fewer_hint = (
        "ask for fewer" if is_local else "ask for fewer, or --wait-for-nodes if the cluster grows"
    )
    gpu_hint = "`kdrun doctor --device cuda` looks for one" if is_local else fewer_hint
    for flag, requested, available, hint in (
        (
            "--num-gpus",
            settings.num_gpus,
            cluster.node_gpus,
            fewer_hint if cluster.gpus else gpu_hint,
        ),
        ("--num-cpus", settings.num_cpus, cluster.node_cores, fewer_hint),
    ):
        if requested > available:
            raise ClusterError(f"{flag} {requested:g}: {owner} has {available:g}", hint=hint)
    if settings.device == "cuda" and not cluster.gpus:
        subject = "this machine is without" if is_local else "no node has"
        hint = gpu_hint if is_local else "--device auto takes one where there is one"
        raise ClusterError(f"--device cuda: {subject} a GPU", hint=hint)


def _refuse_version_mismatch(address: str | None, message: str) -> None:
    """Raise a one-line ClusterError if `message` is Ray's seven lines about another version."""
    if not message.startswith("Version mismatch"):
        return
    ray, python = (re.findall(rf"{name}: (\S+)", message) for name in ("Ray", "Python"))
    remote_versions, local_versions = zip(ray, python, strict=True)
    raise ClusterError(
        f"Ray at {address} is another version: "
        f"Ray {remote_versions[0]} on Python {remote_versions[1]} there, "
        f"Ray {local_versions[0]} on Python {local_versions[1]} here",
        hint="install the same ones",
    )


def explain_loss(error: BaseException) -> tuple[Cause, str]:
    """Return the cause of an attempt's end without an answer, and Ray's message in short."""
    import ray.exceptions as exceptions

    message = summarize_error(error)
    if isinstance(error, exceptions.OutOfMemoryError):
        return Cause.OUT_OF_MEMORY, message
    if isinstance(error, exceptions.OutOfDiskError):
        return Cause.DISK_FULL, message
    if not isinstance(error, exceptions.NodeDiedError):
        return Cause.WORKER_LOST, message
    node_id = re.search(r"node ID: (\w+)", str(error))
    node = next((n for n in list_nodes() if node_id and n["NodeID"] == node_id[1]), {})
    if node.get("DeathReason") in _PREEMPTION_REASONS:
        return Cause.PREEMPTED, f"{node['NodeManagerHostname']}: {node['DeathReasonMessage']}"
    return Cause.NODE_LOST, f"{node.get('NodeManagerHostname', 'its node')}: died without a word"


_PREEMPTION_REASONS = (1, 3, 4)
"""Values of Ray's NodeDeathInfo: ended by SIGTERM, drained for preemption, drained when idle."""


def summarize_error(error: BaseException) -> str:
    """Return the type of an error and the last line of its message, which is below Ray's traces."""
    lines = [line.strip() for line in str(error).strip().split("\n") if line.strip()]
    last_line = lines[-1] if lines else ""
    return f"{type(error).__name__}: {last_line}" if len(last_line) < 200 else type(error).__name__
