"""How often a problem is tried again: by cause, each with a limit, every attempt listed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from runner.batch.attempt import Attempt
from runner.batch.child.answer import FailureAnswer, FailureCause
from runner.batch.cluster import Cluster
from runner.batch.driver import Driver
from runner.batch.job import ProblemJob
from runner.batch.machine import GIB
from runner.batch.memory_request import NO_BOUND, MemoryRequest
from runner.batch.plan import PlanItem
from runner.batch.run import Run, Watcher
from runner.config import Retries, Settings
from runner.problems import Problem
from runner.store.directory import DirectoryStore
from runner.store.manifest_row import Cause
from runner.store.result import RunOptions


def job(granted_gib: int = 2, most_gib: int = 12) -> ProblemJob:
    problem = Problem(Path("/data/level1/relu.py"), "relu", "level1", "abc")
    return ProblemJob(
        PlanItem(problem, None, "new"), MemoryRequest(granted_gib * GIB, most_gib * GIB)
    )


def test_every_cause_has_a_limit_of_its_own() -> None:
    assert {cause.setting for cause in Cause} == set(Retries.model_fields)


@pytest.mark.parametrize("cause", Cause)
def test_a_limit_may_be_none_at_all(cause: Cause) -> None:
    none = Retries.model_validate({cause.setting: 0})
    assert not job().may_repeat(cause, none)
    assert all(job().may_repeat(other, none) for other in Cause if other is not cause)


def test_one_cause_does_not_use_up_another_s_limit() -> None:
    lost = job()
    limits = Retries(preempted=2, node_lost=1)
    lost.add_repeat(Cause.PREEMPTED, "told to go", None)
    lost.add_repeat(Cause.PREEMPTED, "told to go", None)
    assert not lost.may_repeat(Cause.PREEMPTED, limits)
    assert lost.may_repeat(Cause.NODE_LOST, limits)
    assert lost.attempts == 3
    assert lost.explain_limit(Cause.PREEMPTED) == "its node was preempted 3 times"


def test_out_of_memory_alone_asks_for_more_as_far_as_there_is() -> None:
    greedy = job(2, 19)
    granted = []
    for cause in (Cause.NODE_LOST, Cause.OUT_OF_MEMORY, Cause.OUT_OF_MEMORY, Cause.OUT_OF_MEMORY):
        greedy.add_repeat(cause, "", None)
        granted.append(greedy.memory.granted_bytes // GIB)
    assert granted == [2, 8, 19, 19]
    assert [repeat.requested_memory_bytes // GIB for repeat in greedy.repeats] == [2, 2, 8, 19]
    assert not greedy.memory.can_grow


@pytest.mark.parametrize(
    ("gib", "cores", "order"),
    [
        (8, 2, ["again", "first"]),  # beside 8 GiB there is room for another first try
        (16, 2, ["first", "again"]),  # Ray would keep a core for it while the other one is busy
        (16, 1, ["again", "first"]),
    ],
)
def test_a_problem_that_needs_a_whole_node_is_tried_again_after_the_others(
    gib: int, cores: int, order: list[str], tmp_path: Path
) -> None:
    run = Run("one", DirectoryStore(tmp_path), RunOptions(), "", Settings())
    one_node = Cluster(None, 1, cores, 19 * GIB, 19 * GIB, cores, 0, 0, "2")
    driver = Driver(run, [], one_node, Watcher())
    again, first = job(gib, 19), job(4, 19)
    driver.waiting_jobs.append(first)
    driver.requeue(again)
    names = {id(again): "again", id(first): "first"}
    assert [names[id(waiting)] for waiting in driver.waiting_jobs] == order


def test_memory_that_an_answer_asks_for_is_granted_at_once() -> None:
    greedy = job(2, 19)
    lacks = FailureAnswer(
        status="too_large", reason="", stage="capture", cause=FailureCause.OUT_OF_MEMORY
    )
    for needed, granted in ((10 * GIB, 11.25 * GIB), (0, 19 * GIB)):
        answer = lacks.model_copy(update={"needed_bytes": needed})
        greedy.add_repeat(Cause.OUT_OF_MEMORY, "", Attempt(answer=answer, started=greedy.started))
        assert greedy.memory.granted_bytes == granted


def test_where_larger_nodes_may_come_memory_has_no_bound() -> None:
    needs = MemoryRequest.for_capture(NO_BOUND).for_model(300 * GIB, 0)
    assert needs.fits
    assert needs.granted_bytes > 300 * GIB
    assert needs.with_more_memory().granted_bytes == 2 * needs.granted_bytes


def test_a_repeat_says_where_how_long_and_at_what_cost() -> None:
    tried = job()
    began = datetime.now(UTC) - timedelta(seconds=5)
    attempt = Attempt(
        answer=FailureAnswer(status="too_large", reason="full", stage="verify"),
        started=began,
        node="far",
        cpu_seconds=3.5,
    )
    tried.end_attempt(attempt)
    told = tried.add_repeat(Cause.OUT_OF_MEMORY, "full", attempt)
    assert (told.node, told.cpu_seconds, told.started) == ("far", 3.5, began)
    assert told.seconds is not None
    assert 5 <= told.seconds < 60
