"""Templates to bytes: everything that comes from metadata is escaped, style and script stand inside the page."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from restudy.report import words
from restudy.report.strips import MIDDLE, WIDTH, strip

_HERE = Path(__file__).parent
_WEB = re.compile(r"https?://[^\s\"'<>]+", re.IGNORECASE)
_ARXIV = re.compile(r"(\d{4}\.\d{4,5}|[a-z-]+(\.[A-Z]{2})?/\d{7})(v\d+)?")


def render(template: str, **values: Any) -> bytes:
    """A template filled in, as UTF-8 that ends with `</html>` and a newline."""
    text = environment().get_template(template).render(**values)
    return (text.strip() + "\n").encode("utf-8", "replace")


@cache
def environment() -> Environment:
    """Jinja with autoescape on and undefined names refused."""
    made = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _asset("site.js")
    made.globals |= {
        "style": Markup(_asset("site.css")),  # our own file
        "script": Markup(script),
        "script_sum": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "verdicts": words.VERDICTS,
        "reasons": words.REASONS | words.FLAGS,
        "strip": strip,
        "strip_width": WIDTH,
        "strip_middle": MIDDLE,
    }
    made.filters |= {
        "css": words.css,
        "flag": words.flag,
        "number": words.number,
        "p_value": words.p_value,
        "measured": words.measured,
        "because": words.because,
        "interval": words.interval,
        "units": words.units,
        "brief": words.brief,
        "counts": words.counts_text,
        "headline": words.headline,
        "day": words.date,
        "minutes": words.minutes,
        "web": web_address,
        "arxiv": arxiv_address,
    }
    return made


def web_address(text: str | None) -> str:
    """The text where it is an http or https address, else nothing: no other scheme becomes a link."""
    return text if text and _WEB.fullmatch(text) else ""


def arxiv_address(name: str | None) -> str:
    """The address of an arXiv identifier, nothing where it is none."""
    return f"https://arxiv.org/abs/{name}" if name and _ARXIV.fullmatch(name) else ""


def _asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8")
