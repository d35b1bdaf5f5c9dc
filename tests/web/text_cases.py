"""Cases of texts, tokens and templates that the server and the browser's engine answer alike.

    python -m tests.web.text_cases > tests/web/text_cases.json

`web/test/text_cases.test.ts` reads the file; `test_text_cases.py` holds this machine to it. Tokens
and templates are the libraries' (tokenizers, jinja2), pieces of text those of app/.
"""

from __future__ import annotations

import json
import random
from typing import Any

from wherry.runtime.errors import RequestError
from wherry.runtime.text.chat_template import ChatTemplate
from wherry.runtime.text.tokenizer import Tokenizer

from ..app.tokenize import CoreTokenizer
from ..runtime import small_tokenizers as small

KINDS = {
    "byte_level": small.byte_level,
    "byte_fallback": small.byte_fallback,
    "byte_fallback_unstripped": lambda: small.byte_fallback(strip=False),
    "metaspace": small.metaspace,
    "word_piece": small.word_piece,
}
_TEXTS = [
    "the cat sat",
    "Once upon a time  the über cat",
    "日本 🎉🇯🇵 e\u0301 é",
    " leading and trailing ",
    "<|user|>the cat</s> sat",
    "line\nbreak\ttab",
    "",
]
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "<b>Hi & bye</b> ü"},
]
# Not in them, because @huggingface/jinja has them otherwise: {{ true }} is "true" there, 'ab' * 2
# is refused, and `break` forgets what its turn of the loop has written.
_TEMPLATES: list[tuple[str, dict[str, Any]]] = [
    (
        "{%- for message in messages %}\n    {{- '<|im_start|>' + message['role'] + '\\n' + "
        "message['content'] + '<|im_end|>' + '\\n' }}\n{%- endfor %}\n"
        "{%- if add_generation_prompt %}\n    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}",
        {},
    ),
    (
        "{% for m in messages %}\n  {% if m.role != 'tool' %}\n{{ m.content }}\n"
        "  {% endif %}\n{% endfor %}\n",
        {},
    ),
    (
        "{{ bos_token }}{% if thinking is defined and thinking %}!{% endif %}"
        "{{ 'none' if tools is none }}",
        {"thinking": True},
    ),
    ("{{ messages | length }}", {"messages": []}),
    (
        "{% for m in messages %}[{{ m.content }}]{% if m.role == 'system' %}{% continue %}"
        "{% endif %}!{% endfor %}",
        {},
    ),
    ("{{ messages[1] | tojson }}{{ messages[0] | tojson(indent=1) }}{{ 'ü<>' | tojson }}", {}),
    ("{{ raise_exception('Roles must alternate') }}", {}),
    (
        "{%- set ns = namespace(n=0) -%}{%- for m in messages -%}{%- set ns.n = ns.n + 1 -%}"
        "{{ loop.index }}{{ 'f' if loop.first }}{{ 'l' if loop.last }}{%- endfor -%}{{ ns.n }}",
        {},
    ),
    (
        "{%- macro show(x, depth=0) -%}{{ depth + 1 }}{{ x }}{%- endmacro -%}"
        "{{ show('a', depth=2) }}{{ messages[::-1][0].role }}{{ messages[-1]['content'] | upper }}",
        {},
    ),
    (
        "{{ messages | selectattr('role', 'equalto', 'user') | list | length }}"
        "{{ messages | map(attribute='role') | join(', ') }}{{ ' x ' | trim }}|{{ ' x '.strip() }}",
        {},
    ),
    (
        "{{ 'a-b'.split('-')[1] }}{{ 'in' if 'b' in 'abc' }}{{ 'x' if nothing else 'y' }}"
        "{{ 7 // 2 }}",
        {},
    ),
]


def _of_tokenizer(name: str, rng: random.Random) -> dict[str, Any]:
    backend = KINDS[name]()
    tokenizer = Tokenizer(backend)
    encoded = [tokenizer.encode(text) for text in _TEXTS]
    samples = [[*ids] for ids in encoded] + [
        rng.choices(range(tokenizer.vocab_size), k=rng.randrange(1, 30)) for _ in range(30)
    ]
    if tokenizer.token_bytes is None:  # the library's decoders differ beyond what encoding makes
        samples = [ids for ids in encoded if ids]
    cut = [(ids[:at], ids[at:]) for ids in samples for at in {0, len(ids) // 2}]
    with CoreTokenizer(backend.to_str()) as core:
        return {
            "tokenizer": json.loads(backend.to_str()),
            "encode": [{"text": t, "ids": ids} for t, ids in zip(_TEXTS, encoded, strict=True)],
            "detokenize": [
                {"prompt": prompt, "ids": ids, "pieces": core.detokenize(ids, prompt)}
                for prompt, ids in cut
            ],
        }


def _template(source: str, variables: dict[str, Any]) -> dict[str, Any]:
    special = {"bos_token": "<s>"}
    try:
        text = ChatTemplate(source, special).render(MESSAGES, variables=variables)
    except RequestError:
        text = None
    return {"source": source, "special": special, "variables": variables, "text": text}


def cases() -> dict[str, Any]:
    """All cases."""
    rng = random.Random(11)
    return {
        "tokenizers": {name: _of_tokenizer(name, rng) for name in KINDS},
        "messages": MESSAGES,
        "templates": [_template(source, variables) for source, variables in _TEMPLATES],
    }


def page() -> str:
    """The content of text_cases.json."""
    return json.dumps(cases(), separators=(",", ":")) + "\n"


if __name__ == "__main__":
    print(page(), end="")
