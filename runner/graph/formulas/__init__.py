"""How authors spell the operations of the field in primitives: one row a spelling, by subject.

The notation is that of `runner.graph.notation`; `[...]` may be missing. Rows further up win. A call
of an operation that has rows of its own stands for each of its spellings.
"""

from runner.graph.formulas.activations import ACTIVATIONS, GATED
from runner.graph.formulas.attention import POSITIONS, SOFTMAXES
from runner.graph.formulas.lookups import EMBEDDINGS, EXPERTS, SCANS
from runner.graph.formulas.losses import LOSSES
from runner.graph.formulas.normalizations import NORMALIZATIONS

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
