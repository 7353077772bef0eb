"""Judges a directory's documents and the source of its files, before anything runs."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runner.problems import import_installed
from runner.tree.document import LEVEL_FOLDER, TREE_FILE, Tree
from runner.untrusted_files import read_file
from runner.verify.advice import MOST_KERNELS
from runner.verify.findings import Findings
from runner.verify.gates.parent_source import (
    dump_code,
    import_fault,
    operator_modules,
    parse_file,
)
from runner.verify.guard.extra_files import find_extra_files
from runner.verify.guard.source.source_rules import (
    composed_fault,
    seeds_generators,
    step_parent_fault,
    surroundings_fault,
)
from runner.verify.layout import COMPOSITION_TEST, ORIGINAL, Layout
from runner.verify.loading_files import CannotJudge


def judge_documents(layout: Layout, findings: Findings, *, trusted: bool) -> None:
    """Judge the tree, the layout and the source of the components, before anything runs."""
    for file, reason in layout.refusals.items():
        findings.record_verdict("rules", file, reason)
    if layout.refusals:
        return
    if layout.tree is None:
        tree_fault = (layout.tree_fault or "missing").removeprefix(TREE_FILE).lstrip(": ")
        findings.record_broken("rules", TREE_FILE, tree_fault)
    else:
        findings.record_verdict("rules", TREE_FILE, _tree_fault(layout, layout.tree))
    if not trusted:
        for file, file_fault in find_extra_files(layout.directory):
            findings.record_verdict("rules", file, file_fault)
        _judge_parents(layout, findings)
    for component in layout.unlisted:
        findings.record_verdict(
            "rules", component, f"is in no node of {TREE_FILE}: list it there, or delete the file"
        )
    components_by_code: dict[tuple[str, str], str] = {}
    seeds = not trusted and _seeds_generators(layout)
    for component in layout.components:
        with _record_unreadable(layout, findings, component):
            tree = parse_file(layout.directory / component, component)
            fault = import_fault(tree)
            if not trusted:
                kernel = layout.is_kernel(component)
                fault = fault or surroundings_fault(tree, kernel=kernel, seeds=seeds)
                code = component.partition("/")[0], dump_code(tree)
                first = components_by_code.setdefault(code, component)
                if fault is None and first != component:
                    fault = f"is {first} again: one file a workload, used as often as it runs"
            for module in operator_modules(tree) if fault is None else ():
                import_installed(module)  # What it computes is replayed in this process.
            findings.record_verdict("rules", component, fault)


def _seeds_generators(layout: Layout) -> bool:
    """Return whether original.py seeds generators; False if it cannot be read."""
    with suppress(CannotJudge):  # the composition gate reports the fault
        return seeds_generators(parse_file(layout.directory / ORIGINAL, ORIGINAL))
    return False


@contextmanager
def _record_unreadable(layout: Layout, findings: Findings, file: str) -> Iterator[None]:
    """Record that a file is missing or no Python as a failure, which is told first.

    Without a tree it is `broken`, as the tree is: that is told first then.
    """
    try:
        yield
    except CannotJudge as error:
        record = findings.record_broken if layout.tree is None else findings.record_verdict
        record("rules", file, str(error).removeprefix(f"{file}: "))


def _judge_parents(layout: Layout, findings: Findings) -> None:
    """Judge the source of refactored.py files and of the composition test."""
    for step in layout.steps:
        file = f"{step.folder}/refactored.py"
        with _record_unreadable(layout, findings, file):
            fault = step_parent_fault(parse_file(layout.directory / file, file))
            if fault:
                findings.record_verdict("rules", file, fault)
    with _record_unreadable(layout, findings, COMPOSITION_TEST):
        fault = composed_fault(parse_file(layout.directory / COMPOSITION_TEST, COMPOSITION_TEST))
        if fault:
            findings.record_verdict("rules", COMPOSITION_TEST, fault)


def _tree_fault(layout: Layout, tree: Tree) -> str | None:
    for node in tree.nodes.values():
        if len(node.children) == 1:
            return f"{node.id} has a single child, {node.children[0]}"
        if node.level == "kernel" and node.children:
            return f"{node.id} is a kernel and has children"
        if node.level != "kernel" and not node.children:
            return f"{node.id} is a {node.level} and has no children"
        if Path(node.path).parent.as_posix() != LEVEL_FOLDER[node.level]:
            return f"{node.id} is a {node.level}, its file is {node.path}"
    if fault := _flat_tree_fault(tree):
        return fault
    if not tree.metadata.source_sha256:
        return None
    try:
        digest = hashlib.sha256(read_file(layout.directory / ORIGINAL)).hexdigest()
    except OSError as error:
        return f"{ORIGINAL}: {error.strerror or error}"
    if digest != tree.metadata.source_sha256:
        return f"{ORIGINAL} is not the file that was decomposed: its sha256 is another"
    return None


def _flat_tree_fault(tree: Tree) -> str | None:
    """Return a fault if many kernels lie directly under a model without layers and fusions."""
    levels = {node.level for node in tree.nodes.values()}
    kernel_count = len(tree.root.children)
    if levels == {"model", "kernel"} and kernel_count > MOST_KERNELS:
        return (
            f"has {kernel_count} kernels directly under the model, and neither layers nor fusions"
        )
    return None
