# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the figures were measured on, and how much memory may be used."""

import os
import pathlib
import platform
import subprocess

CPU = pathlib.Path("/sys/devices/system/cpu")
CGROUP = pathlib.Path("/sys/fs/cgroup/memory.max")
HUGE = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
KEEP_MIB = 1024         # for everybody else


def read(path, default=""):
    try:
        return pathlib.Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return default


def value(path, name):
    """Of the line that begins so."""
    for line in read(path).splitlines():
        key, _, text = line.partition(":")
        if key.strip() == name:
            return text.strip()
    return ""


def memory_mib():
    """The memory that is available without evicting anything else."""
    free = int(value("/proc/meminfo", "MemAvailable").split()[0]) // 1024
    limit = read(CGROUP)
    if limit.isdigit():
        free = min(free, int(limit) >> 20)
    return max(free - KEEP_MIB, free // 2)


def caches():
    found = []
    for index in sorted(CPU.glob("cpu0/cache/index*")):
        if read(index / "type") == "Instruction":
            continue
        shared = read(index / "shared_cpu_list")
        found.append(f"L{read(index / 'level')} {read(index / 'size')}iB" +
                     ("" if shared == "0" else f" (processors {shared})"))
    return ", ".join(found) or "unknown"


def compiler(variable, default):
    command = os.environ.get(variable, default)
    try:
        done = subprocess.run([command, "--version"], check=True,
                              stdout=subprocess.PIPE, text=True)
    except (OSError, subprocess.CalledProcessError):
        return command
    return done.stdout.splitlines()[0]


def processor():
    model = value("/proc/cpuinfo", "model name") or platform.machine()
    virtual = "hypervisor" in value("/proc/cpuinfo", "flags").split()
    return f"{os.cpu_count()} x {model}" + (" (virtual)" if virtual else "")


def load():
    return " ".join(read("/proc/loadavg").split()[:3])


def disk(folder):
    """The file system and the disk below @folder, in a line."""
    device = os.stat(folder).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    kind, source = "unknown", "no device"
    for mount in read("/proc/self/mountinfo").splitlines():
        left, _, right = mount.partition(" - ")
        if left.split()[2] == number:
            kind, source = right.split()[:2]
    block = pathlib.Path("/sys/dev/block", number).resolve()
    if (block / "partition").exists():
        block = block.parent
    queue = block / "queue"
    rotates = read(queue / "rotational") == "1"
    return (f"{kind} on {source} ({read(block / 'device/model') or block.name}, "
            f"{'rotating' if rotates else 'not rotating'}, "
            f"{read(queue / 'write_cache', 'cache unknown')}, "
            f"FUA {read(queue / 'fua', 'unknown')})")


def describe():
    """Rows of (what, which)."""
    total = int(value("/proc/meminfo", "MemTotal").split()[0]) / 2 ** 20
    return [
        ("processor", processor()),
        ("caches", caches()),
        ("memory", f"{total:.1f} GiB, {memory_mib()} MiB of it for this run"),
        ("kernel", f"{platform.system()} {platform.release().split('-')[0]}"),
        ("huge pages", f"{read(HUGE, 'none')}; asked for by madvise()"),
        ("compilers", f"{compiler('CC', 'gcc')}; {compiler('CXX', 'g++')}"),
        ("load before", load()),
    ]


def line():
    """The same of a daemon, in a line."""
    rows = dict(describe())
    return (f"engine {os.environ.get('EXPIRY_ENGINE', 'embedded')}, "
            f"{rows['kernel']}, {rows['processor']}")
