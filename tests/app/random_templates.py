"""Templates made at random: most fail, and what they say then is compared, too."""

# ruff: noqa: E501 - tables of words
from __future__ import annotations

import random
from typing import Any

VARIABLES: dict[str, Any] = {
    "words": ["b", "A", "ü", "", "ab"],
    "numbers": [3, 1, 2, 10],
    "mixed": [1, "x", None, True, 2.5, [1]],
    "table": {"b": 1, "a": "x", "items": 2, "ü": [1, {"k": "v"}]},
    "empty": [],
    "text": "  Hello, wörld\nfoo bar\t",
    "html": "<b>'x' & \"y\"</b>",
    "flag": True,
    "half": 0.5,
    "rows": [{"n": 2, "s": "b", "t": {"u": 1}}, {"n": 1, "s": "A", "t": {"u": 0}}, {"n": 2}],
}
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "a-b", "tool_calls": [{"function": {"name": "f"}}]},
]
_LEAVES = [
    *VARIABLES, "messages", "nothing", "bos_token", "tools",
    "0", "1", "2", "-1", "3", "7", "1.5", "2.0", "1e3", "0.1", "true", "false", "none",
    "''", "'a'", "'b'", "'ab'", "'1'", "'a b'", "'ß ǅ'", "'%s'", "'%d-%s'", "'{}'", "'{0:>4}'", "'-3'",
    "'2.50'", "'\\n'", "[]", "()", "{}", "'k'", "(1,)", "'role'", "messages[0]", "messages[-1]",
    "table.b", "rows[0]", "range(3)", "'e\\u0301'",
]  # fmt: skip
# No "is sameas": whether Python makes one object of two equal literals is its own affair.
_OPERATORS = [*"+ - * / // % ** ~ == != < <= > >= in and or".split(), "not in"]
_FILTERS = """
abs capitalize center count d default dictsort e first float forceescape int items join last length
list lower max min reverse round safe select reject sort string sum title tojson trim
truncate unique upper wordcount default('z') default('z',true) join(',') join('-',attribute='n')
map('upper') map('length') map(attribute='n') map(attribute='t.u',default=9) map('int')|list
map('string')|list select('string')|list reject('none')|list selectattr('n')|list
selectattr('n','eq',2)|list rejectattr('s','defined')|list sort(attribute='n') sort(reverse=true)
sort(case_sensitive=true) groupby('n') groupby('n')|map('last')|list batch(2)|list batch(3,'z')|list
slice(2)|list slice(3,'z')|list replace('a','b') replace('','-') indent indent(2,true) indent('>')
round(1) round(0,'floor') round(1,'ceil') round(-1) center(9) truncate(5) truncate(3,true,'')
tojson(indent=2) tojson(ensure_ascii=true) tojson(sort_keys=true) tojson(separators=(',',':'))
format(1) format('x',2) first|upper unique|list items|list dictsort(by='value') sum(start=1)
sum(attribute='n') min(attribute='n') max(attribute='n') int(7) int(0,16) float(1.5) attr('n')
wordcount trim('a') list|length reverse|list urlencode filesizeformat filesizeformat(true)
""".split()
_TESTS = """
defined undefined none boolean true false integer float number string mapping iterable sequence
callable odd even lower upper divisibleby(2) eq(1) ne('a') lt(2) ge(1) in([1,'a']) sameas(true)
filter test escaped
""".split()
_METHODS = """
upper() lower() title() capitalize() swapcase() strip() lstrip() rstrip() strip('a') split() split('a')
split(none,1) rsplit('a',1) split(',') splitlines() splitlines(true) replace('a','bb') replace('','.',2)
startswith('a') startswith(('b','a')) endswith('b') find('b') rfind('a') index('a') count('a')
count('') join(words) join(['a','b']) isdigit() isalpha() isalnum() isspace() isupper() islower()
istitle() isnumeric() isdecimal() isidentifier() isascii() center(7) center(8,'*') ljust(5) rjust(5,'.')
zfill(5) expandtabs(4) partition('b') rpartition('a') removeprefix('a') removesuffix('b') format(1,2)
format(a=1) get('b') get('zz',3) get('a') items() keys() values() items()|list keys()|list values()|list
index(1) count(1) copy() append(1) pop() update({}) bit_length() is_integer() casefold() nosuch()
nosuch role content function.name b n t.u s __class__ items 0 1 start isprintable()
""".split()


class Maker:
    """Makes texts of templates.

    Args:
        rng: decides.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def expression(self, depth: int = 3) -> str:
        """An expression of at most so many levels."""
        rng = self._rng
        if depth == 0:
            return rng.choice(_LEAVES)
        inner = depth - 1
        a = self.expression(rng.randint(0, inner))
        kind = rng.randrange(14)
        if kind < 3:
            b = self.expression(rng.randint(0, inner))
            return f"({a} {rng.choice(_OPERATORS)} {b})"
        if kind < 6:
            return f"({a}|{rng.choice(_FILTERS)})"
        if kind == 6:
            return f"({a} is {rng.choice(['', 'not '])}{rng.choice(_TESTS)})"
        if kind < 9:
            return f"({a}).{rng.choice(_METHODS)}"
        if kind == 9:
            return f"({a})[{self._index(inner)}]"
        if kind == 10:
            c = self.expression(rng.randint(0, inner))
            other = f" else {c}" if rng.random() < 0.8 else ""
            return f"({a} if {self.expression(rng.randint(0, inner))}{other})"
        if kind == 11:
            return f"{rng.choice(['not ', '-', '+'])}{a}"
        if kind == 12:
            return f"[{a}, {self.expression(rng.randint(0, inner))}]"
        key = rng.choice(["'a'", "1", "2.0", "text", "nothing", "(1, 'b')", "true", "'k'"])
        return f"{{{key}: {a}, 'k': 1}}"

    def _index(self, depth: int) -> str:
        rng = self._rng
        if rng.random() < 0.4:
            return self.expression(rng.randint(0, depth))
        bounds = [rng.choice(["", "0", "1", "-1", "2", "-2", "9"]) for _ in range(3)]
        if rng.random() < 0.6:
            return ":".join(bounds[:2])
        return ":".join([*bounds[:2], rng.choice(["1", "2", "-1", "-2", ""])])

    def statements(self, depth: int = 2) -> str:
        """Some text with statements in it."""
        return "".join(self._statement(depth) for _ in range(self._rng.randint(1, 4)))

    def _tag(self, text: str) -> str:
        """A tag, with any of the marks of white space."""
        begin, end = self._rng.choice(["", "", "-", "+"]), self._rng.choice(["", "", "-"])
        return f"{{%{begin} {text} {end}%}}"

    def _statement(self, depth: int) -> str:
        rng = self._rng
        kind = rng.randrange(12 if depth else 4)
        if kind == 0:
            return rng.choice(
                ["x", " \n", "\n", "  ", "\n  ", " y\n ", "{# note #}\n", "{#- n -#} ", "ü"]
            )
        if kind < 3:
            begin, end = rng.choice(["", "-"]), rng.choice(["", "-"])
            return f"{{{{{begin} {self.expression(2)} {end}}}}}"
        if kind == 3:
            return self._tag(f"set {rng.choice(['v', 'w', 'ns.x', 'a, b'])} = {self.expression(2)}")
        body = self.statements(depth - 1)
        tag = self._tag
        if kind < 6:
            other = tag("else") + self.statements(depth - 1) if rng.random() < 0.4 else ""
            more = tag(f"elif {self.expression(1)}") + "e" if rng.random() < 0.3 else ""
            return tag(f"if {self.expression(2)}") + body + more + other + tag("endif")
        if kind < 9:
            return self._loop(body)
        if kind == 9:
            call = rng.choice(["m(1)", "m()", "m(1, y=2)", "m(1, 2, 3)", "m(q=1)"])
            rest = (
                f"{{{{ {call} }}}}"
                if rng.random() < 0.7
                else f"{tag('call ' + call)}c{tag('endcall')}"
            )
            extra = rng.choice(
                ["", "{{ caller() }}", "{{ varargs }}", "{{ kwargs }}", "{{ x }}{{ y }}"]
            )
            return tag("macro m(x, y='d')") + body + extra + tag("endmacro") + rest
        if kind == 10:
            name = rng.choice(["set v", "filter upper", "with w = 1", "generation"])
            return tag(name) + body + tag("end" + name.split()[0]) + "{{ v }}{{ w }}"
        return tag("set ns = namespace(x=1)") + body + "{{ ns.x }}{{ v }}"

    def _loop(self, body: str) -> str:
        rng, tag = self._rng, self._tag
        seen = rng.choice([
            "{{ i }}", "{{ loop.index }}", "{{ loop.last }}", "{{ loop.previtem }}", "{{ v }}",
            "{{ loop.nextitem is defined }}", "{{ loop.cycle('p', 'q') }}", "{{ loop.length }}",
            "{{ loop.changed(i) }}", "{{ loop.revindex0 }}", "{{ i.n }}", "{{ loop }}",
        ])  # fmt: skip
        early = rng.choice(
            [
                "",
                "",
                tag("break"),
                tag("continue"),
                tag("if i == 1") + tag("continue") + tag("endif"),
            ]
        )
        test = f" if {self.expression(1)}" if rng.random() < 0.2 else ""
        other = tag("else") + "none" if rng.random() < 0.3 else ""
        over = rng.choice([*VARIABLES, "messages", "range(3)", "table.items()", self.expression(2)])
        target = rng.choice(["i", "i", "i", "i, j"])
        return tag(f"for {target} in {over}{test}") + seen + early + body + other + tag("endfor")
