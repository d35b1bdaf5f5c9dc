"""The tools of a request of the Responses API, as the model sees and as the client knows them.

The model sees functions. A function of a namespace has the namespace in its name there, and a call
of it comes back with both. Tools of kinds that no client runs are left out (app/data).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from wherry.data import read

from ....errors import RequestError
from .shapes import Tool, ToolChoice

Json = dict[str, Any]
_LEFT_OUT: dict[str, str] = {
    row["type"]: row["says"] for row in read("responses")["tools_left_out"]
}
SEARCH = "tool_search"
_PLAIN = "functions"  # the namespace in which OpenAI's models see plain functions


@dataclass(frozen=True, slots=True)
class KnownTool:
    """A tool as the client knows it; `kind` is that of its calls' items."""

    kind: Literal["function_call", "custom_tool_call", "tool_search_call"]
    name: str
    namespace: str | None = None

    @property
    def called(self) -> Json:
        """Return the fields of a call's item that name the tool."""
        if self.kind == "tool_search_call":
            return {"execution": "client"}
        named = {"namespace": self.namespace} if self.namespace else {}
        return {"name": self.name, **named}


def model_name(name: str, namespace: str | None) -> str:
    """Return the name by which the model knows a tool."""
    if namespace is None or namespace == _PLAIN:
        return name
    return f"{namespace}{'' if namespace.endswith('__') else '__'}{name}"


class OfferedTools:
    """The tools of a request.

    Args:
        tools: the tools of the request.
        later: tools that items of the conversation added, which replace others of the same name.

    Attributes:
        chat: the tools of the equivalent chat request.
        known: the tools by the names that the model knows.
        left_out: the kinds of tools that are left out.

    Raises:
        RequestError: a tool's kind is unknown.
    """

    def __init__(self, tools: Sequence[Tool], later: Iterable[Tool] = ()) -> None:
        self.chat: list[Json] = []
        self.known: dict[str, KnownTool] = {}
        self.left_out: list[str] = []
        for i, tool in enumerate(tools):
            self._add(tool, f"tools[{i}]")
        for tool in later:
            self._add(tool, "the tools of input", again=True)

    def _add(self, tool: Tool, where: str, *, again: bool = False) -> None:
        if tool.type == "namespace":
            described = tool.description
            for i, inner in enumerate(tool.tools or ()):
                if inner.type not in ("function", "custom"):
                    raise _unknown(inner, f"{where}.tools[{i}]")
                self._offer(inner, inner.name, tool.name, described, again=again)
                described = None  # the first function tells what all are for
        elif tool.type in ("function", "custom"):
            self._offer(tool, tool.name, None, None, again=again)
        elif tool.type == SEARCH and tool.execution == "client":
            self._offer(tool, SEARCH, None, None, again=again)
        elif _why_left_out(tool.type) is not None:
            self.left_out.append(tool.type)
        else:
            raise _unknown(tool, where)

    def _offer(
        self,
        tool: Tool,
        name: str | None,
        namespace: str | None,
        about: str | None,
        *,
        again: bool,
    ) -> None:
        shown = model_name(name or "", namespace)
        if again and shown in self.known:
            self.chat = [t for t in self.chat if t[t["type"]]["name"] != shown]
        text = tool.description
        if about:
            text = f"{namespace}: {about}\n\n{text or ''}".strip()
        kind = "custom" if tool.type == "custom" else "function"
        given = {
            "name": shown,
            "description": text,
            "parameters": tool.parameters,
            "strict": tool.strict,
            "format": tool.format,
        }
        fields = {n: v for n, v in given.items() if v is not None}
        self.chat.append({"type": kind, kind: fields})
        items: dict[str, Literal["function_call", "custom_tool_call", "tool_search_call"]] = {
            "custom": "custom_tool_call",
            SEARCH: "tool_search_call",
        }
        self.known[shown] = KnownTool(items.get(tool.type, "function_call"), name or "", namespace)

    def choice(self, choice: str | ToolChoice | None) -> Any:
        """Return the `tool_choice` of the equivalent chat request.

        Raises:
            RequestError: the choice names a tool that cannot be called here, or none is left.
        """
        if self.left_out and not self.chat and choice != "none":
            raise _refused("tools", self.left_out[0], "tools")
        if not isinstance(choice, ToolChoice):
            return choice
        if choice.type == "allowed_tools":
            named = [t for given in choice.tools or () for t in self._allowed(given)]
            if not named:
                first = (choice.tools or [{}])[0].get("type")
                raise _refused("tool_choice.tools", str(first), "tool_choice.tools")
            allowed = {"mode": choice.mode or "auto", "tools": named}
            return {"type": "allowed_tools", "allowed_tools": allowed}
        if choice.type in ("function", "custom", SEARCH):
            name = SEARCH if choice.type == SEARCH else choice.name or ""
            return self._named(name, choice.namespace)
        raise _refused("tool_choice", choice.type, "tool_choice.type")

    def _allowed(self, given: Json) -> Iterable[Json]:
        kind, name = given.get("type"), given.get("name")
        if kind == "namespace":
            return [self._named(t.name, name) for t in self.known.values() if t.namespace == name]
        if kind in ("function", "custom"):
            return [self._named(str(name), given.get("namespace"))]
        return [self._named(SEARCH, None)] if kind == SEARCH and SEARCH in self.known else []

    def _named(self, name: str, namespace: str | None) -> Json:
        shown = model_name(name, namespace)
        if namespace is None and shown not in self.known:
            fitting = [n for n, t in self.known.items() if t.name == name]
            shown = fitting[0] if len(fitting) == 1 else shown
        known = self.known.get(shown)
        kind = "custom" if known and known.kind == "custom_tool_call" else "function"
        return {"type": kind, kind: {"name": shown}}


def _why_left_out(kind: str) -> str | None:
    """Return why tools of a kind are left out; None for an unknown kind.

    Versions of a kind have a suffix, such as "web_search_preview".
    """
    return next((says for n, says in _LEFT_OUT.items() if f"{kind}_".startswith(f"{n}_")), None)


def _unknown(tool: Tool, where: str) -> RequestError:
    says = _why_left_out(tool.type)
    why = f", {says}" if says else ""
    return RequestError(
        f"{where} is of type {tool.type!r}{why}; accepted are 'function' and 'custom', 'namespace' "
        "with such tools, and 'tool_search' with execution 'client'",
        param=f"{where}.type" if where.startswith("tools[") else "input",
        code="unsupported_tool",
    )


def _refused(what: str, kind: str, param: str) -> RequestError:
    says = _why_left_out(kind)
    why = f", {says}" if says else ""
    return RequestError(
        f"{what} asks for {kind!r}{why}; here the client runs the tools: functions, custom tools, "
        "namespaces of them, and 'tool_search' with execution 'client'",
        param=param,
        code="unsupported_tool",
    )
