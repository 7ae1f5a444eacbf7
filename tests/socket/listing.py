# SPDX-License-Identifier: LGPL-2.1-or-later
"""QUEUES, requested by an independent client."""

import collections
import struct

from client import QUEUES, SIZE, Record, unpack

HEAD = struct.Struct("=BBhI24s")
# Of struct expiry_stat what is looked at, then struct expiry_queue_stat.
BODY = struct.Struct("=QQQ488x" "Q8I24x")
Queue = collections.namedtuple(
    "Queue", "name now next armed number uid connections consumers credit pid "
    "observers access gid")


def page(connection, cursor=0, most=1000):
    """Returns the queues of one reply, and its cursor."""
    connection.send(Record(QUEUES, id=cursor, period=most))
    return take_page(connection)


def take_page(connection):
    """Works like page(), for an earlier request."""
    queues = []
    while True:
        data = connection.take(SIZE)
        op, flags, status, units, name = HEAD.unpack(data)
        assert (op, flags, status) == (QUEUES, 0, 0), data
        if not units:
            return queues, unpack(data)[0].cookie
        body = connection.take(units * SIZE)
        assert len(body) >= BODY.size, units
        queues.append(Queue(name.rstrip(b"\0").decode(),
                            *BODY.unpack_from(body)))


def listing(connection, most=1000):
    """Returns all queues, from as many replies as needed."""
    queues, cursor = page(connection, 0, most)
    while cursor:
        more, cursor = page(connection, cursor, most)
        assert len(more) <= most
        queues += more
    return queues
