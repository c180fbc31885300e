"""Give a study's notebook its stored results: tables, figures, verdicts. Nothing is computed anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from restudy import layout
from restudy.errors import ResultError
from restudy.results.tables import read_table
from restudy.tables import where

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from IPython.display import Markdown

VERDICT = ["verdict", "reason", "estimate", "ci_low", "ci_high"]


class Study:
    """The results of a study at a preset, for its notebook.

    A preset need not make every table and draw every figure: `figure` and `pivot` then say so in the page, `has`
    asks, and `table` and `frame` raise.

    Raises:
        ResultError: nothing is stored of this study at this preset.
    """

    def __init__(self, slug: str, preset: str) -> None:
        self.slug, self.preset = slug, preset
        self._results = layout.results(preset, slug)
        if not self._results.is_dir():
            raise ResultError(
                f"no results of {slug} at preset {preset}", where=str(self._results), remedy="run `make reproduce`"
            )

    def has(self, name: str) -> bool:
        """Tell whether the preset makes this table."""
        return (self._results / f"{name}.parquet").is_file()

    def table(self, name: str) -> pa.Table:
        """Read a stored table.

        Raises:
            ResultError: the preset does not make it, or the file is damaged.
        """
        return read_table(self._results / f"{name}.parquet")

    def frame(self, name: str, *, last: str | None = None, **columns: object) -> pd.DataFrame:
        """Read the chosen rows of a stored table into pandas.

        Args:
            last: a column; only rows with its largest value are kept (`last="epoch"`).
            columns: values that choose rows, as in `restudy.tables.where`.
        """
        found: pd.DataFrame = where(self.table(name), **columns).to_pandas()
        return found if last is None else found[found[last] == found[last].max()]

    def pivot(
        self,
        name: str,
        index: str | list[str],
        columns: str | list[str] = "metric",
        *,
        value: str = "value",
        how: Literal["mean", "median", "min", "max", "count"] = "mean",
        digits: int | None = None,
        last: str | None = None,
        **chosen: object,
    ) -> pd.DataFrame | Markdown:
        """Summarise the chosen rows of a stored table, to be shown; a sentence where the preset does not make it.

        Args:
            index, columns: names of columns whose values become rows and columns.
            how: the aggregate over rows that fall together.
            digits: decimals; all of them unless given.
            last, chosen: see `frame`.
        """
        if not self.has(name):
            return _markdown(f"*Preset {self.preset} does not make {name}.*")
        rows = self.frame(name, last=last, **chosen)
        found = rows.pivot_table(index=index, columns=columns, values=value, aggfunc=how)
        return found if digits is None else found.round(digits)

    def figure(self, *names: str) -> None:
        """Show stored figures; a sentence for those that the preset does not draw."""
        from IPython.display import SVG, display

        for name in names:
            path = layout.figures(self.preset, self.slug) / f"{name}.svg"
            missing = f"*Preset {self.preset} does not draw {name}.*"
            shown = SVG(filename=str(path)) if path.is_file() else _markdown(missing)  # type: ignore[no-untyped-call]
            display(shown)  # type: ignore[no-untyped-call]

    def verdicts(self, digits: int = 4) -> pd.DataFrame:
        """List the claims with their verdicts, to be shown; numbers rounded."""
        return self.frame("verdicts")[["claim", "primary", *VERDICT, "n", "gate", "control_verdict"]].round(digits)

    def parts(self, digits: int = 4) -> pd.DataFrame:
        """List the parts of claims that have several, with the verdict on each, to be shown; numbers rounded."""
        return self.frame("verdict_parts")[["claim", "part", *VERDICT, "control_verdict"]].round(digits)

    def conclusion(self, *more: str) -> Markdown:
        """Write the verdicts on the primary claims as a list, and further sentences below them, to be shown."""
        lines = []
        for row in where(self.table("verdicts"), primary=True).to_pylist():
            reason = f" ({row['reason']})" if row["reason"] else ""
            marks = f"; {', '.join(row['flags'])}" if row["flags"] else ""
            lines.append(f"- **{row['claim']}** {row['verdict']}{reason}{marks}")
        return _markdown("\n".join([*lines, *(f"- {sentence}" for sentence in more)]))


def _markdown(text: str) -> Markdown:
    from IPython.display import Markdown

    return Markdown(text)  # type: ignore[no-untyped-call]
