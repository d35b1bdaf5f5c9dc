"""The Kotlin library on this machine's Java, against Python's engine on the same model."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

import wherry
from wherry.artifact.manifest import read_manifest

from ..app import guided_cases
from ..app.request_cases import ASK, GREEDY
from .conftest import ANDROID, ROOT, RUNTIME, java_libraries, java_on, run
from .request_table import RequestTable

pytestmark = [pytest.mark.cpu, pytest.mark.mobile]
PLANNED = (16_000_000_000, 60_000_000, 1)  # bytes that loads may take
HYBRID = {  # the part of a manifest that a plan reads
    "memory": {
        "weights": 300_000_000,
        "workspace": 7_000_000,
        "kv_per_token": 4096,
        "slot": 20 << 20,
    },
    "deployment": {"context": 8192, "max_batch": 4},
}
BEGUN = {"prompt": "Once upon a time", **GREEDY}  # as kotlin/Checks.kt has it


def java(path, bridge, *words):
    """What a program says last, as JSON."""
    return java_on(java_libraries(bridge), path, *words)


@pytest.fixture(scope="module")
def checks(jars, classes, bridge, demo):
    """Run cases of kotlin/Checks.kt in one virtual machine; what they found."""
    # One thread: those of a pool look for work for some time before they end with their engine.
    options = json.dumps({"runtime": str(RUNTIME), "threads": 1})
    return lambda *cases: java(f"{classes}:{jars}", bridge, "ChecksKt", demo, options, *cases)


@pytest.fixture(scope="module")
def said(checks, demo, tmp_path_factory):
    folder = tmp_path_factory.mktemp("kotlin")
    table = RequestTable(demo, folder)
    (folder / "table.json").write_text(json.dumps(table.groups))
    damaged = folder / "damaged"
    damaged.mkdir()
    (damaged / "wherry.json").write_text('{"schema": 1}')
    hybrid = folder / "hybrid"
    hybrid.mkdir()
    (hybrid / "wherry.json").write_text(json.dumps(HYBRID))
    cases = ["answers", "together", "cancelling", "closing", "held"]
    cases += [f"plans:{','.join(map(str, PLANNED))}", f"plan:{hybrid}"]
    cases += ["schemas", "typed", "limits", f"numbers:{table.vectors['embedder']}"]
    checked = checks(f"table:{folder / 'table.json'}", *cases, f"errors:{damaged}", "leaks:30")
    return {"cases": table, **checked}


def test_the_table_is_answered_as_python_does(said, engine):
    said["cases"].check_demo(said["table"][0], engine)


def test_templates_are_python_s(said):
    said["cases"].check_templates(said["table"][1])


def test_calls_of_tools_are_python_s(said):
    said["cases"].check_tools(said["cases"].check_vectors(said["table"][2:]))


def test_greedy_texts_are_python_s(said, engine):
    text = engine.completions.create(**BEGUN).choices[0]
    chat = engine.chat.completions.create(messages=ASK, **GREEDY).choices[0].message.content
    expected = {"text": text.text, "streamed": text.text, "chat": chat, "chat_streamed": chat}
    assert said["answers"] == {**expected, "finish": text.finish_reason}


def test_the_sample_is_in_the_tree():
    """Its folder is called as what its .gitignore leaves out: a package of `wherry package`."""
    sample = ROOT / "mobile" / "android" / "sample"
    manifest = ElementTree.parse(sample / "src" / "main" / "AndroidManifest.xml").getroot()
    android = "{http://schemas.android.com/apk/res/android}"
    activity = manifest.find("application/activity").get(f"{android}name")
    gradle = (sample / "build.gradle.kts").read_text()
    package = re.search(r'namespace = "(.*)"', gradle)[1].replace(".", "/")
    source = sample / "src" / "main" / "kotlin" / f"{package}{activity.replace('.', '/')}.kt"
    ignored = ["git", "-C", str(ROOT), "check-ignore", str(source)]
    assert source.is_file()
    assert subprocess.run(ignored, check=False).returncode != 0


def test_the_sample_may_download():
    sample = ANDROID.parent / "sample" / "src" / "main"
    (catalog,) = sample.rglob("Catalog.kt")
    assert "https://" in catalog.read_text()
    manifest = (sample / "AndroidManifest.xml").read_text()
    assert '<uses-permission android:name="android.permission.INTERNET" />' in manifest


@pytest.mark.nightly
def test_the_sample_and_the_activity_of_the_page_compile(all_classes):
    classes = Path(all_classes.split(":")[0])
    compiled = classes / "dev" / "wherry" / "sample"
    assert {"MainActivity.class", "ChatModel.class"} <= {p.name for p in compiled.iterdir()}
    assert (classes / "com" / "example" / "app" / "MainActivity.class").is_file()


MARKDOWN = """# Foxes
- **red** and *shy*
* 2 * 3 = `a*b`
```
**x** = 1
```
**open"""


@pytest.mark.nightly
def test_the_sample_s_markdown(all_classes):
    said = run(["java", "-cp", all_classes, "SampleChecksKt", MARKDOWN])
    text, spans = json.loads(said.splitlines()[-1])
    lines = ["Foxes", "\u2022 red and shy", "\u2022 2 * 3 = a*b", "**x** = 1", "**open"]
    assert text.splitlines() == lines
    assert spans == ["bold:Foxes", "bold:red", "italic:shy", "code:a*b", "code:**x** = 1"]


@pytest.mark.nightly
def test_the_library_from_java(all_classes, bridge, demo, engine):
    report = java(all_classes, bridge, "JavaChecks", demo, RUNTIME)
    text = engine.completions.create(**BEGUN).choices[0].text
    messages = [{"role": "user", "content": BEGUN["prompt"]}]
    chat = engine.chat.completions.create(messages=messages, **GREEDY).choices[0].message.content
    expected = {"refused": "prompt", "cancelled": True, "late": "EngineClosedException"}
    assert report == {"text": text, "pieces": chat, **expected}


def test_sixteen_at_once_are_as_each_alone(said, engine):
    alone, together = said["together"]
    assert alone == together
    assert len(set(alone)) > 12
    for i in (0, 15):
        messages = [{"role": "user", "content": f"Number {i} 🦊"}]
        limits = {"max_tokens": 16 + i, "temperature": 0.7, "seed": i}
        answer = engine.chat.completions.create(messages=messages, **limits)
        assert answer.choices[0].message.content == alone[i]


def test_cancelling_frees_pages(said):
    pages = said["cancelling"]
    assert pages["least"] < pages["before"] == pages["after"]
    assert (pages["own"], pages["cached"]) == ("own", 0)


def test_errors_have_types(said):
    errors = said["errors"]
    expected = {
        "no_folder": "ModelNotFoundException: /none is no compiled model: .* Type: wherry compile",
        "damaged": "IncompatibleModelException: .*wherry.json has schema 1, this runtime reads 2",
        "no_option": 'InvalidArgumentException: .*unknown option "colour"',
        "no_memory": "NotEnoughMemoryException: .* needs [0-9]+ MB of memory, [0-9]+ MB are free",
        "bad_json": "InvalidArgumentException: A request is one JSON object",
        "refused": "RequestException: temperature: ",
        "cancelled": "CancellationException: own",
        "own": "IllegalStateException: own",
        "closed_while": "EngineClosedException: ",
        "closed": "EngineClosedException: ",
        "closed_stats": "EngineClosedException: ",
    }
    assert set(errors) == set(expected)
    for name, pattern in expected.items():
        assert re.match(pattern, errors[name], re.DOTALL), (name, errors[name])
    assert said["closing"] == "EngineClosedException"


def test_the_cache_is_planned_from_the_memory(said, demo):
    """Of plenty all sequences get their full length, of less a part, of too little the least."""
    memory = read_manifest(demo).memory
    plenty, less, little = said["plans"]
    fixed_ = memory["weights"] + memory["workspace"]
    for (total, least, cache, tokens, fits), given in zip(said["plans"], PLANNED, strict=True):
        assert total == fixed_ + cache and tokens * memory["kv_per_token"] <= cache
        assert fits == (least <= given)
    assert plenty[2] > less[2] == (PLANNED[1] - fixed_) // 2 > little[2]
    assert plenty[4] and less[4] and not little[4]


def test_the_plan_has_slots_of_a_recurrent_state(said):
    """For four sequences and two snapshots; a quarter of the cache is for more of these."""
    state, cache, least, total = said["plan"]
    memory, requests = HYBRID["memory"], 4
    fixed_ = memory["weights"] + memory["workspace"] + state
    per_token = memory["kv_per_token"] * 5 // 4
    assert state == memory["slot"] * (requests + 2)
    assert cache == per_token * requests * HYBRID["deployment"]["context"]
    assert least == fixed_ + per_token * 512 and total == fixed_ + cache


def test_answers_are_constrained(said):
    expected = ["42", "a fox", "fox"] if guided_cases.available() else ["unsupported_parameter"] * 3
    assert said["held"] == expected


def test_schemas_of_serializable_classes(said):
    """What kotlinx.serialization writes fits them, and nothing else."""
    forest, node, shape = (said["schemas"][name] for name in ("forest", "node", "shape"))
    fox = {"colour": "red", "tails": 9, "tame": False}
    complete = {"forest_name": "Oak", "trees": 3, "foxes": [fox], "ages": {"a": 1.5, "b": None}}
    jsonschema.validate({**complete, "note": None}, forest)
    jsonschema.validate({"forest_name": "Oak", "trees": 3, "foxes": []}, forest)
    assert [*forest["properties"]] == ["forest_name", "trees", "foxes", "ages", "note"]
    wrong = [{"trees": 2**31}, {"note": 1}, {"ages": {"a": "b"}}, {"colour": "red"}]
    wrong += [{"foxes": [{**fox, **part}]} for part in ({"tails": 200}, {"colour": "green"})]
    for part in wrong:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**complete, **part}, forest)
    jsonschema.validate({"value": 1, "next": {"value": 2, "next": None}}, node)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"value": 1, "next": {"value": "2"}}, node)
    jsonschema.validate({"type": "circle", "radius": 1}, shape)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"type": "square", "radius": 1}, shape)
    assert "CONTEXTUAL) has no JSON Schema" in said["schemas"]["none"]


def test_typed_answers(said):
    fox, cut, parameters = said["typed"]
    assert [*json.loads(parameters)["properties"]] == ["colour", "tails", "tame"]
    if not guided_cases.available():
        assert (fox, cut) == ("unsupported_parameter", "unsupported_parameter")
        return
    assert [*json.loads(fox)] == ["colour", "tails", "tame"]
    assert cut.startswith("The answer is no Fox: ")


def test_a_limit_of_threads_changes_no_text(said):
    free, limited, refused = said["limits"]
    assert free == limited == said["answers"]["text"]
    assert refused.startswith("the limit is -1 threads; it takes a number from 1")


def test_numbers_have_types(said):
    """A vector in base64 is that in numbers, and a ranking has its best document alone."""
    short, full, index, score, text, refused = said["numbers"]
    assert len(short) == 4 and short == full[:4]
    assert (index, text, refused) == (1, "w7 w9 w12", "no_classes") and 0 < score <= 1


def test_the_version_is_python_s():
    gradle = (ROOT / "mobile" / "android" / "build.gradle.kts").read_text()
    assert f'version = "{wherry.__version__}"' in gradle


def test_shrunk_apps_keep_what_native_code_finds():
    android = ROOT / "mobile" / "android"
    text = "".join(p.read_text() for p in (android / "src" / "main" / "cpp").glob("*.cc"))
    rules = (android / "consumer-rules.pro").read_text()
    kept = re.findall(r"^-keep (?:class|interface) dev\.wherry\.(\w+) \{ \*; \}$", rules, re.M)
    assert set(kept) == set(re.findall(r"dev/wherry/(\w+)", text))


def test_loads_leave_nothing(said):
    check_leaks(said["leaks"], 16_000)


@pytest.mark.nightly
def test_a_thousand_loads_leak_nothing(checks):
    """Of memory, threads and open files, from the second hundred to the last."""
    check_leaks(checks("leaks:1000")["leaks"], 24_000)


def check_leaks(sizes, grown):
    """Of memory, kB, at most so much; of threads and open files nothing."""
    (first, *_), last = sizes[1:], sizes[-1]
    assert last[0] - first[0] < grown, sizes
    assert last[1] <= first[1] and last[2] <= first[2], sizes
