"""Say how many there are of something."""


def counted(number: int, noun: str) -> str:
    """Return `1 component`, `2 components`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
