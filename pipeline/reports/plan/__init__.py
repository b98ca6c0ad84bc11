"""`doit plan`: what a run would go through, what makes it slow, and the ways out. A gate for CI, too.

Here are its options alone: doit reads them whenever it lists tasks. What answers them is loaded when it is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs


@attrs.frozen
class Asked:
    """The options of `doit plan`."""

    scope: str = ""
    n: int = 1
    hoist: Sequence[str] = ()
    write: bool = False
    strict: bool = False
    json: bool = False
    dot: bool = False
    svg: str = ""
    from_: str = ""
    check: str = ""
    cost: bool = False


PARAMS: Sequence[Mapping[str, Any]] = (
    {"name": "scope", "long": "scope", "default": "", "help": "only this scope, with all its files"},
    {"name": "n", "short": "n", "default": 1, "type": int, "help": "slots for validation, as for a run"},
    {"name": "hoist", "long": "hoist", "default": [], "type": list, "help": "show the plan with this file hoisted"},
    {"name": "write", "long": "write", "default": False, "type": bool, "help": "with --hoist or --from: do it"},
    {"name": "strict", "long": "strict", "default": False, "type": bool, "help": "exit 1 on what a gate refuses"},
    {"name": "json", "long": "json", "default": False, "type": bool, "help": "everything, for a program"},
    {"name": "dot", "long": "dot", "default": False, "type": bool, "help": "the graph, as DOT"},
    {"name": "svg", "long": "svg", "default": "", "help": "the graph, as a picture in this file (needs graphviz)"},
    {"name": "from_", "long": "from", "default": "", "help": "judge the plan of an agent orchestrator in this file"},
    {"name": "cost", "long": "cost", "default": False, "type": bool, "help": "minutes, calls, tokens, money expected"},
    {"name": "check", "long": "check", "default": "", "help": "with --from --write: checks what has no check"},
)
