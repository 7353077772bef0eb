"""Runs all gates on a decomposition directory, in their order."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from runner.problems import imported_packages, is_out_of_memory, package_identity
from runner.tree.document import LEVEL_FOLDER, TREE_FILE
from runner.verify.advice import advice
from runner.verify.findings import Findings
from runner.verify.gates.composition import CompositionGate
from runner.verify.gates.context import Context
from runner.verify.gates.device import DeviceGate
from runner.verify.gates.documents import judge_documents
from runner.verify.gates.power import PowerGate
from runner.verify.gates.self_test import run_self_tests, settle_not_finite
from runner.verify.gates.steps import StepGate
from runner.verify.guard.foreign_files import ForeignFiles
from runner.verify.guard.one_operation import format_last_program
from runner.verify.guard.replica import Replica
from runner.verify.guard.standalone_runs import StandaloneRuns, secret_seed, start_server
from runner.verify.guard.worker import run_workers
from runner.verify.layout import ORIGINAL, Layout, read_layout
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
    findings = Findings(on_gate)
    try:
        with findings.time_gate("rules"):
            layout = read_layout(directory.resolve())
            judge_documents(layout, findings, trusted=trusted)
        if layout.refusals:
            return findings.build_verification(options, torch.__version__)
        # This runs before any file does, since a file could install or hide a package.
        missing_packages = _missing_packages(layout.directory / ORIGINAL)
        with _open_context(layout, options, findings, trusted=trusted) as context:
            _run_gates(context, missing_packages)
            return findings.build_verification(context.runner.options, torch.__version__)
    except (RuntimeError, OSError) as error:
        if is_out_of_memory(error):
            raise MemoryError(str(error)) from error
        raise


def _run_gates(context: Context, missing_packages: frozenset[str]) -> None:
    """Run the files: in files that kdrun has just written, each level once, in the model.

    Others' files also run by themselves, before the original does: each step on its parent's own
    inputs, and each component on its own. What the model has not judged runs by itself after it.
    """
    layout, findings = context.layout, context.findings
    standalone = context.runner.standalone
    power = PowerGate(context)
    steps = StepGate(context, power)
    _judge_absent_steps(layout, findings)
    if standalone:
        with findings.time_gate("step"):
            steps.judge_alone(step for step in layout.steps if step.parent != context.root)
        with findings.time_gate("self-test"):
            run_self_tests(
                context,
                [c for c in layout.components if c != context.root or layout.is_kernel(c)],
            )
            steps.judge_calls()
    with findings.time_gate("composition"):
        composition = CompositionGate(context, power, steps)
        composition.judge(missing_packages)
    with findings.time_gate("step"):
        steps.judge_alone(layout.steps)
    with findings.time_gate("self-test"):
        run_self_tests(context, layout.components)
        steps.judge_calls()
        settle_not_finite(context, composition.kernels_not_finite)
    power.finish()
    if standalone:
        standalone.finish(composition.author_call_kernels, composition.single_operation_kernels)
    with findings.time_gate("device"):
        if isinstance(context.files, ForeignFiles):
            context.files.judge_devices(findings)
        elif isinstance(context.files, Files):
            DeviceGate(context.files, layout, context.runner, findings).judge()
    if not layout.components:
        findings.record_broken(
            "self-test", "model", f"no file in {', '.join(LEVEL_FOLDER.values())}"
        )


@contextmanager
def _open_context(
    layout: Layout, options: VerifyOptions, findings: Findings, *, trusted: bool
) -> Iterator[Context]:
    """Prepare torch and the files, and yield what the gates share."""
    streaming = WeightStreaming(options.memory_bytes or 0) if options.streamed else None
    runner = ForwardRunner(layout.directory, options, streaming=streaming)
    memory_bytes = options.memory_bytes if options.device == "cpu" else None
    with ExitStack() as stack:
        if streaming:
            findings.warn(describe_streaming(options.seed))
            stack.enter_context(streaming)
        stack.enter_context(exact_arithmetic(options.device))
        stack.enter_context(disable_fused_paths())
        files = stack.enter_context(_open_files(layout.directory, runner, trusted=trusted))
        disk_cache = stack.enter_context(DiskCache(options.disk_cache_bytes, memory_bytes))
        specialisations = layout.tree.metadata.specialisations if layout.tree else []
        if isinstance(files, ForeignFiles):
            seed = options.seed or secret_seed()
            if specialisations:
                programs = _list_programs(files, runner, seed)
                if programs.count(None) == len(programs):
                    fault = "says that it holds for certain values; original.py asks for none"
                    findings.record_verdict("rules", TREE_FILE, fault)
                if len({*programs}) == 1:  # These values lead to no other program.
                    specialisations = []
            if not specialisations:
                options = replace(options, seed=seed)
            if options.mode == "train":
                findings.warn(f"judged in training mode alone, as {TREE_FILE} says")
        if specialisations:
            options = replace(options, specialised=True)
            suffix = f" and {len(specialisations) - 1} more" if len(specialisations) > 1 else ""
            findings.warn(
                f"holds for the values of seed {options.seed}: {specialisations[0]}{suffix}"
            )
        _compare_versions(layout, findings)
        if isinstance(files, ForeignFiles):
            standalone = stack.enter_context(StandaloneRuns(layout, options, findings))
            runner = replace(runner, standalone=standalone)
        runner = replace(runner, options=options)
        yield Context(layout, files, runner, disk_cache, findings)


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


def _list_programs(files: ForeignFiles, runner: ForwardRunner, seed: int) -> list[Hashable | None]:
    """Return what the original computes for its own seed, and for those of the trials.

    That is its calls, and the shapes and attributes of its operations. None stands for a program
    that reads no values. If the original cannot run, two different texts are returned.
    """
    programs: list[Hashable | None] = []
    options = runner.options
    trials = [(options.seed, 0), *((seed, trial) for trial in range(options.trials))]
    for first_seed, trial in trials:
        at_seed = replace(runner, options=replace(options, seed=first_seed))
        try:
            problem = files.problem()
            model = at_seed.build(f"{ORIGINAL}: Model", problem.build, trial)
            at_seed.vary(model, trial)
            inputs = at_seed.draw(f"{ORIGINAL}: get_inputs()", problem.get_inputs, trial)
            watch = at_seed.make_watch(model)
            _, observation = at_seed.forward(f"{ORIGINAL}: forward", model, inputs, trial, watch)
        except CannotJudge:
            return ["cannot run", "at all"]  # The composition gate reports the reason.
        assert isinstance(model, Replica)
        assert observation is not None
        worker_model = model.kdrun_link.model
        text = format_last_program(worker_model) or f"unknown {trial} {first_seed}"
        calls = text.partition("def get_inputs")[0]  # Integer inputs are spelled out behind it.
        operations = tuple(event.operation for event in observation.trace.events)
        programs.append((calls, operations) if worker_model.reads_values else None)
    return programs


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


def _compare_versions(layout: Layout, findings: Findings) -> None:
    """Add the tree's advice, and warn of other versions than those that it was made with."""
    if layout.tree is None:
        return
    metadata = layout.tree.metadata
    findings.advice += advice(layout.tree)
    if recorded_version := _different_torch_release(metadata.torch_version):
        findings.warn(f"taken apart with torch {recorded_version}; here it is {_torch_release()}")
    for package, recorded_version in metadata.packages.items():
        if recorded_version != (installed_version := package_identity(package)):
            findings.warn(
                f"taken apart with {package} {recorded_version}; here it is {installed_version}"
            )


def _judge_absent_steps(layout: Layout, findings: Findings) -> None:
    for component in layout.components:
        if not layout.is_kernel(component) and layout.step_of(component) is None:
            findings.record_broken("step", component, "no step takes it apart")
    if not layout.steps and all(map(layout.is_kernel, layout.components)):
        findings.record_nothing_to_check("step", "steps")
