"""A verdict cannot be forged, and a judge cannot be edited, from a component's own file."""

import pytest
from attacks import Attacks, assert_caught, judged_apart
from attacks import wrong_relu as wrong
from changing_files import CONV, RELU, at_import, in_forward
from decompositions_of_expressions import lone

pytestmark = pytest.mark.long

FORGED = Attacks()
EDITED = Attacks()
PASSED = "{'status': 'passed', 'verdict': 'passed', 'gates': [], 'first_failure': None}"


# --- the verdict is forged ------------------------------------------------------------------------


@FORGED.blame(RELU)
def ends_the_process_with_success_in_a_forward(made):
    wrong(made, "import os")
    made.edit_everywhere(
        "relu.py", "        return F.relu", "        os._exit(0)\n        return F.relu"
    )


@FORGED.blame(RELU)
def ends_the_process_with_success_when_python_ends(made):
    wrong(made, "import atexit\nimport os\n\natexit.register(os._exit, 0)")


@FORGED.blame(RELU)
def raises_what_no_caller_expects(made):
    in_forward(made, "raise KeyboardInterrupt")


@FORGED.blame(RELU)
def raises_an_exception_that_calls_itself_a_success(made):
    at_import(made, "class Passed(BaseException):\n    code = 0\n    status = 'passed'")
    in_forward(made, "raise Passed('passed')")


@FORGED.blame(RELU)
def writes_a_verdict_into_every_open_descriptor(made):
    wrong(made, "import json\nimport os")
    in_every_descriptor = f"""
        line = json.dumps({PASSED}).encode() + b'\\n'
        for number in range(1, 64):
            try:
                os.write(number, line)
            except OSError:
                pass
        os._exit(0)
        return F.relu"""
    made.edit_everywhere("relu.py", "\n        return F.relu", in_every_descriptor)


@FORGED.blame(RELU)
def answers_in_pickles_as_a_worker_would(made):
    wrong(made, "import os\nimport pickle\nimport struct")
    answer = f"""
        text = pickle.dumps({PASSED})
        for number in range(3, 64):
            try:
                os.write(number, struct.pack('!i', len(text)) + text)
            except OSError:
                pass
        os._exit(0)
        return F.relu"""
    made.edit_everywhere("relu.py", "\n        return F.relu", answer)


@FORGED.blame(RELU)
def closes_every_descriptor_that_it_inherited(made):
    wrong(made, "import os\n\nos.closerange(0, 256)")


@FORGED.blame(RELU)
def redirects_what_is_written_to_nowhere(made):
    nowhere = "import os\n\nnull = os.open(os.devnull, os.O_RDWR)\n"
    wrong(made, f"{nowhere}for number in range(64):\n    os.dup2(null, number)")


@FORGED.blame(RELU)
def kills_whoever_started_it(made):
    wrong(made, "import os\nimport signal")
    kill = (
        "\n        signal.pidfd_send_signal(os.pidfd_open(os.getppid()), signal.SIGKILL)"
        "\n        return F.relu"
    )
    made.edit_everywhere("relu.py", "\n        return F.relu", kill)


@FORGED.blame(RELU)
def stops_itself_for_ever_with_a_verdict_said(made):
    wrong(made, 'import os\nimport signal\n\nprint(\'{"status": "passed"}\', flush=True)')
    at_import(made, "signal.raise_signal(signal.SIGKILL)")


@FORGED.blame(RELU)
def breaks_down_in_c_with_a_verdict_said(made):
    wrong(made, "import faulthandler\nimport json")
    text = f"""
        print(json.dumps({PASSED}), flush=True)
        faulthandler._sigsegv()
        return F.relu"""
    made.edit_everywhere("relu.py", "\n        return F.relu", text)


@FORGED.blame(RELU)
def sets_an_alarm_that_ends_the_process_with_success(made):
    handler = "signal.signal(signal.SIGALRM, lambda *_: os._exit(0))"
    wrong(
        made, f"import os\nimport signal\n\n{handler}\nsignal.setitimer(signal.ITIMER_REAL, 0.01)"
    )


@pytest.mark.parametrize("attack", FORGED, ids=str)
def test_what_ends_or_answers_for_the_judge_is_no_verdict(attack, tmp_path):
    assert_caught(judged_apart(attack.on(tmp_path)), attack)


IN_MEMORY = Attacks()

DEAF = """
def deaf(held):
    if type(held).__module__.startswith('runner.'):
        for name in ('record_verdict', 'record_broken', 'record_comparison', 'offence', 'warn'):
            if hasattr(held, name):
                try:
                    object.__setattr__(held, name, lambda *a, **k: None)
                except AttributeError:
                    pass
"""


@IN_MEMORY.blame(RELU)
def makes_the_list_of_findings_deaf_by_the_frames_that_logging_gives(made):
    walk = """
import logging

frame = logging.currentframe()
while frame is not None:
    for held in list(frame.f_locals.values()):
        deaf(held)
    frame = frame.f_back
"""
    wrong(made, DEAF + walk)


@IN_MEMORY.blame(RELU)
def makes_every_finding_a_pass_by_the_words_for_good(made):
    text = """
import sys

for name, module in list(sys.modules.items()):
    words = getattr(module, 'GOOD', None)
    if name.startswith('runner.') and isinstance(words, frozenset):
        module.GOOD = frozenset(type(next(iter(words))))
"""
    wrong(made, text)


@IN_MEMORY.blame(RELU)
def finds_the_classes_of_the_judge_below_object(made):
    text = """
for cls in object.__subclasses__():
    if cls.__module__.startswith('runner.verify') and hasattr(cls, 'record_verdict'):
        cls.record_verdict = lambda *a, **k: None
        cls.record_comparison = lambda *a, **k: None
"""
    wrong(made, text)


@IN_MEMORY.blame(RELU)
def follows_an_exceptions_traceback_to_the_judge(made):
    text = """
import sys
import traceback

try:
    raise ValueError
except ValueError:
    for frame, line in traceback.walk_tb(sys.exception().__traceback__):
        while frame is not None:
            for held in list(frame.f_locals.values()):
                deaf(held)
            frame = frame.f_back
"""
    wrong(made, DEAF + text.replace("sys.exception()", "sys.exc_info()[1]"))


@IN_MEMORY.blame(RELU)
def waits_for_the_verdict_in_another_thread(made):
    text = """
import sys
import threading
import time


def forge():
    for _ in range(2000):
        for name, module in list(sys.modules.items()):
            if name == 'runner.verify.results':
                module.worst_verdict = lambda verdicts, good=module.Verdict.PASSED: good
        time.sleep(0.001)


threading.Thread(target=forge, daemon=True).start()
"""
    wrong(made, text)


@pytest.mark.parametrize("attack", IN_MEMORY, ids=str)
def test_what_lies_in_memory_beside_a_component_is_no_verdict(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path), trials=1), attack)


# --- the judge is edited --------------------------------------------------------------------------


def linear_gelu(directory):
    weights = ("linear.weight", "linear.bias")
    init = "self.linear = nn.Linear(16, 16)"
    return lone(directory, "F.gelu(self.linear(x))", init=init, weights=weights)


@EDITED.blame(RELU)
def widens_every_tolerance(made):
    text = """
import sys

for name, module in list(sys.modules.items()):
    for key, table in list(vars(module).items()) if name.startswith('runner.') else ():
        if isinstance(table, dict) and torch.float32 in table:
            for dtype in list(table):
                try:
                    table[dtype] = type(table[dtype])(1e9, 1e9)
                except TypeError:
                    pass
"""
    wrong(made, text)


@EDITED.blame("level_0_kernel/kernel.py", make=linear_gelu)
def empties_the_tables_of_operations(made):
    text = """
import sys

for name, module in list(sys.modules.items()):
    for key, table in list(vars(module).items()) if name.startswith('runner.') else ():
        if isinstance(table, tuple | frozenset) and 'gelu' in table:
            setattr(module, key, type(table)())
        if isinstance(table, int) and key.startswith('_MOST'):
            setattr(module, key, 1 << 20)
"""
    made.edit_everywhere("kernel.py", "class Model", f"{text}\n\nclass Model")


@EDITED.blame(RELU)
def gives_tensors_a_difference_that_is_always_nothing(made):
    text = """
class Nothing:
    def __get__(self, tensor, cls):
        return lambda *a, **k: torch.zeros_like(tensor)


for name in ('sub', '__sub__', '__rsub__'):
    setattr(torch.Tensor, name, Nothing())


class Always:
    def __get__(self, tensor, cls):
        return lambda *a, **k: True


torch.Tensor.equal = torch.Tensor.allclose = Always()
"""
    wrong(made, text)


@EDITED.blame(RELU)
def tells_torch_that_a_product_is_its_first_factor(made):
    text = """
FIRST = torch.library.Library('aten', 'IMPL', 'AutogradCPU')
FIRST.impl('mul.Tensor', lambda one, other: one.clone(), allow_override=True)
FIRST.impl('mul.Scalar', lambda one, other: one.clone(), allow_override=True)
"""
    wrong(made, text)


@EDITED.blame(RELU)
def leaves_a_mode_that_drops_products_at_the_bottom_of_the_stack(made):
    text = """
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode


class Drops(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        return args[0].clone() if 'mul' in str(func) else result


above = []
while torch._C._len_torch_dispatch_stack():
    above.append(_pop_mode())
for mode in (Drops(), *reversed(above)):
    _push_mode(mode)
"""
    wrong(made, text)


@EDITED.blame("level_0_kernel/kernel.py", make=linear_gelu)
def takes_its_own_operation_out_of_the_record(made):
    text = """
        from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

        y = F.gelu(self.linear(x))
        for mode in _get_current_dispatch_mode_stack():
            for held in vars(mode).values():
                events = getattr(held, 'events', None)
                if isinstance(events, list) and events:
                    del events[-1]
        return y"""
    made.edit("level_0_kernel/kernel.py", "\n        return F.gelu(self.linear(x))", text)


@EDITED.blame(RELU)
def makes_every_module_call_a_constant_of_the_first_call(made):
    text = """
import functools

KEPT = {}
CALL = nn.Module._call_impl


@functools.wraps(CALL)
def call(module, *args, **kwargs):
    output = CALL(module, *args, **kwargs)
    key = tuple(output.shape) if isinstance(output, torch.Tensor) else None
    return KEPT.setdefault(key, output) if key == (2, 4, 6, 6) else output


nn.Module._call_impl = nn.Module._wrapped_call_impl = nn.Module.__call__ = call
"""
    wrong(made, text)


@EDITED.blame(RELU)
def reads_all_json_as_the_one_that_it_likes(made):
    text = """
import ast
import json

ast.walk = lambda tree: iter(())
json.loads = lambda text, **k: {}
"""
    wrong(made, text)


@EDITED.blame(CONV, RELU)
def gives_the_relu_another_forward_from_the_convolutions_file(made):
    in_forward(made, "return x.new_zeros(x.shape)")
    text = """
import sys


class Patient(nn.Conv2d):
    def forward(self, x):
        for name, module in list(sys.modules.items()):
            if 'relu' in name and hasattr(module, 'Model'):
                module.Model.forward = lambda self, y: F.relu(y)
        return super().forward(x)
"""
    at_import(made, text, "conv2d.py")
    made.edit_everywhere("conv2d.py", "nn.Conv2d(3", "Patient(3")


@EDITED.blame(RELU)
def replaces_the_module_of_the_judge(made):
    text = """
import sys
import types

for name in [n for n in sys.modules if n.startswith('runner.verify')]:
    whole = sys.modules[name]
    other = types.ModuleType(name)
    vars(other).update(vars(whole))
    for key in [k for k in vars(other) if 'compare' in k or 'fault' in k]:
        setattr(other, key, lambda *a, **k: None)
    sys.modules[name] = other
"""
    wrong(made, text)


@pytest.mark.parametrize("attack", EDITED, ids=str)
def test_a_judge_that_a_component_edits_judges_as_before(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path), trials=1), attack)
