"""What the commands on a model of one's own share: options, and how the page shows them."""

from __future__ import annotations

from typing import Any

import click

SEED = click.IntRange(0, 2**32 - 1)


def typed_options() -> dict[str, str]:
    """Every option of the running command as a user types it, defaults included; without `--out` and unset ones."""
    from restudy.own_model import as_typed

    context = click.get_current_context()
    given: dict[str, Any] = {}
    for option in context.command.params:
        if option.name != "folder" and context.params.get(option.name or "") != "":
            given[option.opts[0]] = context.params.get(option.name or "")
    return as_typed(given)
