"""Writes docs/settings.md from the settings' own descriptions: `make settings`."""

import ast
from itertools import pairwise
from pathlib import Path

import runner.config
from runner.cli.decomposition import submit
from runner.config import CONFIG_FILE, CONFIG_VARIABLE, PREFIX, Settings

PAGE = Path(__file__).with_name("settings.md")
HEAD = f"""# Settings

Each setting of `kdrun submit` is a flag, an environment variable and a line in a YAML file. A flag
wins over a variable, and a variable wins over the file. The file is `{CONFIG_FILE}` in the working
directory, or the one that `--config` or `{CONFIG_VARIABLE}` names.

This page is written by `make settings` from `runner/config.py`.

| flag | variable | in the file | default | meaning |
| --- | --- | --- | --- | --- |
"""


def descriptions() -> dict[str, str]:
    """Return the text under each field of Settings, by the field's name."""
    tree = ast.parse(Path(runner.config.__file__).read_text(encoding="utf-8"))
    body = next(
        node.body
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == Settings.__name__
    )
    texts: dict[str, str] = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            assert isinstance(text.value, ast.Constant)
            texts[field.target.id] = " ".join(str(text.value.value).split())
    return texts


def cell(default: object) -> str:
    """Return a default as a YAML file has it, in one cell of a table."""
    if default is None or default == []:
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if hasattr(default, "model_dump"):
        return ", ".join(f"`{name}: {value}`" for name, value in default.model_dump().items())
    return f"`{default}`"


def flag(setting: str) -> str:
    """Return the option of `kdrun submit` that sets it; nothing where there is none."""
    options = {option.name: option.opts[0] for option in submit.params}
    option = options.get(setting) or options.get(f"no_{setting}")
    return f"`{option}`" if option else ""


def page() -> str:
    """Return the whole page."""
    texts = descriptions()
    rows = [
        f"| {flag(name)} | `{PREFIX}{name.upper()}` | `{name}` | {cell(field.default)} "
        f"| {texts[name]} |\n"
        for name, field in Settings.model_fields.items()
    ]
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
