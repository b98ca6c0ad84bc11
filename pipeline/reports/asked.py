"""The options of `doit report`. What answers them (answer.py) is loaded when it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

FORMS = ("json", "markdown", "junit", "elements")  # documents: one of them at a time

ACCEPT = "accept"  # the flag of `lint`


@attrs.frozen
class Asked:
    check: bool = False
    json: bool = False
    markdown: bool = False
    junit: bool = False
    elements: bool = False
    since: str = ""
    what_if: bool = False


def _flag(name: str, help_: str) -> Mapping[str, Any]:
    return {"name": name, "long": name, "type": bool, "default": False, "help": help_}


PARAMS: Sequence[Mapping[str, Any]] = (
    _flag("check", "exit 1 unless every scope that the last run took on has one ending, and none needs a person"),
    _flag("json", "everything, for a program (docs/report.schema.json)"),
    _flag("markdown", "a comment for a pull request"),
    _flag("junit", "the endings as JUnit's XML"),
    _flag("elements", "all scopes as one report of mutation-testing-elements"),
    {"name": "since", "long": "since", "default": "", "help": "the runs from this one on: minutes, tokens, scores"},
    {**_flag("what_if", "replay the last run with other caps: n=8,generation=12"), "long": "what-if"},
)
