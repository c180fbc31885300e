"""A figure and a small page about the heads of one model; the page opens from disk, offline. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from restudy.own_page import PRINT, options_list
from restudy.plotting.style import figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = ("confidence", "offset -1", "offset +1", "ablation", "gradient")
POSITIONAL = 0.9
HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>
body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}}
img{{max-width:100%;height:auto}} .wide{{overflow-x:auto}}
table{{border-collapse:collapse}} td,th{{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}}
{print}
</style></head><body>
"""


def head_figure(table: pa.Table) -> Figure:
    """Heat maps, modules by heads, of what is shown in the page."""
    modules = list(dict.fromkeys(table["module"].to_pylist()))
    width = max(table["head"].to_pylist(), default=0) + 1
    with style():
        drawn, axes = figure(0.9 + 0.22 * len(modules), columns=len(SHOWN), sharey=True)
        for axis, metric in zip(axes[0], SHOWN, strict=True):
            values = np.full((len(modules), width), np.nan)
            for row in table.filter(pc.equal(table["metric"], metric)).to_pylist():
                values[modules.index(row["module"]), row["head"]] = row["value"]
            top = 1.0 if metric not in ("ablation", "gradient") else max(float(np.nanmax(values, initial=0.0)), 1e-12)
            axis.imshow(values, vmin=0, vmax=top, cmap="viridis", aspect="auto")
            axis.set_title(metric, fontsize=7)
            axis.set_xticks([])
            axis.set_yticks(range(len(modules)), modules, fontsize=5)
            axis.grid(False)
    return drawn


def page(
    name: str,
    table: pa.Table,
    refused: Mapping[str, str],
    losses: Mapping[str, float],
    kept: Mapping[str, list[int]],
    options: Mapping[str, Any],
) -> str:
    """Return the page as HTML: figure, unsupported modules, losses, heads that stay, every number, options."""
    title = f"Attention heads of {name}"
    caption = (
        "Confidence, share of queries that look one token back and ahead, loss without the head, slope at its gate."
    )
    parts = [HEAD.format(title=escape(title), print=PRINT), f"<h1>{escape(title)}</h1>"]
    parts.append(f'<figure><img src="heads.svg" alt="{caption}"><figcaption>{caption}</figcaption></figure>')
    parts += ["<h2>Loss</h2>", _items({what: f"{value:.5g}" for what, value in losses.items()})]
    if refused:
        parts += ["<h2>Modules that were left out</h2>", _items(refused)]
    if kept:
        parts += ["<h2>Heads that stay</h2>", _items({m: ", ".join(map(str, h)) or "none" for m, h in kept.items()})]
    parts += ["<h2>Heads</h2>", _table(table), "<h2>Options</h2>", options_list(options)]
    return "\n".join([*parts, "</body></html>", ""])


def _items(values: Mapping[str, Any]) -> str:
    lines = [f"<li>{escape(str(key))}: {escape(str(value))}</li>" for key, value in values.items()]
    return "\n".join(["<ul>", *lines, "</ul>"])


def _table(table: pa.Table) -> str:
    rows = table.to_pylist()
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    values = {(row["module"], row["head"], row["metric"]): row["value"] for row in rows}
    places = list(dict.fromkeys((row["module"], row["head"]) for row in rows))
    head = "".join(f'<th scope="col">{escape(metric)}</th>' for metric in metrics)
    found = [
        f'<div class="wide"><table><tr><th scope="col">module</th><th scope="col">head</th>{head}<th>role</th></tr>'
    ]
    for module, number in places:
        own = {metric: values.get((module, number, metric)) for metric in metrics}
        cells = "".join("<td></td>" if value is None else f"<td>{value:.4g}</td>" for value in own.values())
        role = next((m for m, v in own.items() if m.startswith("offset") and v is not None and v >= POSITIONAL), "")
        named = f"looks at {role.removeprefix('offset ')}" if role else ""
        found.append(f'<tr><td>{escape(module)}</td><th scope="row">{number}</th>{cells}<td>{named}</td></tr>')
    return "\n".join([*found, "</table></div>"])
