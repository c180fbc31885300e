"""The page of one paper."""

from __future__ import annotations

from html import escape

from restudy.report.index import write


def render(study: str, preset: str) -> bytes:
    """The page of a study at a preset as HTML bytes; the site's index is rendered again as well."""
    write(preset)
    return f"<!DOCTYPE html><html lang=en><title>{escape(study)}</title><p>{escape(study)}</p></html>".encode()
