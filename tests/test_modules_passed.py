"""How many modules a value passes is counted, so that the way through the house stays short."""

from benchmarks.modules_passed import modules_to_error, modules_to_request


def test_a_due_date_passes_at_most_twenty_two_modules_to_its_request() -> None:
    passed = modules_to_request()
    assert passed[-1] == "reconciler.service.connection"
    assert len(passed) <= 22, passed


def test_a_bad_date_passes_at_most_twelve_modules_to_its_error() -> None:
    passed = modules_to_error()
    assert passed[-1] == "reconciler.errors"
    assert len(passed) <= 12, passed
