"""Runs a study's notebook on stored results and makes one HTML file of it that needs nothing else."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restudy import layout
from restudy.errors import ConfigError, ResultError
from restudy.report.notebook_theme import CSS, TEMPLATE

if TYPE_CHECKING:
    from nbformat import NotebookNode

TIMEOUT_SECONDS = 600
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def execute(study: str, preset: str) -> bytes:
    """Execute `notebook.md` of a study and return it as HTML that opens offline; code cells are folded.

    The notebook runs in the project's root with the parameter `preset`. The same results give the same bytes.

    Raises:
        ConfigError: the study has no notebook.md, or it is not jupytext Markdown.
        ResultError: a cell failed; names the cell and the exception.
    """
    path = layout.STUDIES / study / "notebook.md"
    where = layout.relative(path)
    if not path.is_file():
        raise ConfigError("the study has no notebook", where=where, remedy="write it as jupytext Markdown")
    source = read(path.read_text(encoding="utf-8"), where)
    executed = run(source, {"preset": preset}, where)
    return to_html(executed, title=f"{study}, {preset}: notebook", back=f"../{study}.html")


def read(text: str, where: str) -> NotebookNode:
    """A notebook from jupytext Markdown, with a kernel, cell numbers for ids and no outputs.

    Raises:
        ConfigError: jupytext cannot read it, or no code cell stands in it.
    """
    import jupytext

    try:
        found = jupytext.reads(text, fmt="md")
    except Exception as error:  # jupytext passes on whatever its readers raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"not jupytext Markdown ({reason})", where=where) from None
    if not any(cell.cell_type == "code" for cell in found.cells):
        raise ConfigError("no code cell", where=where, remedy="begin code cells with ```python")
    found.metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
        "language_info": {"name": "python"},
    }
    found.nbformat, found.nbformat_minor = 4, 5
    for number, cell in enumerate(found.cells, 1):
        cell["id"] = f"cell-{number}"
    settled: NotebookNode = found
    return settled


def run(notebook: NotebookNode, parameters: dict[str, Any], where: str) -> NotebookNode:
    """Execute a notebook with papermill in the project's root, in a kernel without anybody's own settings.

    Raises:
        ResultError: a cell failed, or the kernel died.
    """
    with tempfile.TemporaryDirectory(prefix="restudy-notebook-") as folder, _quiet_environment(Path(folder)):
        import nbformat
        import papermill
        from nbclient.exceptions import CellExecutionError, DeadKernelError
        from papermill.exceptions import PapermillExecutionError
        from traitlets.config import Config

        given, done = Path(folder, "in.ipynb"), Path(folder, "out.ipynb")
        given.write_text(nbformat.writes(notebook), encoding="utf-8")  # type: ignore[no-untyped-call]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                executed = papermill.execute_notebook(
                    given,
                    done,
                    parameters=parameters,
                    kernel_name="python3",
                    language="python",
                    cwd=layout.root(),
                    progress_bar=False,
                    execution_timeout=TIMEOUT_SECONDS,
                    # Sockets in the file system: ports are picked, released and bound again, and can collide.
                    config=Config({"KernelManager": {"transport": "ipc"}}),
                )
        except PapermillExecutionError as error:
            message = _ANSI.sub("", f"{error.ename}: {error.evalue}").splitlines()[0]
            raise ResultError(f"cell {error.cell_index + 1}: {message}", where=where) from None
        except (DeadKernelError, CellExecutionError, RuntimeError) as error:
            raise ResultError(f"the kernel failed ({str(error).splitlines()[0]})", where=where) from None
    return _settled(executed)


def to_html(notebook: NotebookNode, *, title: str, back: str) -> bytes:
    """A notebook as one HTML file: no script, no font, no style from elsewhere; images inside.

    Args:
        back: address of the page to link back to.
    """
    from nbconvert import HTMLExporter

    exporter: Any = HTMLExporter(  # type: ignore[no-untyped-call]
        raw_template=TEMPLATE, template_name="basic", embed_images=True
    )
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    exporter.exclude_anchor_links = exporter.exclude_raw = True
    resources = {"metadata": {"path": str(layout.root()), "name": title}, "back": back, "css": CSS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body, _ = exporter.from_notebook_node(notebook, resources=resources)
    return (str(body).strip() + "\n").encode()


def _settled(notebook: NotebookNode) -> NotebookNode:
    """The notebook without times, ids or messages that differ between runs of the same content."""
    notebook.metadata.pop("papermill", None)
    for number, cell in enumerate(notebook.cells, 1):
        cell["id"] = f"cell-{number}"
        for key in ("papermill", "execution"):
            cell.metadata.pop(key, None)
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    return notebook


@contextmanager
def _quiet_environment(folder: Path) -> Iterator[None]:
    """Variables for a kernel that reads nobody's profile or configuration and hashes alike in every run."""
    wanted = {
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_RUNTIME_DIR": str(folder / "run"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "JUPYTER_PLATFORM_DIRS": "1",
        "PYTHONHASHSEED": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "RESTUDY_ROOT": str(layout.root()),
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
