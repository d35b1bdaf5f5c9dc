"""What a model takes goes back to the system when it is closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from wherry.compiler.api import ensure_artifact

pytestmark = pytest.mark.cpu
ROOT = Path(__file__).parents[2]

# On a thread of its own, as servers and apps load: there glibc keeps what was freed, and calloc
# writes zeros over it.
SCRIPT = """
import sys, threading
from pathlib import Path
from wherry.runtime import MLCEngine

def load():
    made.append(MLCEngine(sys.argv[1], threads=1))

made = []
for _ in range(6):
    thread = threading.Thread(target=load)
    thread.start()
    thread.join()
    with made.pop() as engine:
        engine.completions.create(prompt="a", max_tokens=4)
    print(int(Path("/proc/self/statm").read_text().split()[1]))
"""


def test_loads_touch_no_memory_of_the_cache():
    folder = ensure_artifact("demo", target="cpu")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, *_, last = pages = json.loads(f"[{','.join(done.stdout.split())}]")
    assert (last - first) * os.sysconf("SC_PAGE_SIZE") < 30e6, pages  # the cache has 100 MB
