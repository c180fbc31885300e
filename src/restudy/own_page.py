"""What the pages about a model of one's own share. No torch."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from html import escape
from typing import Any

PRINT = (
    "@media print{:root{color-scheme:light} body{max-width:none;margin:0;font-size:10pt} .wide{overflow:visible} "
    "table{font-size:7pt} td,th{padding:.15rem .3rem} td:first-child{overflow-wrap:anywhere} "
    "h2{break-after:avoid} figure,tr{break-inside:avoid} figure{margin:1rem 0} img{max-height:19cm;width:auto} "
    "td,th,.warn{print-color-adjust:exact;-webkit-print-color-adjust:exact}}"
)
"""Style of these pages on paper: tables are not cut at the edge, figures fit on a sheet."""


def options_list(options: Mapping[str, Any]) -> str:
    """Options as a list in HTML: `--name value` as it is typed in a shell, `name: value` for those of Python."""
    lines = ["<ul>"]
    for name, value in options.items():
        typed = f"{name} {shlex.quote(str(value))}" if name.startswith("--") else f"{name}: {value}"
        lines.append(f"<li><code>{escape(typed)}</code></li>")
    return "\n".join([*lines, "</ul>"])
