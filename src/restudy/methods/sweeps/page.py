"""A page about one sweep; opens from disk, offline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pyarrow as pa

from restudy.methods.sweeps.fit import Interval
from restudy.own_page import PRINT, options_list

HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>
body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}}
img{{max-width:100%;height:auto}} .wide{{overflow-x:auto}} .warn{{border-left:4px solid #D55E00;padding-left:1rem}}
table{{border-collapse:collapse}} td,th{{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #ddd}}
{print}
</style></head><body>
"""
CAPTIONS = {
    "steps": "Steps to the goal against the batch size: every complete trial that reached it, the fastest, the fitted "
    "curve and perfect scaling (dashed).",
    "rates": "Best effective learning rate, learning rate and 1 - momentum, with the linear (dashed) and the "
    "square-root rule (dotted) from the smallest batch size.",
    "box": "The searched box: colour is steps over the best, crosses diverged, empty circles never reached the goal; "
    "the outer 5% of the rates are shaded.",
    "budgets": "Best value against the batch size with the whole budget, the same steps, and the same examples.",
}


def page(name: str, curve: pa.Table, fit: Interval, warnings: Sequence[str], options: Mapping[str, Any]) -> str:
    """Return the page as HTML: what to doubt, the fit, figures, every number of the curve, the options of the run."""
    title = f"Batch sizes and {name}"
    parts = [HEAD.format(title=escape(title), print=PRINT), f"<h1>{escape(title)}</h1>", "<h2>Can it be believed?</h2>"]
    if warnings:
        parts += ['<ul class="warn">', *(f"<li>{escape(text)}</li>" for text in warnings), "</ul>"]
    else:
        parts.append(
            "<p>The best rates lie inside the searched range, enough trials are feasible, goals came in time.</p>"
        )
    parts.append(f"<p>{escape(fitted(fit))}</p>")
    for figure, caption in CAPTIONS.items():
        text = escape(caption)
        parts.append(f'<figure><img src="{figure}.svg" alt="{text}"><figcaption>{text}</figcaption></figure>')
    parts += ["<h2>Numbers</h2>", _table(curve), "<h2>Options</h2>", options_list(options)]
    return "\n".join([*parts, "</body></html>", ""])


def fitted(fit: Interval) -> str:
    """The fit in words, or why there is none."""
    form = "S(B) = S_min (1 + B_crit / B)"
    if not (math.isfinite(fit.fit.b_crit) and math.isfinite(fit.fit.s_min)):
        return (
            f"No curve {form} could be fitted: it takes at least three batch sizes that reached the goal. Raise the "
            "steps, widen the rates, or take a goal that is easier to reach."
        )
    low, high = fit.b_crit
    between = (
        f"90% interval over resampled trials {low:.4g} to {high:.4g}"
        if math.isfinite(low) and math.isfinite(high)
        else "no interval: too few trials reached the goal"
    )
    return (
        f"Fit of {form}: B_crit = {fit.fit.b_crit:.4g} ({between}), S_min = {fit.fit.s_min:.4g} steps. One sweep is "
        "one draw: repeat it with other seeds before you compare two curves."
    )


def _cell(value: Any) -> str:
    """A number of the table; a dash where there is none."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "\u2013"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _table(curve: pa.Table) -> str:
    head = "".join(f'<th scope="col">{escape(name.replace("_", " "))}</th>' for name in curve.column_names)
    lines = [f'<div class="wide"><table><tr>{head}</tr>']
    for row in curve.to_pylist():
        cells = [_cell(value) for value in row.values()]
        first = f'<th scope="row">{escape(cells[0])}</th>'
        lines.append(f"<tr>{first}{''.join(f'<td>{escape(cell)}</td>' for cell in cells[1:])}</tr>")
    return "\n".join([*lines, "</table></div>"])
