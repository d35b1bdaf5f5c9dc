"""Installs a wheel in a root folder that has Debian's Python and nothing else, and checks it there.

    python -m wheels.bare_root dist/wherry-...-manylinux_2_28_x86_64.whl build/wheels/bare

The site for browsers that it packaged there is build/wheels/bare/site (`make accept-site`).
The folder has the packages below, unpacked, without a shell: no compiler, CMake, make or node. The
program needs root, for chroot. What the wheel depends on is downloaded before, outside.

The programs of a wheel for another machine run under QEMU, which a user namespace of their own
registers (Linux 6.7 or later): nothing is installed on this machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .machines import Machine, here, of_wheel

# python3.11 and the libraries of its modules, as in Debian 12.
PACKAGES = (
    "gcc-12-base",
    "libbz2-1.0",
    "libc6",
    "libcrypt1",
    "libexpat1",
    "libffi8",
    "libgcc-s1",
    "liblzma5",
    "libncursesw6",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "libreadline8",
    "libsqlite3-0",
    "libssl3",
    "libstdc++6",
    "libtinfo6",
    "libuuid1",
    "python3-pip-whl",
    "python3-setuptools-whl",
    "python3.11",
    "python3.11-minimal",
    "python3.11-venv",
    "zlib1g",
)
PYTHON = "/usr/bin/python3.11"
EXTRA = "[browser]"  # what accept.py needs besides the wheel, for all of its steps
EMULATOR = "qemu"  # in the root
# As in Debian's package qemu-user-static: the head of an aarch64 program, and the bits of it that
# count. F: the kernel opens the emulator once, before chroot. P: programs learn their own name.
FORMAT = (
    r":qemu:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:{qemu}:FP"
)


class Debian:
    """Packages of Debian's, for one architecture; this machine's own are left as they are."""

    def __init__(self, architecture: str, work: Path) -> None:
        """Read the lists of packages, of the sources that this machine has.

        Args:
            architecture: Debian's name of it.
            work: a folder for lists and packages.
        """
        self._folder = (work / f"debian-{architecture}").resolve()
        for name in ("state/lists/partial", "cache/archives/partial", "packages"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        (self._folder / "state" / "status").touch()
        options = {
            "APT::Architecture": architecture,
            "APT::Architectures": architecture,
            "APT::Sandbox::User": "root",  # the folder is root's
            "Dir::State": self._folder / "state",
            "Dir::State::status": self._folder / "state" / "status",
            "Dir::Cache": self._folder / "cache",
        }
        self._apt = ["apt-get", "-qq"]
        self._apt += [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        subprocess.run([*self._apt, "update"], check=True)

    def download(self, *names: str) -> list[Path]:
        """Download packages; return their files."""
        packages = self._folder / "packages"
        subprocess.run([*self._apt, "download", *names], check=True, cwd=packages)
        files_of = [sorted(packages.glob(f"{name}_*.deb")) for name in names]
        return [files[-1] for files in files_of]


def unpack(package: Path, to: Path, *names: str) -> None:
    """Unpack a package's files; `names`: only these.

    By tar: dpkg-deb would put folders in the place of the root's links.
    """
    archive = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True
    ).stdout
    command = ["tar", "--extract", "--keep-directory-symlink", "--directory", to, *names]
    subprocess.run(command, input=archive, check=True)


def make_root(root: Path, packages: list[Path]) -> None:
    """Unpack Debian's packages into a folder, and make the devices that programs open."""
    # Debian 12's folders are links into /usr, which no package brings.
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(f"usr/{name}")
    for package in packages:
        unpack(package, root)
    for name in ("dev/shm", "etc", "proc", "root", "sys", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, minor in (("null", "3"), ("zero", "5"), ("random", "8"), ("urandom", "9")):
        subprocess.run(["mknod", root / "dev" / name, "c", "1", minor], check=True)
    (root / "dev" / "fd").symlink_to("/proc/self/fd")
    subprocess.run(["ldconfig", "-r", root], check=True)


def add_emulator(root: Path, machine: Machine, work: Path) -> None:
    """Put QEMU for a machine's programs into its root."""
    own = subprocess.check_output(["dpkg", "--print-architecture"], text=True).strip()
    (package,) = Debian(own, work).download("qemu-user-static")
    name = f"qemu-{machine.architecture}-static"
    unpack(package, work, f"./usr/bin/{name}")
    shutil.copy(work / "usr" / "bin" / name, root / EMULATOR)


def download(wheel: Path, machine: Machine, to: Path) -> None:
    """Download what a wheel and its extra depend on, for the root's Python."""
    python = ["--python-version", "3.11", "--implementation", "cp", "--only-binary=:all:"]
    # Debian 12 has glibc 2.36.
    names = ["manylinux2014", *(f"manylinux_2_{n}" for n in range(5, 37))]
    python += [word for name in names for word in ("--platform", f"{name}_{machine.architecture}")]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", to]
    subprocess.run([*pip, *python, f"{wheel}{EXTRA}"], check=True)


def inside(root: Path, *command: str) -> None:
    """Run a program of the root; with /proc, which tells the CPU and the memory."""
    script = ['mount -t proc proc "$1/proc"', 'exec chroot "$@"']
    namespaces = ["--mount", "--pid", "--fork"]
    environment = {"PATH": os.environ["PATH"], "HOME": "/root", "LANG": "C.UTF-8"}
    if (root / EMULATOR).exists():
        # A user namespace has programs' formats of its own, which end with it.
        namespaces += ["--user", "--map-root-user"]
        script[1:1] = [
            'mount -t binfmt_misc none "$1/sys"',
            'printf %s "$FORMAT" > "$1/sys/register"',
        ]
        environment["FORMAT"] = FORMAT.format(qemu=root / EMULATOR)
    enter = ["unshare", *namespaces, "sh", "-c", " && ".join(script), "sh"]
    subprocess.run([*enter, str(root), *command], check=True, env=environment)


def check(wheel: Path, work: Path, steps: list[str]) -> None:
    """Make the root in `work`, install the wheel in it, and run accept.py's steps there."""
    machine = of_wheel(wheel.name)
    root = (work / "root").resolve()
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    make_root(root, Debian(machine.debian, work).download(*PACKAGES))
    if machine != here():
        add_emulator(root, machine, work)
    (root / "wheels").mkdir()
    download(wheel, machine, root / "wheels")
    shutil.copy(Path(__file__).with_name("accept.py"), root / "accept.py")
    inside(root, PYTHON, "-m", "venv", "/venv")
    pip = ("/venv/bin/python", "-m", "pip", "install", "--quiet", "--no-compile", "--no-index")
    inside(root, *pip, "--find-links", "/wheels", f"/wheels/{wheel.name}{EXTRA}")
    inside(root, "/venv/bin/python", "/accept.py", *steps, "--site", "/site")
    if (root / "site").exists():
        shutil.rmtree(work / "site", ignore_errors=True)
        shutil.move(root / "site", work / "site")


def main() -> None:
    """Check the wheel that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("work", type=Path, help="a folder for the root and for downloads")
    parser.add_argument("steps", nargs="*", help="of accept.py; default: all")
    options = parser.parse_args()
    check(options.wheel, options.work, options.steps)


if __name__ == "__main__":
    main()
