"""Statistics of the exact claims A8 and A12: is the decision rule right, and does it cover every method?

Deviations from what must be, so 0 is right; one replicate per decision, method or control. numpy and pyarrow only.
"""

from __future__ import annotations

import pyarrow as pa

from restudy.studies.saliency_sanity.rule import ACCEPTED, METRICS, NOT_APPLICABLE, REJECTED, TESTS, UNDEFINED
from restudy.studies.saliency_sanity.tidy import Tables, where

RIGHT = {"edges": REJECTED, "gradient": ACCEPTED}
"""What signed rank correlation must decide on a map that ignores the net, and on one that is nothing but the net."""
DECISIONS = (ACCEPTED, REJECTED, UNDEFINED)


def decision_errors(tables: Tables) -> pa.Table:
    """1 for every wrong decision on the two maps of known kind (edges, gradient), 0 for every right one."""
    rows = where(tables["decisions"], method=tuple(RIGHT), test=TESTS, metric="spearman").to_pylist()
    return _table({f"{r['model']} {r['method']} {r['test']}": float(r["decision"] != RIGHT[r["method"]]) for r in rows})


def edge_similarity_gap(tables: Tables) -> pa.Table:
    """1 minus the similarity of the Sobel map before and after either change: it cannot change, so 0."""
    rows = where(tables["decisions"], method="edges", test=TESTS).to_pylist()
    return _table({f"{r['model']} {r['test']} {r['metric']}": 1.0 - r["changed"] for r in rows})


def coverage_gap(tables: Tables) -> pa.Table:
    """For each model and metric, the share of applicable methods without a decision from both tests."""
    table = where(tables["decisions"], role="method", test=TESTS)
    found = {}
    for model in sorted(set(table["model"].to_pylist())):
        for metric in METRICS:
            rows = where(table, model=model, metric=metric).to_pylist()
            decided: dict[str, set[str]] = {r["method"]: set() for r in rows if r["decision"] != NOT_APPLICABLE}
            for row in rows:
                if row["decision"] in DECISIONS:
                    decided[row["method"]].add(row["test"])
            open_ = sum(tests != set(TESTS) for tests in decided.values())
            found[f"{model} {metric}"] = open_ / len(decided) if decided else 1.0
    return _table(found)


def control_gap(tables: Tables) -> pa.Table:
    """1 for every control that is missing from a model's run, 0 where it is there.

    The four controls: iid noise, the edges of the image, the retrained net as yardstick, two random nets.
    """
    table = tables["decisions"]
    found: dict[str, float] = {}
    for model in sorted(set(table["model"].to_pylist())):
        mine = where(table, model=model)
        gradient = where(mine, method="gradient", test=TESTS)
        present = {
            "noise": where(mine, method="noise", test=TESTS).num_rows == len(TESTS) * len(METRICS),
            "edges": where(mine, method="edges", test=TESTS).num_rows == len(TESTS) * len(METRICS),
            "retrained net": gradient.num_rows > 0 and gradient["yardstick"].null_count == 0,
            "two random nets": where(mine, test="random_nets").num_rows > 0,
        }
        found |= {f"{model} {name}": float(not there) for name, there in present.items()}
    return _table(found)


def _table(values: dict[str, float]) -> pa.Table:
    return pa.table({"replicate": list(values), "value": pa.array(values.values(), pa.float64())})
