"""Images that requests name by URL: from which hosts they are fetched, and from which never."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import httpcore2
import pytest
from click.testing import CliRunner

from wherry.cli.group import cli
from wherry.errors import UsageError
from wherry.runtime import create_app
from wherry.runtime.errors import RequestError
from wherry.runtime.server.guard.media_hosts import MediaHosts, is_public
from wherry.runtime.server.wire.media import MediaFetcher

from ..conftest import core_of
from ..vision_model import file_of, picture, seeing_engines, text
from .asking import client_of
from .image_requests import CHAT, MESSAGES, QUESTION, RESPONSES, SAME, block, seen, typed, user

FILE = file_of(picture(64, 64))
JSON = {"Content-Type": "application/json"}


class Site(BaseHTTPRequestHandler):
    """Answers by path; `paths` keeps the paths."""

    paths: ClassVar[list[str]] = []

    def do_GET(self):
        self.paths.append(self.path)
        status, headers, body = ANSWERS.get(self.path, (404, {}, b""))
        if self.path.startswith("/to?"):
            status, headers, body = 302, {"Location": self.path[4:]}, b""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            for piece in body if isinstance(body, list) else [body]:
                self.wfile.write(piece)
                self.wfile.flush()
                if isinstance(body, list):
                    time.sleep(0.05)
        except OSError:  # the client has gone
            pass

    def log_message(self, *_):
        """Print nothing."""


ANSWERS = {
    "/cat.png": (200, {"Content-Type": "image/png"}, FILE),
    "/loop": (302, {"Location": "/loop"}, b""),
    "/slow": (200, {}, [b"x"] * 40),
    "/large": (200, {}, b"x" * ((20 << 20) + 1)),
    "/lies": (200, {"Content-Length": "10"}, b"x"),
}


@pytest.fixture
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    Site.paths.clear()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def message_with(url: str) -> dict:
    return {"messages": [user({"type": "image_url", "image_url": {"url": url}})]}


def fetch(url: str, *hosts: str, resolves=None, seconds: float = 10) -> str:
    """The URL in the place of `url`, or the error's text."""
    options = {} if resolves is None else {"resolve": resolves}
    fields = message_with(url)

    async def run():
        await MediaFetcher(MediaHosts(hosts), seconds=seconds, **options).fetch(fields)

    asyncio.run(run())
    return fields["messages"][0]["content"][0]["image_url"]["url"]


def refusal(*args, **options) -> str:
    with pytest.raises(RequestError) as error:
        fetch(*args, **options)
    assert error.value.param == "messages[0].content[0].image_url.url"
    assert error.value.code in ("unsupported_content", "invalid_image")
    return str(error.value)


def answers(*addresses: str):
    """A name's owner, who says another address at each question; `calls` counts these."""
    calls: list[str] = []

    async def resolve(host: str, _port: int):
        calls.append(host)
        return addresses[len(calls) - 1].split()

    resolve.calls = calls
    return resolve


PRIVATE = [
    "127.0.0.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1",
    "0.0.0.0", "224.0.0.1", "255.255.255.255",
    "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254", "64:ff9b::7f00:1",
    "2002:7f00:1::", "2002:a00:1::", "2001:0:5db8:d822::1", "2001:db8::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_names_that_lead_to_private_addresses(address):
    resolve = answers(address)
    assert "no public address" in refusal("http://example.org/", "example.org", resolves=resolve)
    # one of several suffices
    both = answers(f"93.184.215.14 {address}")
    assert "no public address" in refusal("http://example.org/", "*", resolves=both)


def test_public_addresses():
    for address in (
        "93.184.215.14",
        "2606:2800:21f:cb07:6820:80da:af6b:8b2c",
        "64:ff9b::5db8:d70e",
    ):
        assert is_public(ipaddress.ip_address(address))


WRONG = [
    "http://evil.org/", "https://example.org.evil.org/", "http://example.org:8080/", "file:///etc/passwd",
    "FILE://localhost/etc/passwd", "ftp://example.org/", "gopher://example.org/", "http:///a",
    "http://example.org@evil.org/", "http://a:b@example.org/", "http://example.org\\@evil.org/",
    "http://127.0.0.1/", "http://[::1]/", "http://2130706433/", "http://0x7f000001/", "http://localhost/",
    "http://example.org:99999/", "http://[::1/", "http://xn--/",
]  # fmt: skip


@pytest.mark.parametrize("url", WRONG)
def test_hosts_that_are_not_named(url):
    async def never(host, port):
        raise AssertionError((host, port))

    assert "messages[0]" in refusal(url, "example.org", "*.example.com", resolves=never)


def test_numbers_are_addresses_to_the_system():
    for host in ("2130706433", "0x7f000001", "localhost"):
        assert "no public address" in refusal(f"http://{host}/", "*")


def test_a_name_is_resolved_once(monkeypatch):
    connected = []

    async def connect(self, host, port, *args, **options):
        connected.append(host)
        raise httpcore2.ConnectError

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect)
    resolve = answers("93.184.215.14", "127.0.0.1")
    assert "not reached" in refusal("http://example.org/", "example.org", resolves=resolve)
    assert connected == ["93.184.215.14"] and resolve.calls == ["example.org"]
    connected.clear()
    two = answers("93.184.215.14 2606:2800::1")
    assert "not reached" in refusal("http://a.example.org/", "*.example.org", resolves=two)
    assert connected == ["93.184.215.14", "2606:2800::1"]


def test_an_address_that_is_named_itself(site):
    assert fetch(f"http://{site}/cat.png", site).startswith("data:;base64,iVBOR")
    assert "this one is of 127.0.0.1" in refusal(f"http://{site}/cat.png", "127.0.0.2", "*.org")
    assert "no public address" in refusal(f"http://{site}/cat.png", "*:" + site.split(":")[1])
    assert fetch("data:image/png;base64,AAAA", site) == "data:image/png;base64,AAAA"


def test_redirects(site):
    inside = f"http://{site}"
    assert fetch(f"{inside}/to?/cat.png", site).startswith("data:")
    for target in ("http://127.0.0.2/", "file:///etc/passwd", "//evil.org/", "http://[::1]/"):
        assert "messages[0]" in refusal(f"{inside}/to?{target}", site)
    assert "more than 3 times" in refusal(f"{inside}/loop", site)
    assert len(Site.paths) == 2 + 4 + 4


def test_answers_that_are_no_image(site):
    assert "answers 404" in refusal(f"http://{site}/none", site)
    assert "more than 20 MiB" in refusal(f"http://{site}/large", site)
    assert "took more than" in refusal(f"http://{site}/slow", site, seconds=0.3)
    assert "not reached" in refusal(f"http://{site}/lies", site)


def test_what_is_no_host():
    for host in ("", "http://example.org", "example.org/a", "a@b", "example.org:x"):
        with pytest.raises(UsageError, match="is no host"):
            MediaHosts([host])
    result = CliRunner().invoke(cli, ["serve", "demo", "--media-hosts", "https://example.org"])
    assert result.exit_code and "is no host" in result.output + str(result.exception)


def test_by_all_protocols(site):
    url = f"http://{site}/cat.png"
    image = {"type": "image_url", "image_url": {"url": url}}
    fields = {
        CHAT: {"messages": [user(image, text(QUESTION))]},
        MESSAGES: {"messages": [user(block(type="url", url=url), text(QUESTION))]},
        RESPONSES: {"input": [user(seen(url), typed(QUESTION))]},
    }
    with seeing_engines() as build:
        engine = build()
        core = core_of(engine.loaded)
        with client_of(create_app(engine, media_hosts=[site])) as client:
            for path, own in fields.items():
                for sent in (SAME[path], own):
                    body = {"model": "seeing", "max_tokens": 50} if path == MESSAGES else {}
                    text_of_body = json.dumps(body | sent).replace("/", r"\/")  # as PHP writes it
                    answer = client.post(path, content=text_of_body, headers=JSON)
                    assert answer.status_code == 200, answer.text
                assert core.spans[-1] == core.spans[-2] and core.spans[-1]
                assert core.added[-1][0] == core.added[-2][0]
            counted = client.post(
                f"{MESSAGES}/count_tokens", json={"model": "seeing"} | fields[MESSAGES]
            )
            assert counted.json()["input_tokens"] == len(core.added[-1][0])
            other = {"input": [user(seen("http://evil.org/a.png"))]}
            error = client.post(RESPONSES, json=other)
        assert error.status_code == 400
        assert error.json()["error"]["param"] == "input[0].content[0].image_url"
