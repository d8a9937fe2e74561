"""The second stage: what is declared now, and what was declared at another revision and is not any more."""

from dataclasses import replace

from reconciler.fleet.survey import Added, FleetSurvey
from reconciler.gitops.past import compare_with_past


def compare(run: FleetSurvey) -> Added:
    """Compare with the other revision, if there is one: what is declared no more must not exist.

    Sets of then whose groups cannot be listed are obstacles: nothing depends on them.
    """
    whole = run.manifests.desired
    if run.past is None:
        return {"whole": replace(whole, digest=run.digest or whole.digest)}
    comparison, kept, unlisted = compare_with_past(run.manifests, run.past, run.discovery, run.reader, run.concurrency)
    return {
        "whole": replace(comparison.desired, digest=run.digest or whole.digest),
        "changed": comparison.changed,
        "unlisted_then": unlisted,
        "obstacles": (*run.obstacles, *kept),
    }
