"""Lets a process write to its own folder alone, where the kernel can be asked for that.

Linux' Landlock (5.13 and newer) needs no rights and no namespaces:
https://docs.kernel.org/userspace-api/landlock.html. Elsewhere nothing is restricted.
"""

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_NO_NEW_PRIVILEGES = 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_READS = _EXECUTE | _READ_FILE | _READ_FOLDER
_FIRST_WRITES = (1 << 13) - 1 & ~_READS
_BY_VERSION = {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
"""Kernel's version of Landlock -> what it restricts besides: moving, truncating, devices."""
_NETWORK_FROM, _SCOPES_FROM = 4, 6
_TCP, _SIGNALS_AND_SOCKETS = 3, 3
_OF_THE_SYSTEM = (
    *("lib", "lib64", "usr", "etc", "sys", "opt", "bin", "dev/urandom"),
    *("proc/self", "proc/cpuinfo", "proc/meminfo", "proc/stat"),
)


def installed() -> list[Path]:
    """What a program has to read that imports torch and the standard library."""
    roots = {Path(sys.prefix), Path(sys.base_prefix)}
    for folder in (Path(entry) for entry in sys.path if entry.endswith("-packages")):
        roots |= {folder, folder.resolve()}
        with suppress(OSError):  # some installers make links to a cache of packages
            roots |= {each.resolve() for each in folder.iterdir() if each.is_symlink()}
    torch = Path(str(sys.modules["torch"].__file__))
    roots |= {torch.parents[1], torch.resolve().parents[1]}
    return [*(Path("/", name) for name in _OF_THE_SYSTEM), *sorted(roots)]


def confine(folder: Path, readable: Iterable[Path] | None) -> bool:
    """Restrict this process and all that it starts for good; return whether the kernel does so.

    It may write to `folder` and /dev/null, and read `readable`, or everything where that is None.
    It has no network, and reaches no process but its own.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    every = _READS | _FIRST_WRITES
    for since, right in _BY_VERSION.items():
        every |= right if version >= since else 0
    handled = every if readable is not None else every & ~_READS
    network = _TCP if version >= _NETWORK_FROM else 0
    scopes = _SIGNALS_AND_SOCKETS if version >= _SCOPES_FROM else 0
    attributes = struct.pack("QQQ", handled, network, scopes)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    places = [(folder, handled), (Path(os.devnull), handled & (_WRITE_FILE | _READ_FILE))]
    places += [(path, handled & _READS) for path in readable or ()]
    for path, rights in places:
        _allow(libc, ruleset, path, rights)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    confined = bool(libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    os.close(ruleset)
    return confined


def _allow(libc: ctypes.CDLL, ruleset: int, path: Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is not there
    if not path.is_dir():
        rights &= ~_READ_FOLDER & (_EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14 | 1 << 15)
    rule = struct.pack("=Qi", rights, handle)
    libc.syscall(_ADD_RULE, ruleset, 1, rule, 0)
    os.close(handle)
