"""`python -m restudy.tracking STUDY... PRESET`: put stored results into MLflow."""

from __future__ import annotations

import argparse
import sys

from restudy.errors import RestudyError
from restudy.tracking.address import TrackingError
from restudy.tracking.ingesting import ingest, ingest_or_warn, warn


def main(arguments: list[str] | None = None) -> int:
    """Ingest studies at a preset; exit code 1 when one fails, unless `--warn` is given."""
    parser = argparse.ArgumentParser(prog="restudy.tracking", description=__doc__)
    parser.add_argument("studies", nargs="+", metavar="STUDY", help="slugs of studies with stored results")
    parser.add_argument("preset", metavar="PRESET")
    parser.add_argument("--uri", help="tracking address (default: MLFLOW_TRACKING_URI, else sqlite)")
    parser.add_argument("--warn", action="store_true", help="a failure is a warning, exit code 0")
    options = parser.parse_args(arguments)
    if options.warn:
        return _all_or_warn(options.studies, options.preset, options.uri)
    try:
        for study in options.studies:
            print(ingest(study, options.preset, uri=options.uri))
    except RestudyError as error:
        print(f"restudy: {error}", file=sys.stderr)
        return 1
    return 0


def _all_or_warn(studies: list[str], preset: str, uri: str | None) -> int:
    """Where nobody answers, one line for all studies instead of waiting for each."""
    from restudy.tracking.address import probe, tracking_uri

    try:
        probe(tracking_uri(uri))
    except TrackingError as error:
        warn(f"{', '.join(studies)} at {preset}", str(error))
        return 0
    for study in studies:
        ingest_or_warn(study, preset, uri=uri)
    return 0


if __name__ == "__main__":
    sys.exit(main())
