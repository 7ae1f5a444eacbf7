# SPDX-License-Identifier: LGPL-2.1-or-later
"""Connections that break the protocol: each is answered once and ends."""

import socket

from replies import AnyQueues, DaemonStat, Hello, Status
from wire import (ACKING, ARM, CLEAR, CONSUME, CREDIT, DROP, DURABLE, EBUSY,
                  EINVAL, ENOENT, EPROTO, EPROTONOSUPPORT, EXISTING,
                  EXPIRED, HELLO, HELLO_RECORD, HOUR, KEYED, MONOTONIC, OBSERVE,
                  QUERY, QUEUES, RECORD, SCAN, STAT, VERSION)

BAD_NAMES = (b"a/b", b" ", b"a\0b", b"\xffname", b"a" * 23 + b"\n")


def hello(name=b"", flags=0, clock=MONOTONIC, version=VERSION):
    if isinstance(name, str):
        name = name.encode()
    return HELLO_RECORD.pack(HELLO, flags, version, clock, name)


def absent(rng):
    """A name that no queue has."""
    return "absent.%x" % rng.getrandbits(60)


def bad_hellos(rng, queue):
    """(record, clock, flags, status) that HELLO must be refused with."""
    clock = rng.choice((0, 1, 7))
    flags = rng.choice((0, CONSUME, ACKING, KEYED, ACKING | KEYED))
    yield hello(b"", flags, clock, rng.choice((0, 2, 3, -1, 32767))), clock, \
        flags, EPROTONOSUPPORT
    yield hello(b"", flags | rng.choice((32, 128)), clock), clock, None, EINVAL
    yield hello(b"", flags | DURABLE, clock), clock, flags | DURABLE, EINVAL
    bad = rng.choice((2, 3, 4, 5, 6, 8, 11, 1 << 31, 2**32 - 1))
    yield hello(b"", flags, bad), bad, flags, EINVAL
    yield hello(rng.choice(BAD_NAMES), flags, clock), clock, flags, EINVAL
    some = EXISTING | rng.choice((CONSUME, ACKING, KEYED, ACKING | KEYED))
    yield hello(b"", some, clock), clock, some, EINVAL
    some = OBSERVE | rng.choice((0, EXISTING, CONSUME, ACKING | KEYED))
    yield hello(b"", some, clock), clock, some, EINVAL
    some = OBSERVE | CONSUME | rng.choice((0, EXISTING, ACKING | KEYED))
    yield hello(queue.name, some, clock), clock, some, EINVAL
    flags &= ~CONSUME
    flags |= rng.choice((EXISTING, OBSERVE, EXISTING | OBSERVE))
    yield hello(absent(rng), flags, clock), clock, flags, ENOENT
    if queue.name:
        mode = queue.mode()
        mode |= rng.choice((0, EXISTING, OBSERVE))
        other = rng.choice([c for c in (0, 1, 7) if c != queue.clock])
        yield hello(queue.name, mode, other), other, mode, EINVAL
        other = mode ^ rng.choice((ACKING, KEYED, ACKING | KEYED))
        yield hello(queue.name, other, queue.clock), queue.clock, other, EINVAL


def run(actor):
    """All of them, one after the other."""
    rng, queue = actor.rng, actor.queue
    cases = list(bad_hellos(rng, queue))
    rng.shuffle(cases)
    for record, clock, flags, status in cases[:3]:
        want = Hello(record[1] if flags is None else flags, clock, (status,))
        yield from ends(actor, [record], [want])
    if queue.name and actor.consumer and not actor.consumer.ended:
        mode = queue.mode() | CONSUME | rng.choice((0, EXISTING))
        yield from ends(actor, [hello(queue.name, mode, queue.clock)],
                        [Hello(mode, queue.clock, (EBUSY,))])
    first = RECORD.pack(rng.choice((ARM, QUERY, CREDIT, 0, 66, 255)), 0, 0, 1,
                        1, HOUR, 0)
    yield from ends(actor, [first], [Hello(0, 0, (EPROTO,), exact=False)])
    yield from after_hello(actor)
    yield from without_queue(actor)
    yield from cut(actor)


def after_hello(actor):
    """A second HELLO; CREDIT from one that is no consumer, or wrong ones."""
    rng = actor.rng
    yield from breaks_later(actor, 0, hello(),
                            Hello(0, MONOTONIC, (EPROTO,), exact=False))
    fields = (CREDIT, 0, 0, 1 + rng.randrange(9), 0, 0, 0)
    yield from breaks_later(actor, 0, RECORD.pack(*fields),
                            Status(fields, (EINVAL,)))
    for wrong in (1, 2, 4, 5, 6):
        fields = [CREDIT, 0, 0, 1 + rng.randrange(9), 0, 0, 0]
        fields[wrong] = 1
        yield from breaks_later(actor, CONSUME, RECORD.pack(*fields),
                                (*fields[:2], EINVAL, *fields[3:]))


def without_queue(actor):
    """EXISTING and no name: STAT and QUEUES, all else answers -ENOENT."""
    rng = actor.rng
    clock = rng.choice((0, 1, 7))
    out, want = [hello(b"", EXISTING, clock)], [Hello(EXISTING, clock, (0,))]
    for _ in range(rng.randrange(20)):
        op = rng.choice((STAT, QUEUES, SCAN, DROP, EXPIRED, 99,
                         *range(ARM, CLEAR + 1)))
        fields = (op, 0, 0, 1 + rng.randrange(9), 0, rng.getrandbits(60),
                  rng.getrandbits(60))
        out.append(RECORD.pack(*fields))
        if op == STAT:
            want.append(DaemonStat())
        elif op == QUEUES:
            want.append(AnyQueues(fields[3]))
        else:
            want.append(Status(fields, (ENOENT,)))
    fields = (CREDIT, 0, 0, 1, 0, 0, 0)
    out.append(RECORD.pack(*fields))
    want.append(Status(fields, (EINVAL,)))
    yield from ends(actor, out, want)


def breaks_later(actor, flags, bad, want):
    """HELLO, some requests, which are answered as ever, and a wrong one."""
    query = (QUERY, 0, 0, 0, 1 << 40 | 1, 0, 0)
    before = [RECORD.pack(*query)] * actor.rng.randrange(3)
    yield from ends(actor, [hello(b"", flags), *before, bad],
                    [Hello(flags, MONOTONIC, (0,)),
                     *[Status(query, (ENOENT,))] * len(before), want])


def cut(actor):
    """A stream that ends inside a record: the whole ones count, it does not."""
    connection = actor.connect()
    greeting = Hello(0, MONOTONIC, (0,))
    connection.send([hello()], [greeting])
    yield from actor.replies(connection)
    part = RECORD.pack(ARM, 1, 0, 0, 0, HOUR, 0)[:1 + actor.rng.randrange(31)]
    connection.may_end = True
    connection.send_raw(part)
    if actor.rng.random() < 0.5:
        connection.socket.shutdown(socket.SHUT_WR)
        yield from actor.end_of(connection)
    connection.close()


def ends(actor, out, want):
    """Send @out; after the replies @want the server closes."""
    connection = actor.connect()
    connection.may_end = True
    connection.send(out, want)
    yield from actor.replies(connection)
    yield from actor.end_of(connection)
    connection.close()
