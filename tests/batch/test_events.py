"""A run's log for programs: a JSON document a line, with run, problem and stage."""

import io
import json
from typing import Any

from runner.batch.event_log import EventLog
from runner.store.manifest_row import Repeat, Row


def told(what: Any) -> list[dict[str, Any]]:
    stream = io.StringIO()
    what(EventLog(stream, "nightly"))
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert all(line.pop("run") == "nightly" and line.pop("time") for line in lines)
    return lines


def test_a_problem_s_way_is_told_stage_by_stage_and_each_stage_once() -> None:
    def happens(events: EventLog) -> None:
        events.on_stages([("level1/relu", "capture")])
        events.on_stages([("level1/relu", "capture"), ("level1/gelu", "load")])
        events.on_stages([("level1/relu", "verify: step")])

    assert told(happens) == [
        {"event": "stage", "problem": "level1/relu", "stage": "capture"},
        {"event": "stage", "problem": "level1/gelu", "stage": "load"},
        {"event": "stage", "problem": "level1/relu", "stage": "verify: step"},
    ]


def test_an_attempt_that_is_followed_by_another_says_why() -> None:
    def happens(events: EventLog) -> None:
        events.on_stages([("level1/relu", "capture")])
        events.on_retry(
            "level1/relu", Repeat(cause="node lost", said="gone", requested_memory_bytes=5)
        )

    assert told(happens)[1] == {
        "event": "repeated",
        "problem": "level1/relu",
        "stage": "capture",
        "cause": "node lost",
        "said": "gone",
        "requested_memory_bytes": 5,
    }


def test_an_end_is_the_row_and_the_whole_run_is_told_as_text() -> None:
    row = Row(problem="relu", source_level="level1", status="error", reason="no", attempts=1)

    def happens(events: EventLog) -> None:
        events.on_message("finishing 1 running")
        events.on_problem_end(row, 1)

    said, ended = told(happens)
    assert said == {"event": "said", "text": "finishing 1 running"}
    assert (ended["event"], ended["problem"], ended["status"]) == ("ended", "level1/relu", "error")
    assert ended["attempts"] == 1
