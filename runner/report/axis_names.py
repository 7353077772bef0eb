"""Names the sizes that variants of a problem differ in.

They are called `batch`, `seq` or `hidden`, or as the constant is that was varied.
"""

import re
from collections import defaultdict
from collections.abc import Mapping

from runner.problems import ProblemVariant

AXIS_WORDS = (
    ("batch", r"batch|^b$|^bs$"),
    ("seq", r"seq|context|num_tokens"),
    ("hidden", r"hidden|d_model|n_embd|embed"),
)
"""Name of an axis, and the pattern of the constants that it is called after."""

Sizes = Mapping[str, int]
"""Values of the constants that were varied, by the word for an axis."""


def varied_sizes(problems: Mapping[str, ProblemVariant | None]) -> dict[str, Sizes]:
    """Return the sizes of each problem by its label; an original's are those before the change."""
    variants = [variant for variant in problems.values() if variant is not None]
    before: dict[str, dict[str, int]] = defaultdict(dict)
    for variant in variants:
        before[variant.source] |= _integers(variant, changed=False)
    return {
        label: before[label]
        if variant is None
        else before[variant.source] | _integers(variant, changed=True)
        for label, variant in problems.items()
    }


def _integers(variant: ProblemVariant, *, changed: bool) -> dict[str, int]:
    values: dict[str, int] = {}
    for name, value in variant.values(changed=changed).items():
        if type(value) is int:
            words = (word for word, p in AXIS_WORDS if re.search(p, name, re.IGNORECASE))
            values.setdefault(next(words, name.lower()), value)
    return values
