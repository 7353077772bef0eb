"""Records which tasks have started, in Ray's key-value store, because Ray itself does not tell.

A task's scratch directory would show it too, but only to a driver that sees the worker's files.
"""

from runner.batch.attempt import run_task

_NAMESPACE = b"kdrun"


def record_start_and_run(start_key: str, task_json: str, log: str) -> str:
    """Record this host as the one that runs the task, then run it; called by Ray."""
    import socket

    from ray.experimental import internal_kv

    internal_kv._internal_kv_put(start_key, socket.gethostname(), namespace=_NAMESPACE)
    return run_task(task_json, log)


def find_start_host(start_key: str) -> str | None:
    """Return the host on which an attempt started; None if it has not."""
    from ray.experimental import internal_kv

    host: bytes | None = internal_kv._internal_kv_get(start_key, namespace=_NAMESPACE)
    return None if host is None else host.decode()


def delete_start_record(start_key: str) -> None:
    from ray.experimental import internal_kv

    internal_kv._internal_kv_del(start_key, namespace=_NAMESPACE)
