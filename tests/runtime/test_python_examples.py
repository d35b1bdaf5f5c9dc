"""The examples of docs/python-api.md run, and each method has one."""

from __future__ import annotations

import ast
import asyncio
import inspect

import pytest
from docs.reference.python_api import named
from docs.reference.python_examples import EXAMPLES

from wherry.runtime import AsyncMLCEngine, MLCEngine

NEEDS_MORE = {"Embeddings.create": "a download", "serve": "a port, until a signal"}


def test_each_method_has_an_example():
    assert set(named()) == set(EXAMPLES)


@pytest.fixture(scope="module")
def engine():
    with MLCEngine("demo", progress=None) as engine:
        yield engine


@pytest.mark.cpu
@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - NEEDS_MORE.keys()))
def test_an_example_runs(name, engine, capsys):
    code = EXAMPLES[name]
    if not name.startswith("Async"):
        exec(code, {"engine": engine, "MLCEngine": MLCEngine})
    else:
        compiled = compile(code, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        asynchronous = AsyncMLCEngine.of(engine.loaded)
        result = eval(compiled, {"engine": asynchronous, "AsyncMLCEngine": AsyncMLCEngine})
        if inspect.isawaitable(result):
            asyncio.run(_awaited(result))
    assert bool(capsys.readouterr().out.strip()) == ("print(" in code)


async def _awaited(result):
    await result


@pytest.mark.parametrize("name", sorted(NEEDS_MORE))
def test_the_others_are_python(name):
    compile(EXAMPLES[name], name, "exec")
