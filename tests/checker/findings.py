"""What is found: the rule, where, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that a directory breaks, and where."""

    rule: int
    where: str
    what: str

    def __str__(self) -> str:
        return f"rule {self.rule}: {self.where}: {self.what}"
