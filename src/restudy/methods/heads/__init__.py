"""What attention heads do and how much they matter: confidence, roles, relevance, ablation, gradients."""

from restudy.methods.heads.importance import ablation, cross_entropy, gradient_importance, sentence_losses
from restudy.methods.heads.observe import confidence, encoder_attention, entropy, offset_hits, rare_hits, word_scores
from restudy.methods.heads.relevance import Relevance, head_relevance

__all__ = [
    "Relevance",
    "ablation",
    "confidence",
    "cross_entropy",
    "encoder_attention",
    "entropy",
    "gradient_importance",
    "head_relevance",
    "offset_hits",
    "rare_hits",
    "sentence_losses",
    "word_scores",
]
