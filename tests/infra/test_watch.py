"""What the Watch stacks promise: whoever must know, is told, and told where to read on."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from infra import naming
from infra.alarms import RUNBOOK
from infra.rules.assembly import texts
from infra.stage import ROOT, load_stage
from infra.watch import ESSENTIAL, NO_CHANNEL
from shared.contract import metrics, names
from shared.core.errors import BadInput
from shared.core.severity import Severity
from shared.core.stage import ALL_ALARMS, StageSpec
from shared.core.switches import Level
from tests.infra.conftest import STAGE_NAMES, Stages, Synthesize, Synthesized

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]
ALARM = "AWS::CloudWatch::Alarm"


@pytest.fixture(params=[name for name in STAGE_NAMES if load_stage(name, for_show=True).alarms == ALL_ALARMS])
def watched(request: pytest.FixtureRequest, stages: Stages) -> Synthesized:
    """Each stage that has all alarms."""
    return stages(request.param)


def _sections() -> set[str]:
    headings = re.findall(r"^#+ (.+)$", (ROOT / RUNBOOK).read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_alarm_reaches_the_topic_and_names_a_section_that_exists(every_stage: Synthesized) -> None:
    """An alarm speaks when it starts and when it ends, and its text ends with the runbook's section."""
    sections = _sections()
    topic = every_stage.the("AWS::SNS::Topic", TopicName=naming.alarm_topic(every_stage.spec.name))
    alarms = list(every_stage.assembly.resources(ALARM))
    assert alarms
    for alarm in alarms:
        (action,) = alarm.properties["AlarmActions"]
        assert alarm.properties["OKActions"] == [action]
        named = "".join(texts(action)).rpartition(":")[2] == topic.properties["TopicName"]
        assert named if alarm.stack != topic.stack else action == {"Ref": topic.id}
        place, _, section = alarm.properties["AlarmDescription"].rpartition(" ")[2].partition("#")
        assert place == RUNBOOK
        assert section in sections, f"{RUNBOOK} has no section for {section}"


def test_no_section_of_the_runbook_is_without_an_alarm(prod: Synthesized) -> None:
    """A section that no alarm names is out of date."""
    named = {alarm.properties["AlarmDescription"].rpartition("#")[2] for alarm in prod.assembly.resources(ALARM)}
    level_two = re.findall(r"^## (.+)$", (ROOT / RUNBOOK).read_text(encoding="utf-8"), re.MULTILINE)
    assert {heading.lower().replace(" ", "-") for heading in level_two} == named


@pytest.mark.parametrize(
    "name",
    [
        "support-dead-letters",
        "support-queue-age",
        "support-effects-unknown",
        "support-effects-contradicted",
        "support-jobs-failing",
        "support-worker-function-errors",
        "support-worker-function-throttled",
        "support-events-unanswered",
        "support-intake-function-errors",
        "support-intake-function-throttled",
        "stream-stream-behind",
        "stream-stream-gave-up",
        "feed-feed-behind",
        "feed-feed-gave-up",
        "feed-records-isolated",
        "feed-function-errors",
        "schedule-schedule-undelivered",
        "run-run-failed",
        "dispatcher-schedule-silent",
        "governor-schedule-silent",
        "support-source-not-enabled",
        "support-governor-silent",
        "support-switch-not-normal",
        "support-severity",
        "support-cost-spike",
    ],
)
def test_known_troubles_have_an_alarm(watched: Synthesized, name: str) -> None:
    """Each way to strand work that this system knows of wakes somebody."""
    watched.the(ALARM, AlarmName=f"{names.PREFIX}-{watched.spec.name}-{name}")


@pytest.mark.req("C13")
def test_a_lane_that_closes_itself_wakes_somebody(prod: Synthesized) -> None:
    """Where a lane is tripped by its governor; one that does nothing a customer sees never is."""
    tripping = {lane.name for lane in prod.spec.lanes.values() if lane.trip_on_unstable}
    assert tripping == {"support"}
    ringing = {str(alarm.properties["AlarmName"]) for alarm in prod.assembly.resources(ALARM)}
    assert {name for name in ringing if name.endswith("lane-tripped")} == {
        naming.alarm("prod", "support", "lane-tripped")
    }


@pytest.mark.req("C15")
def test_a_lane_that_costs_too_much_wakes_somebody(every_stage: Synthesized) -> None:
    """Above the threshold its configuration names, by the level the governor meters; without one there is no alarm."""
    stage = every_stage.spec
    for lane in stage.lanes.values():
        name = naming.alarm(stage.name, lane.name, "cost-spike")
        found = [one for one in every_stage.assembly.resources(ALARM) if one.properties["AlarmName"] == name]
        assert len(found) == (lane.cost_spike_per_hour is not None)
        for alarm in (one.properties for one in found):
            assert (alarm["MetricName"], alarm["Statistic"]) == (metrics.COST, "Maximum")
            assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
            assert alarm["Threshold"] == lane.cost_spike_per_hour


@pytest.mark.req("C13", "C6")
def test_a_switch_that_is_left_closed_wakes_somebody(watched: Synthesized) -> None:
    """After five minutes, however often the governor looks."""
    stage = watched.spec
    for lane in stage.lanes:
        alarm = watched.the(ALARM, AlarmName=naming.alarm(stage.name, lane, "switch-not-normal")).properties
        seen = alarm["MetricName"], alarm["Statistic"], alarm["Threshold"]
        assert seen == (metrics.SWITCH_LEVEL, "Maximum", Level.ROUTE_ONLY)
        assert alarm["Period"] == stage.schedules.governor
        assert alarm["Period"] * alarm["DatapointsToAlarm"] == 300


@pytest.mark.req("C3")
def test_a_severe_lane_wakes_somebody(watched: Synthesized) -> None:
    """At the third look that finds it so."""
    name = naming.alarm(watched.spec.name, "support", "severity")
    alarm = watched.the(ALARM, AlarmName=name).properties
    assert (alarm["Threshold"], alarm["DatapointsToAlarm"]) == (Severity.SEVERE, 3)


def test_a_lane_that_nobody_judges_is_noticed(watched: Synthesized) -> None:
    """The governor may run and lose one lane: no point of that lane for three periods sounds the alarm."""
    stage = watched.spec
    for lane in stage.lanes.values():
        if lane.admission == "scheduled":
            continue
        alarm = watched.the(ALARM, AlarmName=naming.alarm(stage.name, lane.name, "governor-silent")).properties
        assert (alarm["TreatMissingData"], alarm["Statistic"]) == ("breaching", "SampleCount")
        assert alarm["Period"] * alarm["EvaluationPeriods"] == 3 * stage.schedules.governor
        assert {"Name": metrics.LANE, "Value": lane.name} in alarm["Dimensions"]


def test_admission_may_be_a_minute_behind(prod: Synthesized) -> None:
    """The stream's iterator age has its alarm at 60 s."""
    alarm = prod.the(ALARM, AlarmName=naming.alarm("prod", "stream", "stream-behind")).properties
    assert (alarm["MetricName"], alarm["Threshold"], alarm["Statistic"]) == ("IteratorAge", 60_000, "Maximum")


def test_dead_letters_are_seen_also_while_triage_holds_them(prod: Synthesized, local: Synthesized) -> None:
    """Depth is visible plus in flight where CloudWatch can add; visible alone where it cannot."""
    alarm = prod.the(ALARM, AlarmName=naming.alarm("prod", "support", "dead-letters")).properties
    seen = set(texts(alarm["Metrics"]))
    assert {"ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesNotVisible"} <= seen
    plain = local.the(ALARM, AlarmName=naming.alarm("local", "support", "dead-letters")).properties
    assert plain["MetricName"] == "ApproximateNumberOfMessagesVisible"


def test_a_stage_without_metric_math_has_none(local: Synthesized) -> None:
    """`metrics_alarms: false` leaves plain metrics only, and as many alarms as elsewhere."""
    assert not any("Metrics" in alarm.properties for alarm in local.assembly.resources(ALARM))


def test_essential_alarms_are_those_of_what_is_lost_unknown_or_standing(
    prod: Synthesized, synthesize: Synthesize
) -> None:
    """Far fewer, each as in a stage with all of them; no dead-letter queue is without one (rule N11 holds)."""
    few = synthesize(replace(prod.spec, alarms="essential"))
    assert few.refused == ""
    every = {one.properties["AlarmName"]: one.properties for one in prod.assembly.resources(ALARM)}
    kept = {one.properties["AlarmName"]: one.properties for one in few.assembly.resources(ALARM)}
    assert kept == {name: every[name] for name in kept}
    problems = ("dead-letters", "effects-unknown", "effects-contradicted", "cost-spike")
    assert {naming.alarm("prod", "support", problem) for problem in problems} <= set(kept)
    assert len(kept) <= len(every) / 3


def test_every_essential_alarm_is_one_that_there_is(prod: Synthesized) -> None:
    """A name that no alarm has would watch nothing."""
    problems = {one.properties["AlarmDescription"].rpartition("#")[2] for one in prod.assembly.resources(ALARM)}
    assert problems >= ESSENTIAL


def test_an_alarm_profile_that_does_not_exist_is_refused() -> None:
    """By name, with those that there are."""
    with pytest.raises(BadInput, match="alarms: must be all or essential"):
        StageSpec.from_mappings("dev", {"alarms": "some"})


def test_a_schedule_that_stops_is_noticed(watched: Synthesized) -> None:
    """No data is bad news here: three periods without a run sound the alarm."""
    for name in names.SCHEDULED:
        stage = watched.spec
        alarm = watched.the(ALARM, AlarmName=naming.alarm(stage.name, name, "schedule-silent")).properties
        assert alarm["TreatMissingData"] == "breaching"
        assert alarm["Period"] * alarm["EvaluationPeriods"] == 3 * getattr(stage.schedules, name)


def _rings(alarm: Mapping[str, Any], points: Sequence[float]) -> bool:
    """CloudWatch's verdict on as many of the newest periods as have data; what is missing counts as the alarm says."""
    assert alarm["TreatMissingData"] in ("breaching", "notBreaching")
    of = alarm["EvaluationPeriods"]
    compare = {
        "GreaterThanOrEqualToThreshold": operator.ge,
        "GreaterThanThreshold": operator.gt,
        "LessThanThreshold": operator.lt,
    }[alarm["ComparisonOperator"]]
    bad = [compare(point, alarm["Threshold"]) for point in points[-of:]]
    missing = [alarm["TreatMissingData"] == "breaching"] * (of - len(bad))
    return sum((*bad, *missing)) >= alarm.get("DatapointsToAlarm", of)


HEARD_FIRST = {"schedule-silent": 1.0, "governor-silent": 1.0, "canary-late": 0.0}
"""Problem of an alarm that rings at silence → the first that is ever counted where nothing is wrong."""


@pytest.mark.fault("B10")
def test_on_a_first_deploy_silence_alone_rings_and_ends_with_the_first_run(every_stage: Synthesized) -> None:
    """No alarm rings without data but those that the docs name; each of these is quiet after one good point."""
    ringing: dict[str, list[Mapping[str, Any]]] = {}
    for alarm in (one.properties for one in every_stage.assembly.resources(ALARM)):
        if _rings(alarm, []):
            ringing.setdefault(alarm["AlarmDescription"].rpartition("#")[2], []).append(alarm)
    assert ringing.keys() == (HEARD_FIRST.keys() if every_stage.spec.alarms == ALL_ALARMS else {"canary-late"})
    for problem, alarms in ringing.items():
        assert not [alarm["AlarmName"] for alarm in alarms if _rings(alarm, [HEARD_FIRST[problem]])]
        assert all(_rings(alarm, [2 * (problem == "canary-late")] * alarm["EvaluationPeriods"]) for alarm in alarms)
    told = (
        (ROOT / "docs/deploy.md").read_text(encoding="utf-8").partition("**What rings then.**")[2].partition("\n#")[0]
    )
    assert set(re.findall(r"alarms\.md#([a-z-]+)", told)) == HEARD_FIRST.keys()


def test_alarms_are_deployed_after_what_they_listen_to(every_stage: Synthesized) -> None:
    """Control before Watch, and Watch before what watches a lane: a schedule has run when silence begins to count."""
    manifest = json.loads((every_stage.directory / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    after = {name: set(one.get("dependencies", ())) for name, one in manifest.items()}
    assert "Control" in after["Watch"]
    for lane in every_stage.spec.lanes:
        assert f"Lane-{lane}" in after["Control"]
        assert "Watch" in after[f"Watch-{lane}"]


def test_dashboards_look_at_their_own_stage(every_stage: Synthesized) -> None:
    """Two stages in one account share the namespace, so each search names the stage and every dimension there is."""
    for page in every_stage.assembly.resources("AWS::CloudWatch::Dashboard"):
        searches = re.findall(r"SEARCH\('(.*?)', '(?:Sum|Maximum)'", json.dumps(page.properties["DashboardBody"]))
        assert searches or naming.dashboard(every_stage.spec.name, "engine") == page.properties["DashboardName"]
        for search in searches:
            by_lane = f"{metrics.LANE},service,{metrics.STAGE}}} "
            by = f"{metrics.ACCOUNT},{by_lane}" if f"{metrics.ACCOUNT}=" in search else by_lane
            assert search.startswith(f"{{{metrics.NAMESPACE},{by}")
            assert re.search(rf"{metrics.STAGE}=\W*{every_stage.spec.name}\W", search), search


def test_each_lane_has_its_page(every_stage: Synthesized) -> None:
    """A dashboard per lane and one for the engine."""
    found = {one.properties["DashboardName"] for one in every_stage.assembly.resources("AWS::CloudWatch::Dashboard")}
    stage = every_stage.spec
    assert found == {naming.dashboard(stage.name, subject) for subject in (*stage.lanes, "engine")}


def test_a_stage_whose_alarms_reach_nobody_says_so(every_stage: Synthesized) -> None:
    """A warning at synth, not an error: the stage can be deployed, and nobody can say they were not told."""
    warned = [one for one in every_stage.findings() if NO_CHANNEL in one["rule"]]
    spec = every_stage.spec
    silent = not spec.alarm_email and not (spec.slack_workspace_id and spec.slack_channel_id)
    assert bool(warned) is silent


def test_one_key_in_the_stage_file_is_an_address(synthesize: Synthesize) -> None:
    """An e-mail subscribes; both Slack ids make a channel that can show and not do; neither warns any more."""
    spec = replace(
        load_stage("prod", for_show=True),
        alarm_email="on-call@example.com",
        slack_workspace_id="T00000000",
        slack_channel_id="C00000000",
    )
    stage = synthesize(spec)
    assert not stage.refused
    assert not [one for one in stage.findings() if NO_CHANNEL in one["rule"]]
    subscription = stage.the("AWS::SNS::Subscription").properties
    assert (subscription["Protocol"], subscription["Endpoint"]) == ("email", "on-call@example.com")
    slack = stage.the("AWS::Chatbot::SlackChannelConfiguration").properties
    assert (slack["SlackWorkspaceId"], slack["SlackChannelId"]) == ("T00000000", "C00000000")
    assert "AWSDenyAll" in str(slack["GuardrailPolicies"])


def test_cloudwatch_may_use_the_topic_and_its_key(every_stage: Synthesized) -> None:
    """An encrypted topic with a policy of its own is silent unless both let alarms in."""
    key = next(key for key in every_stage.assembly.resources("AWS::KMS::Key") if key.stack == "Watch")
    policy = every_stage.the("AWS::SNS::TopicPolicy")
    for document, action in (
        (key.properties["KeyPolicy"], "kms:GenerateDataKey"),
        (policy.properties["PolicyDocument"], "sns:Publish"),
    ):
        (statement,) = [
            one for one in document["Statement"] if one["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
        ]
        assert action in statement["Action"]
        assert "aws:SourceAccount" in statement["Condition"]["StringEquals"]
