"""`wherry package --target webgpu`, on a server that knows nothing, in Chromium with WebGPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from ..support import command
from .package import SHOTS, run

pytestmark = [pytest.mark.browser, pytest.mark.nightly]
ADDRESS = "models/demo-webgpu-{}"


@pytest.fixture(scope="module")
def packaged(tools, page, tmp_path_factory):
    """A site with two variants of the demo model for GPUs."""
    out = tmp_path_factory.mktemp("packaged") / "site"
    schemes = ("--quant", "q4f16_1", "--quant", "q4f32_1")
    done = command.wherry("package", "demo", "--target", "webgpu", *schemes, "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{out}\n"
    assert " MB of demo for a visitor's browser\n" in done.stderr
    assert done.stderr.endswith(f"Next: wherry web {out}\n")
    return out


@contextmanager
def plainly_served(place: Path, paths: list[str]) -> Iterator[str]:
    """Python's own server of files: no ranges, no headers; what it was asked for."""

    class Handler(SimpleHTTPRequestHandler):
        def log_request(self, code: object = "-", size: object = "-") -> None:
            paths.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(place)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def test_the_page_answers_on_a_gpu(compiled, chromium, packaged):
    paths: list[str] = []
    SHOTS.mkdir(parents=True, exist_ok=True)
    with plainly_served(packaged, paths) as url:
        test = compiled / "test" / "page" / "gpu.test.js"
        env = {"WHERRY_SITE": url, "WHERRY_SHOTS": str(SHOTS), "CHROMIUM": chromium}
        run("node", "--test", str(test), **env)
    weights = {path for path in paths if "params_shard" in path}
    # SwiftShader has no 16-bit floats: of that variant the manifest was read, and nothing else.
    assert {path.rsplit("/", 1)[0] for path in weights} == {f"/{ADDRESS.format('q4f32_1')}"}
    assert f"/{ADDRESS.format('q4f16_1')}/wherry.json" in paths
    assert {path.stem for path in SHOTS.iterdir()} >= {"gpu-chat", "gpu-engine"}
