"""Memory in containers, by made-up trees of control groups; and what macOS and Windows tell."""

from __future__ import annotations

import ctypes
import struct

import pytest

from wherry.machine import memory
from wherry.machine.host_memory import available

GB = 10**9
NONE_V1 = 9223372036854771712  # "no limit" in version 1


@pytest.fixture
def proc(tmp_path):
    """A /proc of a machine with 64 GB free and no group; `mounted` says where groups are."""
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "meminfo").write_text(
        f"MemTotal: 99999999 kB\nMemAvailable: {64 * GB // 1024} kB\n"
    )
    return tmp_path / "proc"


def mounted(proc, cgroup, *mounts):
    (proc / "self" / "cgroup").write_text("\n".join(cgroup) + "\n")
    lines = [
        f"{i} 1 0:{i} {root} {place} rw,nosuid shared:4 - {kind} {kind} {options}"
        for i, (root, place, kind, options) in enumerate(mounts, 30)
    ]
    (proc / "self" / "mountinfo").write_text("\n".join(["1 0 8:1 / / rw - ext4 x rw", *lines]))


def group(folder, limit=None, used=0, inactive=0, high=None):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit or 'max'}\n")
    (folder / "memory.high").write_text(f"{high or 'max'}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {inactive}\nactive_file 3\n")


def group_v1(folder, limit, used, inactive):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (folder / "memory.usage_in_bytes").write_text(f"{used}\n")
    stat = f"inactive_file 0\ntotal_inactive_file {inactive}\n"
    (folder / "memory.stat").write_text(stat)


def test_without_groups_it_is_the_machines(proc):
    assert available(proc) == 64 * GB // 1024 * 1024
    (proc / "meminfo").unlink()
    assert available(proc) is None


def test_page_cache_is_free(proc, tmp_path):
    """What a conversion has written and read fills the group, and goes when it is in the way."""
    top = tmp_path / "sys"
    mounted(proc, ["0::/"], ("/", top, "cgroup2", "rw"))
    group(top, 8 * GB, 8 * GB, inactive=6 * GB)
    assert available(proc) == 6 * GB
    group(top, 8 * GB, 9 * GB)
    assert available(proc) == 0


def test_the_tightest_of_nested_groups_wins(proc, tmp_path):
    top = tmp_path / "sys"
    mounted(proc, ["0::/a/b/c"], ("/", top, "cgroup2", "rw"))
    group(top)
    (top / "memory.max").unlink()  # the root has none
    group(top / "a", 4 * GB, 3 * GB)
    group(top / "a" / "b", 8 * GB, 1 * GB)
    group(top / "a" / "b" / "c")
    group(top / "x", 1, 0)  # not ours
    assert available(proc) == 1 * GB
    group(top / "a" / "b" / "c", 2 * GB, 3 * GB // 2)
    assert available(proc) == GB // 2
    group(top / "a", 4 * GB, 3 * GB, high=3 * GB)
    assert available(proc) == 0


def test_a_container_that_sees_paths_of_the_machine(proc, tmp_path):
    """Without a namespace of its own the container sees its group mounted at the top."""
    top = tmp_path / "sys"
    mounted(proc, ["0::/docker/123/inner"], ("/docker/123", top, "cgroup2", "rw"))
    group(top, 8 * GB, 2 * GB)
    group(top / "inner", 3 * GB, 1 * GB)
    assert available(proc) == 2 * GB
    mounted(proc, ["0::/elsewhere"], ("/docker/123", top, "cgroup2", "rw"))
    assert available(proc) == 6 * GB
    mounted(proc, ["0::/../other"], ("/", top, "cgroup2", "rw"))  # moved out of its namespace
    assert available(proc) == 6 * GB


def test_version_1(proc, tmp_path):
    memory, cpu = tmp_path / "memory", tmp_path / "cpu"
    mounted(
        proc,
        ["12:cpu,cpuacct:/a", "5:memory:/a/b", "0::/a"],
        ("/", cpu, "cgroup", "rw,cpu,cpuacct"),
        ("/", memory, "cgroup", "rw,memory"),
    )
    group_v1(memory, NONE_V1, 9 * GB, 0)
    group_v1(memory / "a", 6 * GB, 5 * GB, 2 * GB)
    group_v1(memory / "a" / "b", NONE_V1, 1 * GB, 0)
    assert available(proc) == 3 * GB


def test_both_versions_at_once(proc, tmp_path):
    memory, unified = tmp_path / "memory", tmp_path / "unified"
    mounted(
        proc,
        ["5:memory:/", "0::/"],
        ("/", memory, "cgroup", "rw,memory"),
        ("/", unified, "cgroup2", "rw"),
    )
    group_v1(memory, 6 * GB, 1 * GB, 0)
    group(unified, 7 * GB, 4 * GB)
    assert available(proc) == 3 * GB


def test_this_machine_tells():
    assert available() > 10_000_000


class Mach:
    """The two calls of libSystem that tell the memory; status 0 is success."""

    def __init__(self, status: int) -> None:
        self.status = status

    def mach_host_self(self) -> int:
        return 7

    def host_statistics64(self, host, flavor, record, count) -> int:
        assert (host, flavor) == (7, 4)
        assert count._obj.value * 4 == ctypes.sizeof(record._obj)
        # As the kernel writes them: four counts of pages first.
        ctypes.memmove(record, struct.pack("4I", 1000, 2000, 30, 4000), 16)
        return self.status


def test_macos_tells_free_and_inactive_pages():
    assert memory.of_macos(Mach(0), 16384) == 1030 * 16384
    assert memory.of_macos(Mach(1), 16384) is None


class Kernel:
    """kernel32's call: bytes available in memory, and what may still be committed."""

    def __init__(self, physical: int, commit: int) -> None:
        self.numbers = struct.pack("2I7Q", 64, 50, 1 << 34, physical, 1 << 35, commit, 0, 0, 0)

    def GlobalMemoryStatusEx(self, record) -> int:
        assert record._obj.length == ctypes.sizeof(record._obj) == len(self.numbers) == 64
        ctypes.memmove(record, self.numbers, 64)
        return 1


def test_windows_tells_what_may_be_committed():
    assert memory.of_windows(Kernel(8 << 30, 9 << 30)) == 8 << 30
    assert memory.of_windows(Kernel(8 << 30, 7 << 30)) == 7 << 30
