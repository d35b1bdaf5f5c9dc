"""The tools and reasoning of a chat: the template's variables, and the output's constraint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import RequestError
from ..grammar.constraint import Constraint
from ..shapes.requests import ChatRequest
from ..shapes.tools import AllowedTools, CustomTool, Function, NamedTool, OtherTool, Tool
from ..text.tokenizer import Tokenizer
from .conversation import conversation, described
from .custom import CustomCalls
from .dialect import THINKING_VARIABLES, Dialect
from .enforce import Enforcement
from .format import Tools
from .parser import OutputParser
from .parts import Parser, PlainParser
from .reasoning import Thoughts

# Values of reasoning_effort that switch reasoning off if the template can do so.
_NO_THOUGHTS = ("none", "minimal")
_HARMONY_EFFORTS = {"none": "low", "minimal": "low", "xhigh": "high", "max": "high"}


class Talk:
    """A chat request in the dialect of a model's template.

    Attributes:
        dialect: the dialect of the template that serves the request.
        messages: the messages for the template.
        variables: the variables for the template.
        may_call: whether the request offers tools.
        forced: whether the request names a tool that must be called.
        visible: special tokens that the parser must see.

    Raises:
        RequestError: the tools contradict each other, or content is not text.
    """

    def __init__(self, request: ChatRequest, dialect: Dialect, tokenizer: Tokenizer) -> None:
        self._request, self._tokenizer = request, tokenizer
        self._tools, self._must = _chosen(request)
        self.dialect = self._dialect = dialect = dialect.suited(tools=bool(self._tools))
        self.may_call = bool(self._tools)
        self.forced = isinstance(request.tool_choice, NamedTool)
        self.messages = conversation(request.messages, self._tools, dialect)
        self.variables = {
            **dialect.tool_variables([described(t) for t in self._tools]),
            **self._effort(),
            **_documents(request, dialect),
            **(request.chat_template_kwargs or {}),
        }
        separate = request.reasoning_format != "none" and request.separate_reasoning is not False
        self._thoughts = dialect.thoughts if separate else None
        uses = self.may_call or (dialect.family.channels and separate)
        self._family = dialect.family if uses else None

    @property
    def _functions(self) -> list[Function]:
        return [tool.function for tool in self._tools]

    @property
    def _custom(self) -> dict[str, CustomTool]:
        return {t.custom.name: t for t in self._tools if isinstance(t, CustomTool)}

    def _effort(self) -> dict[str, Any]:
        """Return template variables for `reasoning_effort` and `enable_thinking`.

        Note unused fields.
        """
        request, dialect = self._request, self._dialect
        effort, thinks = request.reasoning_effort, request.enable_thinking
        if thinks is None and request.thinking is not None:
            thinks = _enabled(request.thinking)
        if thinks is None and effort is not None:
            thinks = effort not in _NO_THOUGHTS
        made: dict[str, Any] = {}
        if effort is not None and dialect.knows("reasoning_effort"):
            known = _HARMONY_EFFORTS if dialect.family.channels else {}
            made["reasoning_effort"] = known.get(effort, effort)
        if thinks is not None:
            made |= {name: thinks for name in THINKING_VARIABLES if dialect.knows(name)}
        if effort is not None and not made:
            request.note_unused("reasoning_effort")
        for name in ("enable_thinking", "thinking"):
            if getattr(request, name) is not None and not made.keys() & set(THINKING_VARIABLES):
                request.note_unused(name)
        return made

    @property
    def _several(self) -> bool:
        return self._request.parallel_tool_calls is not False and not self.forced

    @property
    def visible(self) -> frozenset[int]:
        """Return the special tokens that the parser must see."""
        texts = list(self._family.format.markers) if self._family else []
        if self._dialect.family.channels:
            texts = list(self._dialect.family.format.markers)
        # the parser sees the markers even if reasoning stays in the text
        if self._dialect.thoughts:
            texts += [self._dialect.thoughts.begin, self._dialect.thoughts.end]
        found = map(self._tokenizer.special_id, texts)
        return frozenset(i for i in found if i is not None)

    def stop_ids(self, known: Sequence[int]) -> list[int]:
        """Return the stop tokens of the format, without the `known` ones."""
        names = self._family.stops if self._family else ()
        found = map(self._tokenizer.special_id, names)
        return [i for i in found if i is not None and i not in known]

    def _opened(self, thoughts: Thoughts | None, prompt: str) -> bool:
        """Tell whether the prompt ends inside of reasoning; a continued message may begin it."""
        if thoughts is None:
            return False
        said = self._goes_on()
        return thoughts.opened(prompt) or said.rfind(thoughts.begin) > said.rfind(thoughts.end)

    def _continues_words(self, thoughts: Thoughts) -> bool:
        """Tell whether the output continues text, so that no reasoning can come."""
        return bool(self._goes_on().strip()) and not self._opened(thoughts, self._goes_on())

    def _goes_on(self) -> str:
        """Return the text of the assistant's message that the output continues."""
        if not self._request.continue_final_message:
            return ""
        return str(self.messages[-1].get("content") or "")

    def parser(self, prompt: str, *, held: bool) -> Callable[[], Parser]:
        """Return a function that creates the parser of a choice.

        Args:
            prompt: the text of the prompt.
            held: whether a grammar constrains the output.
        """
        if self._family is None and self._thoughts is None:
            return PlainParser
        opened = self._opened(self._thoughts, prompt)
        tools = Tools({f.name: f.schema_of_arguments for f in self._functions}, held)
        most = None if self._several else 1
        custom = self._custom

        def parser() -> Parser:
            made = OutputParser(self._family, tools, self._thoughts, opened=opened, most=most)
            return CustomCalls(made, custom) if custom else made

        return parser

    def constraint(
        self, prompt: str, base: Callable[[], Constraint] | None
    ) -> Callable[[], Constraint] | None:
        """Return what makes the constraint of the output; None: the output is free.

        It audits schemas, which may take long, and raises RequestError if one cannot be enforced.

        Args:
            prompt: the text of the prompt.
            base: makes the constraint of the request's other fields.
        """
        held = any(f.strict or f.input_grammar for f in self._functions)
        if base is None and not self._must and not held:
            return None
        return lambda: self._constraint(prompt, base)

    def _constraint(self, prompt: str, make_base: Callable[[], Constraint] | None) -> Constraint:
        base = make_base() if make_base else None
        thoughts = self._dialect.thoughts
        if thoughts and (thoughts.closed(prompt) or self._continues_words(thoughts)):
            thoughts = None
        opened = self._opened(thoughts, prompt)
        family = self._dialect.family if self._family or self._dialect.family.channels else None
        special = self._tokenizer.special_id
        made = Enforcement(family, thoughts, opened=opened, special=special)
        if self._must:
            return made.calls(self._functions, several=self._several)
        if base is not None:
            return made.held(base, self._functions, several=self._several)
        return made.text_or_calls(self._functions, several=self._several)


def _documents(request: ChatRequest, dialect: Dialect) -> dict[str, Any]:
    """Return the template variable with the request's documents.

    Raises:
        RequestError: the template does not read them.
    """
    if request.documents and not dialect.knows("documents"):
        raise RequestError(
            "This model's chat template does not read documents; put them into a message",
            param="documents",
            code="unsupported_parameter",
        )
    return {"documents": request.documents} if request.documents else {}


def _enabled(thinking: Mapping[str, Any]) -> bool:
    """Return what DeepSeek's field `thinking` says.

    Raises:
        RequestError: it says something else.
    """
    kinds = {"enabled": True, "disabled": False}
    if (kind := thinking.get("type")) not in kinds:
        raise RequestError(
            f"thinking.type is {str(kind)[:100]!r}; it takes 'enabled' or 'disabled'",
            param="thinking.type",
        )
    return kinds[kind]


def _chosen(request: ChatRequest) -> tuple[list[Tool], bool]:
    """Return the tools that may be called, and whether a call is required.

    Raises:
        RequestError: the requested tool does not exist, two tools have the same name, or a tool is
            of an unknown kind.
    """
    tools, choice = _supported(request), request.tool_choice
    known = {tool.function.name: tool for tool in tools}
    if len(known) < len(tools):
        twice = next(n for n in known if sum(t.function.name == n for t in tools) > 1)
        raise RequestError(f"tools has {twice!r} twice", param="tools")
    if choice == "none":
        return [], False
    if isinstance(choice, NamedTool):
        return [_known(known, choice, "tool_choice.function.name")], True
    if isinstance(choice, AllowedTools):
        allowed = choice.allowed_tools
        where = "tool_choice.allowed_tools.tools"
        return [_known(known, t, where) for t in allowed.tools], allowed.mode == "required"
    must = choice in ("required", "any")
    if must and not tools:
        raise RequestError(f"tool_choice is {choice!r}; there are no tools", param="tool_choice")
    return tools, must


def _supported(request: ChatRequest) -> list[Tool]:
    tools: list[Tool] = []
    for i, tool in enumerate(request.tools or ()):
        if isinstance(tool, OtherTool):
            raise RequestError(
                f"tools[{i}] is of type {tool.type!r}; accepted are 'function' and 'custom', which "
                "the client runs",
                param=f"tools[{i}].type",
                code="unsupported_tool",
            )
        tools.append(tool)
    return tools


def _known(known: dict[str, Tool], asked: NamedTool, where: str) -> Tool:
    name = asked.name
    if name not in known:
        raise RequestError(
            f"{where} is {name!r}; tools has {', '.join(map(repr, known)) or 'none'}", param=where
        )
    return known[name]
