"""Memory that this process may still allocate: the machine's free memory, limited by cgroups.

A control group's use counts the page cache of the files that its processes have read and written.
The kernel drops the inactive part (inactive_file) as soon as memory is needed, so it counts as free
here. A group is bound by its own limit and by those of all its ancestors.

Formats: https://docs.kernel.org/admin-guide/cgroup-v2.html, .../cgroup-v1/memory.html, proc(5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from . import memory


@dataclass(frozen=True, slots=True)
class _Version:
    """The file names of one version of control groups."""

    limits: tuple[str, ...]
    usage: str
    # field of memory.stat with the reclaimable bytes of the group and its descendants
    reclaimable: str


# memory.high is no hard limit, but the kernel throttles processes above it.
_V2 = _Version(("memory.max", "memory.high"), "memory.current", "inactive_file")
_V1 = _Version(("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file")


def available(proc: Path = Path("/proc")) -> int | None:
    """Return the bytes that this process may still allocate; None if the system does not tell.

    Args:
        proc: the /proc folder.
    """
    limits = (_meminfo(proc, "MemAvailable"), memory.available(), *_groups(proc))
    known = [left for left in limits if left is not None]
    return max(0, min(known)) if known else None


def _groups(proc: Path) -> Iterator[int]:
    """Yield the bytes that remain in each control group that has a limit."""
    paths = dict(_memberships(proc))
    for version, root, mount in _mounts(proc):
        path = paths.get(version)
        if path is None:
            continue
        # A container may see only its own group although /proc has the path from the machine's
        # root.
        within = path.is_relative_to(root) and ".." not in path.parts
        here = mount / (path.relative_to(root) if within else ".")
        while True:
            if (left := _left(here, version)) is not None:
                yield left
            if here == mount:
                break
            here = here.parent


def _memberships(proc: Path) -> Iterator[tuple[_Version, PurePosixPath]]:
    """Yield this process's control groups; version 2 has a single one, version 1 one for memory."""
    for line in _lines(proc / "self/cgroup"):
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            yield _V2, PurePosixPath(path)
        elif "memory" in controllers.split(","):
            yield _V1, PurePosixPath(path)


def _mounts(proc: Path) -> Iterator[tuple[_Version, PurePosixPath, Path]]:
    """Yield the mounts of control groups: version, group at the mount's root, folder."""
    for line in _lines(proc / "self/mountinfo"):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            yield _V2, PurePosixPath(fields[3]), Path(fields[4])
        elif kind[0] == "cgroup" and "memory" in kind[2].split(","):
            yield _V1, PurePosixPath(fields[3]), Path(fields[4])


def _left(group: Path, version: _Version) -> int | None:
    """Return the bytes that a control group may still take; None if it has no limit."""
    limits = [limit for name in version.limits if (limit := _number(group / name)) is not None]
    usage = _number(group / version.usage)
    if not limits or usage is None:
        return None
    stat = dict(line.partition(" ")[::2] for line in _lines(group / "memory.stat"))
    reclaimable = stat.get(version.reclaimable, "0")
    return min(limits) - usage + (int(reclaimable) if reclaimable.isdecimal() else 0)


def _meminfo(proc: Path, name: str) -> int | None:
    for line in _lines(proc / "meminfo"):
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    return None


def _number(path: Path) -> int | None:
    """Return the number in a file; None for "max", or if the file does not exist."""
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdecimal() else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
