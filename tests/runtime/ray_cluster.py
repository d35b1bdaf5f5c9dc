"""Ray and Wherry on it, in processes of their own that end with the test."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_START_SECONDS = 600


def make_venv(folder: Path) -> Path:
    """A virtual environment with Ray over this one's packages; its folder of programs."""
    (pinned,) = re.findall(r'"(ray\[serve\]==[\d.]+)"', (ROOT / "pyproject.toml").read_text())
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    here = sysconfig.get_path("purelib")
    (site / "wherry-tests.pth").write_text(f"{ROOT / 'src'}\n{here}\n")
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", pinned]
    subprocess.run(pip, check=True)
    return folder / "bin"


class Cluster:
    """A running application.

    Attributes:
        url: where it answers.
    """

    def __init__(self, process: subprocess.Popen[bytes], url: str, log: Path) -> None:
        self._process, self.url, self._log = process, url, log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def open(self, path: str, body=None, timeout: float = 120, key: str = "none"):
        """The response to a request, whose body is not read yet."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        request = urllib.request.Request(self.url + path, data, headers)
        return urllib.request.urlopen(request, timeout=timeout)

    def ask(self, path: str, body=None, **options):
        """The replica that answered, and its answer."""
        with self.open(path, body, **options) as answer:
            return replica_of(answer), json.load(answer)

    def wait(self, until, seconds: float, what: str):
        """What `until` returns once it is true."""
        end = time.monotonic() + seconds
        while not (value := until()):
            assert self._process.poll() is None, self.log[-4000:]
            assert time.monotonic() < end, f"not {what}:\n{self.log[-4000:]}"
            time.sleep(0.2)
        return value

    def process_of(self, replica: str) -> int:
        """The process of a replica: who writes its log."""
        for pid, log in self._logs():
            if log.endswith(f"_{replica}.log"):
                return pid
        raise AssertionError(f"no process of {replica}")

    def processes(self, deployment: str) -> set[int]:
        """The processes of all replicas of a deployment, as "wherry_Ingress"."""
        return {pid for pid, log in self._logs() if log.startswith(f"replica_{deployment}_")}

    def _logs(self) -> Iterator[tuple[int, str]]:
        """Each process of the cluster, with each file that it holds open."""
        for pid in descendants(self._process.pid):
            with contextlib.suppress(OSError):
                for fd in Path(f"/proc/{pid}/fd").iterdir():
                    yield pid, fd.readlink().name

    def alive(self) -> bool:
        with contextlib.suppress(OSError):
            return self.ask("/health", timeout=5)[1] == {"status": "ok"}
        return False


def replica_of(answer) -> str:
    return answer.headers["X-Wherry-Replica"]


def descendants(pid: int) -> list[int]:
    """The processes that `pid` has started, and those that these have."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    pids = list(children.get(pid, ()))
    for child in pids:
        pids += children.get(child, ())
    return pids


@contextlib.contextmanager
def cluster(programs: Path, folder: Path, config: str):
    """Run a config file of Ray Serve; all processes are gone afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "serve.yaml").write_text(config.replace("PORT", str(port)))
    environment = {
        **os.environ,
        "HOME": str(folder),  # Ray writes a token there
        "RAY_TMPDIR": str(folder),
        "RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES": str(100 * 2**20),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_OVERRIDE_RESOURCES": "",
    }
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [programs / "serve", "run", folder / "serve.yaml"],
            env=environment,
            cwd=folder,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    running = Cluster(process, f"http://127.0.0.1:{port}", log)
    try:
        running.wait(running.alive, _START_SECONDS, "serving")
        yield running
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """End Ray as Ctrl-C does, and by force what that leaves."""
    started = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(60)
    process.kill()
    process.wait()
    for pid in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
