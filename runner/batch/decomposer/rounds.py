"""This file knows about a decomposer's rounds: brief, command, verdict, and again with the verdict.

What it delivers is judged by the gates that judge every directory, against the problem's own file.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from runner.batch.child.problem_logs import hide_credentials
from runner.batch.child.task import Record, Task, more_than_given
from runner.batch.decomposer import decomposer_process, delivery
from runner.batch.machine import resident_bytes
from runner.batch.memory_request import Forecast, too_large
from runner.problems import identify_problem
from runner.prompts import VERSION, Brief, Facts, render_brief, render_later_round
from runner.prompts.brief import MOST_FINDINGS
from runner.store.result import Decomposed, Decomposer, Figures, Round

if TYPE_CHECKING:
    from runner.batch.attempt import Attempt, Kind

    InChild = Callable[[Kind, Task, Path], Attempt]

WORKPLACE = "decomposer"
"""The command's working directory, in the scratch directory of its attempt."""
COMMAND_SHARE = 0.8
"""Of a round's time; the rest is for the verdict on it."""
LEAST_S = 1.0
"""For a round to be worth starting."""
USED_AFTER = {"failed", "crashed"}
"""How a computed decomposition ends where another way may do better."""


def decompose(task: Task, log: Path, in_child: "InChild") -> "Attempt":
    """Take a problem apart by whom the options name; built and judged, not yet committed.

    `in_child` runs one of our own functions in a child.
    """
    who = task.options.decomposer
    if who is None:
        return in_child("decompose", task, log)
    began = time.monotonic()
    if who.on_failure:
        computed = in_child("decompose", task, log)
        if computed.record.status not in USED_AFTER or computed.record.out_of_memory:
            return computed
    else:
        log.unlink(missing_ok=True)
    rounds = _Rounds(task, who, log, in_child, began)
    first = in_child("facts", task, rounds.part)
    rounds.keep_part("the facts for the brief")
    record = rounds.drive(first.record)
    if record is None:
        return first
    return first.model_copy(
        update={
            "record": record,
            "peak_memory_bytes": rounds.peak_bytes,
            "decomposer": rounds.told(),
        }
    )


class _Rounds:
    """All rounds for one problem."""

    def __init__(
        self, task: Task, who: Decomposer, log: Path, in_child: "InChild", began: float
    ) -> None:
        self.task, self.who, self.log, self.in_child = task, who, log, in_child
        self.began, self.deadline = began, began + task.timeout_s
        self.aside = task.scratch / ".command"
        """Where the command's child leaves its record and its log: not where the command works."""
        self.aside.mkdir()
        self.part = self.aside / "log"
        self.place = task.scratch / WORKPLACE
        self.output = self.place / "decomposition"
        self.rounds: list[Round] = []
        self.seconds = {"decomposer": 0.0, "verify": 0.0}
        self.figures: Figures | None = None
        self.peak_bytes: int | None = None

    def drive(self, known: Record) -> Record | None:
        """The verdict after the last round; None where the problem itself is broken."""
        if known.status == "error":
            return None
        facts = known.facts or Facts(capture=None, reason=known.reason or known.status)
        most = self.task.memory_bytes
        forward = Forecast(forward_bytes=facts.peak_bytes or 0, process_bytes=resident_bytes())
        if asked := more_than_given(self.task, forward):
            return asked
        if facts.peak_bytes is not None and facts.peak_bytes > most:
            said = too_large(facts.peak_bytes, self.task.most_memory_bytes)
            return Record(status="too_large", reason=said, stage="facts", seconds=known.seconds)
        self.seconds = known.seconds | self.seconds
        source, brief, problem = self._prepared(facts)
        last = Record(status="timeout", reason="no time was left for a round", stage="decomposer")
        for number in range(1, self.who.rounds + 1):
            left = self.deadline - time.monotonic()
            share = left / (self.who.rounds - number + 1) * COMMAND_SHARE
            if share < LEAST_S:
                break
            last, again = self._round(number, share, source, facts, brief, problem)
            # What was captured has all that it needs; for the rest, the memory was a guess.
            guessed = facts.capture is None and last.out_of_memory
            last = last.model_copy(update={"out_of_memory": guessed})
            ended = last.status in {"passed", "error"}
            if ended or (guessed and self.task.may_grow) or not again:
                break
        return last.model_copy(update={"figures": self.figures, "seconds": self.seconds})

    def told(self) -> Decomposed:
        """For the result and the manifest."""
        return Decomposed(
            command=self.who.command,
            prompt_version=VERSION,
            rounds=self.rounds,
            seconds=round(time.monotonic() - self.began, 3),
        )

    def _prepared(self, facts: Facts) -> tuple[delivery.Source, Brief, Path]:
        """The working directory with a copy of the problem in it, and the brief."""
        task = self.task
        problem = identify_problem(task.problem)
        level, _, name = task.label.rpartition("/")
        source = delivery.Source(
            name=name,
            level=level,
            text=task.problem.read_bytes(),
            sha256=problem.sha256,
            mode=task.options.mode,
        )
        self.place.mkdir()
        self.output.mkdir()
        copy = self.place / f"{name}.py"
        copy.write_bytes(source.text)
        brief = render_brief(
            problem,
            facts,
            self.output,
            visible_path=copy,
            mode=task.options.mode,
            flags=decomposer_process.flags(task.options),
        )
        return source, brief, copy

    def _round(
        self,
        number: int,
        share_s: float,
        source: delivery.Source,
        facts: Facts,
        brief: Brief,
        problem: Path,
    ) -> tuple[Record, bool]:
        """The verdict on one run of the command, and whether another one may do better."""
        said = f"decomposer: round {number} of {self.who.rounds}"
        self.task.stage_file.write_text(said, encoding="utf-8")
        findings = self.rounds[-1].findings if self.rounds else []
        text = (
            render_later_round(brief, self.output, number, self.who.rounds, findings)
            if self.rounds
            else brief.text()
        )
        places = {"problem": problem, "output": self.output, "brief": self.place / "brief.md"}
        places["brief"].write_text(text, encoding="utf-8")
        problem.write_bytes(source.text)
        guard = delivery.Guard(
            self.task.problem,
            [self.task.scratch, self.task.directory],
            but=[self.place, self.aside],
        )
        what = decomposer_process.command(self.who, self.place, places)
        ended = decomposer_process.run(what, self.aside, self.part, share_s)
        offences = [f"rules: the command {fault}" for fault in guard.offences()]
        self.keep_part(f"round {number} of {self.who.rounds}: {self.who.command}")
        self.seconds["decomposer"] = round(self.seconds["decomposer"] + ended.seconds, 3)
        faults = delivery.take(self.output, self.task.built, source)
        nothing = bool(faults) and not self._is_there()
        wrong = [*offences, *(f"rules: {fault}" for fault in faults)]
        if nothing:
            record = self._without_a_delivery(ended, wrong)
        else:
            self.figures = delivery.complete(self.task.built, source, facts)
            record = self._judged(number, wrong, ended)
        verify_s = record.seconds.get("verify", 0.0)
        self.rounds.append(
            Round(
                status=record.status,
                findings=record.findings,
                ended=ended.how,
                command_s=ended.seconds,
                verify_s=verify_s,
            )
        )
        return record, ended.started

    def _is_there(self) -> bool:
        others = (path for path in self.task.built.rglob("*") if path.is_file())
        return any(path != self.task.built / delivery.ORIGINAL for path in others)

    def _without_a_delivery(self, ended: decomposer_process.Ended, wrong: list[str]) -> Record:
        """How a problem stands for which there is nothing to judge."""
        said = f"the decomposer {ended.how}" if ended.how else "the decomposer ended"
        why = wrong[0].removeprefix("rules: ")
        reason = f"{said}; {why}" if ended.started and why not in said else said
        return Record(
            status="timeout" if ended.timed_out else "failed",
            reason=reason,
            stage="decomposer",
            findings=[reason, *wrong[1:]],
        )

    def _judged(self, number: int, wrong: list[str], ended: decomposer_process.Ended) -> Record:
        """The verdict of the gates on what is in `built`, and of who looked at the delivery."""
        left = max(LEAST_S, self.deadline - time.monotonic())
        task = self.task.model_copy(update={"timeout_s": left})
        judged = self.in_child("judge", task, self.part)
        self.keep_part(f"verdict {number} of {self.who.rounds}")
        self.peak_bytes = max(self.peak_bytes or 0, judged.peak_memory_bytes or 0)
        record = judged.record
        spent = record.seconds.get("verify", 0.0)
        self.seconds["verify"] = round(self.seconds["verify"] + spent, 3)
        findings = [*wrong, *(record.findings or ([record.reason] if record.reason else []))]
        if record.status == "passed" and wrong:
            record = record.model_copy(update={"status": "failed", "stage": "decomposer"})
        if record.status == "passed":
            return record
        if ended.how:
            findings.append(f"the command {ended.how}")
        reason = wrong[0] if wrong else record.reason
        return record.model_copy(
            update={"reason": reason, "findings": findings[: MOST_FINDINGS + 1]}
        )

    def keep_part(self, about: str) -> None:
        """Put what one child printed below what the others did."""
        if not self.part.is_file():
            return
        hide_credentials(self.part, also=self.who.pass_env)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            log.write(f"--- {about}\n".encode())
            log.write(self.part.read_bytes())
        self.part.unlink()
