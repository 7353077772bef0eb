"""Restricts a process to writing to its own folder, if the Linux kernel supports that.

Landlock (Linux 5.13 and newer) and seccomp need no privileges and no namespaces:
https://docs.kernel.org/userspace-api/landlock.html, .../seccomp_filter.html. Other systems restrict
nothing.
"""

import ctypes
import functools
import os
import platform
import struct
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_NO_NEW_PRIVILEGES = 38
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_READS = _EXECUTE | _READ_FILE | _READ_FOLDER
_INITIAL_WRITES = (1 << 13) - 1 & ~_READS
_RIGHTS_BY_VERSION = {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
"""Maps a Landlock version to the right that it adds: moving, truncating, device control."""
_NETWORK_VERSION, _SCOPES_VERSION = 4, 6
_TCP, _SIGNALS_AND_SOCKETS = 3, 3
_SECCOMP, _FILTER = 22, 2
_ALLOW, _REFUSE, _PRETEND = 0x7FFF0000, 0x00050001, 0x00050000
"""Results of a filter for a system call: allow it, fail with EPERM, or return 0 without it."""
_UNIX = 1
_REFUSED_TO_COMPONENTS = {
    "x86_64": (90, 91, 92, 93, 94, 132, 235, 260, 261, 268, 280, 452, *range(188, 191)),
    "aarch64": (5, 6, 7, 52, 53, 54, 55, 88, 452),
}
"""Numbers of chmod, chown, utime, setxattr and similar calls, by machine."""
_GROUP_CALLS = {"x86_64": (109, 112), "aarch64": (154, 157)}
"""Numbers of setpgid and setsid, which also the tools that run compilers call."""
_REFUSED_TO_ALL = {
    "x86_64": (101, 165, 248, 249, 250, 272, 308, 310, 311, 321, 323, 424, 425, 438),
    "aarch64": (40, 97, 117, 217, 218, 219, 268, 270, 271, 280, 282, 424, 425, 438),
}
"""Numbers of system calls that no process needs, by machine.

ptrace, mount, keys, namespaces, memory of other processes, bpf, userfaultfd, pidfds, io_uring.
"""
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""Maps a machine to its architecture number in filters, and to its number of socket()."""
_SYSTEM_PATHS = (
    *("lib", "lib64", "usr", "etc", "sys", "opt", "bin", "dev/urandom"),
    *("proc/self", "proc/cpuinfo", "proc/meminfo", "proc/stat"),
)


def system_paths() -> list[Path]:
    """Return the paths that a program has to read to import torch and the standard library."""
    roots = {Path(sys.prefix), Path(sys.base_prefix)}
    for folder in (Path(entry) for entry in sys.path if entry.endswith("-packages")):
        roots |= {folder, folder.resolve(), *_link_targets(folder)}
    torch_file = Path(str(sys.modules["torch"].__file__))
    roots |= {torch_file.parents[1], torch_file.resolve().parents[1]}
    return [*(Path("/", name) for name in _SYSTEM_PATHS), *sorted(roots)]


@functools.cache  # A judge asks once for each file, and the folder may hold thousands of entries.
def _link_targets(folder: Path) -> frozenset[Path]:
    """Return what the links in a folder of packages point to; some installers link to a cache."""
    with suppress(OSError):
        return frozenset(link.resolve() for link in folder.iterdir() if link.is_symlink())
    return frozenset()


def confine(folder: Path, readable: Iterable[Path] | None, *, has_compilers: bool = False) -> bool:
    """Restrict this process and its later children for good; return whether the kernel does so.

    They may write to `folder` and /dev/null, and read `readable`, or everything if that is None.
    They have no network and reach no processes but their own. If `readable` is not None, they
    cannot change owners, modes and times of files either, nor leave their process group. With
    `has_compilers`, leaving it seems to work, since the tools that run compilers insist on that.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(_CREATE_RULESET, None, 0, 1)
    if version < 1:
        return False
    all_rights = _READS | _INITIAL_WRITES
    for first_version, right in _RIGHTS_BY_VERSION.items():
        all_rights |= right if version >= first_version else 0
    restricted = all_rights if readable is not None else all_rights & ~_READS
    network = _TCP if version >= _NETWORK_VERSION else 0
    scopes = _SIGNALS_AND_SOCKETS if version >= _SCOPES_VERSION else 0
    attributes = struct.pack("QQQ", restricted, network, scopes)
    ruleset = libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    rules = [(folder, restricted), (Path(os.devnull), restricted & (_WRITE_FILE | _READ_FILE))]
    rules += [(path, restricted & _READS) for path in readable or ()]
    for path, rights in rules:
        _allow_path(libc, ruleset, path, rights)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    confined = bool(libc.syscall(_RESTRICT_SELF, ruleset, 0) == 0)
    os.close(ruleset)
    _install_filter(libc, component=readable is not None, has_compilers=has_compilers)
    return confined


def _install_filter(libc: ctypes.CDLL, *, component: bool, has_compilers: bool) -> None:
    """Refuse sockets other than Unix ones, and system calls that a computation does not need."""
    machine = platform.machine()
    if machine not in _MACHINES:
        return
    architecture, socket = _MACHINES[machine]
    refused = [*_REFUSED_TO_ALL[machine], *(_REFUSED_TO_COMPONENTS[machine] if component else ())]
    group_calls = _GROUP_CALLS[machine] if component else ()
    pretended = group_calls if has_compilers else ()
    refused += () if has_compilers else group_calls
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    steps = [(load, 0, 0, 4), (equal, 1, 0, architecture), (answer, 0, 0, _ALLOW), (load, 0, 0, 0)]
    # Numbers from here on belong to the x32 interface.
    numbers = [*refused, *pretended]
    steps.append((at_least, len(numbers) + 3, 0, 1 << 30))
    for remaining, number in zip(range(len(numbers), 0, -1), numbers, strict=True):
        steps.append((equal, remaining + (4 if number in pretended else 2), 0, number))
    steps += [(equal, 0, 3, socket), (load, 0, 0, 16), (equal, 1, 0, _UNIX)]
    steps += [(answer, 0, 0, result) for result in (_REFUSE, _ALLOW, _PRETEND)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    description = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
    libc.prctl(_SECCOMP, _FILTER, ctypes.create_string_buffer(description), 0, 0)


def _allow_path(libc: ctypes.CDLL, ruleset: int, path: Path, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # The path does not exist.
    if not path.is_dir():
        rights &= ~_READ_FOLDER & (_EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14 | 1 << 15)
    rule = struct.pack("=Qi", rights, handle)
    libc.syscall(_ADD_RULE, ruleset, 1, rule, 0)
    os.close(handle)
