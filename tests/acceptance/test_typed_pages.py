"""The pages' commands, typed line by line in a fresh clone with a fresh HOME, as by a newcomer.

`PAGES` says what a line must print or leave behind, or why it is not typed here. A line that it
does not name must succeed, and what it names must be on the page.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SECONDS = 1800.0  # of one line: a build on a busy machine
HUB = "downloads a model"
SYSTEM = "installs packages of the system"
TESTED = "has tests of its own"
NO_NDK = "sdkmanager" if not os.environ.get("ANDROID_NDK_HOME") else ""


@dataclass(frozen=True)
class Line:
    """What a line does.

    Attributes:
        start: how it begins.
        says: a pattern of what it prints; for a server, of what it prints when it is ready.
        leaves: a path, from where it is typed, that is there afterwards.
        skip: why it is not typed.
        status: its exit code.
        serves: it runs until the next line that is no client of it.
        tool: a program without which it is not typed.
        instead: replaces a part of it: (what, with).
        client: it asks the server of an earlier line.
    """

    start: str
    says: str = ""
    leaves: str = ""
    skip: str = ""
    status: int = 0
    serves: bool = False
    tool: str = ""
    instead: tuple[str, str] = ("", "")
    client: bool = False


DEMO = Line("make demo", says=r"(?i)fox")
WITHOUT_NDK = {"status": 5 if NO_NDK else 0, "says": NO_NDK}
PAGES: dict[str, tuple[Line, ...]] = {
    "README.md": (
        DEMO,
        Line("make test", skip=TESTED),
        Line("wherry doctor", says="type: wherry run demo"),
        Line("wherry run demo "),
        Line('wherry run demo "How many', says=r"(?i)eight|8"),
        Line("wherry run hf://", skip=HUB),
        Line("wherry run ./my-model.gguf", skip="the reader's file"),
        Line("wherry serve demo", says=r"http://127\.0\.0\.1:8000", serves=True),
        Line("curl http://127.0.0.1:8000/v1/chat", says=r'"content": ?"\w', client=True),
        Line("wherry serve hf://", skip=HUB),
        Line("apt install", skip=SYSTEM),
        Line("make browser", tool="em++", leaves="build/dev/page/index.html"),
        Line("wherry package demo --target webgpu", tool="em++", says="http://", serves=True),
        Line("wherry package demo --target android", **WITHOUT_NDK),
        Line("python: from wherry import MLCEngine", says=r"(?i)fox"),
    ),
    "docs/quickstart.md": (
        DEMO,
        Line('wherry run demo "How many', says=r"(?i)eight|8"),
        Line("wherry run demo --completion", says=r"\w+ \w+"),
        Line("wherry serve demo", says=r"http://127\.0\.0\.1:8000", serves=True),
        Line("python: from openai", says=r"\w+", client=True),
        Line("python: from wherry", says=r"\w+ \w+"),
        Line("wherry compile demo --target cpu", leaves="demo-v3/wherry.json"),
        Line("wherry compile demo --target opencl", leaves="demo-opencl/wherry.json"),
    ),
    "docs/install.md": (
        Line("pip install dist/wherry", skip=TESTED),
        Line('wherry run demo "Tell', skip=TESTED),
        Line('pip install "dist/wherry', skip=TESTED),
        Line("wherry package demo", skip=TESTED),
    ),
    "web/README.md": (
        Line("make demo browser npm", tool="em++", leaves="dist/wherry-0.1.0.tgz"),
        Line("wherry compile demo", tool="em++", leaves="models/demo/wherry.json"),
        Line(
            "npm install path/to/wherry/",
            tool="em++",
            instead=("npm install path/to/wherry/", 'npm install --prefix "$HOME/page" "$PWD"/'),
            leaves="../home/page/node_modules/wherry/dist/index.js",
        ),
        Line("python: from wherry import AsyncMLCEngine", skip="Python in a browser: " + TESTED),
        Line("Cross-Origin-Opener-Policy", skip="a header"),
        Line("Cross-Origin-Embedder-Policy", skip="a header"),
    ),
    "mobile/README.md": (
        Line("wherry package demo --target android:opencl", **WITHOUT_NDK),
        Line("wherry package demo --target iphone", leaves="wherry/Package.swift"),
        Line("mkdir -p build/swift", skip=TESTED),
        Line("export LD_LIBRARY_PATH", skip=TESTED),
        Line("python -m tests.mobile.swift_cases", skip=TESTED),
        Line("python -m wherry.tools xgrammar", says="xgrammar: "),
        Line("wherry package demo --target android --grammar", **WITHOUT_NDK),
        Line("wherry package demo --target linux-aarch64", tool="aarch64-linux-gnu-g++"),
        Line("aarch64-linux-gnu-g++ main.cc", skip="the reader's program"),
        Line("pip install 'wherry[apps]' && apt-get", skip=SYSTEM),
        Line("python -m wherry.tools httplib", says="httplib: "),
        Line(
            "wherry package demo --target linux-aarch64 --cpu",
            tool="aarch64-linux-gnu-g++",
            leaves="out/bin/linux-aarch64/wherry-lite",
        ),
        Line("scp ", skip="a board"),
        Line("./wherry-lite chat", skip="a board"),
        Line("./wherry-lite run", skip="a board"),
        Line("./wherry-lite serve", skip="a board"),
        Line("curl http://pi", skip="a board"),
        *(Line(word, skip="systemd's") for word in ("[Service]", "Exec", "Environment", "Restart")),
        Line("wherry package demo --target android --target android-x86_64", **WITHOUT_NDK),
        Line("make release", skip="needs an NDK; " + TESTED),
    ),
    "CONTRIBUTING.md": (
        Line("make check", says=r"\d+ passed"),
        Line("python -m pytest -q tests/models", says=r"\d+ passed"),
    ),
}
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```\n|((?:^    [^\n]*\n)+)", re.MULTILINE | re.DOTALL)


def typed(page: str) -> Iterator[str]:
    """The lines of a page that a person types; a block of Python is one, after "python: "."""
    for language, body, indented in BLOCK.findall((ROOT / page).read_text()):
        text = re.sub(r"^    ", "", indented, flags=re.MULTILINE) or body
        if language == "python":
            yield f"python: {text}"
        elif indented or language in ("", "sh", "bash"):
            yield from filter(None, map(str.strip, text.replace("\\\n", " ").splitlines()))


def expected(page: str, line: str) -> Line:
    """What a line of a page must do: the row that says most of it, else that it succeeds."""
    rows = [row for row in PAGES[page] if line.startswith(row.start)]
    return max(rows, key=lambda row: len(row.start), default=Line(line))


class Newcomer:
    """A shell in a fresh clone, with a HOME of its own, that keeps its variables between lines."""

    def __init__(self, place: Path) -> None:
        self.clone, self._home = place / "wherry", place / "home"
        self._home.mkdir()
        self._server: subprocess.Popen[bytes] | None = None
        subprocess.run(["git", "clone", "--quiet", ROOT, self.clone], check=True)
        person = Path.home()  # the settings of registries are the machine's
        kept = ("PATH", "LANG", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "PIP_INDEX_URL")
        self._environment = {name: os.environ[name] for name in kept if name in os.environ}
        self._environment |= {"HOME": str(self._home), "PIP_QUIET": "1"}
        for variable, file in (
            ("PIP_CONFIG_FILE", person / ".config" / "pip" / "pip.conf"),
            ("NPM_CONFIG_USERCONFIG", person / ".npmrc"),
        ):
            if file.is_file():
                self._environment[variable] = str(file)

    def type(self, line: str, row: Line) -> None:
        """Type a line, and compare what it does."""
        if not row.client:
            self.stop()
        log = self._home.with_name("server-log" if row.serves else "log")  # both may be written
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-c", self._script(line, row)],
                cwd=self.clone,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        end = time.monotonic() + SECONDS
        while process.poll() is None and time.monotonic() < end:
            if row.serves and re.search(row.says, log.read_text(errors="replace")):
                self._server = process
                break
            time.sleep(0.1)
        said = log.read_text(errors="replace")
        assert re.search(row.says, said), (line, said[-4000:])
        if self._server is process:
            address = re.search(r"http://127\.0\.0\.1:\d+", said)
            assert address and urllib.request.urlopen(f"{address[0]}/").status == 200, said
        else:
            assert process.poll() == row.status and not row.serves, (line, said[-4000:])
        assert not row.leaves or (self.clone / row.leaves).exists(), (line, row.leaves)

    def _script(self, line: str, row: Line) -> str:
        """The line in a shell that begins with the variables that the last one had."""
        if line.startswith("python: "):
            self._home.with_name("block.py").write_text(line.removeprefix("python: "))
            module = "python -m pip install openai && " if "import OpenAI" in line else ""
            line = f"{module}python ../block.py"
        line = line.replace(*row.instead) if row.instead[0] else line
        variables = f"'{self._home.with_name('variables')}'"
        script = f"[ ! -e {variables} ] || . {variables}\n{line}\nstatus=$?\n"
        return f"{script}export -p > {variables}; exit $status"

    def stop(self) -> None:
        """Stop the server of an earlier line, as Ctrl-C does."""
        if self._server is not None:
            os.killpg(self._server.pid, signal.SIGINT)
            self._server.wait(60)
            self._server = None


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory):
    """One for all pages, README's first: what a page needs, pages before it have typed."""
    person = Newcomer(tmp_path_factory.mktemp("newcomer"))
    yield person
    person.stop()


@pytest.mark.nightly
@pytest.mark.parametrize("page", PAGES)
def test_each_line_does_what_its_page_says(page, newcomer):
    lines = list(typed(page))
    missing = [row.start for row in PAGES[page] if row not in {expected(page, x) for x in lines}]
    assert not missing, missing
    for line in lines:
        row = expected(page, line)
        if not row.skip and (not row.tool or shutil.which(row.tool)):
            newcomer.type(line, row)
    newcomer.stop()
