"""Inputs of forward() for classes of transformers that the rules of their parameters do not fit."""

from collections.abc import Mapping, Sequence

INPUTS: Mapping[str, str | Sequence[tuple[str | None, str]]] = {}
REFUSALS: Mapping[str, str] = {}
