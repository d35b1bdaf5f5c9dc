"""schemathesis against the server's own OpenAPI document: no 5xx, and nothing that is not in it.

It is installed into an environment of its own, as it brings other versions of what Wherry needs.
Left out are the checks that say whether a body that fits the schema must be taken (a conversation
may still be too long) and one that does not must be refused ("5" is read as 5, as clients send it).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv

import pytest

from .asking import get

VERSION = "4.32.5"
COMPILE_SECONDS = 900  # of a busy machine
KEY = "a key of the tests"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("schemathesis")
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "-q", f"schemathesis=={VERSION}"]
    subprocess.run(pip, check=True, capture_output=True)
    return folder / "bin" / "schemathesis"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The demo model, served."""
    log = tmp_path_factory.mktemp("served") / "log"
    command = [sys.executable, "-m", "wherry", "serve", "demo", "--port", "0", "--api-key", KEY]
    environment = {**os.environ, "PYTHONPATH": "src"}
    with (
        log.open("w") as errors,
        subprocess.Popen(command, env=environment, stderr=errors) as process,
    ):
        try:
            end = time.monotonic() + COMPILE_SECONDS
            while "Serving demo at " not in log.read_text():
                assert process.poll() is None and time.monotonic() < end, log.read_text()
                time.sleep(0.1)
            yield log.read_text().split("Serving demo at ")[1].split("/v1")[0]
        finally:
            process.terminate()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [1, 2])
def test_no_answer_is_a_breach_of_the_document(program, url, tmp_path, seed):
    bearer = {"Authorization": f"Bearer {KEY}"}
    document = json.loads(get(url, "/openapi.json", **bearer)[2])
    for operation in (o for methods in document["paths"].values() for o in methods.values()):
        # Its shortest times would end most requests before they have done anything.
        operation["parameters"] = [p for p in operation["parameters"] if p["in"] != "header"]
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(document))
    command = [program, "run", path, "--url", url, "-H", f"Authorization: Bearer {KEY}"]
    command += ["--checks", ",".join(CHECKS), "--phases", "examples,coverage,fuzzing"]
    command += ["-n", "25", "--seed", str(seed), "--continue-on-failure", "--no-color"]
    command += ["--suppress-health-check", "all"]  # of its own patience with schemas
    command += ["--request-timeout", "60"]  # a busy machine is no breach
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    stats = json.loads(get(url, "/stats", **bearer)[2])
    assert stats["status"] == "ok"
    end = time.monotonic() + 30
    while stats["requests"]["active"]:
        assert time.monotonic() < end, "requests are stuck"
        stats = json.loads(get(url, "/stats", **bearer)[2])
    assert stats["tokens"]["decode"] > 0
