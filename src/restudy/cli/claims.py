"""Commands about claims: verdicts, claims freeze, extend, power."""

from __future__ import annotations

import json

import click

from restudy.cli.options import preset_option, study_option


@click.command()
@preset_option
@study_option
@click.option("--json", "style", flag_value="json", help="As JSON.")
@click.option("--markdown", "style", flag_value="markdown", help="As a Markdown table.")
@click.option("--check", is_flag=True, help="Judge the stored results again; exit 1 when a stored verdict differs.")
@click.option("--explain", metavar="CLAIM", help="What one claim says, computes and asks for, and what came out.")
def verdicts(preset: str, study: str | None, style: str | None, check: bool, explain: str | None) -> None:
    """The verdicts of a preset."""
    from restudy.bench import verdicts as work
    from restudy.bench.run import chosen

    slugs = chosen(preset, study)
    if explain and (check or style):
        raise click.UsageError("--explain goes with --preset and --study only")
    if check:
        differing = work.check(slugs, preset)
        for line in differing:
            click.echo(line)
        click.echo("stored verdicts follow from the stored results" if not differing else f"{len(differing)} differ")
        raise SystemExit(1 if differing else 0)
    if explain:
        click.echo(work.explain(slugs, preset, explain))
        return
    click.echo(work.show(slugs, preset, style or "text"))


@click.group()
def claims() -> None:
    """Claims of the studies."""


@claims.command()
@click.argument("study")
@click.option("--reason", required=True, help="Why the claims are frozen or amended.")
@click.option("--same-numbers", is_flag=True, help="Only code moved: show it on all stored results, else exit 1.")
@click.option("--against", metavar="REV", help="Commit whose code was frozen; found in the history by default.")
def freeze(study: str, reason: str, same_numbers: bool, against: str | None) -> None:
    """Append the claims in force to the study's claims.lock."""
    from restudy.bench.freezing import freeze as work

    if against and not same_numbers:
        raise click.UsageError("--against goes with --same-numbers")
    click.echo(work(study, reason, same_numbers=same_numbers, against=against))


@click.command()
@click.argument("study")
@preset_option
def extend(study: str, preset: str) -> None:
    """Declare the extension of a study whose primary claims are inconclusive for width; then `make reproduce`."""
    from restudy.bench.freezing import extend as work

    click.echo(work(study, preset))


@click.command()
@click.option("--effect", type=float, required=True, help="True effect, in the metric's unit.")
@click.option("--sd", type=click.FloatRange(min=0, min_open=True), required=True, help="Standard deviation over seeds.")
@click.option("--sesoi", type=click.FloatRange(min=0), default=0.0, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def power(effect: float, sd: float, sesoi: float, as_json: bool) -> None:
    """Seeds needed for a claim at a given effect and standard deviation."""
    from dataclasses import asdict

    from restudy.claims.power import plan

    found = asdict(plan(effect, sd, sesoi))
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    says = {
        "for_width": "an interval narrow enough to decide",
        "for_80": "80% power, one claim alone",
        "for_90": "90% power, one claim alone",
        "for_80_in_family": "80% power at Holm's hardest step among four claims",
    }
    for name, text in says.items():
        click.echo(f"{found[name] if found[name] is not None else 'over 200':>8}  seeds for {text}")


@click.command()
@preset_option
@study_option
@click.option("--refresh", is_flag=True, help="Record nothing; mark studies whose source has moved on since.")
def showcase(preset: str, study: str | None, refresh: bool) -> None:
    """Record the stored verdicts in docs/verdicts and README."""
    from restudy.bench import showcase as work
    from restudy.bench.run import chosen

    if refresh:
        click.echo("stale: " + (", ".join(work.refresh(preset)) or "none"))
        return
    work.record(chosen(preset, study), preset)
    click.echo(f"docs/verdicts/{preset}.json, {preset}.md and README.md written")
