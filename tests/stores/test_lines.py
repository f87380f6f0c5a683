"""A turn is one line, and comes back whole."""

from __future__ import annotations

import json

import pytest

from agent_memory.exceptions import UnsupportedFormat
from agent_memory.messages import DocumentPart, ImagePart, Message, Replay, Step, TextPart, Turn
from agent_memory.stores.lines import decode_turn, encode_turn
from agent_memory.testing.contract.base import plain_turn
from agent_memory.testing.contract.fidelity import odd_turns


@pytest.mark.parametrize("turn", [*odd_turns()])
def test_every_turn_is_one_line_of_ascii_and_comes_back_equal(turn):
    text = encode_turn(turn)
    assert text.isascii()
    assert text.splitlines() == [text]
    assert repr(decode_turn(text)) == repr(turn)
    assert repr(decode_turn(text.encode())) == repr(turn)


def test_bytes_are_base64_and_text_that_looks_so_stays_text():
    parts = (
        ImagePart(data=b"\0\xff", media_type="image/png"),
        DocumentPart(data=b"", media_type="application/pdf", file_name="a.pdf"),
        TextPart(text="AP8=", provider_options={"data": "AP8=", "type": "image"}),
    )
    turn = Turn(user=Message("user", parts))
    image, *_ = json.loads(encode_turn(turn))["user"]["content"]
    assert image == {"type": "image", "data": "AP8=", "media_type": "image/png"}
    assert repr(decode_turn(encode_turn(turn))) == repr(turn)
    assert decode_turn(encode_turn(turn)).user.content[0].data == b"\0\xff"


def test_opaque_blocks_are_there():
    replay = Replay(provider="openai", model="gpt", blocks=({"type": "reasoning"},))
    turn = Turn(user=Message("user", "Hi"), steps=(Step(replay=replay), Step()), status="paused")
    assert decode_turn(encode_turn(turn)) == turn


def test_what_a_later_version_added_is_ignored():
    data = json.loads(encode_turn(plain_turn()))
    data["later"] = data["user"]["later"] = data["steps"][0]["later"] = 1
    assert decode_turn(json.dumps(data)) == plain_turn()


@pytest.mark.parametrize("text", ["", "{", "7", "{}", '{"user":{"content":[{"type":"x"}]}}'])
def test_text_that_is_no_turn_is_refused(text):
    with pytest.raises(UnsupportedFormat):
        decode_turn(text)
