"""This file knows about which tasks have begun: Ray does not say, so each puts a note into its KV.

A scratch directory would say it, too, but only to a driver that sees the worker's files.
"""

from runner.batch.attempt import run_task

_NAMESPACE = b"kdrun"


def perform_noted(note: str, task_json: str, log: str) -> str:
    """What Ray runs: the attempt, noted before it begins."""
    import socket

    from ray.experimental import internal_kv

    internal_kv._internal_kv_put(note, socket.gethostname(), namespace=_NAMESPACE)
    return run_task(task_json, log)


def where(note: str) -> str | None:
    """The host on which the noted attempt began; None where it has not."""
    from ray.experimental import internal_kv

    found: bytes | None = internal_kv._internal_kv_get(note, namespace=_NAMESPACE)
    return None if found is None else found.decode()


def forget(note: str) -> None:
    from ray.experimental import internal_kv

    internal_kv._internal_kv_del(note, namespace=_NAMESPACE)
