"""`python -m checker DIR...`: every finding a line, in a process that cannot see the package."""

import sys
from importlib.abc import MetaPathFinder
from pathlib import Path


class NoPackage(MetaPathFinder):
    """What is emitted stands alone: the package that wrote it is not there."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] in {"runner", "kdrun"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main(arguments: list[str]) -> int:
    sys.meta_path.insert(0, NoPackage())
    from checker.rules import check

    broken = 0
    for name in arguments:
        try:
            findings = [str(f) for f in check(Path(name))]
        except Exception as error:  # one directory that cannot be judged, among many
            findings = [f"not judged: {type(error).__name__}: {error}"]
        broken += bool(findings)
        for finding in findings or ["rules 1 to 7 hold"]:
            print(f"{name}: {finding}", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
