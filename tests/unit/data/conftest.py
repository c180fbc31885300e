from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RESTUDY_DATA", "RESTUDY_DATA_TINY", "RESTUDY_ROOT"):
        monkeypatch.delenv(name, raising=False)
