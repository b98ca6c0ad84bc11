"""What one value of tasks.yaml may be. Knows no key of the document."""

import math
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import attrs

from .model import LARGEST


class Unexpected(ValueError):
    """A value isn't what its place in the document takes; `what` says what would be."""

    def __init__(self, what: str, remedy: str = "", show: bool = True) -> None:
        super().__init__(what)
        self.what, self.remedy, self.show = what, remedy, show


@attrs.frozen(eq=False)
class Kind:
    """One kind of scalar: what a message calls it, its JSON Schema, and how it's read (ValueError: it isn't one)."""

    expected: str
    schema: Mapping[str, Any]
    read: Callable[[Any], Any]

    def structure(self, value: Any, _: Any) -> Any:
        try:
            return self.read(value)
        except Unexpected:
            raise
        except (ValueError, TypeError):
            is_scalar = isinstance(value, bool | int | float)
            remedy = "put it in quotes" if is_scalar and self.schema.get("type") == "string" else ""
            raise Unexpected(f"expected {self.expected}", remedy) from None


@attrs.frozen(eq=False)
class Several:
    """Marks a tuple that may be given as one string, which `split` takes apart."""

    split: Callable[[str], list[str]]


@attrs.frozen(eq=False)
class Short:
    """Marks a class in whose place a bare string may stand, for its `key`."""

    key: str


@attrs.frozen(eq=False)
class Single:
    """Marks a mapping in whose place one of its values may stand, told by the text at `key`; it is called `name`."""

    key: str
    name: str


# --- the kinds --------------------------------------------------------------------------------------------------------


def _number(least: float, most: float, *types: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        # True is an int to Python, and NaN compares false with everything.
        if type(value) not in types or not least <= value <= most:
            raise ValueError
        return value

    return read


def _text(pattern: str) -> Callable[[Any], str]:
    matches = re.compile(pattern).fullmatch

    def read(value: Any) -> str:
        if not isinstance(value, str) or not matches(value):
            raise ValueError
        return value

    return read


def _string(expected: str, pattern: str, **more: Any) -> Kind:
    return Kind(expected, {"type": "string", "pattern": f"^{pattern}$", **more}, _text(pattern))


OURS = (
    "baseline", "search", "validate", "generate", "land", "confirm", "mutate",
    "plan", "report", "prove", "lint", "build", "draft", "check", "gate", "look", "include",
)  # fmt: skip
MOST = 1000  # no count in a plan is sensibly larger
_MOST_SECONDS = 31 * 24 * 3600
_SECONDS = re.compile(r"([0-9]+(?:\.[0-9]+)?)(s|m|h)")
_UNITS = {"s": 1, "m": 60, "h": 3600}
_MOST_BYTES = 1 << 50
_BYTES = re.compile(r"([0-9]+(?:\.[0-9]+)?)(kB|MB|GB|TB|KiB|MiB|GiB|TiB)")
MOST_TOKENS = 10**9
_TOKENS = re.compile(r"([0-9]+(?:\.[0-9]+)?)(k|M)")
_POWERS = {"k": 1, "K": 1, "M": 2, "G": 3, "T": 4}


def _seconds(value: Any) -> float:
    if isinstance(value, str):
        found = _SECONDS.fullmatch(value)
        if not found:
            raise ValueError
        value = float(found[1]) * _UNITS[found[2]]
    return float(_number(math.ulp(0.0), _MOST_SECONDS, int, float)(value))


def _bytes(value: Any) -> int:
    if isinstance(value, str):
        found = _BYTES.fullmatch(value)
        if not found:
            raise ValueError
        value = int(float(found[1]) * (1024 if "i" in found[2] else 1000) ** _POWERS[found[2][0]])
    return int(_number(1, _MOST_BYTES, int)(value))


def _tokens(value: Any) -> int:
    if isinstance(value, str):
        found = _TOKENS.fullmatch(value)
        if not found:
            raise ValueError
        value = round(float(found[1]) * 1000 ** _POWERS[found[2]])
    return int(_number(1, MOST_TOKENS, int)(value))


def _workers(value: Any) -> Any:
    return value if value == "auto" else COUNT.read(value)


def _name(**refused: tuple[str, str]) -> Kind:
    """A name that is none of `refused`, each with the reason and the remedy."""
    base = _string("a name (no space, none of : = * ?, not - or / first)", _NAME)

    def read(value: Any) -> str:
        if value in refused:
            raise Unexpected(*refused[value], show=False)
        name = str(base.read(value))
        if not {"", ".", ".."}.isdisjoint(name.split("/")):
            raise ValueError  # names become folders
        return name

    schema = {**base.schema, "not": {"enum": sorted(refused)}} if refused else base.schema
    return Kind(base.expected, schema, read)


_NAME = r"[^\s:=*?\u0000-\u001f/-][^\s:=*?\u0000-\u001f]*"
TEXT = _string("a line of text", r"[^\u0000-\u001f\u007f]+")
PATTERN = _string("a path or pattern, relative to the project", r"[^/\u0000-\u001f\u007f][^\u0000-\u001f\u007f]*")
LINES = _string("text", r"[^\u0000]*[^\u0000\s][^\u0000]*")
ARGUMENT = _string("text", r"[^\u0000]*")
NAME = _name()
CONDITION = _string("a name of letters, digits, - and _", r"[A-Za-z0-9_-]+")
POOL_NAME = _name(
    validation=("validation is what -n says, not the plan", "leave it out"),
    gate=("the gate has one slot", "leave it out"),
    look=("one look at a time is put before a person", "leave it out"),
)
TASK_NAME = _name(**{name: (f"{name!r} is a name of ours", "choose another") for name in OURS})
VARIABLE = _string("the name of an environment variable", r"[^=\u0000]+")
COUNT = Kind(
    f"a whole number from 1 to {MOST}",
    {"type": "integer", "minimum": 1, "maximum": MOST},
    _number(1, MOST, int),
)
BATCH = Kind(
    f"a whole number from 1 to {LARGEST}, or auto",
    {"anyOf": [{"type": "integer", "minimum": 1, "maximum": LARGEST}, {"const": "auto"}]},
    lambda value: value if value == "auto" else _number(1, LARGEST, int)(value),
)
BOOLEAN = Kind("true or false", {"type": "boolean"}, _number(False, True, bool))
TOKENS = Kind(
    f'a whole number of tokens, or text such as "500k" or "2M", at most {MOST_TOKENS:,}',
    {
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": MOST_TOKENS},
            {"type": "string", "pattern": f"^{_TOKENS.pattern}$"},
        ]
    },
    _tokens,
)
MOST_MONEY = 1_000_000
MONEY = Kind(
    f"an amount in USD, more than 0 and at most {MOST_MONEY:,}",
    {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_MONEY},
    lambda value: float(_number(math.ulp(0.0), MOST_MONEY, int, float)(value)),
)
SECONDS = Kind(
    'seconds, or text such as "90s", "30m" or "1h", and at most 31 days',
    {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "maximum": _MOST_SECONDS},
            {"type": "string", "pattern": f"^{_SECONDS.pattern}$"},
        ]
    },
    _seconds,
)
BYTES = Kind(
    'bytes, or text such as "500MB" or "2GiB", and at most 1024 TiB',
    {
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": _MOST_BYTES},
            {"type": "string", "pattern": f"^{_BYTES.pattern}$"},
        ]
    },
    _bytes,
)
WORKERS = Kind(f"auto, or {COUNT.expected}", {"anyOf": [{"const": "auto"}, COUNT.schema]}, _workers)
EXIT_CODE = Kind("a number from 0 to 255", {"type": "integer", "minimum": 0, "maximum": 255}, _number(0, 255, int))
VERSION = Kind("1, the version of this format", {"const": 1}, _number(1, 1, int))

ONE_OR_MANY = Several(lambda text: [text])

Name = Annotated[str, NAME]
Pattern = Annotated[str, PATTERN]
Patterns = Annotated[tuple[Pattern, ...], ONE_OR_MANY]
Argv = Annotated[tuple[Annotated[str, ARGUMENT], ...], Several(shlex.split)]
Commands = Annotated[tuple[Annotated[str, LINES], ...], ONE_OR_MANY]
