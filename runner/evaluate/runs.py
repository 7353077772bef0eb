"""Evaluates solutions for all decompositions of a run, one by one, each in a child process.

They do not run at the same time, and not on Ray: what runs beside a measurement changes it.
"""

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from runner.batch.child.child_process import Request, close_fork_server, run_child
from runner.batch.cluster import usable_bytes
from runner.errors import KdrunError
from runner.evaluate.requests import EvaluationAnswer, EvaluationRequest
from runner.store.evaluation import Evaluation

_LOOK_S = 0.5
"""Seconds between two looks at what a child says about its progress."""


def evaluate_all(
    requests: Sequence[EvaluationRequest],
    *,
    memory_bytes: int | None,
    on_done: Callable[[Evaluation, str | None], None],
    on_failure: Callable[[KdrunError], None],
    on_progress: Callable[[EvaluationRequest, str], None],
) -> None:
    """Evaluate each request that has a solution, and write its evaluation.json.

    `on_done` gets each evaluation, and the text of the model with all right solutions.
    `on_failure` gets the error of a decomposition that could not be evaluated, and `on_progress`
    the name of each part of the work as it begins.
    """
    limit = usable_bytes(memory_bytes)
    with tempfile.TemporaryDirectory(prefix="kdrun-") as folder:
        try:
            for request in requests:
                try:
                    with _follow_progress(request, Path(folder), on_progress) as followed:
                        answer = run_request(followed, Path(folder), limit)
                except KdrunError as error:
                    on_failure(error)
                    continue
                if answer.evaluation is not None:
                    answer.evaluation.write(request.directory)
                    on_done(answer.evaluation, answer.text)
        finally:
            close_fork_server()


@contextmanager
def _follow_progress(
    request: EvaluationRequest,
    folder: Path,
    on_progress: Callable[[EvaluationRequest, str], None],
) -> Iterator[EvaluationRequest]:
    """Yield the request with a file for its progress, and pass on what appears there."""
    file = folder / "progress"
    file.write_bytes(b"")
    ended = threading.Event()

    def follow() -> None:
        with file.open(encoding="utf-8") as lines:
            is_over = False
            while not is_over:
                is_over = ended.wait(_LOOK_S)
                for line in lines:
                    on_progress(request, line.rstrip())

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    try:
        yield request.model_copy(update={"progress": file})
    finally:
        ended.set()
        follower.join()


def run_request(request: EvaluationRequest, folder: Path, limit: int) -> EvaluationAnswer:
    """Evaluate in a child process, and return its answer.

    Raises:
        KdrunError: the child ended without an answer, or could not evaluate.
    """
    log = folder / "log"
    outcome = run_child(
        Request(
            function="runner.evaluate.evaluation:evaluate_in_child",
            argument=request.model_dump_json(),
            directory=folder,
            log=log,
            memory_bytes=limit,
            timeout_s=request.timeout_s,
        )
    )
    if outcome.answer is not None:
        answer = EvaluationAnswer.model_validate_json(outcome.answer)
        if answer.error is not None:
            raise KdrunError(answer.error)
        return answer
    if outcome.timed_out:
        raise KdrunError(
            f"{request.directory}: not evaluated within {request.timeout_s:.0f} s",
            hint="raise --timeout, or name fewer solutions",
        )
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    reason = f": {lines[-1]}" if lines else ""
    raise KdrunError(f"{request.directory}: the evaluation {outcome.describe_end()}{reason}")
