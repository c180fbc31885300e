"""Specialised heads do the heavy lifting, the rest can be pruned (Voita, Talbot, Moiseev, Sennrich, Titov; ACL 2019).

The heads of a Transformer that translates are not equally important. The paper finds three kinds that one can name:
positional heads, which look at the token before or after; syntactic heads, which look along one grammatical relation;
and, in the first layer, a head that looks at the rarest word. A gate on every head, pushed to zero by an L0 penalty,
then removes most encoder heads at little loss, the named ones last; a network with the surviving heads alone, started
from new random weights, does not quite reach the pruned one.

Re-run here: head confidence, layer-wise relevance (through softmax and layer norm), ablation and gradients; positional
and syntactic roles against untrained models, constant offsets and permuted trees; Hard Concrete gates on the encoder's
heads (the decoder frozen) and on all heads; against a model trained on with all gates open, random masks, masks by
confidence, and training from scratch. Heads that are pruned are really removed.

Scaled down: 3 + 2 layers of width 64 or 128 instead of 6 + 6 of 512, on two tracks. `synthetic`: a language with gold
trees, drawn anew for each seed, whose translation needs neighbouring pieces and grammatical relations; its claims are
judged at laptop. `text` (presets workstation and paper, optional group `text`): clauses of the King James Bible into
the Spanish of 1909, with a parser's trees; the rare-word head is looked for there. WMT and OpenSubtitles are not used.
Deviations stand in study.yaml and beside the verdicts.
"""
