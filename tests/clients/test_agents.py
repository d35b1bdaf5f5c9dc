"""Coding agents, unchanged and with their defaults, finish a task: a tool call, one of MCP, words.

The model is scripted: it answers by the number of results that the prompt has. It has three chat
templates: one that takes all, and two with the rules of Qwen3.5 and Gemma, which refuse what the
agents send. Each agent is an npm package; the first run installs it under build/clients.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.runtime import small_tokenizers
from tests.runtime.conftest import make_model
from tests.runtime.live_server import live
from tests.runtime.server.talking import TEMPLATE

from wherry.runtime.text.tokenizer import Tokenizer

from .conftest import HERE, _check, _home

pytestmark = pytest.mark.nightly
CONTEXT = 400_000  # tokens of one byte or so; an agent's own prompt has up to 150,000
MCP = str(HERE / "programs" / "mcp_add.py")
TOKENIZER = Tokenizer(small_tokenizers.byte_level(), {"eos_token": "</s>"})
ADDED = {"a": 2, "b": 3}


class Rules(NamedTuple):
    """A chat template, how a model of it writes a call, and what the prompt has for a result."""

    template: str
    call: str
    result: str


REFUSE = "{{ raise_exception('never') }}"
USERS = "messages | selectattr('role', 'equalto', 'user') | list"
RULES = {
    "all": Rules(TEMPLATE, "<tool_call>\n%s\n</tool_call>", "<|tool|>"),
    # a user's message is needed, and a system message is the first
    "qwen": Rules(
        "{% if not (" + USERS + ") %}" + REFUSE + "{% endif %}{% for m in messages[1:] %}"
        "{% if m.role == 'system' %}" + REFUSE + "{% endif %}{% endfor %}" + TEMPLATE,
        "<tool_call>\n%s\n</tool_call>",
        "<|tool|>",
    ),
    # roles alternate; there is no system message, and there are no tools
    "gemma": Rules(
        "{% if messages[0].role == 'system' %}" + REFUSE + "{% endif %}{% for m in messages %}"
        "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}" + REFUSE + "{% endif %}"
        "<|{{ 'model' if m.role == 'assistant' else m.role }}|>{{ m.content }}{% endfor %}"
        "{% if add_generation_prompt %}<|model|>{% endif %}",
        "%s",
        "Result of {name}:",
    ),
}


class Scripted:
    """A model that calls a shell, then a tool of MCP, then says that it is done."""

    def __init__(self, shell: str, command: dict, add: str) -> None:
        self._calls = [{"name": shell, "arguments": command}, {"name": add, "arguments": ADDED}]
        self._steps: dict[tuple[int, ...], int] = {}
        self._tools = f'"name": "{shell}"'

    def follow(self, rules: Rules) -> None:
        """Write and read as models with these rules do."""
        texts = [rules.call % json.dumps(call) for call in self._calls]
        end = TOKENIZER.special_id("</s>")
        self._plan = [[*TOKENIZER.encode(text), end] for text in (*texts, "All is done.")]
        self._results = {rules.result.format(name=call["name"]) for call in self._calls}

    def __call__(self, prompt, params, n):
        key = tuple(prompt)
        if key not in self._steps:
            text = TOKENIZER.decode(list(prompt), skip_special_tokens=False)
            # requests beside the task, as for a title, have no tools
            count = sum(map(text.count, self._results))
            self._steps[key] = count if self._tools in text else 2
        plan = self._plan[min(self._steps[key], 2)]
        return plan[min(n, len(plan) - 1)]

    def accept(self, params, token) -> bool:
        return False


@pytest.fixture(params=RULES)
def task(tmp_path, request):
    """Runs an agent's command; the tools must have run."""

    def run(package: str, script: Scripted, files, command, variables=lambda url: {}) -> None:
        home = _home("agent", (package,))
        if not (home / ".made").exists():
            home.mkdir(parents=True, exist_ok=True)
            options = ["--silent", "--no-fund", "--no-audit", "--prefix", str(home)]
            _check(["npm", "install", *options, package])
            (home / ".made").touch()
        work = tmp_path / "work"
        work.mkdir()
        rules = RULES[request.param]
        script.follow(rules)
        model = make_model(
            "x", template=rules.template, context=CONTEXT, pages=10**6, script=script
        )
        with live(model) as url:
            for name, text in files(url, tmp_path).items():
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(text)
            path = f"{home / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(
                command(url, tmp_path),
                cwd=work,
                env={"PATH": path, "HOME": str(tmp_path), "WHERRY_KEY": "x", **variables(url)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=180,
                check=False,
            )
        model.close()
        output = f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        assert (work / "out.txt").read_text().strip() == "hi", output
        assert json.loads((tmp_path / "added").read_text()) == ADDED, output
        assert "All is done." in done.stdout, output

    return run


def _servers(folder: Path) -> dict:
    command = {"command": sys.executable, "args": [MCP, str(folder / "added")]}
    return {"mcpServers": {"demo": {**command, "tools": ["*"]}}}


@pytest.mark.parametrize("sockets", [False, True], ids=["http", "websocket"])
def test_codex(task, sockets):
    def files(url, folder):
        demo = _servers(folder)["mcpServers"]["demo"]
        text = f"""
            model = "small"
            model_provider = "wherry"
            approval_policy = "never"
            sandbox_mode = "danger-full-access"
            [model_providers.wherry]
            name = "Wherry"
            base_url = "{url}/v1"
            wire_api = "responses"
            env_key = "WHERRY_KEY"
            supports_websockets = {str(sockets).lower()}
            [mcp_servers.demo]
            command = {json.dumps(demo["command"])}
            args = {json.dumps(demo["args"])}
        """
        return {".codex/config.toml": text}

    task(
        "@openai/codex@0.171.0",
        Scripted("exec_command", {"cmd": "echo hi > out.txt"}, "mcp__demo__add"),
        files,
        lambda url, folder: ["codex", "exec", "--skip-git-repo-check", "Do it"],
    )


def test_opencode(task):
    def files(url, folder):
        demo = _servers(folder)["mcpServers"]["demo"]
        config = {
            "model": "wherry/small",
            "permission": "allow",
            "provider": {
                "wherry": {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {"baseURL": f"{url}/v1", "apiKey": "x"},
                    "models": {"small": {}},
                }
            },
            "mcp": {"demo": {"type": "local", "command": [demo["command"], *demo["args"]]}},
        }
        return {"work/opencode.json": json.dumps(config)}

    command = {"command": "echo hi > out.txt", "description": "Says hi"}
    task(
        "opencode-ai@1.18.33",
        Scripted("bash", command, "demo_add"),
        files,
        lambda url, folder: ["opencode", "run", "Do it"],
        lambda url: {"OPENCODE_DISABLE_MODELS_FETCH": "1"},
    )


def test_claude_code(task):
    command = {"command": "echo hi > out.txt", "description": "Says hi"}
    task(
        "@anthropic-ai/claude-code@2.1.197",
        Scripted("Bash", command, "mcp__demo__add"),
        lambda url, folder: {"servers.json": json.dumps(_servers(folder))},
        lambda url, folder: [
            *("claude", "-p", "Do it", "--model", "small", "--strict-mcp-config"),
            *("--mcp-config", str(folder / "servers.json")),
            *("--allowedTools", "Bash,mcp__demo__add"),
        ],
        lambda url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_AUTH_TOKEN": "x",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
    )


PATCH = "*** Begin Patch\n*** Add File: out.txt\n+hi\n*** End Patch\n"


@pytest.mark.parametrize("api", ["completions", "responses"])
def test_copilot_with_its_custom_tool(task, api):
    task(
        "@github/copilot@1.0.102",
        Scripted("apply_patch", {"input": PATCH}, "demo-add"),
        lambda url, folder: {"servers.json": json.dumps(_servers(folder))},
        lambda url, folder: [
            *("copilot", "-p", "Do it", "--allow-all-tools", "--allow-all-paths"),
            *("--additional-mcp-config", f"@{folder / 'servers.json'}"),
        ],
        lambda url: {
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_PROVIDER_WIRE_API": api,
            "COPILOT_PROVIDER_MODEL_ID": "gpt-5.4",
            "COPILOT_PROVIDER_WIRE_MODEL": "small",
        },
    )
