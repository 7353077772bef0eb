"""Formats quantities for people: `2 components`, `1.2 GFLOP`, `3.4 MiB`."""

from collections.abc import Sequence


def join_first(names: Sequence[str], limit: int) -> str:
    """Return the first names and the number of the others: `a, b, c and 2 more`."""
    others = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + others


def pluralize(number: int, noun: str) -> str:
    """Return a number with a noun, such as `1 component` or `2 components`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def flops(count: int) -> str:
    """Return a count of FLOPs such as `236.0 MFLOP`."""
    return _format_scaled(count, 1000, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"))


def size(count: int) -> str:
    """Return a count of bytes such as `1.5 MiB`."""
    return _format_scaled(count, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


def share(part: float, total: float) -> str:
    """Return a percentage such as `12.3%`, or `-` if the total is zero."""
    return f"{100 * part / total:.1f}%" if total else "-"


def _format_scaled(count: int, base: int, units: tuple[str, ...]) -> str:
    value = float(count)
    for unit in units:
        if value < base or unit == units[-1]:
            return f"{count} {unit}" if unit == units[0] else f"{value:.1f} {unit}"
        value /= base
    raise AssertionError("unreachable")
