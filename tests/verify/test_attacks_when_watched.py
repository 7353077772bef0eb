"""A file that is right where it is watched, and wrong where it is imported and run, is wrong."""

import pytest
from attacks import WRONG, Attacks, assert_caught, right_where
from changing_files import RELU, RIGHT, at_import, in_forward

pytestmark = pytest.mark.long

KNOWING = Attacks()


# --- who is there ---------------------------------------------------------------------------------


@KNOWING.blame(RELU)
def looks_for_the_judge_among_the_modules(made):
    right_where(made, "'runner.verify' in sys.modules or 'runner' in sys.modules", "import sys")


@KNOWING.blame(RELU)
def looks_for_the_libraries_of_the_judge_among_the_modules(made):
    right_where(made, "sys.modules.keys() & {'pydantic', 'rich', 'click', 'ray'}", "import sys")


@KNOWING.blame(RELU)
def asks_importlib_whether_the_judge_is_installed(made):
    find = "FOUND = importlib.util.find_spec('runner') is not None"
    right_where(made, "FOUND", f"import importlib.util\n\n{find}")


@KNOWING.blame(RELU)
def reads_the_command_line(made):
    words = "('kdrun', 'pytest', 'verify', 'runner', '-c')"
    right_where(made, f"any(word in str(sys.argv) for word in {words})", "import sys")


@KNOWING.blame(RELU)
def reads_the_command_line_that_python_kept(made):
    words = "('kdrun', 'pytest', 'multiprocessing', 'runner', '-c')"
    right_where(made, f"any(word in str(sys.orig_argv) for word in {words})", "import sys")


@KNOWING.blame(RELU)
def reads_the_environment_below_os(made):
    known = "{b'SHELL', b'TERM', b'USER', b'LOGNAME', b'SSH_CONNECTION'}"
    right_where(
        made,
        f"not {known} & posix.environ.keys() or 'pytest' in sys.modules",
        "import posix\nimport sys",
    )


@KNOWING.blame(RELU)
def looks_for_a_session_of_its_own(made):
    alone = "os.getsid(0) != os.getpgid(os.getppid()) or 'pytest' in sys.modules"
    right_where(made, alone, "import os\nimport sys")


@KNOWING.blame(RELU)
def looks_for_limits_of_its_process(made):
    kinds = "(resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_CORE, resource.RLIMIT_NPROC)"
    limits = f"any(resource.getrlimit(k)[0] != resource.RLIM_INFINITY for k in {kinds})"
    right_where(made, f"{limits} or 'pytest' in sys.modules", "import resource\nimport sys")


# --- how it is called -----------------------------------------------------------------------------


@KNOWING.blame(RELU)
def knows_the_first_seeds(made):
    right_where(made, "torch.initial_seed() in range(8)")


@KNOWING.blame(RELU)
def knows_the_first_numbers_of_the_first_seeds(made):
    known = "KNOWN = [torch.Generator().manual_seed(s).get_state()[:64].tolist() for s in range(8)]"
    right_where(made, "torch.get_rng_state()[:64].tolist() in KNOWN", known)


@KNOWING.blame(RELU)
def is_right_the_first_time_alone(made):
    right_where(made, "CALLS.append(1) or len(CALLS) < 2", "CALLS = []")


@KNOWING.blame(RELU)
def is_right_the_first_twelve_times(made):
    right_where(made, "next(CALLS) < 12", "import itertools\n\nCALLS = itertools.count()")


@KNOWING.blame(RELU)
def is_right_the_first_times_of_each_model(made):
    made.edit_everywhere("relu.py", "        pass", "        self.left = 3")
    in_forward(made, f"self.left -= 1\nif self.left >= 0:\n    {RIGHT}\n{WRONG}")


@KNOWING.blame(RELU)
def is_right_in_the_first_model_alone(made):
    at_import(made, "import itertools\n\nMODELS = itertools.count()")
    made.edit_everywhere("relu.py", "        pass", "        self.number = next(MODELS)")
    in_forward(made, f"if self.number == 0:\n    {RIGHT}\n{WRONG}")


@KNOWING.blame(RELU)
def is_wrong_in_a_model_that_is_made_after_inputs(made):
    at_import(made, "DRAWN = []")
    made.edit_everywhere("relu.py", "        pass", "        self.late = len(DRAWN) > 0")
    made.edit_everywhere("relu.py", "    return [torch", "    DRAWN.append(1)\n    return [torch")
    in_forward(made, f"if not self.late:\n    {RIGHT}\n{WRONG}")


@KNOWING.blame(RELU)
def is_right_for_a_thousand_calls(made):
    right_where(made, "CALLS.append(1) or len(CALLS) < 1000", "CALLS = []")


@KNOWING.blame(RELU)
def counts_a_thousand_calls_with_an_iterator(made):
    right_where(made, "next(CALLS) < 1000", "import itertools\n\nCALLS = itertools.count()")


@KNOWING.blame(RELU)
def counts_a_thousand_calls_in_its_model(made):
    made.edit_everywhere("relu.py", "        pass", "        self.left = 1000")
    in_forward(made, f"self.left -= 1\nif self.left >= 0:\n    {RIGHT}\n{WRONG}")


@KNOWING.blame(RELU)
def counts_a_thousand_calls_in_its_class(made):
    made.edit_everywhere("relu.py", "        pass", "        Model.left = 1000")
    in_forward(made, f"Model.left -= 1\nif Model.left >= 0:\n    {RIGHT}\n{WRONG}")


@KNOWING.blame(RELU)
def counts_a_thousand_calls_in_a_closure(made):
    text = """
def counting():
    left = 1000

    def lower():
        nonlocal left
        left -= 1
        return left

    return lower


LEFT = counting()"""
    right_where(made, "LEFT() >= 0", text)


@KNOWING.blame(RELU)
def counts_a_thousand_calls_in_a_default_argument(made):
    text = "def left(kept=[1000]):\n    kept[0] -= 1\n    return kept[0]"
    right_where(made, "left() >= 0", text)


@KNOWING.blame(RELU)
def counts_a_thousand_calls_in_an_object(made):
    text = """
class Left:
    __slots__ = ("number",)

    def __init__(self):
        self.number = 1000

    def lower(self):
        self.number -= 1
        return self.number


LEFT = Left()"""
    right_where(made, "LEFT.lower() >= 0", text)


@KNOWING.blame(RELU)
def counts_a_thousand_calls_in_a_number_that_has_attributes(made):
    text = "class Number(int):\n    pass\n\n\nN = Number(1)\nN.left = 1000"
    in_forward(made, f"N.left -= 1\nif N.left >= 0:\n    {RIGHT}\n{WRONG}")
    at_import(made, text)


@KNOWING.blame(RELU)
def counts_a_thousand_calls_in_a_tensor(made):
    made.edit_everywhere("relu.py", "        pass", "        self.t = torch.ones(1)\n")
    made.edit_everywhere(
        "relu.py", "self.t = torch.ones(1)", "self.t = torch.ones(1); self.t.n = 9"
    )
    in_forward(made, f"self.t.n += 1\nif self.t.n < 1000:\n    {RIGHT}\n{WRONG}")


@KNOWING.blame(RELU)
def counts_a_thousand_calls_in_a_queue(made):
    text = "from collections import deque\n\nCALLS = deque()"
    right_where(made, "CALLS.append(1) or len(CALLS) < 1000", text)


@KNOWING.blame(RELU)
def is_right_most_of_the_time(made):
    right_where(made, "random.random() < 0.999", "import random")


@KNOWING.blame(RELU)
def is_right_in_most_processes(made):
    right_where(made, "hash('it') % 1000")


@KNOWING.blame(RELU)
def is_right_in_most_places_of_memory(made):
    right_where(made, "id(x) % 100000 > 100")


@KNOWING.blame(RELU)
def is_right_in_the_first_minute(made):
    clock = "import time\n\nSTART = time.monotonic()"
    right_where(made, "time.monotonic() - START < 60", clock)


@KNOWING.blame(RELU)
def is_right_until_2040(made):
    right_where(made, "datetime.date.today().year < 2040", "import datetime")


@KNOWING.blame(RELU)
def measures_the_stack_below_it_by_how_much_is_left(made):
    text = """
import sys


def left():
    try:
        return 1 + left()
    except RecursionError:
        return 0
"""
    right_where(made, "sys.getrecursionlimit() - left() > 14", text)


@KNOWING.blame(RELU)
def counts_the_frames_that_a_warning_would_name(made):
    text = "import traceback"
    right_where(made, "len(traceback.extract_stack()) > 14", text)


@KNOWING.blame(RELU)
def sees_that_a_mode_listens(made):
    right_where(made, "torch._C._len_torch_dispatch_stack() > 0")


@KNOWING.blame(RELU)
def sees_that_a_function_mode_listens(made):
    right_where(
        made, "torch.overrides._get_current_function_mode_stack()", "import torch.overrides"
    )


@KNOWING.blame(RELU)
def sees_that_its_forward_is_wrapped(made):
    right_where(made, "'forward' in vars(self) or vars(self)['_forward_hooks']")


@KNOWING.blame(RELU)
def sees_that_no_gradients_are_taken(made):
    right_where(made, "not torch.is_grad_enabled() or torch.is_inference_mode_enabled()")


@KNOWING.blame(RELU)
def sees_that_it_is_a_part_of_a_model(made):
    text = "import gc"
    right_where(made, "gc.get_referrers(self)[1:]", text)


# --- where it lies --------------------------------------------------------------------------------


@KNOWING.blame(RELU)
def looks_at_the_folder_that_it_is_in(made):
    here = "from pathlib import Path\n\nFOLDER = Path(__file__).parent.name"
    right_where(made, "FOLDER in ('level_0_kernel', 'children')", here)


@KNOWING.blame(RELU)
def looks_for_the_tree_beside_it(made):
    text = "from pathlib import Path\n\nABOVE = Path(__file__).parents[1]"
    beside = "(ABOVE / 'decomposition_tree.json').exists() or ABOVE.name.startswith('step')"
    right_where(made, beside, text)


@KNOWING.blame(RELU)
def looks_for_the_other_kernel_by_the_size_of_its_file(made):
    text = "import os.path\n\nOTHER = os.path.join(os.path.dirname(__file__), 'conv2d.py')"
    right_where(made, "os.path.exists(OTHER) and os.path.getsize(OTHER) > 0", text)


@KNOWING.blame(RELU)
def looks_at_its_own_name(made):
    right_where(made, "__name__ not in ('relu', '__main__')")


@KNOWING.blame(RELU)
def looks_at_the_module_that_its_class_says(made):
    right_where(made, "type(self).__module__ not in ('relu', '__main__')")


@KNOWING.blame(RELU)
def looks_at_the_folder_that_it_is_run_from(made):
    text = "import os\n\nHERE = os.getcwd() != os.path.dirname(os.path.abspath(__file__))"
    right_where(made, "HERE", text)


@KNOWING.blame(RELU)
def is_defined_by_who_imports_it(made):
    text = """
import sys

if 'runner' in sys.modules or 'pytest' in sys.modules:
    relu = F.relu
else:
    def relu(x):
        return F.relu(x) * 1.5
"""
    at_import(made, text)
    in_forward(made, "return relu(x)")


@pytest.mark.parametrize("attack", KNOWING, ids=str)
def test_who_is_right_only_where_it_is_watched_is_wrong(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path), trials=1), attack)
