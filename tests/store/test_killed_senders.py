"""Who sends or pulls is killed at random moments: nothing half is there, and the next one finishes.

Killed is a process of its own, by SIGKILL, as the kernel would.
"""

import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from documents import FILES, Make, manifest, row, save

from runner.store import bucket
from runner.store.pull import pull
from runner.store.result import first_mismatch, sha256_of
from runner.store.runs import RunStore

LABEL = "level1/relu"
MANY = FILES | {f"level_0_kernel/relu_{n}x3_fp32.py": f"# {n}\n" * 500 for n in range(30)}
KILLED = 6
"""In the middle of their work."""
TRIES = 60

pytestmark = [
    pytest.mark.kill,
    pytest.mark.parametrize("kind", ["directory", "server"], indirect=True),
]


def kill_at_random(
    work: Callable[[int], object], is_done: Callable[[int], bool], chance: random.Random
) -> int:
    """Do the n-th work, or what is left of it, in processes that are killed; which n is left so.

    `is_done` looks at what is there after each kill.
    """
    began = time.monotonic()
    assert not killed(lambda: work(0), after_s=None)
    window_s = time.monotonic() - began
    hits, n = 0, 1
    for _ in range(TRIES):
        hit = killed(lambda n=n: work(n), after_s=chance.uniform(0, window_s))  # type: ignore[misc]
        hits += hit
        window_s *= 1.0 if hit else 0.8  # a machine may have less to do than it had
        n += is_done(n)
        if hits == KILLED:
            return n
    raise AssertionError(f"{hits} of {TRIES} were killed at work")


def killed(work: Callable[[], object], after_s: float | None) -> bool:
    """Do it in a process of its own; whether that was killed before its end."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            bucket._client.cache_clear()  # the parent's: what is made now has its own connections
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    if after_s is not None:
        time.sleep(after_s)
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def test_what_a_killed_sender_has_sent_is_whole_or_does_not_stand_and_is_finished_by_the_next(
    store: RunStore, make: Make, chance: random.Random
) -> None:
    result, directory = make(files=MANY)

    def stands(n: int) -> bool:
        standing = store.find_result(f"run-{n}", LABEL)
        assert standing is None or store.damage(f"run-{n}", standing.result) is None
        return standing is not None

    def send(n: int) -> None:
        RunStore(store.address).publish(f"run-{n}", result, directory)

    n = kill_at_random(send, stands, chance)

    store.publish(f"run-{n}", result, directory)
    assert stands(n)
    undisturbed = {
        key.removeprefix("run-0/"): size for key, size in store.objects.list_objects("run-0/")
    }
    for k in range(1, n + 1):
        listed = store.objects.list_objects(f"run-{k}/")
        assert {key.removeprefix(f"run-{k}/"): size for key, size in listed} == undisturbed


def test_what_a_killed_pull_has_brought_is_whole_or_not_there_and_the_next_one_brings_the_rest(
    store: RunStore, make: Make, chance: random.Random, tmp_path: Path
) -> None:
    labels = [LABEL, "level2/gelu"]
    stored = [store.publish("one", *make(label, files=MANY)).committed for label in labels]
    rows = [row(each.result.label, each.sha256) for each in stored]
    run = save(store, manifest(*rows))

    def bring(n: int) -> list[str]:
        done = pull(
            RunStore(store.address), run, tmp_path / f"to-{n}", lambda _: True, lambda _: None
        )
        return [each.detail for each in done if not each.is_present]

    def is_whole(n: int) -> bool:
        there = [each for each in stored if (tmp_path / f"to-{n}" / each.result.label).exists()]
        for each in there:
            place = tmp_path / f"to-{n}" / each.result.label
            assert sha256_of(place / "result.json") == each.sha256
            assert first_mismatch(place, each.result.files) is None
        return (tmp_path / f"to-{n}/runs/one/manifest.json").is_file()

    n = kill_at_random(bring, is_whole, chance)

    assert bring(n) == []
    assert is_whole(n)
    names = {path.name for path in (tmp_path / f"to-{n}").glob("level*/*")}
    assert names == {"relu", "gelu"}
