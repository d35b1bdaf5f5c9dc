"""JSON Schema's own test suite (draft 2020-12): each schema is enforced, or refused by name.

The suite comes with the source distribution of the package jsonschema, from the package index.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from wherry.errors import UsageError, WherryError
from wherry.runtime.grammar.audit import SchemaProblems, prepared

from .schemas import decimals
from .walking import accepts, bytes_vocabulary, outputs, probe

pytestmark = pytest.mark.nightly
FORMATS = Draft202012Validator.FORMAT_CHECKER
# What the library says beyond the audit; each names what it is about.
REASONS = ("Unsatisfiable schema", "patternProperty", "Expected", "too many digits")
REASONS += ("Failed to generate", "lookarounds not supported", "regex parse error")
# What the validator, which reads patterns as Python's `re` does, cannot judge.
UNREADABLE = r"\\p{"


@pytest.fixture(scope="module")
def suite(tmp_path_factory) -> list[tuple[str, object, list[dict]]]:
    """Names, schemas, and their instances."""
    folder = tmp_path_factory.mktemp("suite")
    package = f"jsonschema=={version('jsonschema')}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--no-binary", ":all:", "--dest", str(folder), package]
    subprocess.run(command, check=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4
        packed.extractall(folder)
    files = sorted(folder.glob("*/json/tests/draft2020-12/**/*.json"))
    assert len(files) > 60
    return [
        (f"{path.stem}: {case['description']}", case["schema"], case["tests"])
        for path in files
        for case in json.loads(path.read_text("utf-8"))
    ]


def test_every_schema_is_enforced_or_refused_by_name(suite):
    tried, wrong, enforced, refused = probe(), [], 0, 0
    for name, schema, _ in suite:
        try:
            text = prepared(schema)
        except SchemaProblems as e:
            assert all(line.startswith("#") and ": " in line for line in e.lines), name
            refused += 1
            continue
        try:
            tried.check("json_schema", text)
            grammar = bytes_vocabulary().compile("json_schema", text)
        except (UsageError, ValueError) as e:
            refused += 1
            if not any(reason in str(e) for reason in REASONS):
                wrong.append(f"{name}: refused without a name: {e}")
            continue
        enforced += 1
        wrong += [f"{name}: {problem}" for problem in _problems(schema, outputs(grammar, 30))]
    tried.close()
    assert not wrong, "\n".join(wrong)
    print(f"{enforced} enforced, {refused} refused")
    assert enforced >= 230


def test_no_instance_that_is_invalid_may_be_written(suite):
    invalid, wrong = 0, []
    for name, schema, tests in suite:
        try:
            grammar = bytes_vocabulary().compile("json_schema", prepared(schema))
        except (SchemaProblems, WherryError):
            continue
        for test in tests:
            if not test["valid"]:
                invalid += 1
                text = json.dumps(test["data"], ensure_ascii=False)
                if accepts(grammar, text):
                    wrong.append(f"{name}: {text}")
    print(f"{invalid} invalid instances, {len(wrong)} accepted")
    assert invalid > 300 and not wrong, "\n".join(wrong)


def _problems(schema, texts):
    if not texts:
        yield "no output came to an end"
    validator = Draft202012Validator(decimals(schema), format_checker=FORMATS)
    if UNREADABLE in json.dumps(schema):
        return
    for text in texts:
        for error in validator.iter_errors(json.loads(text, parse_float=Decimal)):
            yield f"{Path(__file__).name} wrote {text!r}: {error.message}"
