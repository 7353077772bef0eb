"""Evaluations beside the decompositions of a run: right, faster, wrong and broken solutions."""

from datetime import UTC, datetime
from pathlib import Path

from runner.evaluate.speed import summarize_pairs
from runner.store.evaluation import (
    Evaluation,
    Machine,
    ModelComparison,
    ModelEvaluation,
    PlaceComparison,
    SolutionEvaluation,
    Speed,
)
from runner.store.result import ProblemResult

FASTER = "linear_relu_784x1024_on_128_fp32"
NOISE = "relu_128x512_fp32"
WRONG = "linear_512x256_on_128_fp32"
BROKEN = "layer_norm_4x128x384_fp32"
REASON = "output differs by 0.2 (900 times the tolerance) (on own inputs)"


def speed(times: float) -> Speed:
    """Speed of a change that makes 28 pairs this many times as fast, give or take a tenth."""
    before = [1e-3 * (1 + 0.1 * (n % 3 - 1) + 0.02 * (n // 7 - 1.5)) for n in range(28)]
    return summarize_pairs(before, [1e-3 / times for _ in before], [7, 7, 7, 7], 7)


def solution(name: str, place: str, found: Speed | str) -> SolutionEvaluation:
    """A right solution with its speed, or a wrong or broken one with its reason."""
    right = isinstance(found, Speed)
    judgement = "right" if right else "broken" if "Error" in str(found) else "wrong"
    comparisons = [
        PlaceComparison(
            place=where,
            judgement=judgement,
            reason=None if right else str(found),
            tolerances=None if judgement == "broken" else 0.25,
        )
        for where in ("own inputs", place)
    ]
    return SolutionEvaluation(
        name=name,
        level="fusion" if name == FASTER else "kernel",
        file=f"mine/{name}.py",
        sha256="0" * 64,
        places=1,
        judgement=judgement,
        reason=None if right else str(found),
        comparisons=comparisons,
        speed=found if isinstance(found, Speed) else None,
        share=0.5 if right else None,
        predicted=1.2 if right else None,
        measured=speed(1.1) if right else None,
    )


def write_evaluations(output: Path) -> None:
    """Write evaluations of two problems."""
    right = [
        solution(FASTER, "network_linear_relu", speed(2.5)),
        solution(NOISE, "network_linear_relu_2.network_3", speed(1.0)),
    ]
    alone = [ModelComparison(solutions=[row.name], judgement="right", drift=1e-7) for row in right]
    both = ModelComparison(solutions=[FASTER, NOISE], judgement="right", drift=2e-7)
    model = ModelEvaluation(comparisons=[*alone, both], speed=speed(1.4))
    wrong = solution(WRONG, "network_linear_relu_4.network_6", REASON)
    broken = solution(BROKEN, "layer_norm_linear.norm", "NameError: no fast_norm (on own inputs)")
    for label, rows, judged in (
        ("level3/mlp", [*right, wrong], model),
        ("level3/attention_block", [broken], None),
    ):
        digest = ProblemResult.from_directory(output / label).source_sha256
        write_evaluation(output / label, rows, judged, digest)


def write_evaluation(
    directory: Path,
    rows: list[SolutionEvaluation],
    model: ModelEvaluation | None,
    source_sha256: str = "0" * 64,
) -> Evaluation:
    """Write an evaluation with these solutions into a decomposition's directory."""
    evaluation = Evaluation(
        problem=f"{directory.parent.name}/{directory.name}",
        source_sha256=source_sha256,
        kdrun_version="0",
        machine=Machine(processor="a processor", threads=2, torch="2"),
        started=datetime.now(UTC),
        seconds=1,
        forward_seconds=1,
        solutions=rows,
        model=model,
    )
    evaluation.write(directory)
    return evaluation
