r"""The `format` values of JSON Schema (2020-12, section 7.3) that grammars enforce.

Dates and times have expressions of their own: each day exists in its month and year (RFC 3339,
section 5.7), and forms that parsers disagree on are excluded: leap seconds, lower-case letters, the
year 0000.
"""

from __future__ import annotations

_YEAR = "(?:[0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_LEAP = (
    # leap years; the pattern excludes the year 0000
    "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
)
_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
_DATE = f"(?:{_YEAR}-{_DAY}|{_LEAP}-02-29)"
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_CLOCK}:[0-5][0-9](?:\.[0-9]{{1,9}})?(?:Z|[+-]{_CLOCK})"

REWRITTEN = {"date": f"^{_DATE}$", "time": f"^{_TIME}$", "date-time": f"^{_DATE}T{_TIME}$"}
# Formats that llguidance enforces itself.
ENFORCED = frozenset({"duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"})
# Formats that JSON Schema defines but no grammar enforces; unknown names constrain nothing.
REFUSED = frozenset(
    {
        "idn-email",
        "idn-hostname",
        "iri",
        "iri-reference",
        "json-pointer",
        "regex",
        "relative-json-pointer",
        "uri-reference",
        "uri-template",
    }
)
