"""Reads this machine's processor, its free memory, and the memory of this process."""

import os
import platform
import resource
from pathlib import Path

GIB = 1 << 30
CGROUP = Path("/sys/fs/cgroup")


def cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS


def available_bytes() -> int:
    """Return the bytes that can be allocated without swapping, within a container's limit."""
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        free = int(fields["MemAvailable"].split()[0]) * 1024
    else:  # macOS
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    return min(free, _container_bytes(free))


def resident_bytes() -> int:
    """Return the bytes of this process' resident set."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # macOS: the peak so far, in bytes


def processor_name() -> str:
    """Return the name of the processor's model, or of its architecture where none is told."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
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
