"""The estimate of tokens: a rule of thumb that a budget can rely on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.extraction.question import (
    ANSWER_TOKENS,
    CHUNK_TOKENS,
    OVERHEAD_TOKENS,
    chunk_tokens_within,
    question,
)
from infra.stage import load_stage
from shared.core.errors import BadInput
from shared.core.stage import STAGES
from shared.core.tokens import MESSAGE_TOKENS, call_tokens, text_tokens


@given(text=st.text(), more=st.text())
def test_more_text_is_never_fewer_tokens(text: str, more: str) -> None:
    """Monotone, at either end."""
    assert text_tokens(text) <= text_tokens(text + more)
    assert text_tokens(more) <= text_tokens(text + more)


@given(text=st.text(min_size=1))
def test_no_text_is_free(text: str) -> None:
    """One token at the least, one for four bytes at the least, two for a byte at most."""
    size_bytes = len(text.encode())
    assert max(1, size_bytes // 4) <= text_tokens(text) <= 2 * size_bytes


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", 0, 0),
        ("The parcel left our warehouse this morning and arrives tomorrow.", 10, 17),  # a tokenizer makes 11 of it
        ("12,345.67; 89,012.34; 56,789.01", 20, 30),  # 21: numbers and signs are dense
        ("漢字仮名交じり文", 8, 12),
        ("🙂🙂🙂", 4, 9),
    ],
)
def test_known_texts(text: str, least: int, most: int) -> None:
    """Near what tokenizers count, and seldom below."""
    assert least <= text_tokens(text) <= most


@given(messages=st.lists(st.text(), max_size=3), answer=st.integers(min_value=0, max_value=5000))
def test_a_call_counts_every_message_and_its_longest_answer(messages: list[str], answer: int) -> None:
    """Never zero, so no call passes a budget unseen."""
    expected = sum(text_tokens(message) + MESSAGE_TOKENS for message in messages) + answer
    assert max(1, expected) == call_tokens(*messages, answer_tokens=answer)


@given(chunk=st.text(max_size=300))
def test_a_question_is_charged_with_its_estimate(chunk: str) -> None:
    """Instructions, form, chunk and answer; the answer is held to what was estimated for it."""
    call = question(chunk)
    assert OVERHEAD_TOKENS + text_tokens(chunk) == call.tokens
    assert call.body.reveal()["max_completion_tokens"] == ANSWER_TOKENS


@given(limit=st.integers(min_value=OVERHEAD_TOKENS + 1, max_value=10**6))
def test_a_chunk_is_never_more_than_the_whole_limit(limit: int) -> None:
    """The call of a full chunk fits the account."""
    assert 1 <= chunk_tokens_within(limit) <= CHUNK_TOKENS
    assert chunk_tokens_within(limit) + OVERHEAD_TOKENS <= limit


def test_a_limit_below_any_call_is_refused() -> None:
    """With a sentence; no limit at all gives the usual size."""
    with pytest.raises(BadInput, match="tokens_per_minute"):
        chunk_tokens_within(OVERHEAD_TOKENS)
    assert chunk_tokens_within(None) == CHUNK_TOKENS


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_lets_a_full_chunk_pass(name: str) -> None:
    """No account of the lane is smaller than one call, and an attempt has the time to begin one."""
    from functions.extraction.tasks import CALL_S

    stage = load_stage(name, for_show=True)
    lane = stage.lanes["extraction"]
    assert min(lane.job_timeout_s, lane.function_timeout_s * 0.8) / 2 > CALL_S
    for account in (stage.accounts[name] for name in lane.accounts):
        limit = account.tokens_per_minute
        assert chunk_tokens_within(None if limit is None else int(limit * account.share)) == CHUNK_TOKENS
