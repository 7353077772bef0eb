"""This file knows about which tasks have begun: Ray does not say, so each puts a note into its KV.

A scratch directory would say it, too, but only to a driver that sees the worker's files.
"""

from runner.batch.attempt import run_task

_NAMESPACE = b"kdrun"


def record_start_and_run(start_key: str, task_json: str, log: str) -> str:
    """What Ray runs: the attempt, noted before it begins."""
    import socket

    from ray.experimental import internal_kv

    internal_kv._internal_kv_put(start_key, socket.gethostname(), namespace=_NAMESPACE)
    return run_task(task_json, log)


def find_start_host(start_key: str) -> str | None:
    """The host on which the noted attempt began; None where it has not."""
    from ray.experimental import internal_kv

    host: bytes | None = internal_kv._internal_kv_get(start_key, namespace=_NAMESPACE)
    return None if host is None else host.decode()


def delete_start_record(start_key: str) -> None:
    from ray.experimental import internal_kv

    internal_kv._internal_kv_del(start_key, namespace=_NAMESPACE)
