# SPDX-License-Identifier: Apache-2.0
"""Recorded sessions of a real server, byte by byte: what is sent, what comes of each answer, what ends a session."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from airflow_provider_cdc.connections.canal_address import CanalAddress
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, SourceError, Terminal, Transient
from airflow_provider_cdc.core.formats.generated import canal_packet_pb2 as packets
from airflow_provider_cdc.core.formats.generated import canal_session_pb2 as bodies
from airflow_provider_cdc.core.lake.segments import Packet
from airflow_provider_cdc.sources import canal_frames
from airflow_provider_cdc.sources.canal_drain import Limits, drain
from airflow_provider_cdc.sources.canal_frames import batch_of
from airflow_provider_cdc.sources.canal_session import CanalBatch, CanalSession, hashed_password
from tests.canal.server import ACCEPTED, NOTHING, SEEDS, Line, Replay, frame, recorded, serving

SESSIONS = Path(__file__).parent / "sessions"


def lines_of(name: str) -> list[Line]:
    return recorded(SESSIONS / f"{name}.jsonl.xz")


def open_session(port: int, password: str = "canal", destination: str = "example") -> CanalSession:
    return CanalSession(CanalAddress("127.0.0.1", port, "canal", password), destination, timeout=5)


def follow(session: CanalSession, lines: Sequence[Line]) -> list[CanalBatch]:
    """Do what the recorded client did after its login; return what its requests for entries gave."""
    batches = []
    for line in lines[2:]:
        if not line.ours:
            continue
        packet = packets.Packet.FromString(line.data[4:])
        if packet.type == packets.SUBSCRIPTION:
            session.subscribe()
        elif packet.type == packets.GET:
            get = bodies.Get.FromString(packet.body)
            batches.append(session.get(get.fetch_size, None if get.timeout < 0 else get.timeout / 1000))
        elif packet.type == packets.CLIENTACK:
            session.ack(bodies.ClientAck.FromString(packet.body).batch_id)
        elif packet.type == packets.CLIENTROLLBACK:
            session.rollback(bodies.ClientRollback.FromString(packet.body).batch_id)
        else:
            session.unsubscribe()
    return batches


def sent(lines: Sequence[Line]) -> list[tuple[int, int]]:
    """Return batch id and number of entries of the recorded answers with entries."""
    answers = [packets.Packet.FromString(line.data[4:]) for line in lines if not line.ours]
    bodies_read = [packets.Messages.FromString(answer.body) for answer in answers if answer.type == packets.MESSAGES]
    return [(one.batch_id, len(one.messages)) for one in bodies_read]


def drained() -> list[Line]:
    """Return the good session in the order of a drain: it asks once more before it stores and acknowledges."""
    lines = lines_of("01-good")
    return [*lines[:6], *lines[8:10], *lines[11:13], lines[10], *lines[13:15]]


# the recorded client also does what ours never does: such frames are left out, from here on or one by one
FOLLOWED = {
    "01-good": lines_of("01-good")[:-2],  # a get after the end of the subscription
    "05-rollback": lines_of("05-rollback"),
    "08-get-timeouts": lines_of("08-get-timeouts")[:-4],  # other units than milliseconds
    "07-ack-oddities": lines_of("07-ack-oddities")[:6] + lines_of("07-ack-oddities")[11:14],  # unknown batch ids
}


@pytest.mark.parametrize("name", FOLLOWED)
@pytest.mark.parametrize("piece", [0, 1, 3])
def test_a_recorded_session_is_followed_byte_by_byte(name: str, piece: int) -> None:
    lines = FOLLOWED[name]
    replay = Replay(lines, piece)
    with serving(replay) as port, open_session(port) as session:
        batches = follow(session, lines)
    assert not replay.wrong
    assert [(batch.id, len(batch.entries)) for batch in batches] == sent(lines)


def test_frames_that_arrive_byte_by_byte_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canal_frames, "_CHUNK", 1)
    lines = FOLLOWED["05-rollback"]
    with serving(Replay(lines)) as port, open_session(port) as session:
        batches = follow(session, lines)
    assert [(batch.id, len(batch.entries)) for batch in batches] == sent(lines)


def test_vectors_of_the_protocol() -> None:
    # docs/wire/canal.md 3.4
    assert hashed_password("canal", SEEDS) == "7de44690d8e53782cb61804a2455c284a3bbfb06"
    requests = [
        "18022a3b0a0563616e616c1228376465343436393064386535333738326362363138303461323435356332383461336262666230361880dd"
        "db012080dddb01",
        "18042a0f0a076578616d706c65120431303031",
        "18062a210a076578616d706c6512043130303118e80720ffffffffffffffffff0128023000",
        "18082a110a076578616d706c651204313030311801",
        "180c2a0f0a076578616d706c65120431303031",
    ]
    messages = packets.Messages(batch_id=1, messages=[b"entry"]).SerializeToString()
    packet = packets.Packet(type=packets.MESSAGES, body=messages).SerializeToString()
    handshake = bytes.fromhex("100118012a0a12080102030405060708")
    answers = {0: [ACCEPTED], 1: [ACCEPTED], 2: [packet]}
    lines = [Line(False, frame(handshake))]
    for index, text in enumerate(requests):
        lines += [Line(True, frame(bytes.fromhex(text))), *(Line(False, frame(one)) for one in answers.get(index, []))]
    replay = Replay(lines)
    with serving(replay) as port, open_session(port) as session:
        session.subscribe()
        assert session.get(1000).entries == [b"entry"]
        session.ack(1)
        session.rollback()
    assert not replay.wrong


# ---- refusals


def refused(port: int, password: str = "canal") -> CdcError:
    with pytest.raises(CdcError) as caught:
        open_session(port, password)
    return caught.value


@pytest.mark.parametrize("name", ["02-wrong-password", "03-wrong-user", "02b-no-login"])
def test_a_refused_login_is_final(name: str) -> None:
    # the server goes on with a second, friendly frame: nobody reads it
    replay = Replay(lines_of(name))
    with serving(replay) as port:
        error = refused(port, "wrong")
    assert error.code == "canal.login_refused" and isinstance(error, Terminal)
    assert "auth failed for user" in error.message and "wrong" not in str(error)
    assert len(replay.requests) == 1


def test_a_server_without_password_takes_any_login() -> None:
    lines = lines_of("18-no-password-server")[:5]
    replay = Replay(lines)
    with serving(replay) as port, open_session(port, "") as session:
        session.subscribe()
        assert session.is_open
    assert len(replay.requests) >= 2, "login and subscription"


def test_an_unknown_destination_is_refused_without_the_servers_stack_trace() -> None:
    lines = lines_of("10-unknown-destination")[:5]
    with serving(Replay(lines)) as port, open_session(port, destination="nosuch") as session:
        with pytest.raises(SourceError) as caught:
            session.subscribe()
        assert not session.is_open
    assert caught.value.code == "canal.refused" and caught.value.where["destination"] == "nosuch"
    assert (
        "NullPointerException" in str(caught.value) and "\n" not in str(caught.value) and len(str(caught.value)) < 600
    )


def test_a_get_before_the_subscription_ends_the_session() -> None:
    with serving(Replay(lines_of("01-good"))) as port, open_session(port) as session:
        with pytest.raises(CdcError) as caught:
            session.get()
        assert caught.value.code == "canal.out_of_order" and not session.is_open
        with pytest.raises(CdcError) as caught:
            session.subscribe()
        assert caught.value.code == "canal.session_closed"


def test_a_server_that_forgot_the_subscription_ends_the_session() -> None:
    lines = lines_of("04-get-unsubscribed")
    subscription = [Line(True, b""), Line(False, frame(ACCEPTED))]
    with serving(Replay([*lines[:3], *subscription, *lines[3:5]])) as port, open_session(port) as session:
        session.subscribe()
        with pytest.raises(CdcError) as caught:
            session.get()
    assert caught.value.code == "canal.out_of_order" and isinstance(caught.value, Transient)


def test_an_acknowledgement_out_of_order_is_not_sent() -> None:
    lines = lines_of("06-ack-out-of-order")
    replay = Replay(lines[:10])
    with serving(replay) as port, open_session(port) as session:
        session.subscribe()
        session.rollback()
        first, second = session.get(1), session.get(1)
        with pytest.raises(CdcError) as caught:
            session.ack(second.id)
        assert (first.id, second.id) == (7, 8) and not session.is_open
    assert caught.value.code == "canal.out_of_order"
    assert packets.CLIENTACK not in [packets.Packet.FromString(request[4:]).type for request in replay.requests]


def test_a_refused_acknowledgement_answers_the_next_get_and_ends_the_session() -> None:
    # as another client of the same id brings it about; the recorded answer to the get itself comes behind it
    lines = lines_of("06-ack-out-of-order")
    with serving(Replay(lines[:14])) as port, open_session(port) as session:
        session.subscribe()
        session.rollback()
        first = session.get(1)
        session.get(1)
        session.ack(first.id)
        with pytest.raises(CdcError) as caught:
            session.get(1)
        assert not session.is_open
    assert caught.value.code == "canal.out_of_order" and isinstance(caught.value, Transient)
    assert "400" in caught.value.message and "\n" not in str(caught.value)


@pytest.mark.parametrize(("size", "timeout"), [(0, None), (-1, None), (1000, 0), (1000, -1)])
def test_what_would_wait_for_ever_is_not_sent(size: int, timeout: float | None) -> None:
    replay = Replay(lines_of("01-good")[:5])
    with serving(replay) as port, open_session(port) as session:
        session.subscribe()
        with pytest.raises(ConfigurationError):
            session.get(size, timeout)
    assert len(replay.requests) == 2


def test_a_filter_of_the_whole_instance_needs_to_be_allowed() -> None:
    replay = Replay(lines_of("01-good")[:5])
    with serving(replay) as port, open_session(port) as session:
        with pytest.raises(ConfigurationError, match="whole Canal instance"):
            session.subscribe(r"shop\..*")
        session.subscribe(r"shop\..*", instance_wide=True)
    assert bodies.Sub.FromString(packets.Packet.FromString(replay.requests[1][4:]).body).filter == r"shop\..*"


# ---- other servers, and none


@pytest.mark.parametrize(
    "greeting",
    [
        frame(ACCEPTED),
        frame(bytes.fromhex("100218012a0a12080102030405060708")),  # version 2
        frame(b"\xff\xff\xff"),
        b"SSH-2.0-OpenSSH_9.6\r\n",
        bytes([0x4A, 0, 0, 0, 10]) + b"8.0.15\0" + bytes(60),  # MySQL
        (64 << 20).to_bytes(4, "big") + b"x",
    ],
)
def test_another_servers_greeting_is_an_error(greeting: bytes) -> None:
    with serving(lambda connection: connection.sendall(greeting)) as port:
        assert refused(port).code in ("canal.malformed", "canal.unavailable")


def test_nobody_at_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    error = refused(port)
    assert error.code == "canal.unavailable" and isinstance(error, Transient)
    assert error.where == {"server": f"127.0.0.1:{port}", "destination": "example"}


def test_a_server_that_says_nothing_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(CdcError) as caught:
        CanalSession(CanalAddress("127.0.0.1", silent.getsockname()[1]), "example", timeout=0.05)
    assert caught.value.code == "canal.unavailable"


def test_a_server_that_dies_at_any_byte_gives_one_error_and_nothing_is_acknowledged_that_is_not_stored() -> None:
    lines, whole = drained(), 0
    size = sum(len(line.data) for line in lines if not line.ours)
    for dies_after in range(size + 1):
        replay, stored = Replay(lines, dies_after=dies_after), []
        with serving(replay) as port:
            try:
                with open_session(port) as session:
                    session.subscribe()
                    done = drain(
                        session, lambda received, into=stored: into.extend(received), Limits(idle_seconds=0.001)
                    )
                    assert done.acknowledged == done.packets == len(stored) == 1 and done.entries == 17
                    whole += 1
            except CdcError as error:
                assert error.code == "canal.unavailable"
        acknowledged = [packets.Packet.FromString(request[4:]) for request in replay.requests]
        ids = [bodies.ClientAck.FromString(one.body).batch_id for one in acknowledged if one.type == packets.CLIENTACK]
        assert ids == [_batch_id(packet) for packet in stored][: len(ids)]
    assert whole == 1


def _batch_id(packet: Packet) -> int:
    return packets.Messages.FromString(packets.Packet.FromString(packet.data).body).batch_id


def test_nothing_is_acknowledged_where_storing_fails() -> None:
    replay = Replay(drained())

    def full(received: Sequence[Packet]) -> None:
        raise OSError("no space left on device")

    with serving(replay) as port, pytest.raises(OSError, match="no space"), open_session(port) as session:
        session.subscribe()
        drain(session, full, Limits())
    assert packets.CLIENTACK not in [packets.Packet.FromString(request[4:]).type for request in replay.requests]


# ---- bodies


def test_bodies_are_read_as_protobuf_reads_them() -> None:
    for batch_id, entries in [(1, [b"a", b"", b"x" * 300]), (-1, []), (1 << 62, [b"z"])]:
        body = packets.Messages(batch_id=batch_id, messages=entries).SerializeToString()
        assert batch_of(body) == (batch_id, entries)
        for cut in range(1, len(body)):
            read = batch_of(body[:cut])
            try:
                again = packets.Messages.FromString(body[:cut])
                assert read == (again.batch_id, list(again.messages))
            except Exception:
                assert read is None


def test_a_body_of_more_entries_than_fit_is_refused_before_they_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canal_frames, "BATCH_ENTRIES", 10)
    assert batch_of(packets.Messages(batch_id=1, messages=[b""] * 10).SerializeToString()) is not None
    assert batch_of(packets.Messages(batch_id=1, messages=[b""] * 11).SerializeToString()) is None


def test_nothing_is_a_batch_without_entries() -> None:
    assert batch_of(packets.Packet.FromString(NOTHING).body) == (-1, [])
