"""Programs written for other servers work with this one, unchanged."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.nightly


def check_common(seen: dict) -> None:
    """What every client can do."""
    assert seen["chat"]
    assert seen["streamed"] == seen["chat"]
    assert 0 <= seen["structured"]["legs"] <= 8
    first, second = seen["embeddings"]
    assert first == second > 0


def check_tool(seen: dict) -> None:
    name, arguments = seen["tool"]
    assert name == "get_weather"
    assert list(arguments) == ["city"]


def test_openai_for_python(python_client):
    seen = python_client("openai_python.py", "openai==3.52.0")
    check_common(seen)
    check_tool(seen)
    assert seen["usage"] == seen["streamed_usage"]
    assert seen["streamed_tool"] == seen["tool"]
    assert seen["tool_finish"] == "tool_calls"
    assert seen["after_tool"] in ("stop", "length")
    assert seen["response"] == seen["response_streamed"] == seen["chat"]
    assert seen["models"] == ["demo"]
    assert seen["errors"] == {
        "unknown_model": ["NotFoundError", 404, "model_not_found"],
        "context": ["BadRequestError", 400, "context_length_exceeded"],
        "temperature": ["BadRequestError", 400, None],
        "key": ["AuthenticationError", 401, "invalid_api_key"],
    }


def test_openai_for_javascript(npm_client):
    seen = npm_client("openai_js.mjs", "openai@7.57.0")
    check_common(seen)
    check_tool(seen)
    assert seen["errors"] == {
        "unknown_model": ["NotFoundError", 404, "model_not_found"],
        "temperature": ["BadRequestError", 400, None],
    }


def test_anthropic(python_client):
    seen = python_client("anthropic_python.py", "anthropic==2.12.0")
    assert seen["chat"]
    assert seen["streamed"] == seen["chat"]
    assert seen["usage"] == seen["streamed_usage"]
    assert seen["counted"] == seen["input"]
    check_tool(seen)
    assert seen["tool_finish"] == "tool_use"
    assert seen["stop"] in ("end_turn", "max_tokens")
    assert seen["after_tool"] in ("end_turn", "max_tokens")
    assert seen["errors"] == {
        "unknown_model": ["NotFoundError", 404, "not_found_error"],
        "temperature": ["BadRequestError", 400, "invalid_request_error"],
    }


def test_ollama(python_client):
    seen = python_client("ollama_python.py", "ollama==0.6.3")
    check_common(seen)
    assert seen["generate"] == seen["chat"]
    assert seen["done"][0] is True
    assert seen["done"][1] in ("stop", "length")
    assert seen["done"][2] is True
    assert seen["with_tools"] == "assistant"
    assert [name.removesuffix(":latest") for name in seen["models"]] == ["demo"]
    assert [name.removesuffix(":latest") for name in seen["running"]] == ["demo"]
    assert seen["shown"]
    assert seen["errors"] == {"unknown_model": [404, True]}


def test_langchain(python_client):
    seen = python_client("langchain_openai_python.py", "langchain-openai==1.7.3")
    check_common(seen)
    check_tool(seen)
    assert seen["errors"]["unknown_model"][1] == 404


def test_litellm(python_client):
    seen = python_client("litellm_python.py", "litellm==1.106.2", "mcp")
    check_common(seen)
    check_tool(seen)
    assert seen["errors"]["unknown_model"] == ["NotFoundError", 404]


def test_vercel_ai_sdk(npm_client):
    packages = ("ai@7.0.173", "@ai-sdk/openai-compatible@3.0.92", "zod")
    seen = npm_client("vercel_ai.mjs", *packages)
    check_common(seen)
    check_tool(seen)
    assert seen["errors"]["unknown_model"] == ["AI_APICallError", 404]
