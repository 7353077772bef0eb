"""Lists how authors spell the operations of the field in primitives: one row for each spelling.

`formula_notation` describes the notation; a part in `[...]` is optional. If two rows match the same
operations, the upper one names the kernel. A call of a function that `formula_search` expands also
matches each spelling of that function.
"""

from runner.graph.recognition.formulas.activations import ACTIVATIONS, GATED
from runner.graph.recognition.formulas.attention import POSITIONS, SOFTMAXES
from runner.graph.recognition.formulas.lookups import EMBEDDINGS, EXPERTS, SCANS, SELECTIONS
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
    *SELECTIONS,
    *EMBEDDINGS,
    *SCANS,
    ("div", ("c / x",)),  # torch runs a reciprocal, and a product with the number
)

__all__ = ["FORMULAS", "GATED", "LOSSES"]
