# SPDX-License-Identifier: LGPL-2.1-or-later
"""The life of a queue as its clients live it: what is done next is drawn by
chance. Each actor is a generator that says until when it waits (nanoseconds of
CLOCK_MONOTONIC) if no record comes before."""

import socket
import time

import far
import near
import observer
import refusals
from connection import Connection
from model import Failure, Model
from refusals import hello
from replies import (Clear, Drop, Hello, Nothing, Queues, Scan, Stat, Status,
                     check_scanned)
from wire import (ACK, CANCEL, CLEAR, CONSUME, DROP, EBUSY, EINVAL, ENOENT,
                  EXISTING, MS, OBSERVE, QUERY, QUEUES, QUEUE_STAT_SIZE, RECORD,
                  REFRESH, SCAN, SECOND, SERVER_STAT, STAT)

ZERO = (0, 0, 0, 0)     # flags, status, period, id


class Actor:
    """
    @queue: the model
    @consumer, @producers, @observer: its connections
    @wake: when to go on if nothing comes
    @policy: how much credit is given
    """

    def __init__(self, driver, number):
        self.driver = driver
        self.number = number
        self.rng = driver.rng_for(number)
        self.queue = None
        self.consumer = None
        self.producers = []
        self.observer = None
        self.wake = 0
        self.policy = 0
        self.born = 0
        self.doing = "nothing yet"
        self.script = self.live()

    # ------------------------------------------------------------ waiting

    def connections(self):
        return ([self.consumer] if self.consumer else []) + self.producers

    def connect(self):
        connection = Connection(self.driver.path, self.driver)
        self.driver.add(connection, self)
        return connection

    def patience(self):
        return time.monotonic_ns() + self.driver.patience

    def replies(self, *connections):
        """Wait until all that was asked is answered."""
        limit = self.patience()
        while not all(one.is_idle() for one in connections):
            if time.monotonic_ns() > limit:
                slow = [one for one in connections if not one.is_idle()][0]
                failure = Failure("no reply for %d s" %
                                  (self.driver.patience // SECOND))
                slow.explain(failure)
                raise failure
            yield limit

    def end_of(self, connection):
        limit = self.patience()
        while not connection.ended:
            if time.monotonic_ns() > limit:
                raise Failure("the server does not end the connection")
            yield limit

    def pause(self, ns):
        limit = time.monotonic_ns() + ns
        while time.monotonic_ns() < limit:
            yield limit

    # ------------------------------------------------------------ one life

    def live(self):
        while self.driver.has_work():
            yield from self.open()
            for _ in range(self.rng.randrange(20, 60)):
                if not self.driver.has_work():
                    break
                yield from self.step()
            yield from self.close()

    def open(self):
        """A queue of the next kind, and its connections."""
        rng, driver = self.rng, self.driver
        kind = driver.next_kind()
        clock, acking, keyed, named = kind
        self.born += 1
        name = ""
        if named:
            name = "%s.%d.%d" % (driver.prefix, self.number, self.born)
            if rng.random() < 0.2:
                name = name.ljust(24, "-")
        self.doing = "attach"
        self.queue = Model(rng, self.number, clock, acking, keyed, name,
                           driver.tally)
        consumes = named or rng.random() < 0.8
        self.consumer, self.producers = None, []
        if consumes:
            self.consumer = yield from self.attach(True)
        for _ in range(rng.randrange(3) if named else not consumes):
            self.producers.append((yield from self.attach(False)))
        self.policy = rng.randrange(4)

    def attach(self, consumes, statuses=(0,), observes=False):
        """A connection whose HELLO was answered so."""
        queue = self.queue
        connection = self.connect()
        connection.consumes = consumes
        flags = queue.mode() | (CONSUME if consumes else 0)
        # The first connection of each life makes the queue.
        if queue.name and self.connections() and self.rng.random() < 0.5:
            flags |= EXISTING
        if observes:
            flags |= OBSERVE
            connection.copies = []
        want = Hello(flags, queue.clock, statuses, delivered=queue.delivered)
        queue.sent_at = queue.now()
        connection.queue = queue
        connection.may_end = statuses != (0,)
        connection.send([hello(queue.name, flags, queue.clock)], [want])
        yield from self.replies(connection)
        if want.status:
            connection.close()
            return None
        connection.may_end = False
        return connection

    def step(self):
        rng = self.rng
        x = rng.random()
        if x < 0.72:
            yield from self.batch()
        elif x < 0.76:
            yield from self.burst()
        elif x < 0.80:
            self.policy = rng.randrange(4)
        elif x < 0.84:
            yield from self.stat()
        elif x < 0.86:
            yield from self.scan()
        elif x < 0.875:
            yield from self.list_queues()
        elif x < 0.885:
            yield from self.clear()
        elif x < 0.92:
            yield from self.switch_consumer()
        elif x < 0.945:
            yield from self.switch_producer()
        elif x < 0.95:
            self.doing = "refusals"
            yield from refusals.run(self)
        elif x < 0.955:
            yield from self.drain()
        elif x < 0.965:
            yield from observer.run(self)
        elif x < 0.975:
            yield from self.refused_drop()
        else:
            self.doing = "pause"
            yield from self.pause(rng.randrange(60 * MS))
        self.credit()

    def credit(self):
        """Give credit as the present policy has it."""
        queue = self.queue
        if not self.consumer or self.policy == 0:
            return
        out = queue.credit_out
        if self.policy == 1:
            count = self.rng.randrange(1, 6) if not out else 0
        elif self.policy == 2:
            count = self.rng.randrange(1, 100) if out < 50 else 0
        else:
            count = self.rng.randrange(1000, 4000) if out < 1500 else 0
        if count:
            self.give(count)

    def give(self, count):
        self.queue.give_credit(count)
        self.consumer.send_raw(far.credit(count))

    def some_connection(self):
        return self.rng.choice(self.connections())

    # ------------------------------------------------------------- requests

    def batch(self):
        rng = self.rng
        connection = self.some_connection()
        count = min(rng.choice((1, 7, 60, 200, 400, 700)),
                    self.driver.batch_most)
        if rng.random() < 0.004:
            count = min(6000, 10 * self.driver.batch_most)
        out, want = [], []
        self.doing = "a batch of %d" % count
        self.queue.batch(count, out, want)
        yield from self.send(connection, out, want)

    def burst(self):
        connection = self.some_connection()
        out, want = [], []
        count = min(self.rng.choice((10, 30, 100, 1200)),
                    self.driver.batch_most * 2)
        self.doing = "a burst of %d" % count
        self.queue.burst(count, out, want)
        yield from self.send(connection, out, want)

    def send(self, connection, out, want):
        """Send and wait for the replies; now and then cut somewhere."""
        if not out:
            return
        rng = self.rng
        self.driver.count(len(out))
        if rng.random() < 0.06:
            data = b"".join(out)
            cut = rng.randrange(len(data))
            connection.send([], want, out)
            connection.send_raw(data[:cut])
            yield from self.pause(rng.randrange(3 * MS))
            connection.send_raw(data[cut:])
        else:
            connection.send(out, want)
        yield from self.replies(connection)

    def one(self, op, want, flags=0, period=0, timer=0, connection=None):
        connection = connection or self.some_connection()
        self.queue.sent_at = self.queue.now()
        self.queue.just.clear()
        record = RECORD.pack(op, flags, 0, period, timer, 0, 0)
        yield from self.send(connection, [record], [want])

    def stat(self):
        self.doing = "STAT"
        connection = self.some_connection()
        yield from self.one(
            STAT, Stat(self.queue, len(self.connections()),
                       bool(self.consumer), connection is self.consumer),
            connection=connection)

    def clear(self):
        self.doing = "CLEAR"
        yield from self.one(CLEAR, Clear(self.queue.credit_out))

    def scan(self):
        """All pages; between them far timers are refreshed, no more."""
        queue, rng = self.queue, self.rng
        self.doing = "SCAN"
        credit = queue.credit_out
        seen, cursor = {}, 0
        rows = rng.choice((1, 7, 40, 300, 5000))
        if rows < 40 and len(queue.far) > 60:
            rows = 50
        kinds = queue.kinds
        quiet = [kind for kind in kinds
                 if kind in (far.K_REFRESH, far.K_QUERY, far.K_GONE)]
        while True:
            page = Scan(queue, seen, rows)
            yield from self.one(SCAN, page, 0, rows, cursor)
            cursor = page.cursor
            if not cursor:
                break
            if rng.random() < 0.3:
                queue.kinds = [rng.choice(quiet) for _ in range(256)]
                out, want = [], []
                queue.batch(20, out, want)
                queue.kinds = kinds
                yield from self.send(self.some_connection(), out, want)
        missing = check_scanned(queue, seen, credit or queue.credit_out)
        if missing:
            raise Failure("a listing is not complete", allowed=missing)

    def list_queues(self):
        queue = self.queue
        self.doing = "QUEUES"
        seen, cursor, found = set(), 0, 0
        rows = self.rng.choice((1, 3, 100))
        while True:
            page = Queues(queue, seen, rows, len(self.connections()),
                          bool(self.consumer))
            yield from self.one(QUEUES, page, 0, rows, cursor)
            found += page.found
            cursor = page.cursor
            if not cursor:
                break
        if found != bool(queue.name):
            raise Failure("QUEUES lists this queue %d times" % found)

    def refused_drop(self):
        """DROP of what is anonymous, or of what others are attached to."""
        self.doing = "DROP, refused"
        if not self.queue.name:
            yield from self.one(DROP, Status((DROP, *ZERO, 0, 0), (EINVAL,)))
        elif len(self.connections()) > 1:
            yield from self.one(DROP, Status((DROP, *ZERO, 0, 0), (EBUSY,)))

    # ----------------------------------------------- connections come and go

    def switch_producer(self):
        if not self.queue.name:
            return
        self.doing = "a producer comes or goes"
        rng = self.rng
        if not self.producers or (len(self.producers) < 3 and
                                  rng.random() < 0.5):
            self.producers.append((yield from self.attach(False)))
            return
        gone = self.producers.pop(rng.randrange(len(self.producers)))
        if rng.random() < 0.5:
            # It ends its own direction: all is answered, then comes the end.
            out, want = [], []
            self.queue.batch(50, out, want)
            gone.may_end = True
            self.driver.count(len(out))
            gone.send(out, want)
            while gone.unsent:
                yield time.monotonic_ns() + MS
            gone.socket.shutdown(socket.SHUT_WR)
            yield from self.replies(gone)
            yield from self.end_of(gone)
        gone.close()
        yield from self.counted_out()

    def counted_out(self):
        """Wait until the server counts no more connections than there are."""
        if not self.connections():
            return
        limit = self.patience()
        while True:
            want = Quiet(self.queue)
            yield from self.one(STAT, want)
            if want.producers == len(self.connections()) and \
                    want.consumers == bool(self.consumer):
                return
            if time.monotonic_ns() > limit:
                raise Failure("a connection that is closed is still counted")
            yield from self.pause(MS)

    def switch_consumer(self):
        """The consumer leaves, and after a while another comes."""
        queue, rng = self.queue, self.rng
        if not queue.name or not self.consumer:
            return
        self.doing = "the consumer leaves"
        gone = self.consumer
        if not self.producers:
            self.producers.append((yield from self.attach(False)))
        if rng.random() < 0.4:
            # What it asks for last is on its way when it goes.
            self.give(rng.choice((1, 5, 100, 3000)))
        if rng.random() < 0.2:
            gone.may_end = True
            gone.socket.shutdown(socket.SHUT_WR)
            yield from self.end_of(gone)
        elif rng.random() < 0.4:
            while gone.read():
                pass
        gone.close()
        self.consumer = None
        queue.consumer_goes()
        if rng.random() < 0.5:
            yield from self.counted_out()
            queue.consumer_left(queue.now())
            for _ in range(rng.randrange(3)):
                yield from self.batch()
            self.doing = "another consumer comes"
            self.consumer = yield from self.attach(True)
        else:
            # At once; that the server still has the other is no fault.
            self.doing = "another consumer comes at once"
            limit = self.patience()
            while self.consumer is None:
                if time.monotonic_ns() > limit:
                    raise Failure("-EBUSY long after the consumer left")
                self.consumer = yield from self.attach(True, (0, EBUSY))
            queue.consumer_left(queue.now(), queue.sent_at)
        queue.attached(queue.sent_at)
        if rng.random() < 0.5:
            self.policy = 0
            for _ in range(rng.randrange(4)):
                yield from self.batch()
            yield from self.stat()
        if rng.random() < 0.7:
            self.policy = rng.randrange(1, 4)

    # ------------------------------------------------------------- the end

    def drain(self):
        """All that is near comes, or is cancelled; then all is counted."""
        queue, rng = self.queue, self.rng
        self.doing = "waiting for all that is due"
        limit = self.patience()
        self.policy = 0
        some = self.some_connection()
        if rng.random() < 0.3 or not self.consumer:
            out, want = [], []
            queue.sent_at = queue.now()
            near.cancel_all(queue, out, want, False)
            yield from self.send(some, out, want)
        while self.consumer:
            if queue.credit_out < 1500:
                self.give(3000)
            out, want = [], []
            queue.sent_at = queue.now()
            near.cancel_all(queue, out, want, True)
            if queue.acking:
                near.ack_all(queue, out, want)
            near.doubted(queue, out, want)
            yield from self.send(some, out, want)
            timer = queue.awaited(self.driver.bound(queue.clock))
            if timer is None:
                break
            # The bound grows when the machine stalls.
            if time.monotonic_ns() > limit + 4 * self.driver.bound(queue.clock):
                raise Failure("a timer does not come", allowed=str(timer))
            yield from self.pause(3 * MS)
        if self.consumer:
            # What was taken before the last CANCEL may still be on its way; a
            # reply on the consumer's connection comes behind it.
            yield from self.pause(20 * MS)
            yield from self.one(STAT, Quiet(queue), connection=self.consumer)
        queue.forget_strays()
        yield from self.stat()
        yield from self.scan()
        if rng.random() < 0.3:
            yield from self.clear()

    def close(self):
        queue = self.queue
        yield from self.drain()
        self.doing = "the end"
        connections = self.connections()
        last = connections.pop(self.rng.randrange(len(connections)))
        for connection in connections:
            connection.close()
        self.consumer = last if last is self.consumer else None
        self.producers = [] if last is self.consumer else [last]
        last.may_end = True
        if queue.name:
            yield from self.counted_out()
            if not self.consumer:
                queue.credit_out = 0
            yield from self.one(DROP, Drop(0), connection=last)
            for op in (QUERY, CANCEL, REFRESH, ACK, SCAN, STAT):
                yield from self.one(op, Nothing(op), 0, 1, 5, last)
            flags = queue.mode() | EXISTING
            yield from refusals.ends(
                self, [hello(queue.name, flags, queue.clock)],
                [Hello(flags, queue.clock, (ENOENT,))])
        last.close()
        self.consumer, self.producers = None, []

    def abandon(self):
        """The server let a request wait for too long: another queue."""
        for connection in self.connections():
            connection.close()
        if self.observer:
            self.observer.close()
        self.consumer, self.producers, self.observer = None, [], None
        self.script = self.start_anew(self.queue)

    def start_anew(self, queue):
        """Drop what is left of that queue, and live on with another."""
        self.doing = "dropping a queue"
        while queue.name:
            connection = self.connect()
            connection.may_end = True
            want = Status((DROP, *ZERO, 0, 0), (0, EBUSY, ENOENT))
            connection.send(
                [hello(queue.name, queue.mode(), queue.clock),
                 RECORD.pack(DROP, 0, 0, 0, 0, 0, 0)],
                [Hello(queue.mode(), queue.clock, (0,)), want])
            yield from self.replies(connection)
            connection.close()
            if want.status != EBUSY:
                break
            yield from self.pause(20 * MS)
        yield from self.live()


class Quiet(Stat):
    """STAT of which only the connections are looked at."""

    def __init__(self, queue):
        super().__init__(queue, 0, 0, False)
        self.producers = self.consumers = None

    def check(self, queue, now):
        _, self.consumers, credit, self.producers, *_ = \
            SERVER_STAT.unpack_from(b"".join(self.units), QUEUE_STAT_SIZE)
        if credit and not self.consumers:
            return "no credit without a consumer, not %d" % credit
        return None

