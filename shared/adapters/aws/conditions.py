"""Every condition a write can have, each a named clause with the sentence that says when it is true.

A name after `#` is the attribute of that name; a value after `:` is given by the write.
"""

from __future__ import annotations

from collections.abc import Iterable

# ------------------------------------------------------------------------------------------------ any row
NO_ROW_YET = "attribute_not_exists(#pk)"
"""Nobody has written this key before."""

# --------------------------------------------------------------------------------------------------- jobs
STILL_QUEUED = "#status IN (:queued, :pending)"
"""Nobody has claimed, ended or withdrawn the job; older systems say pending."""

DUE = (
    "(#not_before_at <= :due_until"
    " OR (attribute_not_exists(#not_before_at) AND #scheduled_at <= :due_until)"
    " OR (attribute_not_exists(#not_before_at) AND attribute_not_exists(#scheduled_at)))"
)
"""The job has no time of its own, or it has come (with the slack of `lifecycle.DUE_SLACK_S`)."""

SAME_STATUS = "#status IN (:was, :was_once)"
"""The job is in the state it was read in; the second value is that state's older word."""

SAME_FENCE = "#fence = :fence"
"""No other claim, recovery or withdrawal came in between."""

NO_FENCE_YET = "(attribute_not_exists(#fence) OR #fence = :fence)"
"""The same, for a job that was never claimed: an older row has no fence at all."""

SAME_PLACE_IN_LINE = "#wsk = :wsk"
"""No dispatcher, hold or reschedule has moved the job in the waiting index."""

NOT_IN_LINE = "attribute_not_exists(#wsk)"
"""The job still does not stand in the waiting index."""

# ------------------------------------------------------------------------------------------------ effects
REFUSED_BEFORE = "#state = :refused"
"""The vendor certainly did not take the last try, so the same effect may be begun again."""

SAME_VENDOR = "#vendor = :vendor"
"""The refused effect was to be made at the same vendor."""

SAME_EFFECT = "(attribute_not_exists(#fingerprint) OR #fingerprint = :fingerprint)"
"""It was the same action on the same target; an older row does not say what it was."""

NOT_ACCEPTED_YET = "#state IN (:intent, :refused)"
"""Nobody has written that the vendor took it, whoever holds the intent and whatever was thought before."""

ACCEPTED_BEFORE = "#state = :accepted"
"""Somebody has written that the vendor took it."""

SAME_VENDOR_ID = "#vendor_id = :seen"
"""The acceptance stands under the id it was read with."""

NO_VENDOR_ID = "attribute_not_exists(#vendor_id)"
"""The acceptance stands under no id at all."""

NO_RESULT_YET = "#state = :intent"
"""The intent stands open: nobody has written what the vendor said."""

SAME_INTENT_TIME = "#intent_at = :intent_at"
"""The open intent is the very one that was read."""

# ---------------------------------------------------------------------------------------- control, ledger
HAS_SCOPES = "attribute_type(#scopes, :map)"
"""The switches' row is there and has its map, so one scope can be set without touching the others."""

NOT_CLOSED = (
    "(attribute_not_exists(#scopes.#scope)"
    " OR (#scopes.#scope.#level = :normal AND #scopes.#scope.#automation_enabled = :automation_enabled))"
)
"""Nobody has closed the scope, and its paid calls are as they were seen: what a person set is never replaced."""

SAME_SWITCH = "#scopes.#scope = :seen"
"""The scope's entry is the one that somebody looked at: who closed it anew meanwhile is never overruled unseen."""

SAME_CAPACITY = "#version = :version"
"""The lane's capacity is the one this write was decided from."""

NO_CAPACITY_YET = "(attribute_not_exists(#version) OR #version = :version)"
"""The same, for a lane whose capacity nobody has decided yet: a row of before has no version."""

SAME_RUN = "#run_id = :run_id"
"""The slot belongs to this run."""

SAME_BATCH_STATE = "#state = :was"
"""The batch has come exactly as far as it was read."""

# ------------------------------------------------------------------------------------ plans, resolutions
SOMEBODY_ELSE = "(#requester <> :me OR #count <= :alone)"
"""Whoever says yes is not who asked; a stage may let one person do both for so few jobs (0: never)."""

SAME_REQUESTER = "#requester = :asked_by"
"""The request is that of whoever it was when it was read: somebody else's is another matter."""

STILL_PLANNED = "#state = :planned"
"""Nobody has approved, started or withdrawn the plan."""

STILL_APPROVED = "#state = :approved"
"""The plan was approved, and nobody has started or withdrawn it."""

NOT_ABORTED = "(attribute_exists(#state) AND #state <> :aborted)"
"""There is such a plan, and nobody has withdrawn it."""

SAME_MANIFEST = "#hash = :hash"
"""What is agreed to is what was written down."""

STILL_GOOD = "#valid_until > :now"
"""The request has not expired."""

LANE_FREE = "(attribute_not_exists(#plan_id) OR #plan_id = :mine OR #plan_id = :over)"
"""No plan has the lane, or this one has it, or the one that has it is over."""

UNCONFIRMED = "attribute_not_exists(#confirmer)"
"""Nobody has confirmed what was asked for."""

# ------------------------------------------------------------------------------------------------ budgets
SAME_TERMS = "#version = :version"
"""The account's terms are those this write was computed under."""

NO_TERMS_YET = "(attribute_not_exists(#version) OR #version = :version)"
"""The same, for an account whose terms nobody has changed: version 0 need not be written."""

FITS_WHILE_BUSY = "(#{0} > :{0}_from AND #{0} <= :{0}_latest)"
"""What was spent is not paid off yet, and with this request on top it stays within the burst."""

BUSY = "#{0} > :{0}_from"
"""What was spent is not paid off yet; a charge goes on top of it, whether it fits or not."""

IDLE = "(attribute_not_exists(#{0}) OR #{0} <= :{0}_from)"
"""All that was spent is paid off: the pace begins anew at this moment."""

EVER_SPENT = "attribute_exists(#{0})"
"""There is something a return can be taken off from."""

SAME_DAY = "#day >= :today"
"""The counts are of today, or of a tomorrow that another clock has begun: they go on."""

NEW_DAY = "(attribute_not_exists(#day) OR #day < :today)"
"""The counts are of a day that is over, or there are none: they begin anew."""

HAS_ROOM = "(attribute_not_exists(#{0}) OR #{0} <= :{0}_room)"
"""With this request on top, the count or the sum stays within its limit."""

COUNTED_ENOUGH = "#{0} >= :{0}_back"
"""What comes back is not more than was counted today."""

COUNTED_LESS = "(attribute_not_exists(#{0}) OR #{0} < :{0}_back)"
"""More comes back than was counted today: the count is 0 then, never less."""

SAME_HOLD = "#{0} = :{0}_seen"
"""This holder holds exactly what it was seen to hold, until the same time: the sum may change by that much."""

NO_HOLD = "attribute_not_exists(#{0})"
"""This holder holds nothing."""

LINE_AHEAD = "#line_us > :not_before"
"""Starts are promised beyond the moment from which one is wanted: the new one stands behind them."""

LINE_PASSED = "(attribute_not_exists(#line_us) OR #line_us <= :not_before)"
"""Every start that was promised lies before the moment from which one is wanted."""


def on(clause: str, attribute: str) -> str:
    """A clause that is used for several attributes, for one of them."""
    return clause.format(attribute)


def all_of(*clauses: str) -> str:
    """Every clause is true."""
    return " AND ".join(clauses)


def any_of(*clauses: str) -> str:
    """One of the clauses is true."""
    return " OR ".join(clauses)


def names(attributes: Iterable[str]) -> dict[str, str]:
    """The `#name` of each attribute: half of our names are reserved words somewhere."""
    return {f"#{name}": name for name in attributes}
