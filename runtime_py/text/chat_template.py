"""Renders a model's chat template (Jinja, in the dialect of Hugging Face's `transformers`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

import jinja2
from jinja2 import ext, meta, nodes
from jinja2.parser import Parser

from wherry.errors import ModelError

from ..caller import Abandoned, Caller
from ..errors import RequestError
from .template_budget import Budget, TooCostly
from .template_sandbox import BudgetedEnvironment
from .tokenizer import read_json

MAX_SOURCE = 2**18  # maximum characters of a template; the longest known one has a sixth of this
_LONGEST_ERROR = 1000  # characters of a template's error message that the client gets
_LONGEST_DATE = 200
_WIDEST_INDENT = 64
# names of templates in a model's folder
TOOL_USE, _DEFAULT = "tool_use", "default"


class _GenerationBlock(ext.Extension):
    """The Jinja tag `{% generation %}`, which marks text for training; rendering ignores it."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it so

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(str(message)[:_LONGEST_ERROR])


def _strftime_now(pattern: str) -> str:
    # limited, because each field of a date pattern may ask for a width
    if len(pattern) > _LONGEST_DATE:
        raise TooCostly(f"it has a date of {len(pattern)} characters")
    return datetime.now().strftime(pattern)


def _date_text() -> str:
    """Return the present time as the variable `datetime` of Firefunction's template."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S GMT")


def _environment() -> BudgetedEnvironment:
    environment = BudgetedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, ext.loopcontrols]
    )

    def tojson(
        value: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """Return the JSON of a value.

        Jinja's own filter escapes HTML, which models have not seen.
        """
        if isinstance(indent, int) and indent > _WIDEST_INDENT:
            raise TooCostly(f"it indents by {indent}")
        encoder = json.JSONEncoder(
            ensure_ascii=ensure_ascii,
            indent=indent if indent is None else int(indent),
            separators=separators
            and (separators[0][:_WIDEST_INDENT], separators[1][:_WIDEST_INDENT]),
            sort_keys=sort_keys,
        )
        return environment.concat(encoder.iterencode(value))

    environment.add_filter("tojson", tojson)
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


class ChatTemplate:
    """Renders messages as the text that the model was trained on.

    Args:
        source: the template's text.
        special_tokens: special tokens as variables of the template: "bos_token", "eos_token", ...

    Attributes:
        source: the template's text.
        special_tokens: special tokens as variables of the template.
        variables: names that the template reads and does not set.
        for_tools: another template of the model, for chats with tools; None: this one serves all.

    Raises:
        ModelError: the template is not valid Jinja, or too large.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str] | None = None) -> None:
        if len(source) > MAX_SOURCE:
            raise ModelError(
                f"The chat template has {len(source)} characters; at most {MAX_SOURCE} are read"
            )
        self.source = source
        self._environment = _environment()
        try:
            self._template = self._environment.from_string(source)
            self.variables = meta.find_undeclared_variables(self._environment.parse(source))
        except jinja2.TemplateSyntaxError as e:
            raise ModelError(f"The chat template, line {e.lineno}: {e.message}") from e
        except Exception as e:  # nesting is too deep for the compiler of Jinja or of Python
            raise ModelError(f"The chat template cannot be compiled: {_reason(e)}") from e
        self.special_tokens = dict(special_tokens or {})
        self.for_tools: ChatTemplate | None = None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool = True,
        variables: Mapping[str, Any] | None = None,
        caller: Caller | None = None,
    ) -> str:
        """Return the prompt's text; encode it without special tokens, because the text has them.

        Args:
            messages: objects {"role", "content", ...}; content is a string.
            add_generation_prompt: whether the prompt ends with the beginning of the assistant's
                turn.
            variables: further variables of this template, such as "enable_thinking".
            caller: the client that waits for the prompt.

        Raises:
            RequestError: the template refuses the messages, fails, or costs too much.
            Abandoned: the client has gone.
        """
        given = {
            **self.special_tokens,
            "tools": None,
            "documents": None,
            **({"datetime": _date_text()} if "datetime" in self.variables else {}),
            "add_generation_prompt": add_generation_prompt,
            **(variables or {}),
            "messages": [dict(m) for m in messages],
        }
        try:
            budget = Budget(given, caller or Caller())
            return self._environment.spend(budget, lambda: self._template.render(given))
        except Abandoned:
            raise
        except Exception as e:  # a template is a program, which may raise anything
            raise RequestError(
                f"The model's chat template does not accept these messages: {_reason(e)}",
                param="messages",
                code="chat_template",
            ) from e


def _reason(error: Exception) -> str:
    """Return the text of an error, or its class for errors without a text."""
    text = str(error)[:_LONGEST_ERROR]
    if isinstance(error, jinja2.TemplateError) and text:
        return text
    return f"{type(error).__name__}: {text}".rstrip(": ")


def from_folder(folder: Path, special_tokens: Mapping[str, str]) -> ChatTemplate | None:
    """Return the template of a model folder; None if the model only completes text.

    Raises:
        ModelError: the template is not valid Jinja, not UTF-8, or of another type.
    """
    named = sources_of(folder)
    source = _usual(named) if named else ""
    if not source:  # an empty template would lose every message
        return None
    template = ChatTemplate(source, special_tokens)
    if template.source != (with_tools := named.get(TOOL_USE, template.source)):
        template.for_tools = ChatTemplate(with_tools, special_tokens)
    return template


def source_of(folder: Path) -> str | None:
    """Return the text of a folder's template for chats without tools; None: it has no template.

    Raises:
        ModelError: the file is not UTF-8, or of another type.
    """
    named = sources_of(folder)
    return _usual(named) if named else None


def _usual(named: Mapping[str, str]) -> str:
    return named.get(_DEFAULT, next(iter(named.values())))


def sources_of(folder: Path) -> dict[str, str]:
    """Return the texts of a folder's templates by name, as `transformers` reads them.

    chat_template.jinja is "default", and chat_template.NAME.jinja, or NAME.jinja in the folder
    additional_chat_templates, another one. What these do not name is in tokenizer_config.json, or
    in a processor's chat_template.json: a text, or a list of named ones.

    Raises:
        ModelError: a file is not UTF-8, or of another type.
    """
    files = {path.stem: path for path in folder.glob("additional_chat_templates/*.jinja")}
    files |= {path.name.split(".")[1]: path for path in folder.glob("chat_template.*.jinja")}
    files[_DEFAULT] = folder / "chat_template.jinja"
    sources = {name: _text(path) for name, path in files.items() if path.is_file()}
    for name in ("tokenizer_config.json", "chat_template.json"):
        config = folder / name
        source = read_json(config).get("chat_template")
        if isinstance(source, list):
            named = {str(t.get("name")): t.get("template") for t in source if isinstance(t, dict)}
        else:
            named = {} if source is None else {_DEFAULT: source}
        for key, text in named.items():
            if key in sources:
                continue
            if not isinstance(text, str):
                raise ModelError(f"{config}: chat_template is a {type(text).__name__}, not a text")
            sources[key] = text
    return sources


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ModelError(f"{path} is not a text that can be read: {e}") from e
