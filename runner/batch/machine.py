"""Reads this machine's processor, its free memory, and the memory of this process."""

import os
import platform
from pathlib import Path

GIB = 1 << 30
CGROUP = Path("/sys/fs/cgroup")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def available_bytes() -> int:
    """Return the bytes that can be allocated without swapping, within a container's limit."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    free = int(fields["MemAvailable"].split()[0]) * 1024
    return min(free, _container_bytes(free))


def resident_bytes() -> int:
    """Return the bytes of this process' resident set."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def processor_name() -> str:
    """Return the name of the processor's model, or of its architecture where none is told."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return (names and names[0]) or platform.machine()


def total_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _container_bytes(otherwise: int) -> int:
    """Return the bytes left below the cgroup's limit (version 2, then 1), or `otherwise`."""
    for limit_file, usage_file in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            limit = int((CGROUP / limit_file).read_text())
            return limit - int((CGROUP / usage_file).read_text())
        except (OSError, ValueError):  # The file is missing, or says "max".
            continue
    return otherwise
