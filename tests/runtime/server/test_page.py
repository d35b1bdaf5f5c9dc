"""The page of GET /."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess

import pytest

from wherry.runtime import MLCEngine, create_app
from wherry.runtime.server.endpoints.page import FILE

from ..live_server import live
from .asking import client_of

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def client(make):
    return client_of(create_app(MLCEngine.of(make()), api_key="k"))


def test_browsers_get_the_page_without_a_key_and_nothing_else(client):
    answer = client.get("/", headers=BROWSER)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert not re.search(r"\bsmall\b", answer.text)  # the model's name
    for path in ("/v1/models", "/stats", "/metrics", "/openapi.json"):
        assert client.get(path, headers=BROWSER).status_code == 401
    for path in ("/", "//", "/?a"):
        assert client.get(path, headers={"Accept": "application/json"}).status_code == 401
    assert client.post("/", headers=BROWSER).status_code == 401


def test_others_get_json(make):
    client = client_of(create_app(MLCEngine.of(make())))
    for accept in ("*/*", "application/json", ""):
        assert client.get("/", headers={"Accept": accept}).json()["server"] == "wherry"


def test_a_rebound_name_gets_no_page(make):
    client = client_of(create_app(MLCEngine.of(make())))
    assert client.get("/", headers={**BROWSER, "Host": "evil.example"}).status_code == 403


def test_the_policy_lets_its_own_script_run_and_no_other(client):
    answer = client.get("/", headers=BROWSER)
    policy = dict(
        part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["connect-src"] == "'self'"
    for tag in ("script", "style"):
        (inside,) = re.findall(f"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert policy[f"{tag}-src"] == f"'sha256-{digest}'"


def test_it_asks_nobody_else_and_writes_no_html_of_others():
    text = FILE.read_text()
    addresses = set(re.findall(r"https?://[^\s'\"<>]+", text))
    # Namespaces, which are names and never requested.
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML"}
    for wrong in ("innerHTML", "outerHTML", "insertAdjacentHTML", "eval(", " onclick=", " style="):
        assert wrong not in text, wrong
    assert len(text) < 70_000


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.mark.browser
@pytest.mark.skipif(
    not CHROMIUM and not os.environ.get("WHERRY_REQUIRE_CHROMIUM"),
    reason="there is no Chromium; apt install chromium",
)
def test_it_runs_under_its_policy(make, tmp_path):
    """The script has asked for the models, and for the numbers."""
    with live(make()) as url:
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
        command = [CHROMIUM, *options, "--virtual-time-budget=5000", "--dump-dom", f"{url}/"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert '<option value="small">small</option>' in done.stdout
    assert "What shall we talk about?" in done.stdout
    assert re.search(r'<div id="numbers".*idle', done.stdout)
