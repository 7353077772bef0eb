"""Say how many there are of something, and how much: `2 components`, `1.2 GFLOP`, `3.4 MiB`."""


def counted(number: int, noun: str) -> str:
    """Return `1 component`, `2 components`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def flops(count: int) -> str:
    """Return `236.0 MFLOP`."""
    return _scaled(count, 1000, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"))


def size(count: int) -> str:
    """Return `1.5 MiB`."""
    return _scaled(count, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))


def share(part: float, whole: float) -> str:
    """Return `12.3%`; nothing has no shares."""
    return f"{100 * part / whole:.1f}%" if whole else "-"


def _scaled(count: int, base: int, units: tuple[str, ...]) -> str:
    value = float(count)
    for unit in units:
        if value < base or unit == units[-1]:
            return f"{count} {unit}" if unit == units[0] else f"{value:.1f} {unit}"
        value /= base
    raise AssertionError("unreachable")
