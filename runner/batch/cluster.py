"""This file knows about getting a Ray: one of our own, started and stopped, or one to join."""

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

from runner.batch.machine import GIB, available_bytes, cores
from runner.config import LEAST_MEMORY, Settings
from runner.errors import ClusterError, UsageError
from runner.quantities import pluralize
from runner.store.manifest_row import Cause

OBJECT_STORE_BYTES = 100 << 20
"""Ours carries a few kilobytes a problem; Ray's default would take a third of the machine."""
SHARE = 0.85
"""Of the memory that is free: the rest is for Ray's own processes and everybody else."""
STARTS = 2
"""Tries to start a Ray of our own: it gives its parts half a minute, which may not do."""
REACH_S = 5.0
"""For an address to answer at all."""

_FOLDER = "kdrun-ray-"
_CLIENT = "ray://"
_LOCK = "lock"
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # What goes wrong is in the manifest: Ray's error channel prints it on stdout again.
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",
    # Children hold their own limits. Ray's monitor would kill a task for what others do.
    "RAY_memory_monitor_refresh_ms": "0",
    # A driver that is told to go would wait for half a minute until its node is drained.
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
    # On a busy machine its parts need longer than it would wait for them.
    "RAY_raylet_start_wait_time_s": "180",
    "RAY_agent_register_timeout_ms": "180000",
    "RAY_worker_register_timeout_seconds": "180",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a Ray has, as it said when it was reached."""

    address: str | None
    """None for one of our own."""
    nodes: int
    cores: int
    memory_bytes: int
    """Of all nodes together, for problems."""
    node_memory_bytes: int
    """Of the largest node: the most that one problem can have."""
    node_cores: int
    gpus: float
    node_gpus: float
    ray_version: str

    def __str__(self) -> str:
        where = f"Ray at {self.address}" if self.address else "a local Ray"
        nodes = pluralize(self.nodes, "node")
        gpus = f", {self.gpus:g} GPUs" if self.gpus else ""
        have = (
            f"{pluralize(self.cores, 'core')}, {self.memory_bytes / GIB:.1f} GiB for problems{gpus}"
        )
        return f"{where}: {nodes}, {have}"


def no_cluster() -> Cluster:
    """Return the cluster of a run in which there is nothing to do."""
    return Cluster(None, 0, 0, 0, 0, 0, 0, 0, importlib.metadata.version("ray"))


def usable_bytes(memory_bytes: int | None = None) -> int:
    """Memory of this machine that problems may have: what was said, and never more than is free."""
    available = available_bytes()
    usable = int(available * SHARE) if memory_bytes is None else min(memory_bytes, available)
    if usable < LEAST_MEMORY:
        raise ClusterError(
            f"only {available / GIB:.1f} GiB of memory are free here",
            hint="end something that takes memory",
        )
    return usable


@contextmanager
def connect(settings: Settings) -> Iterator[Cluster]:
    """Reach the Ray at an address, or start one on this machine and stop it at the end.

    Raises:
        ClusterError: there is none, or it cannot run what is asked for.
    """
    address = settings.address
    if address is not None:
        refuse_the_unreachable(address)
    os.environ.update({name: os.environ.get(name, value) for name, value in _QUIET.items()})
    import ray

    with ExitStack() as stack:
        options: dict[str, Any] = {"address": address}
        if address is None:
            options = {
                "address": "local",
                "num_cpus": _cores_of_our_own(settings),
                "_memory": usable_bytes(settings.memory),
                "object_store_memory": OBJECT_STORE_BYTES,
                "_temp_dir": stack.enter_context(_folder()),
                "include_dashboard": False,
            }
        elif is_client(address):
            # Its nodes may have no kdrun, or another: they get ours.
            from runner.batch.remote.job_package import parcel

            ours = stack.enter_context(parcel("kdrun"))
            options["runtime_env"] = {"working_dir": str(ours)}
        stack.callback(ray.shutdown)
        try:
            if address is not None and address != "auto":
                # It asks with private parts of Ray; without them the answer only comes later.
                with _silent(), suppress(ImportError):
                    _ask_once(address)
            _started(options, tries=1 if address else STARTS)
        except authentication_error() as error:
            raise token_refused(f"Ray at {address}") from error
        except ClusterError:
            raise
        except Exception as error:  # Ray raises whatever went wrong inside it
            _refuse_another_version(address, str(error))
            line = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
            where = f"no Ray at {address}" if address else "Ray does not start"
            hint = _ports(address) if address else "try it again"
            raise ClusterError(f"{where}: {line}", hint=hint) from error
        cluster = described(address)
        _refuse_what_it_has_not(cluster, settings)
        yield cluster


def _started(options: dict[str, Any], tries: int) -> None:
    """Raises whatever Ray raises the last time."""
    import ray

    for left in reversed(range(tries)):
        try:
            with _silent():
                ray.init(**options, logging_level=logging.ERROR, log_to_driver=False)
            return
        except Exception:
            if not left:
                raise
            ray.shutdown()


def _ask_once(address: str) -> None:
    """Ask one question of the Ray there, as `ray.init` does for minutes, whatever the answer is.

    Raises:
        ClusterError: it refuses our token, or that we have none.
        RayError: the same, or no Ray answers there.
    """
    from ray._private.authentication.authentication_token_setup import ensure_token_if_auth_enabled

    # Without it, a RAY_AUTH_MODE=token with no token ends this process in C++.
    ensure_token_if_auth_enabled(None, create_token_if_missing=False)
    if not is_client(address):
        from ray._raylet import GcsClient  # type: ignore[attr-defined, unused-ignore]

        GcsClient(address=address)
        return
    import grpc  # type: ignore[import-untyped, unused-ignore]
    from ray._private.grpc_utils import init_grpc_channel

    question = "/ray.rpc.RayletDriver/ClusterInfo"
    try:
        with init_grpc_channel(address.removeprefix(_CLIENT)) as channel:
            channel.unary_unary(question)(b"", timeout=REACH_S)
    except grpc.RpcError as error:  # only this one is certain: the question itself is empty
        if error.code() == grpc.StatusCode.UNAUTHENTICATED:
            raise token_refused(f"Ray at {address}") from error


@contextmanager
def _silent() -> Iterator[None]:
    """Let nothing reach stderr: the C++ in Ray writes there by itself, and repeats it."""
    sys.stderr.flush()
    before = os.dup(2)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def token_refused(whose: str) -> ClusterError:
    """Return the error for a Ray that wants a token where we gave none, or another one."""
    return ClusterError(
        f"{whose} asks for a token, and got none or a wrong one",
        hint="set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to what `ray get-auth-token` says there",
    )


def authentication_error() -> type[Exception] | tuple[()]:
    """Return the error of a Ray that wants a token; none before Ray 2.52, which knows no tokens."""
    import ray.exceptions

    return getattr(ray.exceptions, "AuthenticationError", ())


def _cores_of_our_own(settings: Settings) -> int:
    """So many that only as many problems as are wanted find a place."""
    if settings.workers is None:
        return cores()
    return max(1, math.ceil(settings.workers * settings.num_cpus))


@contextmanager
def _folder() -> Iterator[str]:
    """Where a Ray of our own keeps its sockets and logs; those of drivers that were killed go.

    Whose driver lives is locked: a process id would say nothing about one in another container.
    """
    # A socket's path may have 107 characters, so TMPDIR is no place for it.
    place = Path("/tmp")
    for left in place.glob(f"{_FOLDER}*/{_LOCK}"):
        if (lock := _locked(left)) is not None:
            shutil.rmtree(left.parent, ignore_errors=True)
            os.close(lock)
    new = Path(tempfile.mkdtemp(prefix="kdrun-new-", dir=place))
    lock = _locked(new / _LOCK)
    made = new.rename(place / new.name.replace("kdrun-new-", _FOLDER))  # locked when it appears
    try:
        yield str(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock until it is closed, or None where another one does."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:  # somebody else's
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def is_client(address: str | None) -> bool:
    """Whether an address is for Ray's client: a cluster that is driven from outside."""
    return address is not None and address.startswith(_CLIENT)


def refuse_the_unreachable(address: str) -> None:
    """Ask by ourselves whether anybody is there: Ray tries for minutes."""
    host, _, port = address.removeprefix(_CLIENT).rpartition(":")
    if address == "auto":
        return
    if not host or not port.isdigit():
        raise UsageError(f"--address {address}: not an address", hint="such as 10.0.0.5:6379")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_S).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"no Ray at {address}: {error}", hint=_ports(address)) from error


def _ports(address: str) -> str:
    """Say which port it is that was asked for, and what else there is."""
    if is_client(address):
        return "the head's client port, 10001 by default; or --on-cluster with its dashboard"
    return "the head's own port, 6379 by default; or --on-cluster with its dashboard"


def nodes() -> list[dict[str, Any]]:
    """As Ray tells it of each that was ever there."""
    import ray

    return list(ray.nodes())  # type: ignore[no-untyped-call]


def described(address: str | None) -> Cluster:
    """The Ray that this process has joined, as it is now."""
    alive = [node["Resources"] for node in nodes() if node["Alive"]]
    # A head that runs nothing may have more memory than any node that does.
    resources = [node for node in alive if node.get("CPU", 0)]

    def most(name: str) -> float:
        return max((node.get(name, 0) for node in resources), default=0)

    return Cluster(
        address=address,
        nodes=len(resources),
        cores=int(sum(node.get("CPU", 0) for node in resources)),
        memory_bytes=int(sum(node.get("memory", 0) for node in resources)),
        node_memory_bytes=int(most("memory")),
        node_cores=int(most("CPU")),
        gpus=sum(node.get("GPU", 0) for node in resources),
        node_gpus=most("GPU"),
        ray_version=importlib.metadata.version("ray"),
    )


def _refuse_what_it_has_not(cluster: Cluster, settings: Settings) -> None:
    """What waits for nodes to come is not judged by those that are there."""
    if settings.wait_for_nodes:
        return
    local = cluster.address is None
    whose = "this machine" if local else "the largest node"
    fewer = "ask for fewer" if local else "ask for fewer, or --wait-for-nodes if the cluster grows"
    no_gpu = "`kdrun doctor --device cuda` looks for one" if local else fewer
    for flag, wanted, most, hint in (
        ("--num-gpus", settings.num_gpus, cluster.node_gpus, fewer if cluster.gpus else no_gpu),
        ("--num-cpus", settings.num_cpus, cluster.node_cores, fewer),
    ):
        if wanted > most:
            raise ClusterError(f"{flag} {wanted:g}: {whose} has {most:g}", hint=hint)
    if settings.device == "cuda" and not cluster.gpus:
        nobody = "this machine is without" if local else "no node has"
        hint = no_gpu if local else "--device auto takes one where there is one"
        raise ClusterError(f"--device cuda: {nobody} a GPU", hint=hint)


def _refuse_another_version(address: str | None, said: str) -> None:
    """Ray compares its own version and Python's, in seven lines."""
    if not said.startswith("Version mismatch"):
        return
    ray, python = (re.findall(rf"{name}: (\S+)", said) for name in ("Ray", "Python"))
    theirs, ours = zip(ray, python, strict=True)
    raise ClusterError(
        f"Ray at {address} is another version: Ray {theirs[0]} on Python {theirs[1]} there, "
        f"Ray {ours[0]} on Python {ours[1]} here",
        hint="install the same ones",
    )


def why_lost(error: BaseException) -> tuple[Cause, str]:
    """What ended an attempt that never answered, and what Ray said of it in short."""
    import ray.exceptions as known

    said = in_short(error)
    if isinstance(error, known.OutOfMemoryError):
        return "out of memory", said
    if isinstance(error, known.OutOfDiskError):
        return "disk full", said
    if not isinstance(error, known.NodeDiedError):
        return "worker lost", said
    told = re.search(r"node ID: (\w+)", str(error))
    node = next((n for n in nodes() if told and n["NodeID"] == told[1]), {})
    if node.get("DeathReason") in _TOLD_TO_GO:
        return "preempted", f"{node['NodeManagerHostname']}: {node['DeathReasonMessage']}"
    return "node lost", f"{node.get('NodeManagerHostname', 'its node')}: died without a word"


_TOLD_TO_GO = (1, 3, 4)
"""Ray's NodeDeathInfo: ended by SIGTERM, drained to be preempted, drained for being idle."""


def in_short(error: BaseException) -> str:
    """The kind of error, and the line that matters: the last, below Ray's own and its traces."""
    lines = [line.strip() for line in str(error).strip().split("\n") if line.strip()]
    last = lines[-1] if lines else ""
    return f"{type(error).__name__}: {last}" if len(last) < 200 else type(error).__name__
