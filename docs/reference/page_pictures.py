"""The pictures of the page for browsers in README, docs/assets/chat-*.webp and engine-*.webp.

python -m docs.reference.page_pictures SITE

shows a folder that `wherry package demo --target wasm` wrote in Chromium, with the demo in it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ASSETS = ROOT / "docs" / "assets"


def main() -> None:
    """Serve the site, and let Chromium write the pictures."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("The pictures of the page need Chromium. Type: apt-get install chromium")
    web = subprocess.Popen(
        [sys.executable, "-m", "wherry", "web", sys.argv[1], "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert web.stdout is not None
        address = web.stdout.readline().strip()
        script = ROOT / "web" / "scripts" / "page_pictures.js"
        environment = {**os.environ, "CHROMIUM": chromium}
        subprocess.run(["node", script, address, ASSETS], check=True, env=environment)
    finally:
        web.terminate()
        web.wait(20)


if __name__ == "__main__":
    main()
