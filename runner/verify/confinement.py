"""This file knows about what a decomposition's code may touch besides tensors: next to nothing.

Python tells an audit hook of every file, socket, process and foreign call before it happens,
however it is spelled. Who asks is the file of the decomposition that is nearest on the stack;
kdrun's own work and what libraries do for themselves are nobody's offence. What is refused raises
PermissionError in that code, and is told as its file's fault whether or not it catches that.

This keeps honest and careless code honest. It is no sandbox: that is what the child process is for.
"""

import linecache
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import runner
from runner.verify.integrity import Integrity
from runner.verify.layout import CHECKS, COMPOSITION_TEST, ORIGINAL
from runner.verify.loading_files import CHILDREN, relative
from runner.verify.sources import THE_LANGUAGES_OWN

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_LIBRARIES = tuple(
    os.path.realpath(path)
    for path in {
        *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
        str(Path(torch.__file__).parents[1]),
        *("/proc/cpuinfo", "/proc/meminfo", "/sys", "/dev/null", "/dev/urandom", "/usr/share"),
    }
)
_PACKAGES = tuple(
    os.path.realpath(path)  # torch may be beside its packages in another environment below this one
    for path in (
        *(sysconfig.get_path(name) for name in ("purelib", "platlib")),
        str(Path(torch.__file__).parents[1]),
    )
)
_TORCH = os.path.realpath(Path(torch.__file__).parent)
_PASSED_OVER = (
    *("importlib", "os.py", "posixpath.py", "pathlib", "inspect.py", "traceback.py"),
    *("ctypes", "_collections_abc.py", "glob.py", "fnmatch.py", "io.py", "tempfile.py"),
)
_SOURCE_LINES = linecache.__file__
_STDLIB = sysconfig.get_path("stdlib")
_LOOKING_BEHIND = {"f_code", "tb_frame", "gi_frame", "cr_frame", "ag_frame", "gi_code", "__code__"}


class Confinement:
    """Hears what the code of one directory asks for while it is active."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.offences: dict[str, str] = {}
        """File of the decomposition -> the first thing that it may not do."""
        self._inside = f"{self.directory}{os.sep}"
        self._busy = False
        self._integrity = Integrity()

    def settle(self, what: str) -> None:
        """Some code ran: whatever it changed of torch, Python or kdrun is its file's offence.

        `what`: the file, and maybe what of it ran: `level_0_kernel/relu.py: forward`.
        """
        file = what.partition(":")[0]
        busy, self._busy = self._busy, True
        fault = self._integrity.restore(state=file != ORIGINAL)
        self._busy = busy
        if fault is not None:
            self.offence(file, fault)

    def offence(self, file: str, what: str) -> None:
        """Remember it; the first one of a file counts."""
        self.offences.setdefault(file, what)

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """An audit event. PermissionError where it is refused."""
        rule = _EVENTS.get(event) or _FAMILIES.get(event.partition(".")[0])
        if rule is None or self._busy:
            return
        self._busy = True  # looking at frames is audited as well
        try:
            what = rule(self, args)
        finally:
            self._busy = False
        if what is not None:
            file, fault = what
            self.offence(file, fault)
            raise PermissionError(f"kdrun: {fault}")

    def asks(self, *, directly: bool = False) -> str | None:
        """The file of the decomposition that is asking, if one is.

        `directly`: with nothing in between but what only passes the question on.
        """
        frame: FrameType | None = sys._getframe(3)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(_OURS):
                if file != __file__:
                    return None
            elif file.startswith(self._inside):
                return file[len(self._inside) :]
            elif frame.f_code.co_name == "<module>" and not file.startswith("<"):
                return None  # a library that is being imported does what it needs
            elif file == _SOURCE_LINES:
                return None  # warnings and stack traces show lines of the files that they are about
            elif directly and not file.startswith("<") and not _passes_on(file):
                return None
            frame = frame.f_back
        return None

    def reads(self, path: str) -> str | None:
        """Whether the asking file may read this one; what it does wrong where it may not."""
        real = os.path.realpath(path)
        asker = self.asks()
        if asker is None or asker == ORIGINAL:
            return None
        if real.startswith(_LIBRARIES):
            packaged = real.startswith(_PACKAGES) and not real.startswith(_TORCH)
            foreign = packaged and _is_component(asker) and self.asks(directly=True) == asker
            return f"imports {_package(real)}" if foreign else None
        name = relative(Path(real), self.directory)
        if not real.startswith(self._inside) and real != str(self.directory):
            return f"reads {path}"
        return None if _may_see(asker, name, self.directory / name) else f"reads {name}"


def _package(path: str) -> str:
    root = next(root for root in _PACKAGES if path.startswith(root))
    return path[len(root) + 1 :].partition(os.sep)[0].removesuffix(".py")


def _is_component(asker: str) -> bool:
    """Whether a file has to stand alone."""
    return asker not in (ORIGINAL, COMPOSITION_TEST) and not asker.endswith("/refactored.py")


def _passes_on(file: str) -> bool:
    rest = file.removeprefix(f"{_STDLIB}{os.sep}")
    return rest != file and rest.startswith(_PASSED_OVER)


def _may_see(asker: str, name: str, path: Path) -> bool:
    """A component sees itself, a step its children and the checks, the composition test all."""
    if asker == name or path.is_dir():
        return True
    if asker.endswith("/refactored.py"):
        folder = asker.removesuffix("refactored.py")
        inside = name.startswith(f"{folder}{CHILDREN}/") or name == CHECKS
        return inside or name.endswith(".json")
    if asker == COMPOSITION_TEST:
        return name.endswith((".py", ".json"))
    return False


def _is_import(caller: FrameType) -> bool:
    """Whether Python itself asks, looking for a module in one place after the other."""
    return caller.f_code.co_filename.startswith("<frozen importlib")


Found = tuple[str, str] | None


def _open(confinement: Confinement, args: tuple[Any, ...]) -> Found:
    path, mode, flags = args
    if isinstance(path, int):
        return None
    asker = confinement.asks()
    if asker is None:
        return None
    name = os.fsdecode(path)
    writes = bool(set(mode or "") & set("wax+")) or bool((flags or 0) & _WRITES)
    if writes and name != os.devnull:
        return None if asker == ORIGINAL else (asker, f"writes {name}")
    if name.endswith(".pyc") and os.path.realpath(name).startswith(confinement._inside):
        raise PermissionError("kdrun: bytecode is not its source")  # importlib takes the source
    fault = confinement.reads(name)
    return (asker, fault) if fault else None


def _listing(confinement: Confinement, args: tuple[Any, ...]) -> Found:
    path = args[0] if args and args[0] is not None else "."
    asker = confinement.asks()
    if asker is None or isinstance(path, int) or _is_import(sys._getframe(3)):
        return None
    fault = confinement.reads(os.fsdecode(path))
    return (asker, fault) if fault else None


def _import(confinement: Confinement, args: tuple[Any, ...]) -> Found:
    name = str(args[0])
    asker = confinement.asks(directly=True)
    root = name.partition(".")[0]
    if asker is None or not _is_component(asker) or root in THE_LANGUAGES_OWN:
        return None  # whether a parent may read the module's file is asked next
    return asker, f"imports {name}"


def _compiling(confinement: Confinement, args: tuple[Any, ...]) -> Found:
    """Code is known by its file's name: nothing may be compiled under another's."""
    source, name = args[0], os.fsdecode(args[1]) if args[1] is not None else "<string>"
    asker = confinement.asks(directly=True)
    if asker is None or name.startswith("<"):
        return None
    text = source.encode() if isinstance(source, str) else source
    try:
        true = isinstance(text, bytes) and Path(name).read_bytes() == text
    except OSError:
        true = False
    return None if true else (asker, f"compiles code under the name {name}")


def _unmarshalling(confinement: Confinement, args: tuple[Any, ...]) -> Found:
    """Python's own imports do so too."""
    asker = confinement.asks(directly=True)
    imports = _is_import(sys._getframe(3))
    return None if asker is None or imports else (asker, "makes code that is in no file")


def _refused(what: str, *, directly: bool = False) -> Callable[..., Found]:
    def rule(confinement: Confinement, args: tuple[Any, ...]) -> Found:
        asker = confinement.asks(directly=directly)
        if asker is None or (asker == ORIGINAL and not directly):
            return None
        return asker, f"{what}{_first(args)}"

    return rule


def _behind(confinement: Confinement, args: tuple[Any, ...]) -> Found:
    if args[1] not in _LOOKING_BEHIND and args[1] != "__class__":
        return None
    asker = confinement.asks(directly=True)
    return (asker, f"looks behind the program: {args[1]}") if asker else None


def _first(args: tuple[Any, ...]) -> str:
    told = next((a for a in args if isinstance(a, str | os.PathLike)), None)
    return "" if told is None else f" {os.fsdecode(told)[:80]}"


_FILE_CHANGES = (
    *("remove", "rename", "mkdir", "rmdir", "link", "symlink", "chmod", "chown", "truncate"),
    *("utime", "setxattr", "removexattr", "mkfifo", "mknod"),
)
_EVENTS: dict[str, Callable[[Confinement, tuple[Any, ...]], Found]] = {
    "open": _open,
    "os.listdir": _listing,
    "os.scandir": _listing,
    "import": _import,
    "compile": _compiling,
    **{f"os.{name}": _refused("changes files:") for name in _FILE_CHANGES},
    **{
        f"os.{name}": _refused("starts a process")
        for name in ("system", "exec", "fork", "forkpty", "posix_spawn", "spawn", "startfile")
    },
    "subprocess.Popen": _refused("starts a process"),
    "pty.spawn": _refused("starts a process"),
    **{f"os.{name}": _refused("ends processes") for name in ("kill", "killpg")},
    "os.chdir": _refused("changes the working directory"),
    "os.putenv": _refused("changes the environment:"),
    "os.unsetenv": _refused("changes the environment:"),
    "object.__getattr__": _behind,
    "object.__setattr__": _behind,
    "sys._getframe": _refused("looks at who calls it", directly=True),
    "sys._current_frames": _refused("looks at who calls it", directly=True),
    "sys.settrace": _refused("traces the program", directly=True),
    "sys.setprofile": _refused("traces the program", directly=True),
    "sys.addaudithook": _refused("traces the program", directly=True),
    "code.__new__": _refused("makes code that is in no file", directly=True),
    "function.__new__": _refused("makes code that is in no file", directly=True),
    "marshal.loads": _unmarshalling,
}
_FAMILIES: dict[str, Callable[[Confinement, tuple[Any, ...]], Found]] = {
    "socket": _refused("uses the network"),
    "urllib": _refused("uses the network:"),
    "http": _refused("uses the network:"),
    "ftplib": _refused("uses the network:"),
    "smtplib": _refused("uses the network:"),
    "shutil": _refused("changes files:"),
    "tempfile": _refused("writes"),
    "ctypes": _refused("calls foreign code", directly=True),
    "gc": _refused("looks at objects that it was not given", directly=True),
    "mmap": _refused("reads memory that is no tensor", directly=True),
}
_OURS = f"{Path(runner.__file__).parent}{os.sep}"

_active: Confinement | None = None
_hooked = False


@contextmanager
def confined(directory: Path) -> Iterator[Confinement]:
    """Hear everything that code of this directory asks for."""
    global _active, _hooked
    if not _hooked:
        sys.addaudithook(_hook)  # stays for good, and does nothing where nobody is confined
        _hooked = True
    before, environment = _active, os.environ
    confinement = Confinement(directory)
    setattr(os, "environ", _Environment(environment, confinement))  # noqa: B010  (it is typed)
    _active = confinement
    try:
        yield confinement
    finally:
        _active = before
        setattr(os, "environ", environment)  # noqa: B010


def settle(what: str) -> None:
    """Some code of whoever is confined ran."""
    if _active is not None:
        _active.settle(what)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _active is not None:
        _active.hear(event, args)


class _Environment(MutableMapping[str, str]):
    """os.environ, which asks who reads it; Python has no audit event for that."""

    def __init__(self, real: MutableMapping[str, str], confinement: Confinement) -> None:
        self._real, self._confinement = real, confinement

    def __getitem__(self, key: str) -> str:
        self._ask(key)
        return self._real[key]

    def __setitem__(self, key: str, value: str) -> None:
        self._real[key] = value  # which is audited

    def __delitem__(self, key: str) -> None:
        del self._real[key]

    def __iter__(self) -> Iterator[str]:
        self._ask("")
        return iter(self._real)

    def __len__(self) -> int:
        return len(self._real)

    def copy(self) -> dict[str, str]:
        """As os.environ has it."""
        self._ask("")
        return dict(self._real)

    def _ask(self, key: str) -> None:
        busy, self._confinement._busy = self._confinement._busy, True
        try:
            asker = self._confinement.asks(directly=True)
        finally:
            self._confinement._busy = busy
        if asker is not None and asker != ORIGINAL:
            self._confinement.offence(asker, f"reads the environment {key}".rstrip())
            raise PermissionError("kdrun: reads the environment")
