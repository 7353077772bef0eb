"""Shows an evaluation as a table for people."""

from typing import Any

from runner.quantities import pluralize
from runner.report.units import seconds
from runner.store.evaluation import Evaluation, ModelComparison, SolutionEvaluation, Speed


def show_evaluation(evaluation: Evaluation, console: Any) -> None:
    """Print the verdict on each solution, its speed, and what the model gains."""
    from rich import box
    from rich.table import Table

    machine = evaluation.machine
    threads = pluralize(machine.threads, "thread")
    console.print(f"{evaluation.problem} on {machine.processor}, {threads}, torch {machine.torch}")
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("solution", no_wrap=True)
    for title in ("verdict", "places", "speed-up", "compiled", "share", "predicted", "measured"):
        table.add_column(title, justify="left" if title == "verdict" else "right", no_wrap=True)
    for solution in evaluation.solutions:
        table.add_row(solution.name, solution.judgement, str(solution.places), *_cells(solution))
    console.print(table)
    for solution in evaluation.solutions:
        if solution.reason:
            console.print(f"{solution.name}: {solution.reason}", soft_wrap=True)
    if evaluation.model is not None:
        for comparison in evaluation.model.comparisons:
            if comparison.reason and comparison.solutions:
                names = ", ".join(comparison.solutions)
                console.print(f"the model with {names}: {comparison.reason}", soft_wrap=True)
        console.print(_describe_model(evaluation), soft_wrap=True)
    for note in evaluation.notes:
        console.print(f"but mind: {note}", soft_wrap=True)


def _cells(solution: SolutionEvaluation) -> list[str]:
    predicted = "-" if solution.predicted is None else f"{solution.predicted:.3f}"
    share = "-" if solution.share is None else f"{100 * solution.share:.1f}%"
    return [
        format_speed(solution.speed),
        format_speed(solution.compiled),
        share,
        predicted,
        format_speed(solution.measured),
    ]


def format_speed(speed: Speed | None, unit: str = "") -> str:
    """Return a speed-up with its unit and limits, such as `1.42 (1.38 to 1.47)`."""
    if speed is None:
        return "-"
    limits = f"{speed.lowest:.3g} to {speed.highest:.3g}"
    return f"{speed.speedup:.3g}{unit} ({limits}{', noise' if speed.is_noise else ''})"


def _describe_model(evaluation: Evaluation) -> str:
    """Return the sentence about the model with all right solutions."""
    assert evaluation.model is not None
    last: ModelComparison = evaluation.model.comparisons[-1]
    count = pluralize(len(last.solutions), "solution")
    if last.judgement != "right":
        return f"the model with {count} is {last.judgement}"
    parts = [f"the model with {count} is right, its output drifts by {last.drift or 0:.2g}"]
    speed = evaluation.model.speed
    if speed is not None:
        parts.append(
            f"{seconds(speed.before_median_s)} before, {seconds(speed.after_median_s)} after: "
            f"{format_speed(speed, ' times as fast')}"
        )
    if evaluation.model.parts is not None:
        unchanged = format_speed(evaluation.model.parts, " times as fast")
        parts.append(f"the same without solutions: {unchanged}")
    if evaluation.model.compiled is not None:
        compiled = format_speed(evaluation.model.compiled, " times as fast")
        parts.append(f"torch.compile of the original: {compiled}")
    elif evaluation.model.compiled_failure is not None:
        parts.append(f"torch.compile of the original: {evaluation.model.compiled_failure}")
    return "; ".join(parts)
