"""What the pages about a model of one's own share. No torch."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from html import escape
from typing import Any


def options_list(options: Mapping[str, Any]) -> str:
    """Options as a list in HTML: `--name value` as it is typed in a shell, `name: value` for those of Python."""
    lines = ["<ul>"]
    for name, value in options.items():
        typed = f"{name} {shlex.quote(str(value))}" if name.startswith("--") else f"{name}: {value}"
        lines.append(f"<li><code>{escape(typed)}</code></li>")
    return "\n".join([*lines, "</ul>"])
