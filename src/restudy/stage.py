"""One job of the pipeline: `python -m restudy.stage OUTPUT --fp FINGERPRINT --in INPUT ...`.

Snakemake calls it for every job. It refuses to compute when the source changed after planning or when an input is not
what the current source would give, waits for an orphan of a killed run that still writes the same output, writes
atomically, and leaves the varying facts in `.run.json`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from restudy.bytecode import drop_racy
from restudy.errors import RestudyError

# Two threads in each of two processes made steps tens of times slower on two cores; results are equal bit for bit
# at a fixed count only.
for _variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_variable] = "1"


def main(arguments: list[str] | None = None) -> int:
    """Run one job; exit code 0 when its outputs are there and current."""
    parser = argparse.ArgumentParser(prog="restudy.stage", description=__doc__)
    parser.add_argument("output", help="the job's first output, relative to the project's root")
    parser.add_argument("--fp", required=True, help="fingerprint at planning time")
    parser.add_argument("--in", dest="inputs", nargs="*", default=[], help="inputs")
    options = parser.parse_args(arguments)
    drop_racy(Path(__file__).parent)  # before anything that computes is imported
    try:
        from restudy.bench.outputs import node_of
        from restudy.provenance import numerics

        numerics.apply(node_of(options.output).plan.spec.numerics)  # before numpy or torch is imported
        from restudy.bench.job import run_job

        run_job(options.output, options.fp, options.inputs)
    except RestudyError as error:
        print(f"restudy: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    done = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(done)  # as in restudy.cli: Arrow's threads can abort an interpreter that ends in the usual way
