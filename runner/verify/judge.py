"""Runs all gates on a decomposition directory, in their order."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

import torch

from runner.problems import imported_packages, is_out_of_memory, package_identity
from runner.tree.document import LEVEL_FOLDER, TREE_FILE, Tree
from runner.untrusted_files import read_file
from runner.verify.advice import MOST_KERNELS, advice
from runner.verify.findings import Findings
from runner.verify.gates.composition import CompositionGate
from runner.verify.gates.device import DeviceGate
from runner.verify.gates.parent_source import dump_code, import_fault, parse_file
from runner.verify.gates.power import PowerGate
from runner.verify.gates.self_test import (
    SelfTests,
    run_self_test,
    settle_not_finite,
)
from runner.verify.gates.steps import StepGate
from runner.verify.guard.extra_files import find_extra_files
from runner.verify.guard.foreign_files import ForeignFiles
from runner.verify.guard.replica import Replica
from runner.verify.guard.source_rules import (
    composed_fault,
    seeds_generators,
    step_parent_fault,
    surroundings_fault,
)
from runner.verify.guard.standalone_runs import StandaloneRuns, secret_seed, start_server
from runner.verify.guard.worker import run_workers
from runner.verify.layout import COMPOSITION_TEST, ORIGINAL, Layout, read_layout
from runner.verify.loading_files import CannotJudge, Files
from runner.verify.options import VerifyOptions
from runner.verify.results import Verification
from runner.verify.runtime.arithmetic import exact_arithmetic
from runner.verify.runtime.disk_cache import DiskCache
from runner.verify.runtime.runner import ForwardRunner, disable_fused_paths
from runner.verify.runtime.weight_streaming import WeightStreaming, describe_streaming


def judge(
    directory: Path, options: VerifyOptions, on_gate: Callable[[str], None], *, trusted: bool
) -> Verification:
    """Run every gate and return the verification; raise MemoryError if only memory was missing."""
    try:
        directory = directory.resolve()
        return _judge(directory, options, Findings(on_gate), trusted=trusted)
    except (RuntimeError, OSError) as error:
        if is_out_of_memory(error):
            raise MemoryError(str(error)) from error
        raise


def _judge(
    directory: Path, options: VerifyOptions, findings: Findings, *, trusted: bool
) -> Verification:
    tests = SelfTests()
    streaming = WeightStreaming(options.memory_bytes or 0) if options.streamed else None
    runner = ForwardRunner(directory, options, streaming=streaming)
    if streaming:
        findings.warn(describe_streaming(options.seed))
    on_cpu = options.device == "cpu"
    standalone: StandaloneRuns | None = None
    with (
        ExitStack() as stack,
        streaming or nullcontext(),
        exact_arithmetic(options.device),
        disable_fused_paths(),
        _open_files(directory, runner, trusted=trusted) as files,
        DiskCache(options.disk_cache_bytes, options.memory_bytes if on_cpu else None) as disk_cache,
    ):
        with findings.time_gate("rules"):
            layout = read_layout(directory)
            for file, reason in layout.refusals.items():
                findings.record_verdict("rules", file, reason)
            if layout.refusals:
                return findings.build_verification(options, torch.__version__)
            _judge_documents(layout, findings, trusted=trusted)
        specialisations = layout.tree.metadata.specialisations if layout.tree else []
        if specialisations and isinstance(files, ForeignFiles) and not _reads_values(files, runner):
            fault = "says that it holds for certain values; original.py asks for none"
            findings.record_verdict("rules", TREE_FILE, fault)
            specialisations = []
        if specialisations:
            runner = replace(runner, options=replace(options, specialised=True))
            suffix = f" and {len(specialisations) - 1} more" if len(specialisations) > 1 else ""
            findings.warn(
                f"holds for the values of seed {options.seed}: {specialisations[0]}{suffix}"
            )
        if layout.tree is not None:
            findings.advice += advice(layout.tree)
            if recorded_version := _different_torch_release(layout.tree.metadata.torch_version):
                findings.warn(
                    f"taken apart with torch {recorded_version}; here it is {_torch_release()}"
                )
            for package, recorded_version in layout.tree.metadata.packages.items():
                if recorded_version != (installed_version := package_identity(package)):
                    findings.warn(
                        f"taken apart with {package} {recorded_version};"
                        f" here it is {installed_version}"
                    )
        if isinstance(files, ForeignFiles):
            if not specialisations and not options.seed:
                runner = replace(runner, options=replace(runner.options, seed=secret_seed()))
            standalone = stack.enter_context(StandaloneRuns(layout, runner.options, findings))
            runner = replace(runner, standalone=standalone)
        # This runs before any file does, since a file could install or hide a package.
        missing_packages = _missing_packages(directory / ORIGINAL)
        power = PowerGate(files, layout, runner, disk_cache, findings)
        with findings.time_gate("step"):
            step_gate = StepGate(files, layout, runner, disk_cache, tests, power, findings)
            root = layout.tree.root.path if layout.tree else None
            for step in layout.steps if not trusted else ():
                # The root's step runs after the original, in the composition.
                if step.parent != root:
                    step_gate.judge(step)
            _judge_absent_steps(layout, findings)

        def run_self_tests(components: Iterable[str]) -> None:
            """Run the self-tests that have no verdict yet, then judge the recorded calls.

            A component's contract, which its calls are compared with, is known once its self-test
            ran.
            """
            for component in components:
                if (
                    not findings.has_verdict("self-test", component)
                    and component not in tests.not_finite
                ):
                    run_self_test(component, files, layout, runner, tests, findings)
            step_gate.judge_calls()

        delayed_tests = _find_delayed_self_tests(layout, runner)
        with findings.time_gate("self-test"):
            run_self_tests(
                component for component in layout.components if component not in delayed_tests
            )
        with findings.time_gate("composition"):
            composition = CompositionGate(
                files, layout, runner, disk_cache, tests, power, step_gate, findings
            )
            composition.judge(
                lambda: run_self_tests(
                    path for path in layout.components if path in delayed_tests and path != root
                ),
                missing_packages,
            )
        with findings.time_gate("step"):
            for step in layout.steps:  # the root's step, if the original failed before it could run
                if not findings.has_verdict("step", step.folder):
                    step_gate.judge(step)
        with findings.time_gate("self-test"):
            run_self_tests(layout.components)
            settle_not_finite(layout, tests, composition.kernels_not_finite, findings)
        power.finish()
        if standalone:
            standalone.finish(composition.author_call_kernels, composition.single_operation_kernels)
        with findings.time_gate("device"):
            if isinstance(files, ForeignFiles):
                files.judge_devices(findings)
            else:
                DeviceGate(files, layout, runner, findings).judge()
    if not layout.components:
        findings.record_broken(
            "self-test", "model", f"no file in {', '.join(LEVEL_FOLDER.values())}"
        )
    return findings.build_verification(runner.options, torch.__version__)


@contextmanager
def _open_files(
    directory: Path, runner: ForwardRunner, *, trusted: bool
) -> Iterator[Files | ForeignFiles]:
    """Open the directory's files: trusted ones run in this process, others in worker processes."""
    if trusted:
        with Files(directory) as files:
            yield files
    else:
        with run_workers(directory, runner.options) as (parts, original):
            start_server()
            yield ForeignFiles(directory, parts, original, runner.draws)


def _reads_values(files: ForeignFiles, runner: ForwardRunner) -> bool:
    """Return whether the original's operations may depend on values; True if it cannot run."""
    try:
        problem = files.problem()
        model = runner.build(f"{ORIGINAL}: Model", problem.build, 0)
        inputs = runner.draw(f"{ORIGINAL}: get_inputs()", problem.get_inputs, 0)
        runner.forward(f"{ORIGINAL}: forward", model, inputs, 0)
    except CannotJudge:
        return True  # the composition gate reports the reason
    assert isinstance(model, Replica)
    return model.kdrun_link.model.reads_values


def _torch_release(version: str = torch.__version__) -> str:
    """Return a version of torch without its build suffix, such as `+cu121`."""
    return version.partition("+")[0]


def _different_torch_release(version: str) -> str | None:
    """Return the torch release in a tree, if it is known and differs from the installed one."""
    tree_release = _torch_release(version)
    return None if tree_release in {"unknown", _torch_release()} else tree_release


def _missing_packages(path: Path) -> frozenset[str]:
    """Return packages that a file imports and that are not installed; none if it is unreadable."""
    try:
        packages = imported_packages(path)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(package for package, version in packages.items() if version == "missing")


def _find_delayed_self_tests(layout: Layout, runner: ForwardRunner) -> set[str]:
    """Return components whose self-test waits for the composition, which may replace it.

    In files that kdrun has just written, these are all. In others', each runs by itself, and the
    root on the author's inputs, unless it is a kernel. A root that is a kernel runs by itself where
    it is going to be mutated, too: a tensor that it retains could not be detected otherwise.
    """
    root = layout.tree.root.path if layout.tree else None
    delayed = {root} if runner.standalone else {root, *layout.components}
    if root and layout.is_kernel(root) and (runner.standalone or runner.options.power):
        delayed.remove(root)
    return {path for path in delayed if path}


def _judge_documents(layout: Layout, findings: Findings, *, trusted: bool) -> None:
    """Judge the tree, the layout and the source of the components, before anything runs."""
    if layout.tree is None:
        findings.record_broken("rules", TREE_FILE, layout.tree_fault or "missing")
    else:
        findings.record_verdict("rules", TREE_FILE, _tree_fault(layout, layout.tree))
    if not trusted:
        for file, file_fault in find_extra_files(layout.directory):
            findings.record_verdict("rules", file, file_fault)
        _judge_parents(layout, findings)
    components_by_code: dict[tuple[str, str], str] = {}
    seeds = not trusted and _seeds_generators(layout)
    for component in layout.components:
        with findings.record_cannot_judge("rules", component):
            tree = parse_file(layout.directory / component, component)
            fault = import_fault(tree)
            if not trusted:
                kernel = layout.is_kernel(component)
                fault = fault or surroundings_fault(tree, kernel=kernel, seeds=seeds)
                code = component.partition("/")[0], dump_code(tree)
                first = components_by_code.setdefault(code, component)
                if fault is None and first != component:
                    fault = f"is {first} again: one file a workload, used as often as it runs"
            if fault is None and layout.tree is not None and not layout.nodes(component):
                fault = "is in no node of the tree"
            findings.record_verdict("rules", component, fault)


def _seeds_generators(layout: Layout) -> bool:
    """Return whether original.py seeds generators; False if it cannot be read."""
    with suppress(CannotJudge):  # the composition gate reports the fault
        return seeds_generators(parse_file(layout.directory / ORIGINAL, ORIGINAL))
    return False


def _judge_parents(layout: Layout, findings: Findings) -> None:
    """Judge the source of refactored.py files and of the composition test."""
    for step in layout.steps:
        file = f"{step.folder}/refactored.py"
        with findings.record_cannot_judge("rules", file):
            fault = step_parent_fault(parse_file(layout.directory / file, file))
            if fault:
                findings.record_verdict("rules", file, fault)
    with findings.record_cannot_judge("rules", COMPOSITION_TEST):
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


def _judge_absent_steps(layout: Layout, findings: Findings) -> None:
    for component in layout.components:
        if not layout.is_kernel(component) and layout.step_of(component) is None:
            findings.record_broken("step", component, "no step takes it apart")
    if not layout.steps and all(map(layout.is_kernel, layout.components)):
        findings.record_nothing_to_check("step", "steps")
