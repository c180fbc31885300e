"""The Bible texts: facts counted in them, the same verses as pysword alone reads, and what is said without it."""

from __future__ import annotations

import builtins
import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from restudy.data import fetch, king_james, reina_valera, sword, world_english
from restudy.data.store import folder
from restudy.errors import ConfigError, DataError

MODULES = {"king_james": king_james, "reina_valera": reina_valera, "world_english": world_english}
SAMPLE = (("Genesis", 1), ("Psalms", 3), ("Matthew", 5), ("III John", 1))


@pytest.fixture(scope="module")
def texts() -> dict[str, sword.Verses]:
    pytest.importorskip("pysword", reason="needs the optional group text")
    try:
        for name in MODULES:
            fetch(name)
    except DataError as error:
        pytest.skip(f"real data not reachable: {error}")
    return {name: module.load() for name, module in MODULES.items()}


def test_what_the_texts_hold(texts: dict[str, sword.Verses]) -> None:
    english, spanish, modern = (texts[name] for name in MODULES)
    assert (len(english), len(spanish), len(modern)) == (31_102, 31_084, 37_457)
    assert len({book for book, *_ in english}) == 66 and set(spanish) < set(english)
    assert len(set(modern) & set(english)) == 31_095
    assert english["John", 11, 35] == "Jesus wept." and spanish["John", 11, 35] == "Y lloró Jesús."
    assert next(iter(english)) == ("Genesis", 1, 1)
    for text in texts.values():
        assert all(verse == " ".join(verse.split()) and verse for verse in text.values())
        assert not [verse for verse in text.values() if set("<>¶\\") & set(verse)]


def test_a_note_joins_no_words(texts: dict[str, sword.Verses]) -> None:
    modern = texts["world_english"]
    assert modern["Genesis", 1, 1] == "In the beginning, God created the heavens and the earth."
    assert not [verse for verse in modern.values() if re.search("[a-z][A-Z]", verse)]


@pytest.mark.parametrize("name", MODULES)
def test_the_verses_are_those_of_pysword_alone(name: str, texts: dict[str, sword.Verses]) -> None:
    from pysword.modules import SwordModules

    modules = SwordModules(str(folder(name)))
    bible = modules.get_bible_from_module(next(iter(modules.parse_modules())))
    for book, chapter in SAMPLE:
        verses = {key: text for key, text in texts[name].items() if key[:2] == (book, chapter)}
        assert len(verses) > 5
        for (_, _, verse), text in verses.items():
            alone = bible.get(books=[book], chapters=[chapter], verses=[verse])
            assert "".join(text.split()) == "".join(alone.replace("¶", "").split())
            if name == "king_james":  # in the others notes and added words touch their neighbours
                assert text == " ".join(alone.replace("¶", "").split())


def test_plain_keeps_words_apart_and_points_close() -> None:
    cleaner = SimpleNamespace(clean=lambda text: text.replace("<note>x</note>", ""))
    assert sword.plain(" ¶ And God<note>x</note>made  <note>x</note>, the \\nd LORD<note>x</note>.", cleaner) == (
        "And God made, the LORD."
    )


def test_an_added_word_joins_no_words_and_a_pronoun_stays_with_its_verb(texts: dict[str, sword.Verses]) -> None:
    spanish = texts["reina_valera"]
    assert "de la que fué mujer de Urías" in spanish["Matthew", 1, 6]  # pysword: "de laque fué mujerde Urías"
    assert "deberá pagarla." in spanish["Exodus", 22, 14]
    assert "Como lo oímos, así hemos visto" in spanish["Psalms", 48, 8]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("<w>la</w><transChange>que fué</transChange><w>de</w>", "la que fué de"),
        ("<w>pagar</w><transChange>la</transChange>.", "pagarla."),
        ("<w>Como</w><transChange>lo</transChange><w>oímos</w>", "Como lo oímos"),
        ("<w>que</w> <transChange>era</transChange> <w>luz</w>", "que era luz"),
        ("<w>él</w><transChange>era</transChange>, <w>y</w>", "él era, y"),
        ("<w>á</w><transChange>losotros</transChange> <w>y</w>", "á losotros y"),
    ],
)
def test_seams_of_added_words(raw: str, expected: str) -> None:
    cleaner = SimpleNamespace(clean=lambda text: re.sub("<[^>]*>", "", text))
    assert sword.plain(raw, cleaner) == expected


def test_without_pysword_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: object, **more: object) -> object:
        if name.startswith("pysword"):
            raise ImportError(name)
        return real(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(sword, "verified", lambda *_: {})
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ConfigError, match=r"king_james: the optional group `text` is not installed.*make setup text"):
        king_james.load()


def test_a_folder_with_two_modules_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pysword", reason="needs the optional group text")
    monkeypatch.setattr(sword, "verified", lambda *_: {})
    (tmp_path / "king_james" / "mods.d").mkdir(parents=True)
    for name in ("a", "b"):
        (tmp_path / "king_james" / "mods.d" / f"{name}.conf").write_text(f"[{name}]\nDataPath=./{name}\n")
    with pytest.raises(DataError, match="2 SWORD modules, not one"):
        king_james.load(tmp_path)


def test_declaring_imports_no_pysword() -> None:
    for name in MODULES:
        importlib.reload(MODULES[name])
    assert "pysword" not in vars(sword)
    assert sys.modules["restudy.data.sword"] is sword
