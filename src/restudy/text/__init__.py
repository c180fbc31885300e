"""Text: a small language with gold trees and a rule-based translation, batches of sentences, BLEU."""

from restudy.text.bleu import bleu_statistics, corpus_bleu, score
from restudy.text.grammar import RELATIONS, Language, Sentence

__all__ = ["RELATIONS", "Language", "Sentence", "bleu_statistics", "corpus_bleu", "score"]
