"""Text: a small language with gold trees and a rule-based translation, batches of sentences, BLEU."""

from restudy.methods.text.bleu import bleu_statistics, corpus_bleu, score
from restudy.methods.text.grammar import RELATIONS, Language, Sentence

__all__ = ["RELATIONS", "Language", "Sentence", "bleu_statistics", "corpus_bleu", "score"]
