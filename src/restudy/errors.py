"""Errors that a user can cause: one line saying what is wrong, where, and what to do."""

from __future__ import annotations


class RestudyError(Exception):
    """A mistake in the input or a state of the machine that the user can mend.

    The command line prints the message as one line and exits with 1; no traceback is shown.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what, self.where, self.remedy = what, where, remedy
        super().__init__(": ".join(part for part in (where, what) if part) + (f"; {remedy}" if remedy else ""))


class ConfigError(RestudyError):
    """A study, preset, parameter or claim that is not valid."""


class DataError(RestudyError):
    """A data set that is missing, truncated, or has another checksum than declared."""


class ResultError(RestudyError):
    """A stored result that is missing, cut short, tampered with, or stale."""


class ClaimError(RestudyError):
    """A claim or its replicates that cannot be judged; names the claim, the field and the remedy."""
