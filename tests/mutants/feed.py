"""Planted faults in the change feed."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LAW, USECASE, DOOR = "shared/core/feed.py", "shared/usecases/publish_changes.py", "functions/feed/handler.py"
CORE, USECASES, FUNCTIONS = "tests/unit/core/test_feed.py", "tests/unit/usecases", "tests/functions/test_feed.py"
LEAKS, EXAMPLE = "tests/leaks/test_canary_feed.py", "tests/unit/test_change_feed_example.py"

FEED: tuple[Mutant, ...] = (
    Mutant(
        name="every_write_is_news",
        file=LAW,
        old="    if previous is job.status:\n        return None",
        new="    if previous is None and job.status.ended:\n        return None",
        reqs=("R15",),
        tests=(CORE,),
    ),
    Mutant(
        name="an_expired_row_is_news",
        file=DOOR,
        old='        if record.get("eventName") == "REMOVE" or not image or not is_job(image):',
        new="        if not image:\n            image, before = before, {}\n        if not is_job(image):",
        reqs=("R15",),
        tests=(FUNCTIONS,),
    ),
    Mutant(
        name="changes_sorted_by_fence_alone",
        file=LAW,
        old="        return self.fence * _STEPS + _RANK[self.status]",
        new="        return self.fence",
        reqs=("R15",),
        tests=(CORE,),
    ),
    Mutant(
        name="a_retry_is_told_before_its_attempt",
        file=LAW,
        old="    Status.QUEUED: 2,",
        new="    Status.QUEUED: -1,",
        reqs=("R15",),
        tests=(CORE,),
    ),
    Mutant(
        name="a_second_life_repeats_its_ids",
        file=LAW,
        old="self.job_id, moment.iso(self.created_at), str(self.sequence)",
        new="self.job_id, str(self.sequence)",
        reqs=("R15",),
        tests=(CORE,),
    ),
    Mutant(
        name="an_event_with_the_producers_key",
        file=LAW,
        old="        task=job.task,\n        status=job.status,",
        new="        task=job.key,\n        status=job.status,",
        reqs=("R15", "R14"),
        tests=(CORE, LEAKS),
    ),
    Mutant(
        name="what_was_refused_is_forgotten",
        file="shared/adapters/aws/feed.py",
        old='        if not answer.get("FailedEntryCount"):',
        new='        if answer.get("FailedEntryCount") != len(batch):',
        reqs=("R15",),
        tests=("tests/unit/adapters/test_feed.py",),
    ),
    Mutant(
        name="all_is_sent_again",
        file=USECASE,
        old="            done.left = feed.publish(done.left)",
        new="            done.left = done.left if feed.publish(done.left) else []",
        reqs=("R15",),
        tests=(USECASES,),
    ),
    Mutant(
        name="the_stream_goes_on_too_far",
        file=DOOR,
        old="for place in places[:1]]",
        new="for place in places[-1:]]",
        reqs=("R15",),
        tests=(FUNCTIONS,),
    ),
    Mutant(
        name="a_bad_row_blocks_the_feed",
        file=DOOR,
        old="        except UnreadableRow as exc:\n            found.append((place, exc))\n            continue",
        new="        except UnreadableRow:\n            raise",
        faults=("B12", "K1"),
        tests=(FUNCTIONS,),
    ),
    Mutant(
        name="a_repeated_event_is_news",
        file="examples/change_feed/subscriber.py",
        old='NEWER = "attribute_not_exists(job_id) OR #position < :position"',
        new='NEWER = "attribute_not_exists(job_id) OR #position <= :position"',
        reqs=("R15",),
        tests=(EXAMPLE,),
    ),
)
