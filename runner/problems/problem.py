"""Reads one problem file as text, without running it: its name, its level, its mistakes."""

import ast
import errno
import hashlib
import re
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from runner.errors import ProblemError, StoreError
from runner.untrusted_files import read_file

LEVELS = (1, 2, 3)
CUSTOM = "custom"
REQUIRED = ("Model", "get_inputs", "get_init_inputs")

_FORMAT = "a problem has `class Model(nn.Module)`, `get_inputs()` and `get_init_inputs()`"
_HINTS = {
    "Model": _FORMAT,
    "get_inputs": "add `def get_inputs()` that returns the list of forward()'s inputs",
    "get_init_inputs": "add `def get_init_inputs()` that returns the list of Model's arguments, "
    "[] for none",
}
_BINDERS = {"exec", "eval", "locals", "vars", "setattr"}
LARGE_FILE_BYTES = 1 << 20
"""Size in bytes from which a file is parsed only in a child, since that may take gigabytes."""
_SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!\s\d)[.!?](?=\s|$)")
_PARAMETER_SECTION = re.compile(r"\s*(:param|:return|Args:|Arguments:|Parameters:|Returns:)")


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem file, identified by its content; cheap to make, and picklable."""

    path: Path
    """Absolute path of the file."""
    name: str
    """The file's stem, such as `5_Matrix_scalar_multiplication`."""
    source_level: str
    """`level1`, `level2` or `level3`, after the file's folder; else `custom`."""
    sha256: str

    @property
    def label(self) -> str:
        """Level and name, `level3/vit_block`; also the path below an output directory."""
        return f"{self.source_level}/{self.name}"

    @property
    def level(self) -> int | None:
        """1, 2 or 3; None for a custom problem."""
        return None if self.source_level == CUSTOM else int(self.source_level.removeprefix("level"))


def identify_problem(path: Path) -> Problem:
    """Return the problem at `path` without parsing it; mistakes show when it is read.

    Raises ProblemError if the file cannot be read.
    """
    return _problem(path, _read_bytes(path))


def read_problem(path: Path) -> Problem:
    """Return the problem at `path`, checked for KernelBench format by its text. Needs no torch.

    Raises ProblemError, with the line if there is one, for a file that is missing, not UTF-8, not
    Python, or without `Model`, `get_inputs` or `get_init_inputs`: KernelBench's own evaluation
    calls all three without a check.
    """
    source = _read_bytes(path)
    check_format(path, source)
    return _problem(path, source)


def write_problem_file(path: Path, content: str | bytes) -> Path:
    """Write a problem's file, in a new folder if there is none, and return its path.

    Raises:
        StoreError: it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def find_mistake(path: Path) -> ProblemError | None:
    """Return the error that `read_problem` raises, if any; None for a large file, unread."""
    with suppress(OSError):
        if path.stat().st_size >= LARGE_FILE_BYTES:
            return None
    try:
        read_problem(path)
    except ProblemError as error:
        return error
    return None


def find_path(text: str) -> Path | None:
    """Return the existing file or folder at a path; None if there is none."""
    try:
        path = Path(text).expanduser()
        return path if path.exists() else None
    except RuntimeError:  # there is no such user, as in `~nobody`
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
        raise


def check_format(path: Path, source: bytes) -> None:
    """Raise ProblemError if a file is not in KernelBench format."""
    tree = _parse_source(path, source)
    if not tree.body:
        reason = "the file has comments and no code" if source.strip() else "the file is empty"
        raise ProblemError(path, reason, hint=_FORMAT)
    names = set(_defined_names(tree))
    for name in REQUIRED:
        if name not in names and not _may_hide_names(tree):
            raise ProblemError(path, f"no {_definition_text(name)}", hint=_missing_hint(name, tree))


def summarize_problem(problem: Problem) -> str:
    """Return the first sentence of the file's or Model's docstring, else the name as words."""
    try:
        tree = _parse_source(problem.path, _read_bytes(problem.path))
    except ProblemError:
        return _name_as_words(problem.name)
    model = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Model"]
    documented: list[ast.Module | ast.ClassDef] = [tree, *model]
    for node in documented:
        sentence = _first_sentence(ast.get_docstring(node) or "")
        if sentence and "://" not in sentence:  # a source address describes nothing
            return sentence
    return _name_as_words(problem.name)


def source_level(path: PurePath) -> str:
    """Return `level1`, `level2` or `level3` if the file's folder is called so, else `custom`."""
    folder = path.parent.name
    return folder if folder in {f"level{n}" for n in LEVELS} else CUSTOM


def _problem(path: Path, source: bytes) -> Problem:
    path = Path(path).absolute()
    return Problem(path, path.stem, source_level(path), hashlib.sha256(source).hexdigest())


def _read_bytes(path: Path) -> bytes:
    try:
        return read_file(Path(path))
    except FileNotFoundError:
        raise ProblemError(path, "no such file") from None
    except IsADirectoryError:
        raise ProblemError(
            path, "is a directory, not a problem file", hint="--data takes a directory of problems"
        ) from None
    except OSError as error:
        raise ProblemError(path, f"cannot be read: {error.strerror or error}") from error


def _parse_source(path: Path, source: bytes) -> ast.Module:
    try:
        text = source.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise ProblemError(
            path,
            f"not UTF-8: byte 0x{source[error.start]:02x} (line {line})",
            hint="save the file as UTF-8",
            line=line,
        ) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            return ast.parse(text, filename=str(path))
    except SyntaxError as error:
        position = f" (line {error.lineno})" if error.lineno else ""
        raise ProblemError(
            path, f"{type(error).__name__}: {error.msg}{position}", line=error.lineno
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nested too deeply
        raise ProblemError(path, f"not Python: {error}") from error


def _defined_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that the module may define when it runs."""
    for node in _module_nodes(tree):
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                yield from (alias.asname or alias.name for alias in node.names)
            case ast.Name(id=name, ctx=ast.Store()):
                yield name


def _module_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes outside functions and classes that may bind a name of the module."""
    pending: list[ast.AST] = [*tree.body]
    while pending:
        node = pending.pop()
        yield node
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                pass
            case ast.AnnAssign(value=None):  # `Model: type` binds nothing
                pass
            case _:
                pending.extend(ast.iter_child_nodes(node))


def _may_hide_names(tree: ast.Module) -> bool:
    """Return whether the module may define names that its text does not show.

    It may by `exec`, by `globals()["Model"] = ...` and the like. In a function or class, `setattr`,
    `vars` and the like do not define names of the module.
    """
    for node in _module_nodes(tree):
        match node:
            case ast.Name(id=name) if name in _BINDERS:
                return True
            case ast.alias(name="*") | ast.FunctionDef(name="__getattr__"):
                return True
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="sys"), attr="modules") | ast.Name(id="globals"):
                return True
            case ast.Global(names=names) if {*names} & {*REQUIRED}:
                return True
    return False


def _missing_hint(name: str, tree: ast.Module) -> str:
    modules = [n.name for n in tree.body if isinstance(n, ast.ClassDef) and n.bases]
    if name == "Model" and len(modules) == 1:
        return f"rename class {modules[0]} to Model"
    return _HINTS[name]


def _definition_text(name: str) -> str:
    return "class Model" if name == "Model" else f"{name}()"


def _first_sentence(docstring: str) -> str:
    paragraph = _PARAMETER_SECTION.split(docstring.strip().split("\n\n")[0])[0]
    return _SENTENCE_END.split(" ".join(paragraph.split()), maxsplit=1)[0].strip().rstrip(":")


def _name_as_words(name: str) -> str:
    return " ".join(re.sub(r"^\d+_", "", name).replace("_", " ").split()) or name
