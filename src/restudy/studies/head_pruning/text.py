"""The real-text track's data: clause pairs of the King James and the Reina-Valera Bible in pieces, with parses.

No seed decides anything here: chapters and units are drawn by hashes, so every seed trains and measures on the same
pairs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from restudy.bench.context import Context, Outputs
from restudy.data import king_james, reina_valera, world_english
from restudy.data.sword import Verses
from restudy.errors import ConfigError
from restudy.methods.text.clauses import Unit, drawn, held_out_chapter, repeated, similar, units, words
from restudy.methods.text.grammar import RELATIONS
from restudy.methods.text.parses import Parse, agreement, parses
from restudy.methods.text.pieces import Encoded, Pieces
from restudy.methods.text.spelling import UNKNOWN

Row = dict[str, Any]
SIDES = ("source", "target")
SHORTEST = 4
HELD_OUT_CHAPTERS = 0.1
# A unit is dropped when more than this share of its 5-grams stands in training: at .3 to .5 there are still as many
# passages told twice as formulas, below .3 formulas alone.
REPEATED = 0.3


@dataclass(frozen=True)
class Pair:
    """A unit in pieces."""

    unit: Unit
    source: Encoded
    target: Encoded


def fact(metric: str, unit: str, **values: float) -> list[Row]:
    """Rows of one metric of the table `text_facts`, named by keyword."""
    return [{"metric": metric, "name": name, "value": float(v), "unit": unit} for name, v in values.items()]


def prepare(context: Context, *, vocabulary: int, longest: int, held_out: int) -> Outputs:
    """Align, cut, hold out, learn the pieces, encode and parse.

    Args:
        vocabulary: pieces of each language, the four named ones included. longest: most pieces of a side; the fewest
            are 4. held_out: units to measure with.

    Raises:
        ConfigError: fewer units can be held out than asked for, or the optional group `text` is not installed.
        DataError: a text is absent or altered.
    """
    facts: list[Row] = []
    train, rest = _parts(king_james.load(), reina_valera.load(), facts)
    pieces = {side: Pieces((_lower(getattr(u, side)) for u in train), vocabulary) for side in SIDES}
    pairs = list(_fitting(train, pieces, longest))
    fitting = list(_fitting(rest, pieces, longest))
    facts += fact("units", "units", train=len(pairs), train_other_length=len(train) - len(pairs))
    facts += fact("units", "units", held_out_fitting=len(fitting), held_out_other_length=len(rest) - len(fitting))
    if len(fitting) < held_out:
        raise ConfigError(
            f"{len(fitting)} units of {SHORTEST} to {longest} pieces can be held out, {held_out} are asked for",
            where="head_pruning: text",
            remedy="lower held_out or raise longest",
        )
    chosen = fitting[:held_out]
    facts += fact("units", "units", held_out=len(chosen))
    found = list(parses(pair.unit.source for pair in chosen))
    _parse_facts(chosen, found, facts)
    counts = {side: Counter(i for pair in pairs for i in getattr(pair, side).ids) for side in SIDES}
    _piece_facts(pairs, chosen, pieces, facts)
    rows = [_row("train", pair, ()) for pair in pairs]
    for pair, parse in zip(chosen, found, strict=True):
        rows.append(_row("held_out", pair, [number for relation in parse.relations for number in relation]))
    spelt = [
        {"side": side, "piece": piece, "text": text, "count": counts[side][piece]}
        for side in SIDES
        for piece, text in enumerate(pieces[side].texts)
    ]
    return {"text_sentences": rows, "text_pieces": spelt, "text_facts": facts}


def _parts(source: Verses, target: Verses, facts: list[Row]) -> tuple[list[Unit], list[Unit]]:
    """Units to train with in the order of the text, and those to hold out in an order drawn by hash."""
    # Where a psalm has a title, the Spanish text has it in the first verse and the English one has not.
    openings = {key for key in source if key[0] == "Psalms" and key[2] == 1}
    made = list(units({key: text for key, text in source.items() if key not in openings}, target))
    verses = Counter(unit.reference for unit in made)
    facts += fact("verses", "verses", english=len(source), spanish=len(target), psalm_openings_dropped=len(openings))
    facts += fact("verses", "verses", paired=len(verses), cut_into_clauses=sum(n > 1 for n in verses.values()))
    alike = [unit for unit in made if similar(unit.source, unit.target)]
    facts += fact("units", "units", made=len(made), dissimilar_dropped=len(made) - len(alike))
    apart = [held_out_chapter(unit.book, unit.chapter, HELD_OUT_CHAPTERS) for unit in alike]
    train = [unit for unit, out in zip(alike, apart, strict=True) if not out]
    rest = drawn(unit for unit, out in zip(alike, apart, strict=True) if out)
    facts += fact("chapters", "chapters", train=_chapters(train), held_out=_chapters(rest))
    known = repeated(rest, train, REPEATED)
    facts += fact("units", "units", in_train_chapters=len(train), in_held_out_chapters=len(rest))
    facts += fact("units", "units", repeated_dropped=sum(known))
    return train, [unit for unit, seen in zip(rest, known, strict=True) if not seen]


def _chapters(chosen: Iterable[Unit]) -> int:
    return len({(unit.book, unit.chapter) for unit in chosen})


def _lower(sentence: Sequence[str]) -> list[str]:
    return [word.lower() for word in sentence]


def _fitting(chosen: Iterable[Unit], pieces: dict[str, Pieces], longest: int) -> Iterator[Pair]:
    """Units in pieces, of the allowed lengths."""
    for unit in chosen:
        source, target = (pieces[side].encode(_lower(getattr(unit, side))) for side in SIDES)
        if all(SHORTEST <= len(side.ids) <= longest for side in (source, target)):
            yield Pair(unit, source, target)


def _row(part: str, pair: Pair, relations: Sequence[int]) -> Row:
    unit, spans = pair.unit, pair.source.spans
    row: Row = {"part": part, "book": unit.book, "chapter": unit.chapter, "verse": unit.verse, "unit": unit.number}
    row |= {"source": pair.source.ids, "target": pair.target.ids, "relations": relations}
    return row | {"first": [a for a, _ in spans], "last": [b for _, b in spans]}


def _piece_facts(train: list[Pair], held_out: list[Pair], pieces: dict[str, Pieces], facts: list[Row]) -> None:
    for side in SIDES:
        own: list[Encoded] = [getattr(pair, side) for pair in train]
        other: list[Encoded] = [getattr(pair, side) for pair in held_out]
        spans = [b - a for sentence in own for a, b in sentence.spans]
        facts += fact("vocabulary", "pieces", **{side: len(pieces[side])})
        facts += fact("train_pieces", "pieces", **{side: sum(len(sentence.ids) for sentence in own)})
        facts += fact("words_in_several_pieces", "share", **{side: sum(n > 1 for n in spans) / len(spans)})
        facts += fact("unknown_pieces", "pieces", **{side: sum(s.ids.count(UNKNOWN) for s in other)})


def _parse_facts(chosen: list[Pair], found: list[Parse], facts: list[Row]) -> None:
    """Relations by kind, and how many of them the modern translation's parse has too; by chance: of the next verse.

    The next held-out verse in the order of the text is the stricter control, for neighbours share their subjects.
    """
    by_verse: dict[Any, list[Parse]] = defaultdict(list)
    modern = world_english.load()
    for pair, parse in zip(chosen, found, strict=True):
        if pair.unit.reference in modern:
            by_verse[pair.unit.reference].append(parse)
    references = [reference for reference in modern if reference in by_verse]
    verses = [by_verse[reference] for reference in references]
    others = list(parses(words(modern[reference]) for reference in references))
    own, chance = agreement(verses, others), agreement(verses, others[1:] + others[:1])
    facts += fact("agreement_verses", "verses", all=len(references))
    for name, chosen_relations in [(n, [i]) for i, n in enumerate(RELATIONS)] + [("all", list(range(len(RELATIONS))))]:
        triples, hits, sharing, by_chance = (
            sum(counts[i] for i in chosen_relations) for counts in (own.triples, own.found, own.sharing, chance.found)
        )
        relations = sum(r[0] in chosen_relations for parse in found for r in parse.relations)
        facts += fact("relations", "relations", **{name: relations})
        facts += fact("agreement_triples", "triples", **{name: triples})
        facts += fact("agreement_triples_found", "triples", **{name: hits})
        facts += fact("agreement_triples_sharing", "triples", **{name: sharing})
        facts += fact("agreement", "share", **{name: hits / max(triples, 1)})
        facts += fact("agreement_where_lemmas_shared", "share", **{name: hits / max(sharing, 1)})
        facts += fact("agreement_by_chance", "share", **{name: by_chance / max(triples, 1)})
