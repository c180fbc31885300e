"""Options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click


def preset_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--preset`, laptop by default."""
    return click.option("--preset", "-p", default="laptop", show_default=True, help="smoke, laptop, ..., or your own.")(
        command
    )


def study_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--study`, all by default."""
    return click.option("--study", "-s", default=None, help="One study; all by default.")(command)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
