"""Cohorts: failed jobs by category, signature, tenant and time, and a warning before they are gone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shared.core.cohort import Chosen, cohorts, expires_soon
from shared.core.job import Category, Job, Status
from shared.core.lifecycle import signature_of
from tests.builders import NOW, a_job


def a_failed(key: str, error: str = "vendor_unavailable", **overrides: Any) -> Job:
    """A failed job with this error."""
    values: dict[str, Any] = {"last_error": error, "signature": signature_of(error), "last_error_at": NOW}
    return a_job(key=key, status=Status.FAILED, **{**values, **overrides})


@pytest.mark.req("C8")
def test_errors_that_differ_in_numbers_are_one_cohort() -> None:
    """By category and normalised signature, the largest first; tenants are counted, or told apart."""
    jobs = [
        a_failed("1", "vendor_permanent:desk:404"),
        a_failed("2", "vendor_permanent:desk:410", tenant="tenant-2"),
        a_failed("3", "vendor_auth:desk", category=Category.AUTH),
    ]
    first, second = cohorts(jobs, NOW)
    assert (first.signature, first.count, first.tenants) == ("vendor_permanent:desk:#", 2, 2)
    assert (second.category, second.count) == ("auth", 1)
    assert [one.tenant for one in cohorts(jobs, NOW, by_tenant=True)] == ["tenant-1", "tenant-1", "tenant-2"]


@pytest.mark.req("M8")
@pytest.mark.parametrize(("days", "soon"), [(3.1, False), (3, True), (0.5, True), (-1, True)])
def test_what_goes_within_three_days_is_counted(days: float, soon: bool) -> None:
    """Three days before its row goes, and from then on."""
    job = a_failed("1", expires_at=NOW + timedelta(days=days))
    assert expires_soon(job, NOW) is soon
    (one,) = cohorts([job], NOW)
    assert (one.expires_soon, one.first_expiry) == (int(soon), job.expires_at)


def test_when_they_failed() -> None:
    """Oldest and newest by the time of the failure, not of the job."""
    (one,) = cohorts([a_failed("1"), a_failed("2", last_error_at=NOW + timedelta(hours=1))], NOW)
    assert (one.oldest, one.newest) == (NOW, NOW + timedelta(hours=1))


@pytest.mark.parametrize(
    ("choice", "holds"),
    [
        ({}, True),
        ({"category": Category.RETRIES_EXHAUSTED}, True),
        ({"category": Category.AUTH}, False),
        ({"signature": "vendor_unavailable"}, True),
        ({"signature": "other"}, False),
        ({"tenant": "tenant-2"}, False),
        ({"since": NOW}, True),
        ({"since": NOW + timedelta(seconds=1)}, False),
        ({"until": NOW}, False),
        ({"until": NOW + timedelta(seconds=1)}, True),
        ({"job_id": "another"}, False),
        ({"lane": "mail"}, False),
    ],
)
def test_a_choice_narrows_down(choice: dict[str, Any], holds: bool) -> None:
    """Each part of a choice by itself; `since` is included, `until` is not."""
    assert Chosen(**{"lane": "support", **choice}).holds(a_failed("1")) is holds


def test_only_failed_jobs_are_dead_letters() -> None:
    """Any other job is none of a cohort's."""
    assert not any(Chosen(lane="support").holds(a_job(status=status)) for status in Status if status != Status.FAILED)


def test_a_signature_that_is_no_code_is_not_shown() -> None:
    """A row written by another hand may hold a sentence: it is counted, and its text is not repeated."""
    (one,) = cohorts([a_failed("1", signature="please refund my card")], NOW)
    assert one.signature == "–"
