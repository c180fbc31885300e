"""The page of one paper."""

from __future__ import annotations

from restudy.catalog.plan import plan
from restudy.report import index, load, rendering
from restudy.report.csv_files import write_csv_files
from restudy.report.model import PaperPage


def render(study: str, preset: str) -> bytes:
    """The page of a study at a preset as HTML bytes; writes the CSV downloads and renders the index again as well.

    Raises:
        ConfigError: unknown study or preset.
    """
    write_csv_files(plan(study, preset), study)
    page = html(load.paper(study, preset))
    index.write(preset, arriving=study)
    return page


def html(page: PaperPage) -> bytes:
    """The page of one paper from what it shows."""
    primary = [claim for claim in page.claims if claim.primary]
    program = [claim for claim in page.claims if claim.program]
    other = [claim for claim in page.claims if not claim.primary and not claim.program]
    groups = [
        ("Primary claims", "Fixed before the run; the verdict on the paper rests on them.", primary),
        ("Other claims", "Judged by the same rules; they do not decide the verdict on the paper.", other),
        ("Tests of the program", "Identities that hold whenever the program is right.", program),
    ]
    return rendering.render("paper.html.j2", page=page, row=page.row, groups=[g for g in groups if g[2]])
