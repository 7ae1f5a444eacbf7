# SPDX-License-Identifier: LGPL-2.1-or-later
"""One client of a queue, over as many connections as it takes, without any I/O.

The caller moves bytes: input() takes those that arrived, output() returns those to be
sent. It calls lost() when a connection ended. Requests that wait for an answer are in two
rows: `queue` has those to be sent, `row` those sent. Replies come in the order of `row`.

Expirations wait in `events` until the program takes them. Their number is bounded by the
credit, so that input() never waits for the program.
"""

from __future__ import annotations

import errno
import re
import time
from collections import deque
from collections.abc import Callable

from .errors import ConnectionLost, NotAttached, Refusals, RestoreFailed, UnsupportedVersion
from .options import Options
from .replies import Stat
from .request import Broken, Callback, ListRequest, Request, Single
from .wire import (ARM, CLOCK_SET, CREDIT, EXPIRED, HELLO, HELLO_DURABLE, LOW, MISSED,
                   NEVER, RECORD, SIZE, STAT, Buffer, Record, lows)

EVENTS = frozenset((EXPIRED, CLOCK_SET, MISSED))
RUN = re.compile(b"\x10+|\x11|\x46")
NOT_REPLY = re.compile(b"[\x10\x11\x46]")

unpack_from = RECORD.unpack_from

EMBEDDED = 1        # the engine whose queues end with the daemon

# States: no connection; HELLO is sent; STAT too is awaited; restore is running; requests
# are sent; it will never be.
DOWN, GREETING, CHECKING, RESTORING, UP, ENDED = range(6)

PAUSE = 0.010       # seconds between attempts to connect, at first
PAUSE_MAX = 1.0
REFUSED = 5.0       # for that long a refusal may be temporary
# No server is there, or its backlog is full (EAGAIN).
GONE = frozenset((errno.ECONNREFUSED, errno.ECONNRESET, errno.ENOENT, errno.EPIPE,
                  errno.ETIMEDOUT, errno.EAGAIN))


class Session:
    """
    @window: most records in flight; @in_flight: now
    @granted: expirations that may come; @held: that came, not taken; an observer's steps, too
    @credit_due: credit to be sent
    @arms: timers that the queue has counted, as far as is known
    @durable: the queue is; @commit_ms: as HELLO said last; @number: which one it is, 0 if
        it is not durable; @learns: that is not known yet
    @wakes: is called when events came, or the session ended
    """

    # Above 30 attributes Python 3.11 gives each object a dict of its own, which is slower.
    __slots__ = ("options", "wakes", "state", "row", "queue", "first", "posts",
                 "window", "in_flight", "events", "granted", "held", "credit_due",
                 "missed_at_end", "timers", "arms", "connections", "attached", "durable",
                 "learns", "commit_ms", "number", "queue_lost", "rest", "error",
                 "error_kind", "cause", "refusal", "stat", "pause", "refused_since",
                 "retry_at", "heard")

    def __init__(self, options: Options, wakes: Callable[[], None]) -> None:
        self.options = options
        self.wakes = wakes
        self.state = DOWN
        self.row: deque[Request] = deque()
        self.queue: deque[Request] = deque()
        self.first: deque[Request] = deque()    # of restore, and the first STAT
        self.posts = 0
        self.window = self.in_flight = 0
        self.events: deque[bytes] = deque()
        self.granted = self.held = self.credit_due = 0
        self.missed_at_end = 0
        self.timers = self.arms = self.connections = 0
        self.attached = 0
        self.durable = self.learns = False
        self.commit_ms = self.number = 0
        self.queue_lost = False
        self.rest = b""
        self.error: int | None = None
        self.error_kind: type[ConnectionLost] | None = None
        self.cause: BaseException | None = None
        self.refusal: NotAttached | None = None
        self.stat = ListRequest(STAT)
        self.pause = self.refused_since = 0.0
        self.retry_at = 0.0
        self.heard = time.monotonic()

    # ------------------------------------------------------------------
    # Requests

    def submit(self, request: Request) -> None:
        """Takes a request. Its waiter is called when it is answered, perhaps at once."""
        if self.state == ENDED:
            assert self.error is not None
            request.fail(self.error, self.error_kind, self.cause)
            return
        # A connection that is not up may be older than this call.
        if self.options.timeout is not None and not self.queue and \
                (not self.row or self.state != UP):
            self.heard = time.monotonic()
        self.queue.append(request)

    def begin_alone(self) -> bool:
        """Returns whether nothing waits to be sent or to be answered: then the caller may
        send a request with one record by itself."""
        if self.state != UP or self.row or self.queue or self.credit_due:
            return False
        if self.options.timeout is not None:
            self.heard = time.monotonic()
        return True

    def submit_sent(self, request: Single) -> None:
        """Takes the request that was sent after begin_alone()."""
        self.row.append(request)
        request.sent = self.in_flight = 1

    def output(self) -> list[Buffer]:
        """Returns what is to be sent now, as far as the window allows it."""
        if self.state != UP:
            return self._send(self.first) if self.state in (CHECKING, RESTORING) else []
        out = self._send(self.queue) if self.queue else []
        # Credit follows requests in doubt: else a timer could expire, be armed again and
        # expire twice, unmarked.
        if self.credit_due and not (self.queue and self.queue[0].again):
            out.append(RECORD.pack(CREDIT, 0, 0, self.credit_due, 0, 0, 0))
            self.credit_due = 0
        return out

    def _send(self, queue: deque[Request]) -> list[Buffer]:
        out: list[Buffer] = []
        room = self.window - self.in_flight
        while queue and room > 0:
            request = queue[0]
            waiter = request.waiter
            # As is_wanted() does.
            if not request.sent and not request.posted and \
                    (waiter is None or waiter.cancelled()):
                queue.popleft()         # its caller was cancelled before it was sent
                continue
            if request.is_single:
                queue.popleft()
                out.append(request.data)
                self.row.append(request)
                request.sent = 1
                room -= 1
                continue
            count = request.count - request.sent
            if count <= room:
                queue.popleft()
                out.append(request.data if not request.sent else
                           memoryview(request.data)[request.sent * SIZE:])
            else:
                count = room
                out.append(memoryview(request.data)[
                    request.sent * SIZE:(request.sent + count) * SIZE])
            if request.sent == request.answered:
                self.row.append(request)
            request.sent += count
            room -= count
        self.in_flight = self.window - room
        return out

    def wants_output(self) -> bool:
        if self.state in (CHECKING, RESTORING):
            return bool(self.first) and self.in_flight < self.window
        if self.state != UP:
            return False
        if self.queue and self.in_flight < self.window:
            return True
        return bool(self.credit_due) and not (self.queue and self.queue[0].again)

    # ------------------------------------------------------------------
    # Records that arrive

    def input(self, buffer: memoryview, size: int) -> bool:
        """Takes bytes that arrived, by which @buffer begins. They may be any piece of the
        stream. Returns False if the connection is to be closed."""
        if self.options.timeout is not None:
            self.heard = time.monotonic()
        if self._only(buffer, size):
            return True
        # One copy for all: slices of bytes are cheaper than those of a view.
        data = buffer[:size]
        whole = self.rest + data if self.rest else bytes(data)
        count = len(whole) // SIZE
        try:
            if count:
                self._records(whole, count)
        except Broken:
            self.end(errno.EPROTO)
        if self.state == DOWN or self.state == ENDED:
            self.rest = b""
            return False
        self.rest = whole[count * SIZE:]
        return True

    def _records(self, data: bytes, count: int) -> None:
        ops = data[:count * SIZE:SIZE]
        row = self.row
        at = 0
        if self.state == GREETING:
            self._greeted(RECORD.unpack(data[:SIZE]))
            at = 1
            if self.state == DOWN or self.state == ENDED:
                return
        while at < count:
            request = row[0] if row else None
            if request is not None and request.is_list:
                assert isinstance(request, ListRequest)
                if request.units:
                    some = min(count - at, request.units)
                    request.body(data[at * SIZE:(at + some) * SIZE])
                    at += some
                    self._answered(request)
                    continue
            op = ops[at]
            if op in EVENTS:
                match = RUN.match(ops, at)
                assert match
                self._event(op, data[at * SIZE:match.end() * SIZE], match.end() - at)
                at = match.end()
                continue
            if request is None:
                raise Broken("a reply too many")
            if request.is_list:
                assert isinstance(request, ListRequest)
                request.head(data[at * SIZE:(at + 1) * SIZE])
                at += 1
                self._answered(request)
                continue
            if op != request.op:
                raise Broken("a reply of another op")
            if request.is_single:
                at += self._singles(data, at, count)
            else:
                at += self._batch(request, data, ops, at, count)
            if self.state == ENDED:
                return

    def _only(self, buffer: memoryview, size: int) -> bool:
        """Takes one record if it is the reply to a single request. Returns whether. This is
        _records() without its loops."""
        if not self.row or self.state != UP or self.rest:
            return False
        request = self.row[0]
        if type(request) is not Single:
            return False
        reply = self.take_alone(request.data, request.id, buffer, size)
        if not reply:
            return False
        request.reply = reply
        request.answered = 1
        self._replied(request)
        return True

    def take_alone(self, data: Buffer, id: int, buffer: memoryview,
                   size: int) -> Record | None:
        """Returns what arrived if it is the reply to one request, else None. Most calls of
        most programs wait for one such reply. @id: see Asked"""
        if size != SIZE:
            return None
        reply = unpack_from(buffer)
        if reply[0] != data[0] or reply[2] > 0 or \
                reply[4] != id and (id or reply[0] != ARM):
            return None
        if self.options.reconnect:
            self._note(reply)
        return reply

    def _note(self, reply: Record) -> None:
        """Notes a reply for the next connection."""
        self.pause = 0.0
        if reply[0] == ARM and not reply[2]:
            # Now, not when all are answered: STAT may come between.
            self.arms += 1

    def _replied(self, request: Single) -> None:
        """Ends the first request of the row, whose reply was taken."""
        self.row.popleft()
        self.in_flight -= 1
        if request.posted:
            self._posted(request)
        request.finish()

    def _singles(self, data: bytes, at: int, end: int) -> int:
        """Takes the replies to single requests that come next, the first of which has the
        right op. Returns how many."""
        row = self.row
        reconnects = self.options.reconnect
        done = 0
        part = memoryview(data)[at * SIZE:min(end, at + len(row)) * SIZE]
        for reply in RECORD.iter_unpack(part):
            if not row:
                break
            request = row[0]
            if type(request) is not Single or request.op != reply[0]:
                break
            if reply[2] > 0 or reply[4] != request.id and request.named:
                raise Broken("a reply about another timer, or a positive status")
            request.reply = reply
            request.answered = 1
            if reconnects:
                self._note(reply)
            # As _replied() and finish() do: many tasks wait for a request each.
            row.popleft()
            self.in_flight -= 1
            if request.posted:
                self._posted(request)
            waiter = request.waiter
            if waiter is not None:
                request.waiter = None
                if not waiter.done():
                    waiter.set_result(request)
            done += 1
        return done

    def _batch(self, request: Request, data: bytes, ops: bytes, at: int, end: int) -> int:
        """Takes the replies to a batch that come next, the first of which has the right op.
        Returns how many."""
        op = request.op
        some = min(end - at, request.sent - request.answered)
        if some > 1 and ops.count(op, at, at + some) != some:
            match = NOT_REPLY.search(ops, at, at + some)
            some = match.start() - at if match else some
            if ops.count(op, at, at + some) != some:
                raise Broken("replies of different ops")
        self.in_flight -= some
        part = data[at * SIZE:(at + some) * SIZE]
        if op == ARM and self.options.reconnect:
            # As in _note().
            self.arms += lows(part).count(LOW[ARM])
        request.take(part, some)
        if request.answered == request.sent:
            self.row.popleft()
            if request.answered == request.count:
                self._complete(request)
        return some

    def _answered(self, request: ListRequest) -> None:
        if request.answered:
            self.in_flight -= 1
            self.row.popleft()
            self._complete(request)

    def _complete(self, request: Request) -> None:
        try:
            request.check()
        except Broken:
            # What was carried out is not known any more.
            request.answered = 0
            self.row.appendleft(request)
            raise
        self.pause = 0.0
        if request.posted:
            self._posted(request)
        request.finish()

    def _posted(self, request: Request) -> None:
        self.posts -= request.count
        report = self.options.on_refused
        if report:
            for record in request.refusals():
                report(record[0], record[4], -record[2])
        if not self.posts:
            self.wakes()

    def _event(self, op: int, data: bytes, count: int) -> None:
        request = self.row[0] if self.row else None
        if request is not None and request.is_list and isinstance(request, ListRequest) \
                and not request.begins:
            raise Broken("an expiration inside a list")
        if data[2:4] != b"\0\0" or count > 1 and \
                any(data[at * SIZE + 2:at * SIZE + 4] != b"\0\0" for at in range(count)):
            raise Broken("an expiration with a status")
        if self.options.observe:
            self._copies(op, data, count)
        elif not self.options.consume or op == MISSED:
            raise Broken("an expiration to no consumer")
        else:
            if op == EXPIRED:
                if count > self.granted:
                    raise Broken("more expirations than credit")
                self.granted -= count
                self.held += count
            elif self.events and self.events[-1][0] == CLOCK_SET:
                self.events.pop()       # the last of several steps counts
            self.events.append(data)
        self.wakes()

    def _copies(self, op: int, data: bytes, count: int) -> None:
        """Keeps copies for an observer. No credit bounds them: those above the option
        credit count as missed, as in the server."""
        if op != MISSED and self.held + count <= self.options.credit:
            self.held += count
            self.missed_at_end = 0
            self.events.append(data)
            return
        missed = RECORD.unpack(data)[6] if op == MISSED else count
        if self.missed_at_end:
            self.events.pop()
        self.missed_at_end = min(self.missed_at_end + missed, NEVER)
        self.events.append(RECORD.pack(MISSED, 0, 0, 0, 0, 0, self.missed_at_end))

    # ------------------------------------------------------------------
    # Expirations for the program

    def take(self, most: int) -> bytes:
        """Returns at most so many expirations, as records. Calls the functions for a set
        clock and for missed copies in their place."""
        parts: list[bytes] = []
        while self.events and most:
            part = self.events.popleft()
            if part[0] != EXPIRED:
                if part[0] == CLOCK_SET and self.options.observe:
                    self.held -= 1
                self._report(RECORD.unpack(part))
                continue
            count = len(part) // SIZE
            if count > most:
                self.events.appendleft(part[most * SIZE:])
                part = part[:most * SIZE]
                count = most
            most -= count
            self.held -= count
            parts.append(part)
        if not self.events:
            self.missed_at_end = 0
        self.top_up()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _report(self, record: tuple[int, ...]) -> None:
        if record[0] == CLOCK_SET:
            if self.options.on_clock_set:
                self.options.on_clock_set(record[5])
        elif self.options.on_missed:
            self.options.on_missed(record[6])

    def top_up(self) -> None:
        """Grants credit when half of it is used up."""
        if self.options.consume:
            open_now = self.granted + self.held
            if open_now <= self.options.credit // 2:
                self.credit_due += self.options.credit - open_now
                self.granted += self.options.credit - open_now

    # ------------------------------------------------------------------
    # Connections

    def greeting(self) -> bytes:
        """Begins a connection: returns what is sent first."""
        assert self.state == DOWN
        self.state = GREETING
        self.rest = b""
        self.refusal = None
        self.heard = time.monotonic()
        if not self.connections:
            return self.options.hello()
        self._ask()
        self.stat.sent = 1
        return self.options.hello() + bytes(self.stat.data)

    def _ask(self) -> None:
        self.stat = ListRequest(STAT)
        self.stat.waiter = Callback(self._checked)

    def _greeted(self, reply: tuple[int, ...]) -> None:
        op, flags, status, _, timers, _, cookie = reply
        window, commit_ms = cookie & 0xffffffff, cookie >> 32
        if op != HELLO or status > 0 or not status and not window:
            raise Broken("not the reply to HELLO")
        if status:
            number = -status
            if number == errno.ENOENT and self.connections and \
                    (self.options.existing or self.options.observe):
                self.end(errno.ESTALE)
                return
            kind = NotAttached
            if number == errno.EPROTONOSUPPORT:
                kind = UnsupportedVersion
            self.attempt_failed(kind(number, HELLO))
            return
        durable = bool(flags & HELLO_DURABLE)
        if self.options.durable and not durable:
            raise Broken("a queue that is not durable")
        self.window = window
        self.commit_ms = commit_ms if durable else 0
        self.connections += 1
        self.timers = timers
        if self.options.restore and not timers:
            self.queue_lost = True
        if self.connections == 1:
            self.attached = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            # A periodic timer may count twice: armed, and not acknowledged.
            self.arms = timers // 2
            self.durable = durable
            self.top_up()
            if durable and self.options.reconnect:
                self.learns = True
                self._ask()
                self.first.append(self.stat)
                self.state = CHECKING
            else:
                self._attached()
        else:
            self.state = CHECKING
            self.row.append(self.stat)
            self.in_flight = 1

    def _checked(self, request: Request) -> None:
        """Is this the queue of before?"""
        if request.error:
            return
        stat = self.stat.stat
        if stat is None:
            self.attempt_failed(NotAttached(-self.stat.status, STAT))
            return
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        lost = self._is_another(stat, now)
        if lost and not self.options.restore:
            self.end(errno.ESTALE)
            return
        self.queue_lost |= lost
        self.learns = False
        self.number = stat.server["durable"]
        self.arms = stat.queue["arms"]
        self.attached = now
        self._attached()

    def _is_another(self, stat: Stat, now: int) -> bool:
        """Returns whether a queue is not the one of before. A durable one has a number. With
        the embedded engine another one's age is at most the daemon's. With the kernel's it
        has counted at least as many timers."""
        number = stat.server["durable"]
        if self.learns:
            return not number
        if number or self.number:
            return number != self.number
        return stat.queue["arms"] < self.arms or stat.server["engine"] == EMBEDDED and \
            stat.server["uptime_ns"] < now - self.attached

    def _attached(self) -> None:
        self.refused_since = 0.0
        self.refusal = None
        self._enter(RESTORING if self.queue_lost else UP)

    def _enter(self, state: int) -> None:
        if state == UP:
            # These calls began before the connection could be used.
            for request in self.queue:
                request.count_from_call()
        self.state = state
        self.wakes()

    def restored(self, error: BaseException | None = None) -> None:
        """Ends RESTORING. @error: what the program's function raised, or a refusal."""
        if self.state != RESTORING:
            return
        if error is not None:
            first = error.exceptions[0] if isinstance(error, Refusals) else error
            number = first.errno if isinstance(first, OSError) and first.errno else \
                errno.ECANCELED
            self.end(number, RestoreFailed, error)
            return
        self.queue_lost = False
        self._enter(UP)

    def attempt_failed(self, error: NotAttached) -> None:
        """An attempt to connect failed. The first one is final; later there may be no
        server for a while, or one that does not yet know that the connection before is
        closed."""
        number = error.errno or errno.EPROTO
        now = time.monotonic()
        self.refusal = error
        if number in GONE:
            self.refused_since = 0.0
        elif not self.refused_since:
            self.refused_since = now
        if not self.connections or not self.options.reconnect or \
                self.refused_since and now - self.refused_since >= REFUSED:
            self.end(number, cause=error)
            return
        self._down()

    def _down(self) -> None:
        self.state = DOWN
        self.in_flight = 0
        self.rest = b""
        self.retry_at = time.monotonic() + self.pause
        self.pause = min(2 * self.pause or PAUSE, PAUSE_MAX)
        self.wakes()

    def lost(self, number: int = errno.ECONNRESET) -> None:
        """The connection ended by this errno."""
        if self.state in (DOWN, ENDED):
            return
        if number == errno.EPIPE:
            number = errno.ECONNRESET
        if number not in GONE or not self.options.reconnect and self.connections:
            self.end(number)
            return
        if self.state == GREETING and not self.connections:
            self.attempt_failed(NotAttached(number, HELLO))
            return
        if self.state in (CHECKING, GREETING):
            self.row.clear()
            self.first.clear()
            self._down()
            return
        if self.state == RESTORING:
            waiting = dict.fromkeys((*self.row, *self.first))
            self.row.clear()
            self.first.clear()
            self._down()
            for request in waiting:
                request.fail(number)
            return
        self._doubt()
        if not self.options.observe:
            self.events = deque(part for part in self.events if part[0] != EXPIRED)
            self.granted += self.held
            self.held = 0
        self.credit_due = self.granted
        self._down()

    def _doubt(self) -> None:
        """Rejects requests that must not be sent again, and those before them. Puts the
        others in front of what was never sent."""
        row = list(self.row)
        self.row.clear()
        last = 0
        for index, request in enumerate(row):
            if not request.is_idempotent():
                last = index + 1
        if row and self.queue and self.queue[0] is row[-1]:
            self.queue.popleft()
        again = []
        for index, request in enumerate(row):
            if index < last:
                request.reject()
            elif request.is_wanted():
                request.send_again()
            else:
                continue                # its caller was cancelled
            if request.answered < request.count:
                again.append(request)
            else:
                self._complete(request)
        self.queue.extendleft(reversed(again))

    def silent_for(self) -> float:
        """Returns how long an answer has been awaited, in seconds."""
        if not self.row and not self.queue and not self.first and \
                self.state not in (GREETING, CHECKING):
            return 0.0
        return time.monotonic() - self.heard

    def timed_out(self) -> None:
        """The server was silent for too long: ends the waiting calls. With reconnect the
        session continues, and what was posted is sent again."""
        if not self.options.reconnect or not self.connections:
            if self.state == GREETING:
                self.attempt_failed(NotAttached(errno.ETIMEDOUT, HELLO))
            else:
                self.end(errno.ETIMEDOUT)
            return
        waiting = [request for request in (*self.row, *self.queue)
                   if not request.posted and request is not self.stat]
        for request in dict.fromkeys(waiting):
            request.fail(errno.ETIMEDOUT)
        self.queue = deque(request for request in self.queue if request.is_wanted())
        self.heard = time.monotonic()
        self.lost(errno.ETIMEDOUT)

    def end(self, number: int, kind: type[ConnectionLost] | None = None,
            cause: BaseException | None = None) -> None:
        """Ends the session for good: requests without answer fail."""
        if self.state == ENDED:
            return
        self.state = ENDED
        self.error, self.error_kind, self.cause = number, kind, cause
        failed = dict.fromkeys((*self.row, *self.queue, *self.first))
        for rows in (self.row, self.queue, self.first):
            rows.clear()
        for request in failed:
            request.fail(number, kind, cause)
        self.wakes()

    def exception(self) -> ConnectionLost:
        """Returns why the session ended."""
        request = Request(0, b"", 0)
        assert self.error is not None
        request.fail(self.error, self.error_kind, self.cause)
        assert request.error
        return request.error
