"""Installs a wheel in a root folder that has Debian's Python and nothing else, and checks it there.

    python -m wheels.bare_root dist/wherry-...-manylinux_2_28_x86_64.whl build/wheels/bare

The site for browsers that it packaged there is build/wheels/bare/site (`make accept-site`).
The folder has the packages below, unpacked, without a shell: no compiler, CMake, make or node. The
program needs root, for chroot. What the wheel depends on is downloaded before, outside.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

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
EXTRA = "[browser]"  # what accept.py needs besides the wheel


def make_root(root: Path, downloads: Path) -> None:
    """Unpack Debian's packages into a folder, and make the devices that programs open."""
    downloads.mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", "-qq", *PACKAGES], check=True, cwd=downloads)
    # Debian 12's folders are links into /usr, which no package brings.
    for name in ("bin", "lib", "lib64", "sbin"):
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    for package in sorted(downloads.glob("*.deb")):
        # By tar: dpkg-deb would put folders in the links' places.
        archive = subprocess.run(
            ["dpkg-deb", "--fsys-tarfile", package], check=True, capture_output=True
        ).stdout
        unpack = ["tar", "--extract", "--keep-directory-symlink", "--directory", root]
        subprocess.run(unpack, input=archive, check=True)
    for name in ("dev/shm", "etc", "proc", "root", "sys", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, minor in (("null", "3"), ("zero", "5"), ("random", "8"), ("urandom", "9")):
        if not (root / "dev" / name).exists():
            subprocess.run(["mknod", root / "dev" / name, "c", "1", minor], check=True)
    if not (root / "dev" / "fd").is_symlink():
        (root / "dev" / "fd").symlink_to("/proc/self/fd")
    subprocess.run(["ldconfig", "-r", root], check=True)


def download(wheel: Path, to: Path) -> None:
    """Download what a wheel and its extra depend on, for the root's Python."""
    python = ["--python-version", "3.11", "--implementation", "cp", "--only-binary=:all:"]
    # Debian 12 has glibc 2.36.
    platforms = ["manylinux2014_x86_64", *(f"manylinux_2_{n}_x86_64" for n in range(5, 37))]
    python += [word for name in platforms for word in ("--platform", name)]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", to]
    subprocess.run([*pip, *python, f"{wheel}{EXTRA}"], check=True)


def inside(root: Path, *command: str) -> None:
    """Run a program of the root; with /proc, which tells the CPU and the memory."""
    mounted = 'mount -t proc proc "$1/proc" && exec chroot "$@"'
    enter = ["unshare", "--mount", "--pid", "--fork", "sh", "-c", mounted, "sh"]
    environment = {"PATH": os.environ["PATH"], "HOME": "/root", "LANG": "C.UTF-8"}
    subprocess.run([*enter, str(root), *command], check=True, env=environment)


def check(wheel: Path, work: Path) -> None:
    """Make the root in `work`, install the wheel in it, and run accept.py there."""
    root = (work / "root").resolve()
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    make_root(root, work / "packages")
    (root / "wheels").mkdir()
    download(wheel, root / "wheels")
    shutil.copy(Path(__file__).with_name("accept.py"), root / "accept.py")
    inside(root, PYTHON, "-m", "venv", "/venv")
    pip = ("/venv/bin/python", "-m", "pip", "install", "--quiet", "--no-compile", "--no-index")
    inside(root, *pip, "--find-links", "/wheels", f"/wheels/{wheel.name}{EXTRA}")
    inside(root, "/venv/bin/python", "/accept.py", "--site", "/site")
    shutil.rmtree(work / "site", ignore_errors=True)
    shutil.move(root / "site", work / "site")


def main() -> None:
    """Check the wheel that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("work", type=Path, help="a folder for the root and for downloads")
    options = parser.parse_args()
    check(options.wheel, options.work)


if __name__ == "__main__":
    main()
