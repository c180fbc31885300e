"""The title of the paper (authors, year).

One paragraph: what the paper says and why it matters.

Re-run here: heavy-ball momentum (Polyak 1964) against plain gradient descent on random convex quadratics, counted in
steps to a fixed error. Replace it by the paper's own experiment.

Scaled down: everything. Deviations from the paper stand in study.yaml and are shown beside the verdicts.
"""
