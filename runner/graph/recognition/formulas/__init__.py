"""Lists how authors spell the operations of the field in primitives: one row for each spelling.

`runner.graph.recognition.formula_notation` describes the notation; `[...]` may be missing. Rows
further up win. A call of an operation that has rows of its own stands for each of its spellings.
"""

from runner.graph.recognition.formulas.activations import ACTIVATIONS, GATED
from runner.graph.recognition.formulas.attention import POSITIONS, SOFTMAXES
from runner.graph.recognition.formulas.lookups import EMBEDDINGS, EXPERTS, SCANS
from runner.graph.recognition.formulas.losses import LOSSES
from runner.graph.recognition.formulas.normalizations import NORMALIZATIONS

Formulas = tuple[tuple[str, tuple[str, ...]], ...]

FORMULAS: Formulas = (
    *EXPERTS,
    *POSITIONS,
    *GATED,
    *LOSSES,
    *ACTIVATIONS,
    *NORMALIZATIONS,
    *SOFTMAXES,
    *EMBEDDINGS,
    *SCANS,
)

__all__ = ["FORMULAS", "GATED", "LOSSES"]
