#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The Python client's core without I/O, by a model and seeds: random calls, pieces and
cuts against a naive server. Arguments: first seed, number of seeds."""

import errno
import os
import random
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "clients", "python", "src"))

from expiry import wire                         # noqa: E402
from expiry import session as states            # noqa: E402
from expiry.calls import Calls                  # noqa: E402
from expiry.options import make_options         # noqa: E402
from expiry.request import Callback, Single     # noqa: E402
from expiry.session import Session              # noqa: E402

SEEDS = 300
STEPS = 120
IDS = 12
FAR = 10**18


class Server:
    """A keyed, acknowledging queue, so plain that reading it shows that it is right.

    @armed: id to (deadline, cookie); @delivered: likewise, not acknowledged
    @once: cookies of ARM with NEW, which is carried out once
    @last: cookie of the last ARM of this connection: calls keep their order
    @scanned: ids in the last reply to the SCAN from a cursor
    """

    def __init__(self, uptime=3600 * 10**9):
        # Long ago: the age of one that answers late is measured with this error.
        self.begun = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - uptime
        self.armed, self.delivered = {}, {}
        self.arms = 0
        self.again = set()
        self.once = set()
        self.scanned = {}
        self.connect()

    def connect(self):
        """A new connection: what was delivered is due again."""
        self.data, self.out = b"", b""
        self.credit = self.last = 0
        self.greeted = False
        self.again |= set(self.delivered)
        self.armed.update(self.delivered)
        self.delivered.clear()

    def lose(self):
        """The daemon starts anew, without its timers."""
        self.__init__(uptime=0)

    def receive(self, data):
        self.data += data
        while len(self.data) >= 32:
            record, self.data = self.data[:32], self.data[32:]
            self.out += self.carry_out(record)

    def carry_out(self, data):
        op, flags, _, period, id, deadline, cookie = wire.RECORD.unpack(data)
        status = 0
        if op == wire.HELLO:
            self.greeted = True
            return wire.RECORD.pack(op, flags, 0, period, len(self.armed), 1, 8)
        if op == wire.CREDIT:
            self.credit += period
            return b""
        if op == wire.STAT:
            uptime = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - self.begun
            queue = [0] * 10 + [self.arms] + [0] * 53
            server = [1, 0, uptime, 0]      # embedded
            return wire.RECORD.pack(op, 0, 0, 17, 0, 0, 0) + \
                b"".join(n.to_bytes(8, sys.byteorder) for n in queue + server)
        if op == wire.SCAN:
            # Each caller has a cursor of its own.
            self.scanned[id] = sorted({**self.armed, **self.delivered})
            return b"".join(wire.RECORD.pack(op, 0, 0, 0, armed, 0, 0)
                            for armed in [*self.scanned[id], 0])
        if op == wire.ARM:
            assert cookie >= self.last, "a call overtook another"
            self.last = cookie
            if flags & wire.NEW:
                assert cookie not in self.once, "NEW was sent again"
                self.once.add(cookie)
            if flags & wire.NEW and id in self.armed:
                status = -errno.EEXIST
            else:
                self.arms += 1
                self.delivered.pop(id, None)
                self.again.discard(id)
                self.armed[id] = deadline, cookie
        elif op == wire.ACK:
            if self.delivered.pop(id, None) is None:
                if id in self.again and id in self.armed:
                    del self.armed[id]
                    self.again.discard(id)
                else:
                    status = -errno.ENOENT
        elif op == wire.CLEAR:
            cookie = len(self.armed)
            self.armed.clear()
            self.delivered.clear()
            self.again.clear()
        elif id not in self.armed:
            status = -errno.ENOENT
        elif op == wire.CANCEL:
            deadline, cookie = self.armed.pop(id)
            self.again.discard(id)
        elif op == wire.REFRESH:
            cookie = self.armed[id][1]
            self.armed[id] = deadline, cookie
            self.again.discard(id)
        else:
            deadline, cookie = self.armed[id]
        return wire.RECORD.pack(op, 0 if not status else flags, status, period, id,
                                deadline, cookie)

    def expire(self, choose):
        """Delivers one of them, where there is credit."""
        if self.credit and self.armed:
            id = choose.choice(sorted(self.armed))
            self.delivered[id] = self.armed.pop(id)
            flags = wire.REDELIVERED if id in self.again else 0
            self.credit -= 1
            self.out += wire.RECORD.pack(wire.EXPIRED, flags, 0, 0, id, *self.delivered[id])


class Run:
    """One client, one server, and what the program knows of each call."""

    def __init__(self, seed, restore):
        self.choose = random.Random(seed)
        self.restores = 0
        self.session = Session(make_options(
            "q", keyed=True, ack=True, reconnect=True, credit=4,
            restore=(lambda: iter(())) if restore else None), lambda: None)
        self.calls = Calls(self.session.options)
        self.server = Server()
        self.waiting = {}
        self.number = 0
        self.up, self.down = b"", b""

    def call(self):
        number = self.number = self.number + 1
        id = self.choose.randrange(1, IDS)
        ids = [id + at for at in range(self.choose.choice((1, 3, 20)))]
        make = self.choose.choice((
            lambda: self.calls.arm(id, None, FAR + number, number, None, False, False),
            lambda: self.calls.arm(id, None, FAR, number, None, True, False),
            lambda: self.calls.arm_many(ids, None, None, FAR, None, number, None, None,
                                        False, False),
            lambda: self.calls.refresh(id, None, FAR + number, False),
            lambda: self.calls.one(self.choose.choice((wire.CANCEL, wire.ACK,
                                                       wire.QUERY)), id),
            lambda: self.calls.many(wire.CANCEL, ids),
            lambda: self.calls.arm_many(ids, None, None, FAR, None, number, None, None,
                                        False, False),
            lambda: self.calls.scan(number, 100),
            lambda: self.calls.plain(wire.CLEAR)))
        request = make()
        if isinstance(request, tuple):
            request = Single(*request)
        self.waiting[number] = request

        def answered(got, number=number):
            assert self.waiting.pop(number) is got, "answered twice"
            assert got.error or got.answered == got.count and (
                got.is_single or got.is_list or len(got.replies) == len(got.data)), "not all replies"
            self.check(got)

        request.waiter = Callback(answered)
        # As the clients do.
        if request.is_single and self.session.begin_alone():
            self.up += request.data
            self.session.submit_sent(request)
        else:
            self.session.submit(request)
        if self.choose.random() < 0.1 and number in self.waiting:
            # Its caller is cancelled: it keeps its place.
            request.waiter = None
            del self.waiting[number]

    def check(self, request):
        """Each reply is that of its own request."""
        if request.is_list and not request.error:
            wanted = self.server.scanned[wire.RECORD.unpack(request.data)[4]]
            assert [timer.id for timer in request.timers] == wanted, (request.timers, wanted)
            return
        sent = list(wire.RECORD.iter_unpack(request.data))
        replies = [request.reply] * request.answered if request.is_single else \
            list(wire.RECORD.iter_unpack(request.replies))
        for want, got in zip(sent, replies):
            assert got[0] == want[0] and got[4] == want[4], (want, got)
            assert got[2] in (0, -errno.ENOENT, -errno.EEXIST, -errno.ECONNRESET), got
            if got[2] == -errno.ECONNRESET:
                continue
            if want[0] == wire.ARM and not got[2]:
                assert got[5:] == want[5:], (want, got)
            if want[0] == wire.REFRESH and not got[2]:
                assert got[5] == want[5], (want, got)

    def move(self):
        """Moves some bytes each way, in pieces."""
        session = self.session
        if session.state == states.DOWN:
            session.retry_at = 0
            self.server.connect()
            self.up, self.down = session.greeting(), b""
        if session.state == states.RESTORING:
            self.restores += 1
            session.restored()
        out = session.output()
        # Else the blocking client would try for ever.
        assert out or not session.wants_output(), "it wants to send, and sends nothing"
        self.up += b"".join(bytes(part) for part in out)
        size = self.choose.randrange(1, 400)
        self.server.receive(self.up[:size])
        self.up = self.up[size:]
        self.down += self.server.out
        self.server.out = b""
        size = self.choose.choice((1, 31, 32, 33, 1000))
        piece, self.down = self.down[:size], self.down[size:]
        if piece:
            session.input(memoryview(bytearray(piece)), len(piece))

    def step(self):
        self.call()
        for _ in range(self.choose.randrange(4)):
            self.move()
        draw = self.choose.random()
        if draw < 0.1 and self.session.connections:
            # What is on its way is lost, in part carried out.
            self.server.receive(self.up[:self.choose.randrange(len(self.up) + 1)])
            self.up = self.down = self.server.data = b""
            self.session.lost()
        elif draw < 0.5 and self.server.greeted:
            self.server.expire(self.choose)
        elif draw < 0.7:
            data = self.session.take(self.choose.randrange(1, 6))
            for record in wire.RECORD.iter_unpack(data):
                assert record[0] == wire.EXPIRED and record[4] < IDS + 20, record

    def finish(self):
        """All that waits is answered, and the credit agrees."""
        for _ in range(20000):
            if not self.waiting and not self.session.queue and not self.session.row and \
                    not self.up and not self.down and not self.server.out and self.session.state == states.UP and \
                    not self.session.credit_due:
                break
            self.move()
            self.session.take(100)
        assert not self.waiting, "no answer to %s" % list(self.waiting)
        assert self.session.state == states.UP, (self.session.state, self.session.error)
        assert self.session.in_flight == 0
        assert self.session.granted == self.server.credit, (
            self.session.granted, self.server.credit)
        assert self.session.granted + self.session.held <= 4


def run(seed, losses):
    this = Run(seed, losses)
    steps = STEPS
    for step in range(steps):
        this.step()
        if losses and this.choose.random() < 0.03 and this.session.connections:
            this.up = this.down = b""
            this.server.lose()
            this.session.lost()
        assert this.session.state != states.ENDED, (step, this.session.error)
    this.finish()
    return this


def record(op, **fields):
    return wire.RECORD.pack(op, 0, 0, fields.get("period", 0), 0, 1, fields.get("cookie", 0))


def receive(session, data):
    session.input(memoryview(bytearray(data)), len(data))


def greet(session, window):
    """Answers HELLO, and the STAT of a later connection."""
    again = session.connections
    session.greeting()
    receive(session, record(wire.HELLO, cookie=window))
    if again:
        receive(session, record(wire.STAT, period=16) + bytes(16 * wire.SIZE))
    assert session.state == states.UP, session.state


def relative_deadlines():
    """Two timers of a batch are in flight at the break, the others and a call wait for the
    window, and a call is asked for during the pause."""
    span = 3600
    session = Session(make_options("q", consume=False, reconnect=True), lambda: None)
    calls = Calls(session.options)

    def submit(request):
        request.waiter = Callback(lambda request: None)
        session.submit(request)
        return request

    def arm():
        return submit(Single(*calls.arm(None, span, None, 0, None, False, False)))

    greet(session, 2)
    batch = submit(calls.arm_many(None, 5, span, None, None, 0, None, None, False, False))
    assert len(b"".join(session.output())) == 2 * wire.SIZE
    wanted = [batch] * 3 + [arm()]
    session.lost()
    wanted.append(arm())
    greet(session, 8)
    sent = list(wire.RECORD.iter_unpack(b"".join(session.output())))
    assert [(flags, deadline) for _, flags, _, _, _, deadline, _ in sent] == \
        [(0, request.begun + span * 10**9) for request in wanted], sent


def room_of_an_observer():
    """Steps of the clock that the program took leave room for other copies."""
    steps, missed = [], []
    session = Session(make_options(
        "q", consume=False, observe=True, credit=2, on_clock_set=steps.append,
        on_missed=missed.append), lambda: None)
    greet(session, 8)
    for _ in range(3):
        receive(session, record(wire.CLOCK_SET))
        session.take(10)
    receive(session, 2 * record(wire.EXPIRED))
    assert len(session.take(10)) == 2 * wire.SIZE
    assert (len(steps), missed) == (3, []), (steps, missed)


def test(number, name, function):
    """Prints whether a function raises nothing."""
    try:
        function()
    except Exception as problem:
        print("not ok %d - %s" % (number, name))
        print("# %s: %s" % (type(problem).__name__, problem))
        return False
    print("ok %d - %s" % (number, name))
    return True


def main():
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    count = int(sys.argv[2]) if len(sys.argv) > 2 else SEEDS
    failed = False
    print("1..4")
    for number, (losses, name) in enumerate((
            (False, "each call gets its own answer, however the stream is cut"),
            (True, "so it does when the queue is lost, too, and restored")), 1):
        restores = 0
        try:
            for seed in range(first, first + count):
                restores += run(seed, losses).restores
            assert bool(restores) == losses or not losses, "nothing was restored"
        except Exception as problem:
            failed = True
            print("not ok %d - %s" % (number, name))
            print("# seed %d: %s: %s" % (seed, type(problem).__name__, problem))
            if len(sys.argv) > 1:
                raise
        else:
            print("ok %d - %s" % (number, name))
    failed |= not test(3, "relative deadlines count from the call", relative_deadlines)
    failed |= not test(4, "steps of the clock use up no room for good", room_of_an_observer)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
