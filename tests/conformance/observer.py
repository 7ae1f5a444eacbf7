# SPDX-License-Identifier: LGPL-2.1-or-later
"""An observer beside the consumer for a while: its copies are what the consumer
gets, in the same order, or MISSED counts them."""

from model import Failure
from replies import Stat, Status
from wire import (ACK, ARM, CANCEL, CLEAR, DROP, EACCES, MISSED, RECORD, REFRESH,
                  STAT)

FORBIDDEN = (ARM, REFRESH, CANCEL, ACK, CLEAR, DROP)


def run(actor):
    """Attach, let the actor go on, compare, leave."""
    queue, rng = actor.queue, actor.rng
    if not queue.name or not actor.consumer:
        return
    actor.doing = "an observer comes"
    queue.observed = []
    actor.observer = yield from actor.attach(False, observes=True)
    # What the consumer gets behind this reply was sent with an observer there.
    yield from counts(actor, actor.consumer)
    first = len(queue.observed)
    for _ in range(rng.randrange(1, 4)):
        yield from actor.burst() if rng.random() < 0.5 else actor.batch()
        actor.credit()
        if rng.random() < 0.3:
            yield from forbidden(actor)
    actor.doing = "an observer is compared"
    yield from counts(actor, actor.consumer)
    last = len(queue.observed)
    yield from counts(actor, actor.observer)
    compare(actor.observer.copies, queue.observed, first, last)
    actor.driver.tally.copies += last - first
    actor.observer.close()
    actor.observer = queue.observed = None


def counts(actor, connection):
    """STAT, in which an observer is no connection of the queue."""
    yield from actor.one(
        STAT, Stat(actor.queue, len(actor.connections()), True,
                   connection is actor.consumer), connection=connection)


def forbidden(actor):
    """What an observer may not do comes back as it was."""
    rng = actor.rng
    fields = (rng.choice(FORBIDDEN), rng.randrange(16), 0, rng.getrandbits(32),
              rng.getrandbits(62), rng.getrandbits(60), rng.getrandbits(62))
    yield from actor.send(actor.observer, [RECORD.pack(*fields)],
                          [Status(fields, (EACCES,))])


def expand(copies, most):
    """The copies, with None for each that was missed."""
    found = []
    for record in copies:
        if record[0] != MISSED:
            found.append(record)
            continue
        if any(record[1:6]) or not 0 < record[6] <= most:
            raise Failure("MISSED of what was not sent", received=record,
                          allowed="1 to %d copies, other fields 0" % most)
        found += [None] * record[6]
    return found


def compare(copies, originals, first, last):
    """Whether @originals, of which those from @first to @last must have been
    copied, are in the copies one after the other."""
    found = expand(copies, len(originals))
    for start in range(min(first, len(found)) + 1):
        at = first - start
        both = list(zip(found, originals[at:]))
        if len(found) >= last - at and \
                all(copy in (None, original) for copy, original in both):
            return
    raise Failure("copies are not what the consumer got",
                  allowed="%d expirations from %s on, not %d copies from %s on"
                  % (last - first, originals[first:first + 1], len(found),
                     found[:1]))
