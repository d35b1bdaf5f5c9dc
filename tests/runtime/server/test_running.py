"""A server's end, its sockets, and an engine that hangs: processes of their own."""

from __future__ import annotations

import gc
import http.client
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
import weakref

import pytest

from wherry.errors import UsageError
from wherry.runtime import MLCEngine, serve
from wherry.runtime.server.listening import unix_socket

from ...support.waiting import until
from ..served import PACKAGES, served
from .asking import CHAT, HI, get, post

# An answer ends when the test writes a line.
SLOW_SERVER = """
import sys, threading
from tests.runtime.conftest import core_of, make_model
from wherry.runtime import MLCEngine, serve
model = make_model(None, context=1_000_000, pages=100_000, step_seconds=0.01)
core, eos, released = core_of(model), model.tokenizer.eos_ids[0], threading.Event()
goes_on = core.script
core.script = lambda *given: eos if released.is_set() else goes_on(*given)
threading.Thread(target=lambda: sys.stdin.readline() and released.set(), daemon=True).start()
serve(MLCEngine.of(model), port=0, on_ready=lambda url: print(url, flush=True), {options})
print("ended", flush=True)
"""


def start(options="", script=SLOW_SERVER, **fields):
    process = subprocess.Popen(
        [sys.executable, "-c", script.format(options=options, **fields)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", ".", *PACKAGES])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return process, process.stdout.readline().strip()


def asking(url, texts, **fields):
    def ask():
        texts.append(post(url, CHAT, {**HI, **fields}))

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def has_request(url):
    return json.loads(get(url, "/stats")[2])["requests"]["active"]


def drains(url):
    return get(url, "/ready")[0] == 503


def test_a_draining_server_answers_probes_and_refuses_the_rest():
    process, url = start()
    answers = []
    thread = asking(url, answers)
    until(lambda: has_request(url))
    process.send_signal(signal.SIGTERM)
    until(lambda: drains(url))
    assert get(url, "/health")[0] == 200
    status, _, text = get(url, "/ready")
    assert (status, json.loads(text)["status"]) == (503, "draining")
    status, headers, text = post(url, CHAT, HI)
    assert (status, json.loads(text)["error"]["code"]) == (503, "shutting_down")
    assert 1 <= int(headers["retry-after"]) <= 30
    assert headers["connection"] == "close"
    assert "wherry_draining 1.0" in get(url, "/metrics")[2]
    out, _ = process.communicate("end\n", timeout=20)
    thread.join(20)
    assert (process.returncode, out) == (0, "ended\n")
    (choice,) = json.loads(answers[0][2])["choices"]
    assert choice["finish_reason"] == "stop" and choice["message"]["content"]


def test_without_requests_it_ends_at_once():
    process, url = start()
    with socket.create_connection(url.removeprefix("http://").split(":")):  # idle
        begun = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=20)
    assert process.returncode == 0
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_running_requests(second):
    process, url = start()
    answers = []
    thread = asking(url, answers, stream=True)
    until(lambda: has_request(url))
    process.send_signal(signal.SIGTERM)
    until(lambda: drains(url))
    begun = time.monotonic()
    process.send_signal(second)
    process.communicate(timeout=20)
    thread.join(20)
    assert time.monotonic() - begun < 10
    assert process.returncode == 0
    last = answers[0][2].strip().split("data: ")[-1]
    assert json.loads(last)["error"]["code"] == "shutting_down"


HANG = """
import sys, threading
from tests.runtime.conftest import make_model
from wherry.runtime import MLCEngine, serve
def hang(*_):
    threading.Event().wait(1000)  # and nothing else of the core can be called
model = make_model({core})
serve(MLCEngine.of(model), port=0, on_ready=lambda url: print(url, flush=True), stuck_seconds=0.5,
      {options})
"""


@pytest.mark.nightly
def test_an_engine_that_holds_everything_ends_the_process_too():
    process, url = start("exit_when_stuck=True", HANG, core="script=hang")
    with socket.create_connection(url.removeprefix("http://").split(":")) as asking:
        body = json.dumps(HI).encode()
        head = "Host: localhost\r\nContent-Type: application/json\r\n"
        asking.sendall(
            f"POST {CHAT} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode()
        )
        asking.sendall(body)
        process.communicate(timeout=30)
    assert process.returncode == 1


def test_a_hung_engine_is_said_and_ends_the_process_on_request():
    process, url = start("exit_when_stuck=True", HANG, core="step_seconds=1000")
    answers = []
    thread = asking(url, answers, stream=True)
    _, log = process.communicate(timeout=30)
    thread.join(20)
    assert process.returncode == 1
    assert "The engine is stuck, with 1 requests running" in log
    assert "--exit-when-stuck" in log
    assert "shutting_down" in answers[0][2]


def test_a_unix_socket(tmp_path):
    path = tmp_path / "wherry.sock"
    with served(tmp_path, options=f"uds={str(path)!r}, uds_mode=0o660") as server:
        assert server.url == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        connection = http.client.HTTPConnection("docker", timeout=20)  # clients say anything here
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(str(path))
        connection.request("GET", "/v1/models")
        assert json.load(connection.getresponse())["data"]
        with pytest.raises(UsageError, match="another server"), unix_socket(path, 0o600):
            pass
        server.process.terminate()
        server.process.wait(20)
        assert "local  GET /v1/models  200" in server.log
    assert not path.exists()


def test_what_a_killed_server_leaves_is_no_hindrance(tmp_path):
    path = tmp_path / "wherry.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    with unix_socket(path, 0o600):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("mine")
    with pytest.raises(UsageError, match="not a socket"), unix_socket(path, 0o600):
        pass
    assert path.read_text() == "mine"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Two of them, each a file of certificate and key."""
    folder = tmp_path_factory.mktemp("tls")
    for name in ("first", "second"):
        command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
        names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        files = ["-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.crt")]
        subprocess.run([*command.split(), *names, *files], check=True, capture_output=True)
    return folder


def test_tls_and_its_renewal(certificates, tmp_path):
    cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def put(name):
        cert.write_bytes((certificates / f"{name}.crt").read_bytes())
        key.write_bytes((certificates / f"{name}.key").read_bytes())

    def trusting(name):
        return ssl.create_default_context(cafile=certificates / f"{name}.crt")

    put("first")
    files = f"tls_cert={str(cert)!r}, tls_key={str(key)!r}"
    with served(tmp_path, options=files) as server:
        assert server.url.startswith("https://127.0.0.1:")
        assert get(server.url, "/health", context=trusting("first"))[0] == 200
        put("second")
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 10
        while "read again" not in server.log:
            assert time.monotonic() < end
            time.sleep(0.02)
        assert get(server.url, "/health", context=trusting("second"))[0] == 200
        with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
            get(server.url, "/health", context=trusting("first"))


def test_tls_that_cannot_be_used_is_said_before_a_model_is_loaded(certificates, tmp_path):
    cert, other = certificates / "first.crt", certificates / "second.key"
    for options, message in (
        ({"tls_key": other}, "--tls-cert"),
        ({"tls_cert": tmp_path / "none"}, "no file"),
        ({"tls_cert": cert}, "cannot be used"),
        ({"tls_cert": cert, "tls_key": other}, "cannot be used"),
    ):
        with pytest.raises(UsageError, match=message):
            serve("no such model", **options)


def test_serve_ends_in_a_thread_too(make):
    """Where there are no signals."""
    ready = threading.Event()
    model = make()
    urls, frozen = [], []

    def on_ready(url):
        urls.append(url)
        frozen.append(gc.get_freeze_count())
        ready.set()

    threading.Thread(
        target=lambda: serve(MLCEngine.of(model), port=0, on_ready=on_ready), daemon=True
    ).start()
    assert ready.wait(20)
    assert get(urls[0], "/health")[0] == 200
    # a collection during a request does not visit what was loaded before
    assert frozen[0] > 10_000
    gc.unfreeze()


def test_what_a_closed_model_had_waits_for_no_collection(make):
    """A collection does not visit models that are loaded before the server begins."""
    model = make()
    services = weakref.ref(model.dispatcher.host._services)
    gc.disable()
    try:
        model.close()
        assert services() is None
    finally:
        gc.enable()
