"""`generate` and `models` of tasks.yaml as they're written: parts of document.Document."""

from collections.abc import Mapping
from typing import Annotated, Literal

import attrs

from .kinds import COUNT, MONEY, NAME, SECONDS, TEXT, TOKENS, Argv, Name, Short


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


@attrs.frozen
class GeneratorDocument:
    """One generator of tests; its bare name will do where it needs nothing else."""

    use: Annotated[
        Literal["differential", "claude", "command"],
        "differential spends no token; command runs a program of your own",
    ]
    name: Annotated[str | None, NAME, "Tells two entries of one kind apart; left out: what `use` says"] = None
    run: Annotated[Argv, "For `use: command`: the program and its arguments"] = ()
    model: Annotated[str | None, TEXT, "The model that is asked; left out: as `models` says, else none is named"] = None
    effort: Annotated[str | None, TEXT, "How hard it is to think; left out: as `models` says, else not said"] = None
    time_limit: Annotated[float, SECONDS, "For one call"] = 600.0


@attrs.frozen
class BudgetDocument:
    """What one run may spend on calls for tests. What is in flight when it is reached comes to its end."""

    tokens: Annotated[int | None, TOKENS, "Fresh input, cache writes and output together"] = None
    cost: Annotated[float | None, MONEY, "USD, as the providers' envelopes say"] = None
    tokens_per_kill: Annotated[
        int | None, TOKENS, "A scope whose last round paid more for each mutant it killed is asked about no more"
    ] = None


@attrs.frozen
class GenerateDocument:
    """Who writes tests, and how often a model is asked."""

    with_: Annotated[
        tuple[Annotated[GeneratorDocument, Short("use")], ...],
        "Generators: embedded ones run in search, models in rounds, in this order",
    ] = (GeneratorDocument("differential"),)
    rounds: Annotated[int, COUNT, "How often each model is asked about what still survives"] = 2
    budget: Annotated[BudgetDocument, "What a run may spend on it, and when a scope is not worth more"] = (
        BudgetDocument()
    )
