"""Writes variants of problems: the same model with other constants or in another dtype.

A variant is a problem file of its own. Its text is the original's with other literals; a dtype adds
a few lines at the end that convert the model and its floating inputs, as KernelBench's harness does
for half precision. The last line says, for programs, what the file is a variant of.
"""

import ast
import itertools
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from runner.errors import UsageError
from runner.problems.constants import (
    INPUT_FUNCTIONS,
    NO_LITERALS,
    NamedLiterals,
    evaluate_literal,
    find_constants,
    literal_text,
    replace_constants,
)
from runner.problems.problem import (
    LARGE_FILE_BYTES,
    Problem,
    identify_problem,
    write_problem_file,
)
from runner.quantities import size
from runner.untrusted_files import read_file

TORCH_DTYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "fp64": "float64"}
"""Name in PyTorch of each dtype that `--dtype` takes."""
FOLDER = "problems"
"""Folder of an output directory for problem files that kdrun writes."""
MARK = b"# kdrun variant: "
"""Beginning of the last line of a variant's file; a JSON document follows."""

_CONVERSION = """

# {source} in {dtype}: the model and its floating inputs are converted, the rest stays as it is.
{imports}def _to_{dtype}(value):
    if isinstance(value, torch.Tensor):
        return value.to(torch.{dtype}) if value.is_floating_point() else value
    if isinstance(value, dict):
        return {{key: _to_{dtype}(item) for key, item in value.items()}}
    if type(value) in (list, tuple):
        return type(value)(_to_{dtype}(item) for item in value)
    return value


def _in_{dtype}(function):
    def converted():
        return _to_{dtype}(function())

    return converted


def _build_in_{dtype}(build):
    def convert(self, *args, **kwargs):
        {build}

    return convert


Model.{method} = _build_in_{dtype}(Model.{method})
{functions}
"""
_BUILD = {
    "__init__": "build(self, *args, **kwargs)\n        self.to(torch.{dtype})",
    "__new__": "return build(self, *args, **kwargs).to(torch.{dtype})",
}


@dataclass(frozen=True, slots=True)
class VariantChoice:
    """A problem, with the literals of constants and the dtype that were chosen for it."""

    problem: Problem
    texts: Mapping[str, str] = field(default_factory=dict)
    """Literals by the name of the constant, as the user wrote them."""
    dtype: str | None = None


class ConstantChange(BaseModel):
    """The literal of one constant before and after, as the files spell it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    before: str
    after: str


class ProblemVariant(BaseModel):
    """Says which file a problem is a variant of, and by what it differs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: str
    """Label of the original, such as `level3/vit_block`."""
    source_sha256: str
    dtype: str | None = None
    """`bf16` and the like; absent if the file's own dtypes stay."""
    constants: dict[str, ConstantChange] = Field(default_factory=dict)
    """The constants that `--set` or `--fit` chose, by name."""
    fit: str | None = None
    """Memory, such as `8GiB`, that `--fit` chose one of the constants for."""
    fitted: str | None = None
    """Name of that constant."""
    refusal: str | None = None
    """Why there is no such variant; the file is then the original's, and is not run."""

    @model_serializer(mode="wrap")
    def without_absent_fields(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the document without the fields that are absent."""
        return {name: value for name, value in serialize(self).items() if value}

    def __str__(self) -> str:
        """Return `level3/vit_block in bf16 with BATCH_SIZE = 1 (4)`."""
        changes = [f"{name} = {c.after} ({c.before})" for name, c in self.constants.items()]
        dtype = f" in {self.dtype}" if self.dtype else ""
        return f"{self.source}{dtype}{' with ' * bool(changes)}{', '.join(changes)}"

    @property
    def original_name(self) -> str:
        """Name of the original problem, without its level."""
        return self.source.rpartition("/")[2]

    def values(self, *, changed: bool) -> dict[str, Any]:
        """Return the values of the constants, by name, after the change or before it."""
        values = {}
        for name, change in self.constants.items():
            with suppress(ValueError):
                values[name] = evaluate_literal(change.after if changed else change.before)
        return values

    @property
    def suffix(self) -> str:
        """Return what follows the original's name in the variant's: `+bf16+batch_size=1`."""
        parts = [self.dtype] if self.dtype else []
        parts += [
            f"{name.lower()}={_file_name_text(change.after)}"
            for name, change in sorted(self.constants.items(), key=lambda item: item[0].lower())
        ]
        if self.refusal is not None and self.fit:
            parts.append(f"fit={self.fit}")
        return "".join(f"+{part}" for part in parts)


def read_variant(path: Path) -> ProblemVariant | None:
    """Return what a problem file is a variant of; None if it is a file of its own."""
    with suppress(OSError, ValidationError):
        last_line = read_file(path).rstrip().rpartition(b"\n")[2]
        if last_line.startswith(MARK):
            return ProblemVariant.model_validate_json(last_line.removeprefix(MARK))
    return None


def choose_variants(
    problems: Sequence[Problem], values: Mapping[str, Sequence[str]], dtypes: Sequence[str]
) -> list[VariantChoice]:
    """Return each problem with each combination of values and dtypes.

    `values` has, by the name of a constant, its literals as the user wrote them.

    Raises:
        UsageError: none of the problems has one of the constants, or a value is no literal.
    """
    for name, texts in values.items():
        _check_constant(problems, name, texts)
    combinations = [
        dict(zip(values, texts, strict=True)) for texts in itertools.product(*values.values())
    ]
    chosen = itertools.product(problems, combinations, dtypes or (None,))
    return [VariantChoice(problem, texts, dtype) for problem, texts, dtype in chosen]


def write_one_variant(
    file: Path, values: Mapping[str, Sequence[str]], dtypes: Sequence[str], output: Path
) -> Path:
    """Return a problem's file, or that of its variant if a value or a dtype is given.

    Raises:
        UsageError: there is more than one value or dtype, or no such constant.
        StoreError: the file cannot be written.
    """
    choices = choose_variants([identify_problem(file)], values, dtypes)
    if len(choices) > 1:
        raise UsageError(
            f"{len(choices)} variants are asked for",
            hint=f"`kdrun submit --problem {file.stem}` takes several values",
        )
    return write_choice(choices[0], output).path


def write_choice(
    choice: VariantChoice,
    output: Path,
    *,
    fit: str | None = None,
    fitted: str | None = None,
    refusal: str | None = None,
) -> Problem:
    """Write a variant's file into an output directory, by level, and return it as a problem.

    Without a constant, a dtype or a refusal, this is the original problem. A file that lacks one of
    the constants gets a variant that says so when it is run.

    Raises:
        UsageError: the problem is a variant itself.
        StoreError: the file cannot be written.
    """
    problem = choice.problem
    if not choice.texts and choice.dtype is None and refusal is None:
        return problem
    base = read_variant(problem.path)
    if base is not None:
        raise UsageError(f"{problem.path}: is a variant", hint=f"name the original, {base.source}")
    source = read_file(problem.path)
    edits, changes, refusals = [], {}, [refusal] if refusal else []
    if len(source) >= LARGE_FILE_BYTES:  # parsing it could take all memory of this process
        refusals.append(f"the file has {size(len(source))}, too many for variants of it")
    literals = problem_constants(problem)
    for name, text in choice.texts.items():
        try:
            constants = literals.find(name)
            literal = literal_text(text, constants)
        except UsageError as error:
            refusals.append(str(error))
            changes[name] = ConstantChange(before="", after=text)
            continue
        edits += [(constant, literal) for constant in constants if constant.text != literal]
        changes[constants[0].name] = ConstantChange(before=constants[0].text, after=literal)
    variant = ProblemVariant(
        source=problem.label,
        source_sha256=problem.sha256,
        dtype=choice.dtype,
        constants=changes,
        fit=fit,
        fitted=fitted,
        refusal="; ".join(refusals) or None,
    )
    content = replace_constants(source, edits, problem.path.name) if edits else source
    if choice.dtype is not None and not refusals:
        content = _add_conversion(content, choice.dtype, problem.path.name)
    content = b"%s\n\n%s%s\n" % (content.rstrip(), MARK, variant.model_dump_json().encode())
    path = output / FOLDER / problem.source_level / f"{problem.name}{variant.suffix}.py"
    return identify_problem(write_problem_file(path, content))


def _check_constant(problems: Sequence[Problem], name: str, texts: Sequence[str]) -> None:
    """Raise UsageError if no problem has a constant, or one of its values is no literal."""
    error: UsageError | None = None
    for problem in problems:
        try:
            constants = problem_constants(problem).find(name)
        except UsageError as missing:
            error = missing
            continue
        for text in texts:
            literal_text(text, constants)
        return
    if error is not None and len(problems) == 1:
        raise UsageError(f"--set {name}: {problems[0].name}: {error.message}", hint=error.hint)
    hint = "`kdrun data show` lists those of a problem"
    raise UsageError(f"--set {name}: none of the {len(problems)} problems has it", hint=hint)


def problem_constants(problem: Problem) -> NamedLiterals:
    """Return the named literals of a problem's file; none if it is too large or not Python."""
    source = read_file(problem.path)
    return find_constants(source) if len(source) < LARGE_FILE_BYTES else NO_LITERALS


def _add_conversion(text: bytes, dtype: str, file_name: str) -> bytes:
    """Return the file with the lines that convert it; a file that is not Python stays as it is."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    functions = [name for name in INPUT_FUNCTIONS if name in names]
    method = "__new__" if _has_own_new(tree) else "__init__"
    torch_dtype = TORCH_DTYPES[dtype]
    imports = [node for node in tree.body if isinstance(node, ast.Import)]
    imports_torch = any(a.name == "torch" and a.asname is None for i in imports for a in i.names)
    conversion = _CONVERSION.format(
        source=file_name,
        dtype=torch_dtype,
        imports="" if imports_torch else "import torch\n\n\n",
        build=_BUILD[method].format(dtype=torch_dtype),
        method=method,
        functions="\n".join(f"{name} = _in_{torch_dtype}({name})" for name in functions),
    )
    return text.rstrip() + b"\n" + conversion.encode()


def _has_own_new(tree: ast.Module) -> bool:
    """Return whether Model makes an object of another class, as those of packages do."""
    return any(
        isinstance(node, ast.ClassDef)
        and node.name == "Model"
        and any(isinstance(m, ast.FunctionDef) and m.name == "__new__" for m in node.body)
        for node in tree.body
    )


def _file_name_text(literal: str) -> str:
    """Return a literal as part of a file's name: `(3, 5)` as `3x5`, `2048 * 2` as `4096`."""
    with suppress(ValueError):
        literal = str(evaluate_literal(literal))
    text = re.sub(r"\s+", "", literal).strip("()[]")
    text = re.sub(r"[,]+", "x", text.rstrip(","))
    return re.sub(r"[^A-Za-z0-9._-]", "_", text.replace("'", "").replace('"', "")) or "empty"
