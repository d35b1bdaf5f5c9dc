"""Programs written for Anthropic, OpenAI and others, with their own clients, each in its venv."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import core_of
from ..live_server import live
from ..vision_model import file_of, picture, seeing_engines
from .talking import CALLS, TEMPLATE, THOUGHT

HERE = Path(__file__).parent / "clients"
pytestmark = pytest.mark.nightly
PACKAGES = {
    "ask_anthropic.py": ["anthropic==2.12.0", "langchain-anthropic==1.7.7"],
    "ask_open_responses.py": ["openresponses-py==0.1.2", "openai[realtime]==3.54.0"],
    "ask_agents.py": ["openai-agents==0.24.0", "openai==3.54.0", "langchain-openai==1.7.3"],
    "ask_instructor.py": ["instructor==1.17.0", "openai==3.3.0"],
    "ask_litellm.py": ["litellm==1.106.2", "mcp"],
}


def answering(tokenizer, eos):
    """Calls tools, and says "sunny" to a prompt with a result in it."""
    call = tokenizer.encode(THOUGHT + "Let me see." + CALLS)
    sunny, result = tokenizer.encode("sunny"), tokenizer.encode("<|tool|>")

    def script(prompt, params, n):
        seen = any(prompt[i : i + len(result)] == result for i in range(len(prompt)))
        ids = sunny if seen else call
        return ids[n] if n < len(ids) else eos

    script.accept = lambda params, token: False  # no grammar is complete before the end token
    return script


@pytest.fixture
def url(make):
    model = make(template=TEMPLATE, context=16384)
    core_of(model).script = answering(model.tokenizer, model.tokenizer.eos_ids[0])
    with live(model) as url:
        yield url


def run(folder, packages, script, *arguments):
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    done = subprocess.run([python, HERE / script, *arguments], capture_output=True, text=True)
    assert done.stdout.strip() == "all is well", done.stdout + done.stderr


@pytest.mark.parametrize("script", PACKAGES)
def test_a_client(url, script, tmp_path):
    run(tmp_path, PACKAGES[script], script, url)


def test_clients_with_an_image(tmp_path):
    file = tmp_path / "picture.png"
    file.write_bytes(file_of(picture(64, 64)))
    packages = ["anthropic==2.12.0", "ollama==0.6.3", "openai==3.54.0"]
    with seeing_engines() as build, live(build()) as url:
        run(tmp_path, packages, "ask_images.py", url, file)
