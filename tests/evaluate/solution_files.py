"""Writes solutions, and evaluates them, for the tests of `kdrun evaluate`."""

from pathlib import Path

from runner.evaluate.evaluation import evaluate
from runner.evaluate.requests import EvaluationAnswer, EvaluationRequest

PROBLEM = Path(__file__).with_name("heavy_tails.py")
HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"


def write_solutions(folder: Path, names: dict[str, str], texts: dict[str, str]) -> Path:
    """Write solutions, by the components' short names."""
    folder.mkdir(exist_ok=True)
    for name, text in texts.items():
        (folder / f"{names[name]}.py").write_text(HEAD + text, encoding="utf-8")
    return folder


def evaluate_texts(
    decomposed: Path, folder: Path, names: dict[str, str], texts: dict[str, str], measured: bool
) -> EvaluationAnswer:
    """The answer on solutions with these texts."""
    write_solutions(folder, names, texts)
    return evaluate(
        EvaluationRequest(
            directory=decomposed, solutions=folder, compiled=False, measured=measured, threads=1
        )
    )
