"""`models` of tasks.yaml as it's written: part of document.Document."""

from collections.abc import Mapping
from typing import Annotated, Literal

import attrs

from .kinds import COUNT, NAME, SECONDS, TEXT, Name, Short


@attrs.frozen
class WishDocument:
    """A model and an effort; the model's bare name will do. `inherit` for either: the program is told none."""

    model: Annotated[str | None, TEXT, "A name out of `names` or `ladder`; in `names`: the program's own"] = None
    effort: Annotated[str | None, TEXT, "How hard it is to think, as the program calls it"] = None


Wished = Annotated[WishDocument, Short("model")]


@attrs.frozen
class ModelsDocument:
    """Which model is asked and how hard it is to think: by what the work itself says, its confidence, its lane."""

    names: Annotated[
        Mapping[Annotated[str, NAME], Wished],
        "What each name in this plan stands for; left out: names are the program's own",
    ] = attrs.field(factory=dict)
    ladder: Annotated[
        tuple[Name, ...] | None, "Models, the strongest first: where the gateway goes on failing, the next one is asked"
    ] = None
    by_confidence: Annotated[
        Mapping[Literal["high", "medium", "low"], Wished], "For work that says how sure its plan is"
    ] = attrs.field(factory=dict)
    generate: Annotated[WishDocument | None, Short("model"), "For tests of a scope"] = None
    draft: Annotated[WishDocument | None, Short("model"), "For the change of an agent task"] = None
    repair: Annotated[WishDocument | None, Short("model"), "For a change that does not land as it is"] = None
    tries: Annotated[int, COUNT, "Calls of one model, where the provider's gateway fails"] = 4
    backoff: Annotated[float, SECONDS, "Before the second of them; twice as long before each further one"] = 5.0
