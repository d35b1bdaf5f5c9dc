"""Jinja's sandbox with a budget; template_budget.py says what is counted.

Operations with small inputs and large results are checked before they run: multiplication, powers,
formats, widths, joins, replacements. Every other result is at most a few times the input and is
measured afterwards.
"""

from __future__ import annotations

import functools
import re
import string
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from jinja2 import TemplateError, nodes, pass_context
from jinja2.compiler import CodeGenerator, Frame
from jinja2.filters import make_attrgetter
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from .template_budget import Budget, Counted, TooCostly

_WIDTH = 10_000  # largest number of characters, digits or columns that an argument may ask for
_FIELDS = 10_000  # maximum number of fields in a format string
_WIDTH_METHODS = frozenset({"ljust", "rjust", "center", "zfill", "to_bytes"})
_WIDTH_FILTERS = frozenset({"center", "indent", "batch", "slice", "round"})
# Filters that treat a text as a list of its characters.
_OF_CHARACTERS = frozenset(
    "sort list unique groupby map select reject selectattr rejectattr batch slice min max".split()
)
_PER_CHARACTER = 4  # minimum size of a character in a list
# Filters and tests that do not iterate over their value; "" represents all tests.
_OUTSIDE = frozenset({"", "default", "d", "length", "count", "first", "last"})
# Filters that are removed: they are for HTML, and their results grow in other ways.
_REMOVED = ("urlize", "xmlattr", "wordwrap", "pprint")
# Methods that change a list, which a list of a namespace has, too; see `list_method`.
_CHANGING = ("append", "pop")
_PERCENT = re.compile(r"%(?:\([^)]*\))?[-+ #0]*(\*|\d+)?(?:\.(\*|\d+))?")


class _Namespace(Namespace):
    # Jinja's own method shows the content, endlessly if the object contains itself
    def __repr__(self) -> str:
        return "<Namespace>"


class _Generator(CodeGenerator):
    """A code generator whose code reports new values without a function call."""

    def _reported(self, how: str, visit: Callable[..., None], node: Any, frame: Frame) -> None:
        self.write(f"environment.{how}(")
        visit(node, frame)
        self.write(")")

    def visit_List(self, node: nodes.List, frame: Frame) -> None:
        self._reported("sized", super().visit_List, node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        self._reported("sized", super().visit_Dict, node, frame)

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:
        if node.ctx == "load":
            self._reported("sized", super().visit_Tuple, node, frame)
        else:
            super().visit_Tuple(node, frame)

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        self._reported("sized", super().visit_Compare, node, frame)

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        if isinstance(node.arg, nodes.Slice):
            self._reported("sized", super().visit_Getitem, node, frame)
        else:
            super().visit_Getitem(node, frame)

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        escapes = frame.eval_ctx.volatile or frame.eval_ctx.autoescape
        self.write(f"environment.joined({'markup_join' if escapes else 'str_join'}, (")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")


class BudgetedEnvironment(ImmutableSandboxedEnvironment):
    """A Jinja environment that renders within the budget that `spending` sets for this thread."""

    code_generator_class = _Generator
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})

    def __init__(self, **options: Any) -> None:
        self._threads = threading.local()
        super().__init__(finalize=self._finalized(), **options)
        for name in _REMOVED:
            del self.filters[name]
        del self.globals["lipsum"]
        self.globals["namespace"] = _Namespace
        self.filters = {n: self._guarded(n, f) for n, f in self.filters.items()}
        self.tests = {n: self._guarded("", f) for n, f in self.tests.items()}

    def add_filter(self, name: str, function: Callable[..., Any]) -> None:
        """Add a filter or replace Jinja's own; its results count against the budget."""
        self.filters[name] = self._guarded(name, function)

    # ---- The budget ----

    @property
    def budget(self) -> Budget:
        """Return this thread's budget; None during compilation, where nothing is evaluated."""
        own = getattr(self._threads, "budget", None)
        if own is None:
            raise TooCostly("it is not being rendered")
        return own  # type: ignore[no-any-return]

    def spend(self, budget: Budget, render: Callable[[], str]) -> str:
        """Call `render` with a budget."""
        self._threads.budget = budget
        try:
            return render()
        finally:
            self._threads.budget = None

    # ---- Functions that generated code calls ----

    def _generate(self, source: nodes.Template, *args: Any, **kwargs: Any) -> str:
        for loop in source.find_all(nodes.For):
            counted = nodes.EnvironmentAttribute("counted")
            loop.iter = nodes.Call(counted, [loop.iter], [], None, None)
        for call in source.find_all(nodes.Call):
            method = call.node
            if not isinstance(method, nodes.Getattr) or method.attr not in _CHANGING:
                continue
            if isinstance(method.node, nodes.Getattr):
                names = [nodes.Const(method.node.attr), nodes.Const(method.attr)]
                method_name = nodes.EnvironmentAttribute("list_method")
                call.node = nodes.Call(method_name, [method.node.node, *names], [], None, None)
        return super()._generate(source, *args, **kwargs)

    def counted(self, values: Any) -> Counted:
        """Return the iterable of a loop, with its iterations counted."""
        return Counted(values, self.budget)

    def sized(self, value: Any) -> Any:
        """Return a value that generated code created, with its size counted."""
        return self.budget.sized(value)

    def list_method(self, owner: Any, name: str, method: str) -> Any:
        """Return a method of the list that a namespace has under a name; it may change the list.

        As with `set ns.list = ns.list + [x]`, the namespace gets a new list: a list that is part of
        another value stays as it is, and with it all sizes that were counted. Other lists, such as
        the request's, have no such methods. Kimi K2's templates in GGUF files need it.
        """
        values = self.getattr(owner, name)
        if not isinstance(owner, Namespace) or not isinstance(values, list):
            return self.getattr(values, method)

        def changed(*args: Any) -> Any:
            new = [*self.getattr(owner, name)]
            result = getattr(new, method)(*args)
            owner[name] = self.budget.sized(new)
            return result

        return changed

    def joined(self, join: Callable[[Iterable[Any]], str], values: Sequence[Any]) -> str:
        """Return the result of the `~` operator, with its size counted."""
        self.budget.check(sum(map(self.budget.size, values)))
        return self.budget.sized(join(values))  # type: ignore[no-any-return]

    def concat(self, pieces: Iterable[str]) -> str:
        """Return the joined text of a template, macro or block, with its size counted."""
        budget, collected, total = self.budget, [], 0
        for piece in pieces:
            total += len(piece)
            budget.check(total)
            collected.append(piece)
        return budget.sized("".join(collected))  # type: ignore[no-any-return]

    def _finalized(self) -> Callable[..., Any]:
        @pass_context  # keeps Jinja from evaluating the filter during compilation
        def finalized(_: Context, value: Any) -> Any:
            self.budget.step(self.budget.size(value))
            return value

        return finalized

    # ---- Operators and attributes ----

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Apply an operator after a check of the result's size.

        Overrides SandboxedEnvironment's.
        """
        budget = self.budget
        if operator == "*":
            budget.check(_product(budget, left, right))
        elif operator == "**":
            _check_power(left, right)
        elif operator == "+":
            budget.check(budget.size(left) + budget.size(right))
        elif operator == "%" and isinstance(left, (str, bytes)):
            _check_percent(budget, left, right)
        return budget.sized(super().call_binop(context, operator, left, right))

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an attribute, and count a step; overrides SandboxedEnvironment's method."""
        self.budget.step()
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item or attribute, and count a step.

        Overrides SandboxedEnvironment's method.
        """
        self.budget.step()
        return super().getitem(obj, argument)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Return `str.format` with a check of its widths.

        Overrides SandboxedEnvironment's method.
        """
        format_it = super().wrap_str_format(value)
        if format_it is None:
            return None

        def formatted(*args: Any, **kwargs: Any) -> str:
            _check_braces(self.budget, value.__self__, [*args, *kwargs.values()])
            return format_it(*args, **kwargs)

        return formatted

    # ---- Calls and filters ----

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function and count its result; overrides SandboxedEnvironment's method."""
        budget = self.budget
        # the call enters the next level of a recursive loop
        if isinstance(function, LoopContext) and args:
            args = (self.counted(args[0]), *args[1:])
        owner = getattr(function, "__self__", None)
        if isinstance(owner, (str, bytes, int)):
            args = _check_method(budget, owner, function.__name__, args, kwargs)
        budget.step()
        value = super().call(context, function, *args, **kwargs)
        return value if isinstance(value, Counted) else budget.sized(value)

    def _guarded(self, name: str, function: Any) -> Callable[..., Any]:
        """Return a filter or test that counts the sizes of its inputs and results."""
        first = 1 if hasattr(function, "jinja_pass_arg") else 0

        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            budget = self.budget
            before, (value, *extra) = args[:first], args[first:]
            if isinstance(value, Iterator) and name not in _OUTSIDE:
                # otherwise Python would iterate over the value without counting steps
                value = budget.listed(value)
            budget.step(0 if name in _OUTSIDE else budget.size(value))
            value, extra, kwargs = _check_filter(self, name, value, extra, kwargs)
            return budget.sized(function(*before, value, *extra, **kwargs))

        return guarded


# ---- Operations with small inputs and large results ----


def _product(budget: Budget, left: Any, right: Any) -> int:
    """Return the size of the product of a number with a text or list."""
    if isinstance(right, (str, bytes, list, tuple)):
        left, right = right, left
    if isinstance(left, (str, bytes, list, tuple)) and isinstance(right, int):
        return budget.size(left) * max(right, 0)
    return 0  # the digits of numbers are limited elsewhere


def _check_power(base: Any, exponent: Any) -> None:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * exponent > 4096:
        raise TooCostly(f"it takes a number to the power of {exponent}")


def _check_width(*values: Any) -> None:
    for value in values:
        if (isinstance(value, int) and abs(value) > _WIDTH) or (
            isinstance(value, (str, bytes)) and len(value) > _WIDTH
        ):
            raise TooCostly("it asks for a text of great width")


def _check_percent(budget: Budget, pattern: str | bytes, values: Any) -> None:
    text = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
    count = text.count("%")
    if count > _FIELDS:
        raise TooCostly(f"it has a format of {count} fields")
    for match in _PERCENT.finditer(text):
        for width in filter(None, match.groups()):
            if width == "*" or len(width) > 4:
                raise TooCostly("it has a format of great width")
    budget.check(len(text) + count * budget.size(values))


def _check_braces(budget: Budget, pattern: str, values: list[Any]) -> None:
    count = pattern.count("{")
    if count > _FIELDS:
        raise TooCostly(f"it has a format of {count} fields")
    for _, _, spec, _ in string.Formatter().parse(pattern):
        if "{" in (spec or "") or re.search(r"\d{5}", spec or ""):
            raise TooCostly("it has a format of great width")
    budget.check(len(pattern) + count * sum(map(budget.size, values)))


def _check_replacement(budget: Budget, text: Any, args: Sequence[Any]) -> None:
    if len(args) >= 2 and type(text) is type(args[0]) is type(args[1]):
        growth = max(len(args[1]) - len(args[0]), 0)
        budget.check(len(text) + growth * (text.count(args[0]) if growth else 0))


def _check_method(
    budget: Budget, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Check the arguments of a method of a text or number."""
    if name in _WIDTH_METHODS:
        _check_width(*args, *kwargs.values())
    elif name == "expandtabs":
        width = max([8, *(a for a in (*args, *kwargs.values()) if isinstance(a, int))])
        budget.check(len(owner) + owner.count("\t" if isinstance(owner, str) else b"\t") * width)
    elif name == "replace":
        _check_replacement(budget, owner, args)
    elif name == "translate":
        raise TooCostly("it translates characters, which is not supported")
    elif name == "join" and args:
        values = budget.listed(args[0])
        budget.check(sum(map(budget.size, values)) + len(owner) * len(values))
        return (values, *args[1:])
    return args


def _check_filter(
    environment: BudgetedEnvironment,
    name: str,
    value: Any,
    extra: list[Any],
    kwargs: dict[str, Any],
) -> tuple[Any, list[Any], dict[str, Any]]:
    """Check the value and arguments of a filter."""
    budget = environment.budget
    if name in _OF_CHARACTERS and isinstance(value, str):
        budget.check(_PER_CHARACTER * len(value))
    if name in _WIDTH_FILTERS:
        _check_width(*extra, *kwargs.values())
    if name == "indent":
        width = extra[0] if extra else kwargs.get("width", 4)
        text = str(value)
        budget.check(
            len(text)
            + (text.count("\n") + 1) * (len(width) if isinstance(width, str) else int(width))
        )
    elif name == "replace":
        given = [*extra, *(kwargs[k] for k in ("old", "new") if k in kwargs)]
        _check_replacement(budget, str(value), [str(g) for g in given])
    elif name == "format":
        _check_percent(budget, str(value), kwargs or tuple(extra))
    elif name == "join":
        separator = str(extra[0] if extra else kwargs.get("d", ""))
        attribute = extra[1] if len(extra) > 1 else kwargs.get("attribute")
        if attribute is not None:
            value = map(make_attrgetter(environment, attribute), value)
        value = budget.listed(value)
        budget.check(sum(map(budget.size, value)) + len(separator) * len(value))
        return value, [separator], {}
    elif name == "sum":
        numbers = (a for a in (*extra[1:], kwargs.get("start", 0)))
        if not all(isinstance(n, (int, float)) for n in numbers):
            raise TemplateError("sum adds numbers")
    return value, extra, kwargs
