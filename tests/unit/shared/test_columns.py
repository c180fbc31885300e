"""Tables from rows, and the short forms of study.yaml."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from restudy.catalog.forms import columns_of, cost_lines, with_functions
from restudy.errors import ResultError
from restudy.results.columns import table_from

COLUMNS = {"seed": "int", "name": "str", "value": "float", "values": "floats"}
ROW = {"seed": 1, "name": "a", "value": 0.5, "values": [1.0, 2.0]}


def test_rows_and_columns_make_the_same_table() -> None:
    rows = [ROW, ROW | {"seed": 2, "value": None}]
    by_rows = table_from(rows, COLUMNS)
    by_columns = table_from({name: [row[name] for row in rows] for name in reversed(COLUMNS)}, COLUMNS)
    assert by_rows == by_columns and by_rows.column_names == list(COLUMNS)
    assert by_rows.schema.field("values").type == pa.list_(pa.float32())
    assert by_rows["value"].to_pylist() == [0.5, None]


def test_no_rows_make_an_empty_table_with_the_columns() -> None:
    assert table_from([], COLUMNS).column_names == list(COLUMNS)


def test_arrays_are_columns() -> None:
    found = table_from({"seed": np.arange(3), "value": np.ones(3)}, {"seed": "int", "value": "float"})
    assert found["seed"].to_pylist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([{**ROW, "more": 1}], "unknown column more"),
        ([{k: v for k, v in ROW.items() if k != "value"}], "no column value"),
        ([{**ROW, "seed": "x"}], "column seed"),
        ([{**ROW, "seed": 0.5}], "column seed"),
        ({"seed": [1]}, "no column name, value, values"),
        ({**{name: [ROW[name]] for name in ROW}, "seed": [1, 2]}, "length"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(returned: object, said: str) -> None:
    with pytest.raises(ResultError, match=said) as refused:
        table_from(returned, COLUMNS)
    assert "\n" not in str(refused.value)


def test_usual_columns_need_no_type() -> None:
    assert columns_of({"toy": ["seed", "arm", {"run": "int"}, "value"]}) == {
        "toy": {"seed": "int", "arm": "str", "run": "int", "value": "float"}
    }


@pytest.mark.parametrize(
    "tables", [["toy"], {"toy": ["run"]}, {"toy": [{"run": "integer"}]}, {"toy": ["seed", "seed"]}]
)
def test_columns_that_mean_nothing_are_refused(tables: object) -> None:
    with pytest.raises(ValueError):
        columns_of(tables)


def test_costs_are_sums_of_products() -> None:
    assert cost_lines({"train": "5 x 470 x 100 ms + 2,000 ms", "check": "1500 ms"}) == [
        {"stage": "train", "ms": 237_000.0},
        {"stage": "check", "ms": 1500.0},
    ]


@pytest.mark.parametrize("text", ["5 x 470", "ms", "5 y 3 ms", "5 x 3 s", ""])
def test_costs_without_sense_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="train"):
        cost_lines({"train": text})


def test_functions_are_named_by_their_stage_or_figure() -> None:
    said = {"stages": {"toy": {}, "check": {"function": "exact.check"}}, "figures": {"F1_paths": {}, "F2": {}}}
    found = with_functions(said)
    assert found["stages"] == {"toy": {"function": "experiment.toy"}, "check": {"function": "exact.check"}}
    assert found["figures"] == {"F1_paths": {"function": "figures.paths"}, "F2": {"function": "figures.f2"}}
