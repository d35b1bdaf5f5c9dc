"""One table of requests that Python's engine, the C ABI of apps, Kotlin's and pages answer alike.

What is right is what Python's engine answers on the same compiled folder, with Python's libraries
(`answers.py`): `test_chat.py` holds the tokenizer, templates and grammars of apps to it,
`tests/mobile/test_kotlin.py` Kotlin, `tests/web/test_requests.py` the module of pages. A row is a
request as OpenAI's clients send it; one with "messages" is a chat completion, one with "prompt" a
text completion.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from . import guided_cases
from .tool_cases import HISTORY, REFUSED

Request = dict[str, Any]
ASK = [{"role": "user", "content": "Tell me a story about a fox."}]
SYSTEM = {"role": "system", "content": "You tell stories."}
LONG = [
    {"role": role, "content": f"{i} times a fox met a bear, and {role} saw it. " * 3}
    for i in range(60)
    for role in ("user", "assistant")
][:-1]
TOOLS = [{"type": "function", "function": {"name": "now", "description": "The time"}}]
GREEDY = {"temperature": 0, "max_tokens": 24}
_HOT = {"temperature": 2, "max_tokens": 40}  # tokens of any kind: halves of characters, too

ANSWERS: list[Request] = [
    {"messages": ASK, **GREEDY},
    {"messages": ASK, **GREEDY, "n": 2, "model": "mine"},
    {"messages": ASK, **GREEDY, "logprobs": True, "top_logprobs": 3},
    {"messages": ASK, "temperature": 1, "seed": 7, "max_completion_tokens": 20, "top_p": 0.9},
    {"messages": ASK, "seed": 3, "max_tokens": 9, "logit_bias": {"40": -100}, "min_p": 0.1},
    {"messages": [{"role": "system", "content": "Ünï"}, *ASK], **GREEDY, "ignore_eos": True},
    {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}], **GREEDY},
    {
        "messages": [*ASK, {"role": "assistant", "content": "Once"}],
        "continue_final_message": True,
        **GREEDY,
    },
    {"messages": ASK, **GREEDY, "response_format": {"type": "text"}},
    # Tools, for a template that knows none; what models answer with calls is in tool_cases.py.
    {"messages": ASK, "tools": TOOLS, **GREEDY},
    {"messages": HISTORY, "tools": TOOLS, **GREEDY},
    {"messages": [*ASK, {"role": "tool", "tool_call_id": "1", "content": "🦊"}], **GREEDY},
    {"prompt": "Once upon a time", **GREEDY},
    {"prompt": ["Once upon", "A fox"], "temperature": 0, "n": 2},
    {"prompt": [40, 41, 42], **GREEDY, "logprobs": 2},
    {"prompt": "a", "seed": 5, "dry_multiplier": 0.8, "bad_words": ["the"], "max_tokens": 12},
    # Stop strings: across tokens, two that begin alike, the longer of two, none that is met.
    {"messages": ASK, **GREEDY, "stop": ["the", "."]},
    {"messages": ASK, **GREEDY, "stop": "a"},
    {"messages": ASK, **GREEDY, "stop": [" th", " the", "z"]},
    {"prompt": "Once upon a time", **GREEDY, "stop": ["e", "er"]},
    {"prompt": "Once upon a time", **GREEDY, "stop": ["🎉", "\n\n", "日本"]},
    # Unicode: of more than 16 bits, joined, combining, right to left, and what JSON escapes.
    {"messages": [{"role": "user", "content": "日本 🎉🇯🇵 👩‍👩‍👧 e\u0301 é עברית"}], **GREEDY},
    {"messages": [{"role": "user", "content": '"\\ \n\t\u0001\u007f\u2028 </b>'}], **GREEDY},
    {"messages": [{"role": "user", "content": "\U0010ffff\ufffe\ufffd"}], "model": "🦊", **GREEDY},
    {"prompt": "", **GREEDY},
    {"prompt": " leading and trailing ", **GREEDY},
    *({"prompt": "日本 🎉", **_HOT, "seed": seed} for seed in range(4)),
    {"prompt": "é", **_HOT, "seed": 4, "logprobs": 3},
    {"messages": ASK, **_HOT, "seed": 5, "logprobs": True, "top_logprobs": 2},
    {"messages": ASK, **_HOT, "seed": 6, "stop": ["\ufffd"]},
    # Fields of other servers, and OpenAI's older ones.
    {"messages": ASK, "do_sample": False, "temperature": 2, "max_tokens": 9},
    {"messages": ASK, **GREEDY, "stop_token_ids": [40, 40, 2]},
    {"messages": ASK, **GREEDY, "stop": [" the"], "include_stop_str_in_output": True},
    {"prompt": [40], **GREEDY, "stop_token_ids": [13], "include_stop_str_in_output": True},
    {"messages": ASK, **GREEDY, "prompt_logprobs": 2},
    {"messages": ASK, **GREEDY, "prompt_logprobs": False, "thinking": {"type": "enabled"}},
    {"messages": ASK, **GREEDY, "prediction": {"type": "content", "content": "Once upon a time"}},
    {"messages": ASK, **GREEDY, "prediction": {"content": [{"type": "text", "text": "A fox"}]}},
    {"prompt": "Once upon a time", **GREEDY, "echo": True},
    {"prompt": ["Once upon", "日本 🎉"], **GREEDY, "echo": True, "logprobs": 2, "n": 2},
    {"prompt": "Once upon a time", "max_tokens": 0, "echo": True, "logprobs": 0},
    {"prompt": [40, 41, 42, 43], "max_tokens": 0, "echo": True, "prompt_logprobs": 1},
    {"prompt": "Once upon a time", **GREEDY, "prompt_logprobs": 0, "n": 2},
    {"prompt": "Once upon a time", **GREEDY, "suffix": ""},
    # More turns than the context has room for, after a system message, and with a limit of its own.
    {"messages": [SYSTEM, *LONG], "truncation": "auto", "temperature": 0, "max_tokens": 8},
    {"messages": LONG[2:], "truncation": "auto", "temperature": 0, "max_tokens": 300},
    {"messages": ASK, "truncation": "auto", **GREEDY},
]

if guided_cases.available():
    ANSWERS += guided_cases.ANSWERS

# Joined, what a whole answer says; how tokens fall together into chunks may differ.
STREAMS: list[Request] = [
    {"messages": ASK, **GREEDY},
    {"messages": ASK, **GREEDY, "stop": ["the", "."]},
    {"prompt": "Once upon a time", **GREEDY},
    {"prompt": "日本 🎉", **_HOT, "seed": 1},
    {"messages": ASK, **_HOT, "seed": 5},
]

ERRORS: list[Request] = [
    {"messages": []},
    {"messages": ASK, "temperature": 3, "top_p": 0, "n": 0, "seed": "x", "stop": [1]},
    {"messages": [{"role": "nobody", "content": "x"}]},
    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
    {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {
                        "type": "image_url",
                        "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="},
                    },
                ],
            }
        ]
    },
    {"messages": ASK, "max_tokens": 10**6},
    {"messages": ASK, "top_logprobs": 2},
    {"messages": ASK, "min_tokens": 9, "max_tokens": 3},
    {"messages": ASK, "logit_bias": {"99999999": 1}},
    {"messages": ASK, "functions": [{}], "audio": {}},
    {"messages": ASK, "continue_final_message": True},
    {"messages": ASK, "reasoning_effort": "huge"},
    {"messages": ASK, "truncation": "last"},
    {"messages": ASK, "prompt_logprobs": 21, "do_sample": "x", "documents": [7]},
    {"messages": ASK, "prompt_logprobs": 1, "stream": True},
    {"messages": ASK, "thinking": {"type": "maybe"}},
    {"messages": ASK, "thinking": {"type": 7}},
    {"messages": ASK, "documents": [{"text": "a fox"}]},
    {"messages": ASK, "stop_token_ids": [99999999]},
    {"messages": ASK, "prediction": {"type": "other", "content": []}},
    {"messages": ASK, "logprobs": True, "top_logprobs": 20, "n": 128, "prompt_logprobs": 20},
    {"messages": ASK, "bad_words": ["x" * 1024] * 65},
    {"prompt": "x", "n_predict": 3, "max_new_tokens": 4},
    {"prompt": "x", "suffix": "y"},
    {"prompt": "x", "suffix": "y", "echo": True},
    {"messages": LONG, "truncation": "disabled"},
    {"messages": [*LONG[:2], {"role": "user", "content": "a fox " * 4000}], "truncation": "auto"},
    {"messages": [{"role": "user", "content": "half: \ud83e"}]},
    {"messages": ASK, "stop": ["\udd8a"]},
    {"prompt": []},
    {"prompt": [1, "a"]},
    {"prompt": {"a": 1}},
    {"prompt": [99999999]},
    {"prompt": "x", "max_tokens": 0},
    {"prompt": "x", "logprobs": 21, "priority": 0.5, "ignore_eos": "maybe"},
    {"prompt": "🦊", "temperature": "🦊", "stop": [""] * 200},
    *({"messages": ASK, "tools": TOOLS, **row} for row in REFUSED),
    *guided_cases.ERRORS,
]

# Templates of the table that browsers are held to, too, as branches of one: each says what it
# renders. Rows name theirs by a variable.
_TABLE = json.loads((Path(__file__).parents[1] / "web" / "text_cases.json").read_text())
_BRANCHES = [case["source"] for case in _TABLE["templates"]]
TEMPLATE = (
    "{% set said %}"
    + "".join(
        f"{{% {'elif' if row else 'if'} row == {row} %}}{source}"
        for row, source in enumerate(_BRANCHES)
    )
    + "{% endif %}{% endset %}{{ raise_exception(said) if shown else said }}"
)
# The same model's template for chats with tools.
TOOL_TEMPLATE = "{{ raise_exception(tools[0].function.name ~ ' for ' ~ messages[0].role) }}"
# Of a model with TEMPLATE. What a template renders is in the error's message, or is answered.
TEMPLATE_ERRORS: list[Request] = [
    {
        "messages": _TABLE["messages"],
        "chat_template_kwargs": {**case["variables"], "row": row, "shown": True},
    }
    for row, case in enumerate(_TABLE["templates"])
    if "messages" not in case["variables"]
] + [{"messages": ASK, "tools": [{"type": "function", "function": {"name": "f"}}]}]
TEMPLATE_ANSWERS: list[Request] = [
    {"messages": _TABLE["messages"], "chat_template_kwargs": {"row": row}, **GREEDY}
    for row in (0, 1, 5, 8)
]

# Of a model that has embeddings: inputs as texts and as token ids, cut, in part, and in base64.
_LONG = " ".join(f"w{i % 200}" for i in range(900))
_THREE = ["w20 w21", "w7 w9 w12", "w9"]
_RANKINGS: list[Request] = [
    {"query": "w7 w9", "documents": _THREE},
    {"query": "w7 w9", "documents": ["w9 w9", {"text": "w7 w9"}, "w9 w9"], "top_n": 2},
    {"query": "w7", "documents": "w8", "return_documents": False, "model": "mine", "user": "me"},
    {"query": "w7 w9 w11", "documents": [_LONG, "w9"], "truncate": True},
    {"query": "w7 w9 w11", "documents": [_LONG, "w9"], "truncate_prompt_tokens": 40},
    {"query": "w7 w9 w11 w13", "documents": [_LONG, "w9 w8"], "max_tokens_per_doc": 12},
    {"query": _LONG, "documents": _THREE, "max_tokens_per_query": 5, "top_n": 0},
]
_SCORES: list[Request] = [
    {"task": "score", "text_1": "w7 w9", "text_2": _THREE},
    {"task": "score", "queries": ["w7 w9", {"text": "w20"}, "w9"], "documents": _THREE},
    {"task": "score", "data_1": ["w7"], "items": "w8", "model": "mine", "user": "me"},
    {"task": "score", "text_1": "w7", "queries": 7, "data_2": ["w8", {"text": "w9"}]},
    {"task": "score", "text_1": "w7 w9 w11", "text_2": [_LONG, "w9"], "truncate": True},
    {"task": "score", "text_1": "w7 w9", "text_2": [_LONG, "w9"], "max_tokens_per_doc": 12},
    {"task": "score", "text_1": [_LONG, "w5"], "text_2": ["w5", "w8"], "max_tokens_per_query": 5},
]
_SCORE_ERRORS: list[Request] = [
    {"task": "score"},
    {"task": "score", "text_1": "w7"},
    {"task": "score", "queries": 7, "items": [], "max_tokens_per_doc": -1},
    {"task": "score", "text_1": None, "documents": [{"words": "w8"}]},
    {"task": "score", "text_1": ["w7", "w8"], "text_2": _THREE},
    {"task": "score", "text_1": _THREE, "text_2": "w8"},
    {"task": "score", "text_1": "w7", "text_2": ["w8", _LONG]},
    {"task": "score", "text_1": ["w7", "w8"], "text_2": ["w8", _LONG]},
    {"task": "score", "text_1": ["w7"] * 2049, "data_2": "w8"},
]
_BOTH_LONG = {"query": _LONG, "documents": [_LONG, "w9"], "truncate_prompt_tokens": 40}
_RANKING_ERRORS: list[Request] = [
    {"query": "w7"},
    {"query": 7, "documents": [], "top_n": -1},
    {"query": "w7", "documents": ["w8", 7]},
    {"query": "w7", "documents": [{"words": "w8"}]},
    {"query": "w7", "documents": ["w8"], "truncate": False, "truncate_prompt_tokens": 9},
    {"query": "w7", "documents": ["w8", _LONG]},
    {"query": "w7", "documents": ["w8"] * 2049},
]
_EMBEDDINGS: list[Request] = [
    {"input": "w7 w9 w11"},
    {"input": ["w7 w9 w11", "w20", "w7 w9 w12 \U0001f98a"], "model": "mine"},
    {"input": [7, 9, 11]},
    {"input": [[7, 9], [20]], "user": "me", "cache_salt": "salt"},
    {"input": "w5 w6", "dimensions": 8},
    {"input": ["w5 w6", "w8"], "encoding_format": "base64", "dimensions": 5},
    {"input": _LONG, "truncate": True},
    {"input": "w1 w2 w3 w4 w5 w6 w7", "truncate_prompt_tokens": 4},
    {"input": [7, 9, 11, 13], "truncate_prompt_tokens": 2},
]
_EMBEDDING_ERRORS: list[Request] = [
    {"input": []},
    {"input": [[7], []]},
    {"input": {"a": 1}},
    {"input": [99999999]},
    {"input": _LONG},
    {"input": "w5", "dimensions": 4096},
    {"input": "w5", "dimensions": 0, "encoding_format": "int8", "truncate": "maybe"},
    {"input": "w5", "prompt_name": "no such"},
    {"input": "w5", "truncate": False, "truncate_prompt_tokens": 4},
    {"input": "w5", "truncate_prompt_tokens": 0},
    {"input": ["w5"] * 2049},
]
# Requests whose answers are numbers, by the model of vector_models.py that they are for.
VECTORS: dict[str, list[Request]] = {
    "embedder": [*_EMBEDDINGS, *_RANKINGS, *_SCORES, _BOTH_LONG],
    "cross_encoder": [
        *_RANKINGS,
        *_SCORES,
        _BOTH_LONG,
        {"query": "w7 w9", "documents": ["w9"], "truncate_prompt_tokens": 5},
        {"task": "classify", "input": ["w5", "w7 w9"]},
    ],
    "classifier": [
        {"task": "classify", "input": "w7 w9 w11"},
        {
            "task": "classify",
            "input": ["w7 w9 w11", {"text": "w20"}, "w5 \U0001f98a"],
            "model": "me",
        },
        {"task": "classify", "input": _LONG, "truncate": True},
    ],
    "reranker": [
        *_RANKINGS,
        *_SCORES,
        {"query": "w7 w9", "documents": _THREE, "instruction": "w40 w41"},
        {"query": "w7 w9", "documents": ["w8"], "instruct": "w40"},
    ],
}
_NO_EMBEDDINGS: list[Request] = [{"input": "w5"}, {"task": "embed", "input": "w5"}]
_NO_CLASSES: list[Request] = [{"task": "classify", "input": "w5"}]
VECTOR_ERRORS: dict[str, list[Request]] = {
    "embedder": [
        *_EMBEDDING_ERRORS,
        *_RANKING_ERRORS,
        *_SCORE_ERRORS,
        *_NO_CLASSES,
        {"query": "w7", "documents": ["w8"], "instruction": "w40"},
    ],
    "cross_encoder": [
        *_RANKING_ERRORS,
        *_SCORE_ERRORS,
        *_NO_EMBEDDINGS,
        {"query": "w7 [SEP] w9", "documents": ["w8"]},
        {"query": "w7", "documents": ["w8"], "instruction": "w40"},
        {"query": "w7 w9", "documents": ["w9"], "truncate_prompt_tokens": 4},
    ],
    "classifier": [
        {"task": "classify"},
        {"task": "classify", "input": []},
        {"task": "classify", "input": ["w5", _LONG]},
        {"query": "w7", "documents": ["w8"]},
        {"task": "score", "text_1": "w7", "text_2": ["w8"]},
        *_NO_EMBEDDINGS,
    ],
    "reranker": [
        *_RANKING_ERRORS,
        *_SCORE_ERRORS,
        {"query": "w7", "documents": ["w8"], "instruct": 7},
        *_NO_EMBEDDINGS,
        *_NO_CLASSES,
        {"query": _LONG, "documents": ["w8"], "truncate": True},
        _BOTH_LONG,
    ],
}


def typed(rows: list[Request]) -> list[Request]:
    """The rows that phones and pages have functions for: scores are for C and wherry-lite."""
    return [row for row in rows if row.get("task") != "score"]
