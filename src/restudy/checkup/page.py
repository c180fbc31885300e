"""A small page about the heatmaps of one model; opens from disk, offline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pyarrow as pa

from restudy.checkup.judge import FAILED, MAX_SIMILARITY, PASSED, REFUSED, said
from restudy.own_page import PRINT, options_list

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>
body{{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#222}}
img{{max-width:100%;height:auto}} .wide{{overflow-x:auto}} .passed{{background:#e2f1e4}} .failed{{background:#fbe3d6}}
table{{border-collapse:collapse}} td,th{{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}}
td:first-child,th[scope=row]{{text-align:left}}
{print}
</style></head><body>
"""
CAPTIONS = {
    "maps": "The first images and their heatmaps: red speaks for the class, blue against it. Edges and noise know no "
    "model.",
    "cascade": "Rank correlation of the maps with those of the trained model while its layers are drawn anew one after "
    "the other. A map that describes the model cannot stay.",
    "areas": "Area over the perturbation curve (AOPC), most relevant regions first, beyond that of random orders, by "
    "what takes the place of a region. Above 0 the regions ranked highest matter more than others.",
}
RULES = (
    f"Randomisation passes where the mean rank correlation over the states of a cascade is at most {MAX_SIMILARITY}; "
    "perturbation where the lower 95% bound of the mean over images is above 0, and fails where the upper one is not; "
    "between them more images would decide. Passing is necessary, not sufficient: "
    "noise passes the first check, the edges of the image may pass the second."
)


def page(
    name: str, tables: Mapping[str, pa.Table], facts: Sequence[str], figures: Sequence[str], options: Mapping[str, Any]
) -> str:
    """Return the page as HTML: verdicts, figures, complexity and the options of the run."""
    title = f"Heatmaps of {name}"
    parts = [HEAD.format(title=escape(title), print=PRINT), f"<h1>{escape(title)}</h1>"]
    parts += [f"<p>{escape(fact)}</p>" for fact in facts]
    parts += ["<h2>What passed</h2>", _verdicts(tables["verdicts"]), f"<p>{escape(RULES)}</p>"]
    for figure in figures:
        caption = escape(CAPTIONS[figure])
        parts.append(f'<figure><img src="{figure}.svg" alt="{caption}"><figcaption>{caption}</figcaption></figure>')
    parts += ["<h2>Complexity, median over the images</h2>", _complexity(tables["complexity"])]
    parts += ["<h2>Options</h2>", options_list(options)]
    return "\n".join([*parts, "</body></html>", ""])


def _verdicts(table: pa.Table) -> str:
    rows = table.to_pylist()
    checks = [check for check in dict.fromkeys(row["check"] for row in rows) if check != "all"]
    at = {(row["method"], row["check"]): row for row in rows}
    head = "".join(f'<th scope="col">{escape(check)}</th>' for check in checks)
    lines = [f'<div class="wide"><table><tr><th scope="col">method</th>{head}</tr>']
    for method in dict.fromkeys(row["method"] for row in rows):
        if (method, "all") in at:
            reason = escape(at[method, "all"]["reason"])
            cells = f'<td colspan="{max(len(checks), 1)}">{REFUSED}: {reason}</td>'
        else:
            cells = "".join(_cell(at.get((method, check))) for check in checks)
        lines.append(f'<tr><th scope="row">{escape(method)}</th>{cells}</tr>')
    return "\n".join([*lines, "</table></div>"])


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "<td></td>"
    colour = f' class="{row["verdict"]}"' if row["verdict"] in (PASSED, FAILED) else ""
    return f'<td{colour} title="{escape(row["reason"])}">{escape(said(row))}</td>'


def _complexity(table: pa.Table) -> str:
    rows = table.to_pylist()
    metrics = list(dict.fromkeys((row["metric"], row["unit"]) for row in rows))
    head = "".join(f'<th scope="col">{escape(m)}{f" ({u})" if u != "1" else ""}</th>' for m, u in metrics)
    lines = [f'<div class="wide"><table><tr><th scope="col">method</th>{head}</tr>']
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = ""
        for metric, _ in metrics:
            values = sorted(r["value"] for r in rows if r["method"] == method and r["metric"] == metric)
            cells += f"<td>{values[len(values) // 2]:.4g}</td>"
        lines.append(f'<tr><th scope="row">{escape(method)}</th>{cells}</tr>')
    return "\n".join([*lines, "</table></div>"])
