"""Writes a problem with solutions inside it as one standalone file with `ModelNew`.

The file holds the problem's own code, the parts of the decomposed model that lead to a solution,
and the solutions. `ModelNew` builds `Model` first, so that it draws the same weights.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runner.emit.naming.value_names import camel_case
from runner.evaluate.places import Builder, Place, get_arguments
from runner.evaluate.renaming import global_names, rename_globals
from runner.evaluate.solutions import CLASS, TEST_FUNCTIONS, Solution, cut_statements
from runner.untrusted_files import read_text

_MODEL = '''
# Path of a part of the decomposed model -> its weights' names -> the names in Model.
WEIGHTS = {
%(weights)s
}

# Path of a part -> the function that packs its weights.
CONVERSIONS = {
%(conversions)s}


def find_tensor(model, name):
    """Return a weight of Model, or a tensor that one of its modules holds."""
    for key in name.split("."):
        if isinstance(model, dict):
            model = model[key if key in model else int(key)]
        else:
            model = model[int(key)] if isinstance(model, (list, tuple)) else getattr(model, key)
    return model


def convert_weights(state_dict):
    """Return the weights of ModelNew for those of Model."""
    converted = {}
    for path, names in WEIGHTS.items():
        weights = {name: state_dict[source] for name, source in names.items()}
        if path in CONVERSIONS:
            weights = CONVERSIONS[path](weights)
        prefix = f"decomposed.{path}." if path else "decomposed."
        converted.update({prefix + name: tensor for name, tensor in weights.items()})
    return converted


class ModelNew(nn.Module):
    """Model, with its weights, made of parts."""

    def __init__(self, *args, **kwargs):
        super().__init__()
        original = Model(*args, **kwargs)  # It draws the weights, as the problem does.
        self.decomposed = %(root)s
        sources = {source for names in WEIGHTS.values() for source in names.values()}
        weights = convert_weights({name: find_tensor(original, name) for name in sources})
        own = dict(self.named_parameters(remove_duplicate=False))
        own.update(self.named_buffers(remove_duplicate=False))
        with torch.no_grad():
            for name, tensor in weights.items():
                own[name].copy_(tensor)

    def forward(self, *args, **kwargs):
        return self.decomposed(*args, **kwargs)
'''


@dataclass(slots=True)
class _Writer:
    """The sections of a file, and the names that they define."""

    taken: set[str]
    imports: dict[str, str] = field(default_factory=dict)
    """Maps a bound name to its import statement."""
    sections: list[str] = field(default_factory=list)

    def add_file(self, text: str, suffix: str, names: Mapping[str, str]) -> dict[str, str]:
        """Add a file's definitions; return its names after renaming.

        `names`: the new names of some of its globals and imports; of the others, those that are
        taken get a suffix.
        """
        tree = ast.parse(text)
        mapping = dict(names)
        for name in sorted(global_names(tree) - TEST_FUNCTIONS):
            mapping.setdefault(name, self.choose(name, suffix))
        for statement in tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                mapping |= self._add_import(statement, suffix, names)
        body = cut_statements(text, dropped=TEST_FUNCTIONS)
        self.sections.append(rename_globals(body, {k: v for k, v in mapping.items() if k != v}))
        return mapping

    def add_problem(self, text: str) -> None:
        """Add the problem's own definitions, with its get_inputs()."""
        tree = ast.parse(text)
        for statement in tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self._add_import(statement, "", {})
        self.sections.append(cut_statements(text))

    def choose(self, name: str, suffix: str = "") -> str:
        """Return a name that nothing else in the file has, and take it."""
        candidate, number = name, 1
        while candidate in self.taken:
            candidate = f"{name}_{suffix}{number if number > 1 else ''}".rstrip("_")
            number += 1
            if not suffix:
                candidate = f"{name}{number}"
        self.taken.add(candidate)
        return candidate

    def _add_import(
        self, statement: ast.Import | ast.ImportFrom, suffix: str, names: Mapping[str, str]
    ) -> dict[str, str]:
        renamed = {}
        for alias in statement.names:
            bound = alias.asname or alias.name.partition(".")[0]
            if bound in names:  # a child of a step, which stands in this file
                continue
            is_submodule = isinstance(statement, ast.Import) and "." in alias.name
            key = alias.name if is_submodule and not alias.asname else bound
            text = _format_import(statement, alias)
            is_taken = key not in self.imports and bound in self.taken and not is_submodule
            if is_taken or self.imports.get(key, text) != text:
                key = renamed[bound] = self.choose(bound, suffix)
                copy = ast.alias(alias.name, key)
                text = _format_import(statement, copy)
            self.imports[key] = text
            self.taken.add(bound)
        return renamed


def write_model(
    builder: Builder, solutions: Sequence[Solution], places: Sequence[Place], refactored: set[str]
) -> str:
    """Return the text of the problem with these solutions in it.

    `places`: those of the model in which `refactored` components are refactored into children.
    """
    chosen = {solution.component: solution for solution in solutions}
    original = read_text(builder.directory / "original.py")
    writer = _Writer({CLASS, "WEIGHTS", "CONVERSIONS", "find_tensor", "convert_weights"})
    writer.taken |= global_names(ast.parse(original))
    writer.add_problem(original)
    classes: dict[str, str] = {}
    converters: dict[str, str] = {}
    used = {place.component for place in places}
    for component in sorted(used, key=lambda path: path.partition("_")[2]):
        stem = Path(component).stem
        if component in chosen:
            text, class_name = read_text(chosen[component].file), CLASS
        elif component in refactored:
            text = read_text(builder.steps[component] / "refactored.py")
            class_name = "RefactoredModel"
        else:
            text, class_name = read_text(builder.directory / component), "Model"
        kind = "New" if component in chosen else "Part"
        words = "_".join(_words(stem))
        new_name = writer.choose(camel_case(words) + kind)
        names = {class_name: new_name}
        if component in refactored and component not in chosen:
            names |= _list_children(text, classes)
        mapping = writer.add_file(text, words, names)
        classes[stem] = new_name
        if component in chosen and "convert_weights" in mapping:
            converters[component] = mapping["convert_weights"]
    return _format_file(builder, writer, chosen, places, refactored, classes, converters)


def _format_file(
    builder: Builder,
    writer: _Writer,
    chosen: Mapping[str, Solution],
    places: Sequence[Place],
    refactored: set[str],
    classes: Mapping[str, str],
    converters: Mapping[str, str],
) -> str:
    weights, conversions = [], []
    nodes = builder.tree.nodes
    for place in {place.module_path: place for place in reversed(places)}.values():
        if place.component in refactored and place.component not in chosen:
            continue
        node = nodes[place.node]
        names = {name: node.weight_map.get(name, name) for name in node.weight_shapes}
        if names:
            items = "".join(f'        "{name}": "{source}",\n' for name, source in names.items())
            weights.append(f'    "{place.module_path}": {{\n{items}    }},')
        if place.component in converters:
            conversions.append(f'    "{place.module_path}": {converters[place.component]},\n')
    root = builder.tree.root.path
    arguments = _format_arguments(builder, root) if root not in refactored else ""
    model = _MODEL % {
        "weights": "\n".join(reversed(weights)),
        "conversions": "".join(reversed(conversions)),
        "root": f"{classes[Path(root).stem]}({arguments})",
    }
    body = "\n\n\n".join(section.strip("\n") for section in [*writer.sections, model])
    lines = "\n".join(f"- {solution.name}" for solution in chosen.values())
    name = builder.directory.resolve().name
    head = f'"""{name} with better parts, written by kdrun evaluate:\n\n{lines}\n"""\n'
    return f"{head}\n{_format_imports(writer.imports, body)}\n\n\n{body}\n"


def _format_arguments(builder: Builder, component: str) -> str:
    """Return the arguments of a component's class as code."""
    arguments = get_arguments(builder.load_component(component))
    if isinstance(arguments, dict):
        return ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return ", ".join(map(repr, arguments))


def _format_imports(imports: Mapping[str, str], body: str) -> str:
    """Return the import statements of the names that the body uses."""
    used = {n.id for n in ast.walk(ast.parse(body)) if isinstance(n, ast.Name)}
    needed = {t for key, t in imports.items() if key.partition(".")[0] in used}
    needed |= {"import torch", "from torch import nn"}
    future = sorted(t for t in imports.values() if t.startswith("from __future__"))
    return "\n".join([*future, *sorted(needed - set(future), key=_import_key)])


def _import_key(text: str) -> tuple[bool, str]:
    module = text.split()[1]
    return module.partition(".")[0] == "torch", f"{module} {text}"


def _format_import(statement: ast.Import | ast.ImportFrom, alias: ast.alias) -> str:
    if isinstance(statement, ast.Import):
        return ast.unparse(ast.Import([alias]))
    return ast.unparse(ast.ImportFrom(statement.module, [alias], statement.level))


def _list_children(text: str, classes: Mapping[str, str]) -> dict[str, str]:
    """Return the names under which a step imports its children, with their classes' new names."""
    names = {}
    for statement in ast.parse(text).body:
        if isinstance(statement, ast.ImportFrom) and str(statement.module).startswith("children."):
            stem = str(statement.module).removeprefix("children.")
            names[statement.names[0].asname or statement.names[0].name] = classes[stem]
    return names


def _words(stem: str) -> list[str]:
    """Return the words of a component's name that say what it is: `rms`, `norm`."""
    parts = stem.split("_")
    end = next((n for n, part in enumerate(parts) if n and re.search(r"\d", part)), len(parts))
    return parts[:end]
