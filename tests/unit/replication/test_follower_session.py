"""A follower names only what changed since its last request, and starts over when it must."""

from __future__ import annotations

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.replication.follower_session import FetchRow, FollowerSession

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
ID = Uuid(bytes(range(16)))
OTHER_ID = Uuid(bytes(range(1, 17)))


def rows(**offsets: int) -> dict[TopicPartition, FetchRow]:
    return {
        TopicPartition(name, 0): FetchRow(TopicPartition(name, 0), ID, offset, 0, 0, 0, 100)
        for name, offset in offsets.items()
    }


def established() -> FollowerSession:
    session = FollowerSession()
    session.handle_response(session.build(rows(a=0, b=0)), 7)
    return session


def test_the_first_request_names_everything() -> None:
    fetch = FollowerSession().build(rows(a=0, b=0))
    assert (fetch.session_id, fetch.session_epoch) == (0, 0)
    assert [row.topic_partition for row in fetch.rows] == [A, B]


def test_later_requests_name_what_changed() -> None:
    session = established()
    fetch = session.build(rows(a=5, b=0))
    assert (fetch.session_id, fetch.session_epoch) == (7, 1)
    assert [row.fetch_offset for row in fetch.rows] == [5]
    session.handle_response(fetch, 7)
    assert session.build(rows(a=5, b=0)).rows == []
    assert session.build(rows(a=5, b=0)).session_epoch == 2


def test_what_is_not_wanted_any_more_is_forgotten_once() -> None:
    session = established()
    fetch = session.build(rows(a=0))
    assert fetch.forgotten == [(B, ID)]
    session.handle_response(fetch, 7)
    assert session.build(rows(a=0)).forgotten == []


def test_a_topic_made_anew_is_forgotten_by_its_old_id_and_named_by_its_new() -> None:
    session = established()
    wanted = rows(a=0, b=0)
    wanted[B] = wanted[B]._replace(topic_id=OTHER_ID)
    fetch = session.build(wanted)
    assert fetch.forgotten == [(B, ID)]
    assert [row.topic_id for row in fetch.rows] == [OTHER_ID]


def test_an_unanswered_request_changes_nothing() -> None:
    session = established()
    session.build(rows(a=5, b=0))
    assert [r.fetch_offset for r in session.build(rows(a=5, b=0)).rows] == [5]


def test_a_leader_without_room_for_sessions_is_asked_in_full_each_time() -> None:
    session = FollowerSession()
    session.handle_response(session.build(rows(a=0)), 0)
    fetch = session.build(rows(a=0))
    assert (fetch.session_epoch, len(fetch.rows)) == (0, 1)


def test_a_reset_session_names_its_old_id_so_that_it_is_closed() -> None:
    session = established()
    session.reset()
    fetch = session.build(rows(a=0))
    assert (fetch.session_id, fetch.session_epoch, len(fetch.rows)) == (7, 0, 1)


def test_without_topic_ids_names_are_needed() -> None:
    wanted = rows(a=0)
    wanted[A] = wanted[A]._replace(topic_id=ZERO_UUID)
    assert not FollowerSession().build(wanted).uses_topic_ids
    assert FollowerSession().build(rows(a=0)).uses_topic_ids


def test_by_name_a_topic_made_anew_is_not_forgotten_with_the_request_that_names_it() -> None:
    """The leader forgets after it has added: it would never return the partition again."""
    session = FollowerSession()
    wanted = rows(a=0, b=0, c=0)
    wanted[A] = wanted[A]._replace(topic_id=ZERO_UUID)
    session.handle_response(session.build(wanted), 7)
    later = rows(a=0, b=0)
    later[A] = wanted[A]
    later[B] = wanted[B]._replace(topic_id=OTHER_ID)
    fetch = session.build(later)
    assert not fetch.uses_topic_ids
    assert [row.topic_id for row in fetch.rows] == [OTHER_ID]
    assert fetch.forgotten == [(TopicPartition("c", 0), ID)]


def test_a_topic_whose_id_is_known_now_is_not_forgotten_by_name() -> None:
    session = FollowerSession()
    wanted = rows(a=0, b=0)
    wanted[A] = wanted[A]._replace(topic_id=ZERO_UUID)
    session.handle_response(session.build(wanted), 7)
    fetch = session.build(rows(a=0, b=0))
    assert (fetch.uses_topic_ids, fetch.forgotten) == (False, [])
