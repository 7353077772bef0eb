"""Defines the error for models that kdrun cannot write down as a program."""

DENSE = "give it as a dense tensor, or as a tensor of indices and one of values"
PLAIN = "write this with torch's operations on plain tensors"


class Refused(TypeError):
    """An operation, a tensor or an argument that kdrun cannot write down, with a hint.

    `line` is the line in the problem file, or None if it is not known.
    """

    def __init__(self, what: str, hint: str = PLAIN) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.line: int | None = None

    def __str__(self) -> str:
        return f"{self.what} (line {self.line})" if self.line else self.what
