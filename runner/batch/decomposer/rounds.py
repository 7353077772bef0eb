"""Runs a decomposer in rounds: each gets a brief, runs the command, and judges the delivery.

From the second round on, the brief contains the findings of the round before. Deliveries are judged
by the same gates as any directory, against the problem's own file.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from runner.batch.child.answer import (
    Answer,
    FactsAnswer,
    FailureAnswer,
    FailureCause,
    failure_cause,
    request_more_memory,
)
from runner.batch.child.problem_logs import hide_credentials
from runner.batch.child.task import Task
from runner.batch.decomposer import decomposer_process, delivery
from runner.batch.machine import resident_bytes
from runner.batch.memory_request import Forecast, describe_shortage
from runner.problems import identify_problem
from runner.prompts import VERSION, Brief, Facts, render_brief, render_later_round
from runner.prompts.brief import MOST_FINDINGS
from runner.store.result import Decomposed, Decomposer, Figures, Round

if TYPE_CHECKING:
    from runner.batch.attempt import Attempt, Kind

    ChildRunner = Callable[[Kind, Task, Path], Attempt]

WORKPLACE = "decomposer"
"""Name of the command's working directory in the attempt's scratch directory."""
COMMAND_SHARE = 0.8
"""Share of a round's time that the command gets; the rest is for judging its delivery."""
MIN_ROUND_S = 1.0
"""Seconds below which a round is not started."""
FALLBACK_STATUSES = {"failed", "crashed"}
"""Statuses of kdrun's own decomposition after which the decomposer is tried."""


def decompose(task: Task, log: Path, run_child: "ChildRunner") -> "Attempt":
    """Decompose a problem by kdrun or by the decomposer that the options name; commit nothing.

    `run_child` runs one of kdrun's own functions in a child.
    """
    decomposer = task.options.decomposer
    if decomposer is None:
        return run_child("decompose", task, log)
    started_s = time.monotonic()
    if decomposer.on_failure:
        computed = run_child("decompose", task, log)
        lacked_memory = failure_cause(computed.answer) is FailureCause.OUT_OF_MEMORY
        if computed.answer.status not in FALLBACK_STATUSES or lacked_memory:
            return computed
    else:
        log.unlink(missing_ok=True)
    round_loop = _RoundLoop(task, decomposer, log, run_child, started_s)
    facts_attempt = run_child("facts", task, round_loop.part_log)
    round_loop.append_part_log("the facts for the brief")
    answer = round_loop.run_rounds(facts_attempt.answer)
    if answer is None:
        return facts_attempt
    return facts_attempt.model_copy(
        update={
            "answer": answer,
            "peak_memory_bytes": round_loop.peak_bytes,
            "decomposer": round_loop.summarize(),
        }
    )


class _RoundLoop:
    """The rounds of a decomposer for one problem, with their shared state."""

    def __init__(
        self,
        task: Task,
        decomposer: Decomposer,
        log: Path,
        run_child: "ChildRunner",
        started_s: float,
    ) -> None:
        self.task, self.decomposer, self.log, self.run_child = task, decomposer, log, run_child
        self.started_s, self.deadline = started_s, started_s + task.timeout_s
        self.command_directory = task.scratch / ".command"
        """Directory for the record and log of the command's child, outside the command's own."""
        self.command_directory.mkdir()
        self.part_log = self.command_directory / "log"
        self.workplace = task.scratch / WORKPLACE
        self.output = self.workplace / "decomposition"
        self.rounds: list[Round] = []
        self.seconds = {"decomposer": 0.0, "verify": 0.0}
        self.figures: Figures | None = None
        self.peak_bytes: int | None = None

    def run_rounds(self, facts_answer: Answer) -> Answer | None:
        """Run the rounds and return the last one's answer; None if the problem itself is broken."""
        if facts_answer.status == "error":
            return None
        if isinstance(facts_answer, FactsAnswer):
            facts = facts_answer.facts
        else:
            facts = Facts(capture=None, reason=facts_answer.reason or facts_answer.status)
        limit_bytes = self.task.memory_bytes
        forecast = Forecast(forward_bytes=facts.peak_bytes or 0, process_bytes=resident_bytes())
        if larger_request := request_more_memory(self.task, forecast):
            return larger_request
        if facts.peak_bytes is not None and facts.peak_bytes > limit_bytes:
            reason = describe_shortage(facts.peak_bytes, self.task.most_memory_bytes)
            return FailureAnswer(
                status="too_large", reason=reason, stage="facts", seconds=facts_answer.seconds
            )
        self.seconds = facts_answer.seconds | self.seconds
        source, brief, problem = self._prepare(facts)
        answer: Answer = FailureAnswer(
            status="timeout", reason="no time was left for a round", stage="decomposer"
        )
        for number in range(1, self.decomposer.rounds + 1):
            remaining_s = self.deadline - time.monotonic()
            share_s = remaining_s / (self.decomposer.rounds - number + 1) * COMMAND_SHARE
            if share_s < MIN_ROUND_S:
                break
            answer, may_improve = self._run_round(number, share_s, source, facts, brief, problem)
            lacked_memory = failure_cause(answer) is FailureCause.OUT_OF_MEMORY
            # For a captured problem the memory was computed; otherwise it was a guess.
            if lacked_memory and facts.capture is not None:
                lacked_memory = False
                answer = answer.model_copy(update={"cause": None})
            has_ended = answer.status in {"passed", "error"}
            if has_ended or (lacked_memory and self.task.may_grow) or not may_improve:
                break
        return answer.model_copy(update={"figures": self.figures, "seconds": self.seconds})

    def summarize(self) -> Decomposed:
        """Return the decomposer's command and rounds for the result and the manifest."""
        return Decomposed(
            command=self.decomposer.command,
            prompt_version=VERSION,
            rounds=self.rounds,
            seconds=round(time.monotonic() - self.started_s, 3),
        )

    def _prepare(self, facts: Facts) -> tuple[delivery.ProblemSource, Brief, Path]:
        """Make the working directory; return the problem's source, the brief and the copy."""
        task = self.task
        problem = identify_problem(task.problem)
        level, _, name = task.label.rpartition("/")
        source = delivery.ProblemSource(
            name=name,
            level=level,
            text=task.problem.read_bytes(),
            sha256=problem.sha256,
            mode=task.options.mode,
        )
        self.workplace.mkdir()
        self.output.mkdir()
        problem_copy = self.workplace / f"{name}.py"
        problem_copy.write_bytes(source.text)
        brief = render_brief(
            problem,
            facts,
            self.output,
            visible_path=problem_copy,
            mode=task.options.mode,
            flags=decomposer_process.verify_flags(task.options),
        )
        return source, brief, problem_copy

    def _run_round(
        self,
        number: int,
        share_s: float,
        source: delivery.ProblemSource,
        facts: Facts,
        brief: Brief,
        problem: Path,
    ) -> tuple[Answer, bool]:
        """Run one round; return its answer and whether another round may do better."""
        stage = f"decomposer: round {number} of {self.decomposer.rounds}"
        self.task.stage_file.write_text(stage, encoding="utf-8")
        findings = self.rounds[-1].findings if self.rounds else []
        text = (
            render_later_round(brief, self.output, number, self.decomposer.rounds, findings)
            if self.rounds
            else brief.text()
        )
        paths = {"problem": problem, "output": self.output, "brief": self.workplace / "brief.md"}
        paths["brief"].write_text(text, encoding="utf-8")
        problem.write_bytes(source.text)
        guard = delivery.FileGuard(
            self.task.problem,
            [self.task.scratch, self.task.directory],
            exceptions=[self.workplace, self.command_directory],
        )
        command = decomposer_process.build_command(self.decomposer, self.workplace, paths)
        outcome = decomposer_process.run_in_child(
            command, self.command_directory, self.part_log, share_s
        )
        faults = [f"the command {offence}" for offence in guard.collect_offences()]
        self.append_part_log(
            f"round {number} of {self.decomposer.rounds}: {self.decomposer.command}"
        )
        self.seconds["decomposer"] = round(self.seconds["decomposer"] + outcome.seconds, 3)
        delivery_faults = delivery.copy_delivery(self.output, self.task.build_directory, source)
        faults += delivery_faults
        answer: Answer
        if delivery_faults and not self._has_delivery():
            answer = self._describe_missing_delivery(outcome, faults)
        else:
            self.figures = delivery.complete_tree(self.task.build_directory, source, facts)
            answer = self._judge_delivery(number, faults, outcome)
        verify_s = answer.seconds.get("verify", 0.0)
        self.rounds.append(
            Round(
                status=answer.status,
                findings=answer.findings,
                ended=outcome.how,
                command_s=outcome.seconds,
                verify_s=verify_s,
            )
        )
        return answer, outcome.started

    def _has_delivery(self) -> bool:
        files = (path for path in self.task.build_directory.rglob("*") if path.is_file())
        return any(path != self.task.build_directory / delivery.ORIGINAL for path in files)

    def _describe_missing_delivery(
        self, outcome: decomposer_process.CommandOutcome, faults: list[str]
    ) -> FailureAnswer:
        """Return the answer of a round in which nothing was delivered."""
        command_end = f"the decomposer {outcome.how}" if outcome.how else "the decomposer ended"
        fault = faults[0]
        reason = (
            f"{command_end}; {fault}"
            if outcome.started and fault not in command_end
            else command_end
        )
        return FailureAnswer(
            status="timeout" if outcome.timed_out else "failed",
            reason=reason,
            stage="decomposer",
            findings=[reason, *map(_format_fault, faults[1:])],
        )

    def _judge_delivery(
        self, number: int, faults: list[str], outcome: decomposer_process.CommandOutcome
    ) -> Answer:
        """Verify the delivery in a child and return an answer that also contains `faults`."""
        remaining_s = max(MIN_ROUND_S, self.deadline - time.monotonic())
        task = self.task.model_copy(update={"timeout_s": remaining_s})
        attempt = self.run_child("judge", task, self.part_log)
        self.append_part_log(f"verdict {number} of {self.decomposer.rounds}")
        self.peak_bytes = max(self.peak_bytes or 0, attempt.peak_memory_bytes or 0)
        answer = attempt.answer
        verify_s = answer.seconds.get("verify", 0.0)
        self.seconds["verify"] = round(self.seconds["verify"] + verify_s, 3)
        fault_findings = list(map(_format_fault, faults))
        findings = fault_findings + (answer.findings or ([answer.reason] if answer.reason else []))
        if answer.status == "passed" and not faults:
            return answer
        if answer.status == "passed":
            answer = answer.model_copy(update={"status": "failed", "stage": "decomposer"})
        if outcome.how:
            findings.append(f"the command {outcome.how}")
        reason = fault_findings[0] if faults else answer.reason
        return answer.model_copy(
            update={"reason": reason, "findings": findings[: MOST_FINDINGS + 1]}
        )

    def append_part_log(self, title: str) -> None:
        """Append one child's log to the problem's log, under a title."""
        if not self.part_log.is_file():
            return
        hide_credentials(self.part_log, extra_names=self.decomposer.pass_env)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            log.write(f"--- {title}\n".encode())
            log.write(self.part_log.read_bytes())
        self.part_log.unlink()


def _format_fault(fault: str) -> str:
    """Return a fault of a delivery as a finding; the gates' findings begin with theirs, too."""
    return f"rules: {fault}"
