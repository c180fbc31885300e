"""A small page about one model's probes; opens from disk, offline."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

import pyarrow as pa

from restudy.own_page import PRINT, options_list

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>
body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}}
img{{max-width:100%;height:auto}} .wide{{overflow-x:auto}}
table{{border-collapse:collapse}} td,th{{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}}
{print}
</style></head><body>
"""
CAPTIONS = {
    "landscape": "Lowest and highest loss, and change of the gradient, over the probed lengths along the gradient; "
    "effective smoothness is the largest change of the gradient over the distance.",
    "shift": "Cosine between a layer's gradient before and after the layers below took their step, and the length of "
    "the difference. A cosine of 1 is no covariate shift.",
}


def page(name: str, probes: pa.Table, options: Mapping[str, Any]) -> str:
    """Return the page as HTML: figures, every number of the table `probes`, and the options of the run."""
    title = f"Loss landscape of {name}"
    parts = [HEAD.format(title=escape(title), print=PRINT), f"<h1>{escape(title)}</h1>"]
    for figure, caption in CAPTIONS.items():
        parts.append(
            f'<figure><img src="{figure}.svg" alt="{escape(caption)}"><figcaption>{caption}</figcaption></figure>'
        )
    parts += ["<h2>Numbers</h2>", _table(probes), "<h2>Options</h2>", options_list(options)]
    return "\n".join([*parts, "</body></html>", ""])


def _table(probes: pa.Table) -> str:
    rows = probes.to_pylist()
    steps = sorted({row["step"] for row in rows})
    values = {(row["layer"], row["metric"], row["step"]): row["value"] for row in rows}
    lines = list(dict.fromkeys((row["layer"], row["metric"]) for row in rows))
    head = "".join(f'<th scope="col">{step}</th>' for step in steps)
    found = [f'<div class="wide"><table><tr><th scope="col">layer</th><th scope="col">before step</th>{head}</tr>']
    for layer, metric in lines:
        cells = "".join(f"<td>{values.get((layer, metric, step), float('nan')):.4g}</td>" for step in steps)
        found.append(f'<tr><td>{escape(layer)}</td><th scope="row">{escape(metric)}</th>{cells}</tr>')
    return "\n".join([*found, "</table></div>"])
