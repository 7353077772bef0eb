"""What a program holds that no emitted file could."""

DENSE = "give it as a dense tensor, or as a tensor of indices and one of values"
PLAIN = "write this with torch's operations on plain tensors"


class Refused(TypeError):
    """An operation, a tensor or an argument that kdrun cannot write down, and what to do about it.

    `line` is that of the problem file, where one is known.
    """

    def __init__(self, what: str, hint: str = PLAIN) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.line: int | None = None

    def __str__(self) -> str:
        return f"{self.what} (line {self.line})" if self.line else self.what
