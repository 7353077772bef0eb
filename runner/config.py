"""Defines the settings of kdrun, and reads them from flags, environment and a YAML file.

Flags take precedence over environment variables (KDRUN_*), these over the YAML file, and that over
the defaults. A setting has one name everywhere: `--run-id`, `KDRUN_RUN_ID`, `run_id:`.
"""

import os
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ByteSize,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from runner.errors import ConfigError, KdrunError, UsageError, suggest_names

PREFIX = "KDRUN_"
CONFIG_VARIABLE = "KDRUN_CONFIG"
WITHOUT_FLAG: dict[str, JsonValue] = {"has_flag": False}
"""Marks a setting that only a variable or a file sets."""
VALUES_VARIABLE = "KDRUN_VALUES"
"""Variable that lets an emitted file test itself on stored values; no setting of a command."""
LEAST_MEMORY = 256 << 20
"""Bytes that Python needs with torch imported; a smaller limit on memory is an error."""
CONFIG_FILE = Path("configs/default.yaml")
"""Settings file that is read from the working directory if it exists and no other is named."""


def _split_list(value: object) -> object:
    """Return a list for `1,2` in an environment variable and for `level: 1` in a file."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [value] if isinstance(value, int) else value


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STORE_PREFIXES = ("AWS_", "KDRUN_")


def _check_variables(names: list[str]) -> list[str]:
    """Return names of environment variables, after a check that none may hold store credentials."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a variable, such as ANTHROPIC_API_KEY")
        if name.upper().startswith(_STORE_PREFIXES):
            raise ValueError(f"{name} may open the store; no decomposer gets it")
    return names


def _check_command(value: str | None) -> str | None:
    """Return a command line, after a check that a shell can split it into words."""
    if value is None:
        return None
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise ValueError(f"{str(error).lower()}; quote it as for a shell") from error
    if not words:
        raise ValueError("no command")
    return value


def _check_run_id(value: str | None) -> str | None:
    if value is not None and (not value.strip("-_.") or "/" in value or value.startswith(".")):
        raise ValueError("it names a folder, such as nightly-3")
    return value


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/*")


def _normalise_store(value: str | None) -> str | None:
    """Return s3://bucket/prefix unchanged, and a folder as an absolute path.

    An absolute path means the same in every process, whatever its working directory.
    """
    if value is None or re.match("s3://[^/]", value):
        return value
    scheme = _SCHEME.match(value)
    if scheme is None and value:
        return str(_expand_home(Path(value)).absolute())
    rest = value[scheme.end() :] if scheme else ""
    scheme_name = scheme[1].lower() if scheme else ""
    if scheme_name in ("http", "https"):
        host, _, bucket = rest.partition("/")
        suggestion = f"s3://{bucket or 'bucket'} with KDRUN_S3_ENDPOINT_URL={scheme_name}://{host}"
    else:
        suggestion = {"s3": f"s3://{rest}", "file": f"/{rest}"}.get(scheme_name, "") if rest else ""
    hint = f"is it {suggestion}?" if suggestion else "write s3://bucket/prefix, or a folder"
    raise ValueError(f"not a store; {hint}")


def _expand_home(path: Path) -> Path:
    """Replace `~`: a shell does not do it in `--output=~/x`, nor in a variable or a file."""
    try:
        return path.expanduser()
    except RuntimeError as error:  # no such user
        raise ValueError(str(error)) from error


def _check_output(path: Path) -> Path:
    path = _expand_home(path)
    with suppress(OSError):  # a folder that cannot be read is reported when it is written to
        for folder in (path, *path.parents):
            if folder.exists() and not folder.is_dir():
                raise ValueError(f"{folder} is a file; name a folder")
    return path


def _check_gpus(value: float) -> float:
    if value > 1 and value != int(value):
        raise ValueError("a part of one, or whole ones")
    return value


_DEVICE = re.compile(r"[a-z][a-z0-9_]*")


def _check_device(value: str) -> str:
    """Return a device type; whether it exists is checked later, in a process that imports torch."""
    if not _DEVICE.fullmatch(value):
        raise ValueError("write cpu, auto, or the type of an accelerator, such as cuda")
    return value


def _check_url(value: str | None) -> str | None:
    if value is None:
        return None
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("not a URL, such as https://minio.example.com:9000")
    if parts.username or parts.password:
        raise ValueError("it holds credentials; they belong into AWS_ACCESS_KEY_ID and the like")
    return value


def _check_memory(value: ByteSize) -> ByteSize:
    if value < LEAST_MEMORY:
        raise ValueError("less than any problem takes; write it with its unit, such as 16GiB")
    return value


_DTYPE_NAMES = {
    **{name: name for name in ("fp32", "fp16", "bf16", "fp64")},
    **{"float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64"},
}
"""Code of each dtype that a model can be converted to, by the names that users give it."""


def _read_dtypes(value: object) -> object:
    """Return the codes of dtypes, each once, from `fp32,bf16` or a list of such texts."""
    texts = value if isinstance(value, list | tuple) else [value]
    names = [name.strip() for text in texts for name in str(text).split(",") if name.strip()]
    for name in names:
        if name not in _DTYPE_NAMES:
            raise ValueError(f"{name!r} is none of fp32, bf16, fp16 and fp64")
    return list(dict.fromkeys(_DTYPE_NAMES[name] for name in names))


def _read_constants(value: object) -> object:
    """Return the literals by the constant's name, from texts such as `batch_size=1,8`.

    A comma inside brackets or quotes separates nothing; `;` separates constants in one text.
    """
    if isinstance(value, str):
        value = [part for part in value.split(";") if part.strip()]
    if isinstance(value, list | tuple):
        literals: dict[str, list[str]] = {}
        for text in value:
            name, equals, rest = (part.strip() for part in str(text).partition("="))
            if not equals or not _NAME.fullmatch(name) or not rest:
                raise ValueError(f"{text!r}: write NAME=VALUE, or NAME=VALUE,VALUE for several")
            literals.setdefault(name, []).extend(_split_literals(rest))
        value = literals
    if isinstance(value, dict):
        lists = {
            name: item if isinstance(item, list) else _split_literals(str(item))
            for name, item in value.items()
        }
        return {name: [str(item) for item in items] for name, items in lists.items()}
    return value


def _split_literals(text: str) -> list[str]:
    pieces = re.findall(r"""(?:\([^()]*\)|\[[^][]*\]|"[^"]*"|'[^']*'|[^,])+""", text)
    return [piece.strip() for piece in pieces if piece.strip()]


class Retries(BaseModel):
    """Says how often a problem is tried again, by the cause that ended the attempt; 0 is never.

    A verdict, a timeout or a crash of the problem's own process is final and never tried again.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    preempted: int = Field(default=10, ge=0)
    """The node was shut down after a notice, as spot machines are."""
    node_lost: int = Field(default=3, ge=0)
    """The node disappeared without a notice."""
    worker_lost: int = Field(default=2, ge=0)
    """Ray's worker process died, but not the node."""
    out_of_memory: int = Field(default=2, ge=0)
    """The requested memory was too small; each retry requests more."""
    disk_full: int = Field(default=1, ge=0)
    """The node's disk was full, but not because of the problem."""


def _read_retries(value: object) -> object:
    """Return limits by cause from texts: `node_lost=0,preempted=3`, or `2` for every cause."""
    if isinstance(value, str | int):
        value = [value]
    if isinstance(value, list | tuple):
        limits: dict[str, str] = {}
        for part in (part.strip() for text in value for part in str(text).split(",")):
            cause, equals, limit = part.rpartition("=")
            if not limit.isdecimal():
                raise ValueError("write CAUSE=N, or N for every cause; N is 0 or more")
            limits |= {cause: limit} if equals else dict.fromkeys(Retries.model_fields, limit)
        value = limits
    for cause in value if isinstance(value, dict) else ():
        if cause not in Retries.model_fields:
            hint = suggest_names(str(cause), Retries.model_fields)
            raise ValueError(f"no cause is called {str(cause)!r}; {hint}")
    return value


class Settings(BaseSettings):
    """All settings of a run.

    A setting is declared here and nowhere else. The flags of the commands (runner/cli/options.py),
    configs/default.yaml and docs/settings.md (`make settings`) are made of its name, its type, its
    default and its text; the first sentence of the text is the flag's help. Where the default is
    absent or an empty list, that sentence says what it stands for.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, use_attribute_docstrings=True
    )

    level: Annotated[list[int], NoDecode, BeforeValidator(_split_list)] = []
    """Source levels of the problems: 1, 2 or 3; default all."""
    problem: Annotated[list[str], NoDecode, BeforeValidator(_split_list)] = []
    """Names, globs, files or MODULE:FUNCTION of problems; default all."""
    zoo: Annotated[list[str], NoDecode, BeforeValidator(_split_list)] = []
    """Packages such as timm or transformers whose models are the problems; default none.
    --problem then names models of these packages; `kdrun zoo` lists them."""
    start: int = Field(default=0, ge=0)
    """Number of selected problems to skip, in their order."""
    count: int | None = Field(default=None, ge=1)
    """Most problems to run, after the skipped ones; default all."""
    data: Annotated[Path, AfterValidator(_expand_home)] | None = None
    """Directory of problems; default data/kernelbench/ where it exists, else the samples.
    `kdrun data fetch` creates it."""
    set: Annotated[dict[str, list[str]], NoDecode, BeforeValidator(_read_constants)] = Field(
        default={}, json_schema_extra={"metavar": "NAME=VALUE"}
    )
    """Values of a constant in the problem files, as batch_size=1,8; default their own.
    Each combination of values and dtypes is a variant; `kdrun data show` lists constants."""
    dtype: Annotated[list[str], NoDecode, BeforeValidator(_read_dtypes)] = []
    """Dtypes of model and floating inputs: fp32, bf16, fp16 or fp64; default their own.
    Each is a variant."""
    fit: Annotated[ByteSize, AfterValidator(_check_memory)] | None = None
    """Memory that each problem may need, as 8GiB; default any.
    A larger problem gets the largest batch that fits."""
    output: Annotated[Path, AfterValidator(_check_output)] = Path("output")
    """Directory of decompositions and runs.
    Decompositions are in LEVEL/NAME/ below it, runs in runs/RUN/."""
    store: Annotated[str | None, AfterValidator(_normalise_store)] = None
    """Store of results: s3://bucket/prefix or a directory; default none.
    A run uploads its results to the store, and other commands read them there. Credentials come
    only from the AWS environment or profile, never from a settings file."""
    s3_endpoint_url: Annotated[str | None, AfterValidator(_check_url)] = Field(
        default=None, json_schema_extra=WITHOUT_FLAG
    )
    """URL of an S3-compatible service; default AWS, or the one in its environment or profile."""
    s3_addressing: Literal["auto", "path", "virtual"] = Field(
        default="auto", json_schema_extra=WITHOUT_FLAG
    )
    """Whether the bucket's name is in the URL's path or host; auto: path if an endpoint is set."""
    s3_checksums: Literal["when_supported", "when_required"] = Field(
        default="when_supported", json_schema_extra=WITHOUT_FLAG
    )
    """When requests carry checksums; `when_required` suits services that refuse the newer ones."""
    run_id: Annotated[str | None, AfterValidator(_check_run_id)] = None
    """Name of the run; default the time, as 20260131-235959."""
    address: str | None = None
    """Ray that the run uses, HOST:PORT, ray://HOST:PORT or auto; default one that kdrun starts."""
    workers: int | None = Field(default=None, ge=1)
    """Most problems at once; default as many as CPUs and memory allow."""
    memory: Annotated[ByteSize, AfterValidator(_check_memory)] | None = None
    """Memory for problems on this machine, as 16GiB; default 85% of what is free.
    A problem that needs more ends as too_large. kdrun never gives problems more than the free
    memory."""
    wait_for_nodes: bool = False
    """Wait for a larger node, as an autoscaling cluster adds, instead of too_large."""
    num_cpus: float = Field(default=1, gt=0, allow_inf_nan=False)
    """CPUs for each problem.
    Ray reserves them, and the problem's threads use them."""
    num_gpus: Annotated[float, AfterValidator(_check_gpus)] = Field(
        default=0, ge=0, allow_inf_nan=False
    )
    """GPUs for each problem, such as 1 or 0.5.
    With 0.5, two problems share one."""
    device: Annotated[str, AfterValidator(_check_device)] = "cpu"
    """Device to verify and measure on: cpu, a type of accelerator such as cuda, or auto.
    auto is the accelerator that PyTorch finds, else the CPU."""
    mode: Literal["eval", "train"] = "eval"
    """Mode that models run in: eval() under no_grad, or training mode.
    In training mode the seed of dropout is fixed; KernelBench itself evaluates models in it."""
    trials: int = Field(default=2, ge=1)
    """Number of seeds for each comparison."""
    power: bool = False
    """Also break each kernel on purpose, and check that a comparison fails.
    verification/power.json lists which mutants were caught. This takes a tenth to a half more
    time."""
    unverified: bool = False
    """Write a model that does not fit into memory all the same, without verification.
    It ends as written instead of too_large. Its files are as exact as any others: they are made of
    the program that was captured on fake tensors."""
    verify: bool = True
    """Verify what is written; without verification, each problem ends as written, never as passed.
    """
    timeout: float = Field(default=1800, gt=0, allow_inf_nan=False)
    """Seconds for each problem."""
    decomposer: Annotated[str | None, AfterValidator(_check_command)] = None
    """Command that takes problems apart, such as "claude -p"; default kdrun's own engine.
    It gets the brief on its standard input. {problem}, {output} and {brief} in it are replaced."""
    decomposer_on_failure: bool = False
    """Use the decomposer only where the computed decomposition does not pass."""
    rounds: int = Field(default=3, ge=1)
    """Most runs of the decomposer for each problem.
    Each later run gets the verdict on the one before."""
    pass_env: Annotated[
        list[str], NoDecode, BeforeValidator(_split_list), AfterValidator(_check_variables)
    ] = []
    """Environment variables that the decomposer gets; default none.
    kdrun refuses those that may open the store (AWS_*, KDRUN_*)."""
    log_format: Literal["text", "json"] = "text"
    """Format of progress on stderr: text for people, or a JSON document per line.
    runs/RUN/log.jsonl has the JSON lines in any case."""
    retries: Annotated[Retries, NoDecode, BeforeValidator(_read_retries)] = Field(
        default=Retries(), json_schema_extra={"metavar": "[CAUSE=]N"}
    )
    """Most retries for each problem, by the cause that ended the attempt.
    0 is never. A verdict, a timeout and a crash of the problem's own process are never retried."""
    only_failed: bool = False
    """Run only problems whose last result is not passed."""
    resume: bool = True
    """Leave out problems that passed before with the same source, options and version."""


def load_settings(flags: Mapping[str, Any], config: Path | None = None) -> Settings:
    """Return the settings from flags, environment, settings file and defaults.

    Raises:
        UsageError: a flag has an invalid value.
        ConfigError: a variable or a field of the file is invalid.
    """
    _refuse_unknown_variables()
    file = config or _find_config_file()
    values = read_yaml(file) if file else {}

    class SettingsWithFile(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, InitSettingsSource(settings_cls, values)

    try:
        return SettingsWithFile(**flags)
    except ValidationError as error:
        raise _explain_error(error, flags, file) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the settings in a YAML file.

    Raises:
        ConfigError: the file is missing, not YAML, not a mapping, or has an unknown key.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8", hint="save the file as UTF-8") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "cannot be understood"
        raise ConfigError(f"{path}{line}: not YAML: {problem}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: not a mapping", hint="write lines such as `trials: 2`")
    for key in content:
        if key not in Settings.model_fields:
            location = _find_field(path, str(key))
            hint = suggest_names(str(key), Settings.model_fields)
            raise ConfigError(f"{location}: {key}: no such setting", hint=hint)
    return content


def _find_field(path: Path, field: str) -> str:
    """Return the file and the line that sets a field, such as `settings.yaml:3`."""
    document = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    for key, _ in document.value if isinstance(document, yaml.MappingNode) else ():
        if str(key.value) == field:
            return f"{path}:{key.start_mark.line + 1}"
    return str(path)


def _find_config_file() -> Path | None:
    if path := os.environ.get(CONFIG_VARIABLE):
        return Path(path)
    return CONFIG_FILE if CONFIG_FILE.is_file() else None


def _refuse_unknown_variables() -> None:
    for variable in os.environ:
        field = variable.removeprefix(PREFIX)
        if field == variable or variable in (CONFIG_VARIABLE, VALUES_VARIABLE):
            continue
        if field.lower() not in Settings.model_fields:
            hint = suggest_names(field, Settings.model_fields)
            raise ConfigError(f"{variable}: no such setting", hint=hint)


_COMPLAINTS = {
    "byte_size": "must be a size, such as 16GiB",
    "byte_size_unit": "must be a size, such as 16GiB",
    "path_type": "must be a path",
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "bool_parsing": "must be true or false",
}
"""Maps pydantic's error types to plain words; other errors have pydantic's own text."""


def _explain_error(
    error: ValidationError, flags: Mapping[str, Any], file: Path | None
) -> KdrunError:
    """Return the error for the first invalid setting, by the name its source has for it."""
    first = error.errors()[0]
    field = str(first["loc"][0])
    value = first["input"]
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    elif isinstance(value, Path):
        value = str(value)
    complaint = _COMPLAINTS.get(first["type"]) or (
        first["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    )
    message = f"{value!r}: {complaint}"
    if field in flags:
        return UsageError(f"--{field.replace('_', '-')} {message}")
    variable = PREFIX + field.upper()
    if any(name.upper() == variable for name in os.environ):
        return ConfigError(f"{variable}: {message}")
    location = _find_field(file, field) if file else field
    return ConfigError(f"{location}: {field}: {message}")
