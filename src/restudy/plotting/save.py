"""Figures as bytes, the same bytes for the same figure."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PNG_DPI = 160


def figure_bytes(figure: Figure) -> dict[str, bytes]:
    """A figure as SVG, PNG (160 dots an inch) and PDF, without dates or random identifiers."""
    import matplotlib as mpl

    options: dict[str, dict[str, Any]] = {
        "svg": {"metadata": {"Date": None, "Creator": None}},
        "png": {"metadata": {"Software": None}, "dpi": PNG_DPI},
        "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
    }
    found = {}
    # The layout is solved once: the formats share it, and solving is most of the cost.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    with mpl.rc_context({"svg.hashsalt": "restudy", "svg.fonttype": "path", "pdf.fonttype": 42}):
        for suffix, arguments in options.items():
            sink = io.BytesIO()
            figure.savefig(sink, format=suffix, **arguments)
            found[suffix] = sink.getvalue()
    return found
