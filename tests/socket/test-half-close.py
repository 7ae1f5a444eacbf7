#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A client that ends its direction of the stream: what it asked for is answered,
all of it, and then the connection ends whatever its credit."""

import socket

import tap
from client import (ACKING, ARM, CONSUME, CREDIT, DROP, EXPIRED, HOUR, KEYED,
                    REDELIVERED, SCAN, SECOND, WAIT, Record, arm, attach,
                    hello, pack, scaled)


def half_close(connection):
    connection.socket.shutdown(socket.SHUT_WR)


def drop(path, name, flags=0):
    with attach(path, name, flags) as queue:
        assert queue.request(Record(DROP)).status == 0


def test_consumer_with_credit_is_answered_and_ended(daemon):
    with attach(daemon.path, "half", CONSUME) as queue:
        queue.credit(10)
        queue.send(*(arm(HOUR, i) for i in range(5)))
        half_close(queue)
        replies = queue.ended()
        assert [(r.op, r.status, r.cookie) for r in replies] == \
            [(ARM, 0, i) for i in range(5)], replies
        # Its place is free as soon as it can know that it has ended.
        attach(daemon.path, "half", CONSUME).close()
    drop(daemon.path, "half")


def test_what_falls_due_later_is_the_next_consumers(daemon):
    with attach(daemon.path, "half", CONSUME) as queue:
        queue.credit(10)
        queue.send(arm(SECOND // 3, 7))
        half_close(queue)
        replies = queue.ended()
        assert [r.cookie for r in replies if r.op == ARM] == [7], replies
        due = [r for r in replies if r.op == EXPIRED]
    with attach(daemon.path, "half", CONSUME) as queue:
        queue.credit(1)
        # On a loaded machine it may have been due in time.
        assert due or queue.expiration().cookie == 7
    drop(daemon.path, "half")


def test_what_it_did_not_acknowledge_comes_again(daemon):
    flags = CONSUME | ACKING | KEYED
    with attach(daemon.path, "half", flags) as queue:
        queue.credit(10)
        queue.send(arm(0, 7, id=9))
        assert queue.reply().status == 0
        assert queue.expiration().id == 9
        half_close(queue)
        assert queue.ended() == []
    with attach(daemon.path, "half", flags) as queue:
        queue.credit(1)
        again = queue.expiration()
        assert again.id == 9 and again.flags == REDELIVERED, again
    drop(daemon.path, "half", flags & ~CONSUME)


def test_all_that_was_asked_is_sent_before_the_end(daemon):
    """More than the socket holds, to a client that reads only afterwards."""
    count = scaled(4000)
    with attach(daemon.path) as queue:
        replies = queue.batch([arm(HOUR, i) for i in range(count)])
        assert all(r.status == 0 for r in replies)
        queue.send(Record(SCAN, period=count), Record(99, cookie=5),
                   *(arm(HOUR, i) for i in range(500)))
        half_close(queue)
        said = queue.ended()
        rows = [r for r in said if r.op == SCAN]
        assert rows and rows[-1].id == 0, "no end of the listing"
        assert [r.cookie for r in said if r.op == 99] == [5]
        assert [r.cookie for r in said if r.op == ARM] == list(range(500))


def test_first_words_and_end_in_one_piece(daemon):
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(daemon.path)
        raw.sendall(hello("", CONSUME) +
                    pack([arm(HOUR, 3), Record(CREDIT, period=5)]))
        raw.shutdown(socket.SHUT_WR)
        raw.settimeout(WAIT)
        data = b""
        while True:
            some = raw.recv(4096)
            if not some:
                break
            data += some
        assert len(data) == 64, data


if __name__ == "__main__":
    tap.main()
