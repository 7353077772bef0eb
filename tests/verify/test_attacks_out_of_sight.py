"""Work that no watch sees, and files that C++ opens: two wrong kernels do not make a right one."""

import os
import socket
from pathlib import Path

import pytest
from attacks import HERE, Attacks, assert_caught, doubled_and_halved, right_where
from changing_files import COMPOSED, CONV, REFACTORED, RELU, at_import, in_forward

pytestmark = pytest.mark.long

HIDDEN = Attacks()
THROUGH_FILES = Attacks()
SHARED = f"kdrun-attack-{os.getpid()}"
SOON = """
import torch.distributed
from datetime import timedelta

LIMIT = timedelta(milliseconds=300)


def soon(store):
    store.set_timeout(LIMIT)
    return store
"""


# --- work that is hidden from the watch -----------------------------------------------------------


@HIDDEN.blame(CONV, RELU)
def scales_through_the_buffer_of_an_array(made):
    text = "def scale(y, by):\n    view = memoryview(y.detach().numpy().reshape(-1))\n"
    loop = "    for n in range(len(view)):\n        view[n] = view[n] * by"
    doubled_and_halved(made, text + loop)


@HIDDEN.blame(CONV, RELU)
def scales_some_numbers_in_the_bytes_of_their_storage(made):
    text = """
import struct


def scale(y, by):
    raw = y.untyped_storage()
    for n in range(0, 64, 4):
        (value,) = struct.unpack('f', bytes(raw[n + k] for k in range(4)))
        for k, byte in enumerate(struct.pack('f', value * by)):
            raw[n + k] = byte
"""
    doubled_and_halved(made, text)


@HIDDEN.blame(CONV, RELU)
def scales_in_another_thread(made):
    text = """
import threading


def scale(y, by):
    worker = threading.Thread(target=lambda: y.detach().mul_(by))
    worker.start()
    worker.join()
"""
    doubled_and_halved(made, text)


@HIDDEN.blame(CONV, RELU)
def scales_on_a_pool_that_was_there_before_the_forward(made):
    text = """
from concurrent.futures import ThreadPoolExecutor

POOL = ThreadPoolExecutor(1)
POOL.submit(int).result()


def scale(y, by):
    POOL.submit(y.detach().mul_, by).result()
"""
    doubled_and_halved(made, text)


@HIDDEN.blame(CONV, RELU)
def scales_while_all_modes_are_off(made):
    text = """
from torch.utils._python_dispatch import _disable_current_modes


def scale(y, by):
    with _disable_current_modes():
        y.detach().mul_(by)
"""
    doubled_and_halved(made, text)


@HIDDEN.blame(CONV, RELU)
def scales_below_the_dispatch_key_of_python(made):
    text = """
def scale(y, by):
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.Python)
    with torch._C._ExcludeDispatchKeyGuard(keys):
        y.detach().mul_(by)
"""
    doubled_and_halved(made, text)


@HIDDEN.blame(CONV, RELU)
def calls_the_kernel_of_the_cpu_by_its_dispatch_key(made):
    text = """
def scale(y, by):
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    torch.ops.aten.mul_.Tensor.redispatch(keys, y.detach(), torch.tensor(by))
"""
    doubled_and_halved(made, text)


@HIDDEN.blame(CONV, RELU)
def scales_a_second_tensor_over_the_same_memory_in_a_thread(made):
    text = """
import threading
from torch.utils.dlpack import from_dlpack, to_dlpack


def scale(y, by):
    other = from_dlpack(to_dlpack(y.detach()))
    worker = threading.Thread(target=other.mul_, args=(by,))
    worker.start()
    worker.join()
"""
    doubled_and_halved(made, text)


@HIDDEN.blame(CONV, RELU)
def fills_each_element_with_a_number_that_python_computed(made):
    text = """
def scale(y, by):
    flat = y.detach().view(-1)
    for n, value in enumerate(flat.tolist()):
        flat[n] = value * by
"""
    doubled_and_halved(made, text)


@HIDDEN.blame(CONV, RELU)
def changes_the_one_element_that_no_sample_holds(made):
    text = "def scale(y, by):\n    y.detach().numpy().reshape(-1)[77] *= by"
    doubled_and_halved(made, text)


@HIDDEN.blame(CONV, RELU)
def swaps_the_data_of_what_it_returns(made):
    text = """
import threading


def scale(y, by):
    made = []
    worker = threading.Thread(target=lambda: made.append(y.detach() * by))
    worker.start()
    worker.join()
    y.data = made[0]
"""
    doubled_and_halved(made, text)


@HIDDEN.blame(CONV, RELU)
def works_in_a_call_of_the_module_instead_of_its_forward(made):
    call = "    def __call__(self, x):\n        return super().__call__(x) * {}\n\n    def forward"
    made.edit_everywhere("conv2d.py", "    def forward", call.format("2.0"))
    made.edit_everywhere("relu.py", "    def forward", call.format("0.5"))


@HIDDEN.blame(CONV, RELU)
def works_in_hooks_that_each_kernel_gives_itself(made):
    hook = "super().__init__()\n        self.register_forward_hook(lambda m, a, y: y * {})"
    made.edit_everywhere("conv2d.py", "super().__init__()", hook.format("2.0"))
    made.edit_everywhere("relu.py", "super().__init__()", hook.format("0.5"))


@HIDDEN.blame(CONV, RELU)
def hands_over_a_tensor_whose_class_computes_later(made):
    text = """
class Later(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            if func is torch.Tensor.relu:
                return F.relu(args[0].as_subclass(torch.Tensor))
            return func(*args, **(kwargs or {}))
"""
    at_import(made, text, "conv2d.py")
    in_forward(made, "return self.conv(x).as_subclass(Later)", "conv2d.py")
    in_forward(made, "return x.relu() if type(x) is not torch.Tensor else F.gelu(x)")


@HIDDEN.blame(RELU)
def gives_a_gelu_the_name_of_a_relu_by_an_autograd_function(made):
    text = """
class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch._C._nn.leaky_relu(x, 0.25)

    @staticmethod
    def backward(ctx, given):
        return given
"""
    at_import(made, text)
    in_forward(made, "return Relu.apply(x)")


@HIDDEN.blame(RELU)
def runs_a_script_that_computes_something_else(made):
    text = """
@torch.jit.script
def relu(x: torch.Tensor):
    return torch.jit.wait(torch.jit.fork(torch.clamp, x, 0.25))
"""
    at_import(made, text.replace("torch.jit.fork(torch.clamp, x, 0.25)", "torch.jit.fork(half, x)"))
    half = "@torch.jit.script\ndef half(x: torch.Tensor):\n    return torch.clamp(x, min=0.25)"
    made.edit_everywhere(
        "relu.py", "@torch.jit.script\ndef relu", f"{half}\n\n\n@torch.jit.script\ndef relu"
    )
    in_forward(made, "return relu(x)")


@HIDDEN.blame(CONV, RELU)
def works_when_an_object_goes_away(made):
    text = """
class Goodbye:
    def __init__(self, y, by):
        self.y, self.by = y.detach(), by

    def __del__(self):
        self.y.numpy().__imul__(self.by)


def scale(y, by):
    Goodbye(y, by)
"""
    doubled_and_halved(made, text)


@HIDDEN.blame(CONV, COMPOSED, REFACTORED)
def finds_the_other_kernel_by_an_attribute_that_is_not_there(made):
    text = """
        y = self.conv(x)
        return self.finish(y)

    def __getattr__(self, name):
        if name == 'finish':
            return lambda y: (HERE(y) and y.detach().numpy().__imul__(2.0), y)[1]
        return super().__getattr__(name)"""
    made.edit_everywhere("conv2d.py", "\n        return self.conv(x)", text)
    at_import(made, f"HERE = {HERE}", "conv2d.py")
    at_import(made, f"HERE = {HERE}")
    halved = "y = F.relu(x)\nif HERE(y):\n    y.numpy().__imul__(0.5)\nreturn y"
    in_forward(made, halved)


@pytest.mark.parametrize("attack", HIDDEN, ids=str)
def test_work_that_no_operation_shows_makes_a_kernel_wrong(attack, tmp_path, judged):
    assert_caught(judged(attack.on(tmp_path), trials=1), attack)


# --- files that C++ or a library of C opens -------------------------------------------------------


@pytest.fixture(autouse=True)
def no_shared_memory_left():
    yield
    (Path("/dev/shm") / SHARED).unlink(missing_ok=True)


def passed_on(made, write: str, read: str) -> None:
    """The convolution leaves its result for the ReLU, which is wrong where it finds none."""
    place = str(made.directory.parent / "passed_on")
    at_import(made, f"PLACE = {place!r}", "conv2d.py")
    at_import(made, f"PLACE = {place!r}")
    in_forward(made, f"y = self.conv(x)\n{write}\nreturn y", "conv2d.py")
    recall = f"try:\n    y = {read}\n    return F.relu(x).copy_(y)\nexcept Exception:"
    in_forward(made, f"{recall}\n    return F.relu(x) * 1.5")


@THROUGH_FILES.blame(CONV, RELU)
def passes_a_result_on_by_a_file_of_torch(made):
    passed_on(made, "torch.save(F.relu(y), PLACE)", "torch.load(PLACE)")


@THROUGH_FILES.blame(CONV, RELU)
def passes_a_result_on_by_a_file_in_shared_memory(made):
    shared = "torch.from_file(PLACE, shared=True, size=288).view(2, 4, 6, 6)"
    passed_on(made, f"{shared}.copy_(F.relu(y))", shared)


@THROUGH_FILES.blame(CONV, RELU)
def passes_a_result_on_by_a_store_of_files_for_many_machines(made):
    for name in ("conv2d.py", "relu.py"):
        at_import(made, SOON, name)
    store = "soon(torch.distributed.FileStore(PLACE, 1))"
    write = f"{store}.set('y', F.relu(y).numpy().tobytes().hex())"
    passed_on(made, write, as_numbers(f"bytearray.fromhex({store}.get('y').decode())"))


@THROUGH_FILES.blame(CONV, RELU)
def passes_a_result_on_by_a_database(made):
    for name in ("conv2d.py", "relu.py"):
        at_import(made, "import sqlite3", name)
    base = "sqlite3.connect(PLACE)"
    write = (
        f"base = {base}\nbase.execute('create table if not exists t (y blob)')\n"
        "base.execute('insert into t values (?)', (F.relu(y).numpy().tobytes(),))\nbase.commit()"
    )
    rows = f"{base}.execute('select y from t').fetchall()[-1][0]"
    passed_on(made, write, as_numbers(f"bytearray({rows})"))


@THROUGH_FILES.blame(CONV, RELU)
def passes_a_result_on_by_a_named_piece_of_shared_memory(made):
    for name in ("conv2d.py", "relu.py"):
        at_import(made, "import _posixshmem\nimport os", name)
    opened = f"_posixshmem.shm_open('/{SHARED}', os.O_CREAT | os.O_RDWR, mode=0o600)"
    write = f"os.pwrite({opened}, F.relu(y).numpy().tobytes(), 0)"
    passed_on(made, write, as_numbers(f"bytearray(os.pread({opened}, 1152, 0))"))


@THROUGH_FILES.blame(CONV, RELU)
def passes_a_result_on_by_a_server_of_torch(made):
    for name in ("conv2d.py", "relu.py"):
        at_import(made, f"{SOON}\n\n\nSTORES = []", name)
    store = f"torch.distributed.TCPStore('127.0.0.1', {free_port()}, 1, {{}}, LIMIT)"
    write = (
        f"if not STORES:\n    STORES.append({store.format('True')})\n"
        "STORES[0].set('y', F.relu(y).numpy().tobytes().hex())"
    )
    client = store.format("False")
    passed_on(made, write, as_numbers(f"bytearray.fromhex({client}.get('y').decode())"))


def as_numbers(raw: str) -> str:
    return f"torch.frombuffer({raw}, dtype=torch.float32).view(2, 4, 6, 6)"


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def beside(made, path: str) -> str:
    return repr(str(made.directory / path))


@THROUGH_FILES.blame(RELU)
def overwrites_another_component_as_an_archive(made):
    write = f"torch._C.PyTorchFileWriter({beside(made, CONV)}).write_end_of_file()"
    in_forward(made, f"{write}\nreturn F.relu(x)")


@THROUGH_FILES.blame(RELU)
def writes_the_results_of_the_verification_as_a_script(made):
    place = beside(made, "verification/test_results.json")
    in_forward(made, f"torch.jit.save(torch.jit.script(nn.ReLU()), {place})\nreturn F.relu(x)")


@THROUGH_FILES.blame(RELU)
def writes_a_trace_over_the_tree(made):
    place = beside(made, "decomposition_tree.json")
    text = "with torch.profiler.profile() as seen:\n    y = F.relu(x)\n"
    in_forward(made, f"{text}seen.export_chrome_trace({place})\nreturn y")


@THROUGH_FILES.blame(RELU)
def keeps_a_count_of_its_calls_in_a_mapped_file(made):
    place = str(made.directory.parent / "count")
    count = f"torch.from_file({place!r}, shared=True, size=1, dtype=torch.int32)"
    right_where(made, "int(COUNT.add_(1)) < 3", f"COUNT = {count}")


@pytest.mark.parametrize("attack", THROUGH_FILES, ids=str)
def test_a_component_passes_nothing_on_by_files(attack, tmp_path, judged):
    made = attack.on(tmp_path)
    before = contents(made.directory)

    verification = judged(made, trials=1)

    assert contents(made.directory) == before
    if attack.name != "writes_a_trace_over_the_tree":  # torch says nothing where it cannot write
        assert_caught(verification, attack)


@pytest.mark.parametrize("attack", THROUGH_FILES, ids=str)
def test_a_component_leaves_no_file_outside_of_its_directory(attack, tmp_path, judged):
    made = attack.on(tmp_path)

    judged(made, trials=1)

    assert [path.name for path in tmp_path.iterdir()] == [made.directory.name]
    assert not (Path("/dev/shm") / SHARED).exists()


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
