"""Defines the error for models that kdrun cannot write down as a program."""

DENSE = "give it as a dense tensor, or as a tensor of indices and one of values"
PADDED = "give each as a padded tensor, or as a tensor of values and one of offsets"
PLAIN = "write this with torch's operations on plain tensors"


class CaptureRefusal(TypeError):
    """An operation, a tensor or an argument that kdrun cannot write down, with a hint.

    `line` is the line in the problem file, or None if it is not known.
    """

    def __init__(self, reason: str, hint: str = PLAIN) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.line: int | None = None

    def __str__(self) -> str:
        return f"{self.reason} (line {self.line})" if self.line else self.reason
