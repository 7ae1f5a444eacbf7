# SPDX-License-Identifier: LGPL-2.1-or-later
"""The blocking client. One thread uses a queue at a time."""

from __future__ import annotations

import errno
import itertools
import select
import socket
import struct
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar

from . import session as states
from .calls import (Asked, accepted, is_done, listed, refused, replies_of, reply_of,
                    stat_reply, timer_of)
from .due import Batch, Due
from .errors import NotAttached
from .handle import CLOSE, READ, RESTORE_BATCH, Handle
from .options import Restore
from .replies import GONE, Listed, Replies, Stat, Timer
from .request import ListRequest, Request, Single
from .restore import Part
from .times import REALTIME, Instant, Span
from .wire import ACK, CANCEL, CLEAR, DROP, HELLO, QUERY, RECORD, STAT, Buffer, Record


R = TypeVar("R", bound=Request)


class Waiting:
    """The waiter of all blocking calls: a call looks whether its request still has one."""

    def done(self) -> bool:
        return True

    def cancelled(self) -> bool:
        return False

    def set_result(self, request: Request, /) -> None:
        pass


WAITING = Waiting()


def connect(queue: str = "", *, path: str | None = None, clock: int = REALTIME,
            consume: bool = True, keyed: bool = False, ack: bool = False,
            durable: bool = False, existing: bool = False, observe: bool = False,
            reconnect: bool = False, credit: int = 1024, timeout: float | None = None,
            restore: Restore | None = None, posts_max: int = 65536,
            on_refused: Callable[[int, int, int], None] | None = None,
            on_clock_set: Callable[[int], None] | None = None,
            on_missed: Callable[[int], None] | None = None) -> Queue:
    """Attaches to a queue. The options are those of expiry.connect()."""
    return Queue(path, queue=queue, clock=clock, consume=consume, keyed=keyed, ack=ack,
                 durable=durable, existing=existing, observe=observe,
                 reconnect=reconnect, credit=credit, timeout=timeout, restore=restore,
                 posts_max=posts_max, on_refused=on_refused,
                 on_clock_set=on_clock_set, on_missed=on_missed)


class Queue(Handle):
    """A queue of the server, by a connection of its own."""

    def __init__(self, path: str | None = None, **options: Any) -> None:
        super().__init__(path, lambda: None, **options)
        self._socket: socket.socket | None = None
        self._buffer = memoryview(bytearray(READ))
        # Of restore: what is still to be yielded, what is on its way, and when to go on.
        self._rows: Iterator[tuple[int, Instant, int]] | None = None
        self._part: Part | None = None
        self._resume_at = 0.0
        try:
            self._attach()
        except BaseException:
            self._session.end(errno.ESHUTDOWN)
            self._drop()
            raise

    # ------------------------------------------------------------------
    # Timers

    def arm(self, id: int | None = None, *, ttl: Span | None = None,
            at: Instant | None = None, cookie: int = 0, period: Span | None = None,
            new: bool = False, later: bool = False) -> Timer:
        """Arms a timer; see expiry.Queue.arm()."""
        reply = self._one(self._calls.arm(id, ttl, at, cookie, period, new, later))
        if reply[2]:
            raise refused(reply)
        return timer_of(reply)

    def refresh(self, id: int, *, ttl: Span | None = None, at: Instant | None = None,
                later: bool = False) -> int | None:
        """Moves a deadline. Returns the one in force, None if no such timer is armed."""
        reply = self._one(self._calls.refresh(id, ttl, at, later))
        return reply[5] if is_done(reply) else None

    def cancel(self, id: int) -> bool:
        """Returns False if no such timer is armed: it is over, or on its way."""
        return is_done(self._one(self._calls.one(CANCEL, id)))

    def ack(self, id: int) -> bool:
        """Returns False if it is not delivered, or was acknowledged before."""
        return is_done(self._one(self._calls.one(ACK, id)))

    def query(self, id: int) -> Timer | None:
        reply = self._one(self._calls.one(QUERY, id))
        return timer_of(reply) if is_done(reply) else None

    def clear(self) -> int:
        """Removes all timers of the queue; returns how many."""
        return accepted(self._one(self._calls.plain(CLEAR)))[6]

    def arm_many(self, ids: Iterable[int] | None = None, *, count: int | None = None,
                 ttl: Span | None = None, at: Instant | None = None,
                 deadlines: Iterable[int] | None = None, cookie: int = 0,
                 cookies: Iterable[int] | None = None, period: Span | None = None,
                 new: bool = False, later: bool = False) -> Replies:
        return replies_of(self._call(self._calls.arm_many(
            ids, count, ttl, at, deadlines, cookie, cookies, period, new, later)))

    def refresh_many(self, ids: Iterable[int], *, ttl: Span | None = None,
                     at: Instant | None = None, deadlines: Iterable[int] | None = None,
                     later: bool = False) -> Replies:
        return replies_of(self._call(self._calls.refresh_many(
            ids, ttl, at, deadlines, later)), GONE)

    def cancel_many(self, ids: Iterable[int]) -> Replies:
        return replies_of(self._call(self._calls.many(CANCEL, ids)), GONE)

    def ack_many(self, ids: Iterable[int]) -> Replies:
        return replies_of(self._call(self._calls.many(ACK, ids)), GONE)

    def post_ack(self, ids: array[int]) -> None:
        """Acknowledges without waiting. The requests go out with the next call that waits,
        or with flush()."""
        self._post(self._calls.many(ACK, ids))

    def flush(self) -> None:
        """Waits until all that was posted is answered."""
        while self._session.posts:
            self._step()

    # ------------------------------------------------------------------
    # Looking

    def scan(self, most: int = 1024) -> Iterator[Timer]:
        """Yields each timer of the queue. One that is armed throughout comes once."""
        cursor = 0
        while True:
            timers, cursor = self.scan_part(cursor, most)
            yield from timers
            if not cursor:
                return

    def scan_part(self, cursor: int = 0, most: int = 1024) -> tuple[list[Timer], int]:
        """Returns some timers, and the cursor to go on with: 0 at the end."""
        timers, _, cursor = listed(self._list(self._calls.scan(cursor, most)))
        return timers, cursor

    def queues(self, cursor: int = 0, most: int = 256) -> tuple[list[Listed], int]:
        """Returns some queues of the server, and the cursor to go on with."""
        _, queues, cursor = listed(self._list(self._calls.queues(cursor, most)))
        return queues, cursor

    def stat(self) -> Stat:
        return stat_reply(self._list(ListRequest(STAT)))

    def drop(self) -> None:
        """Removes this named queue, for all clients."""
        accepted(self._one(self._calls.plain(DROP)))

    # ------------------------------------------------------------------
    # Expirations

    def receive(self, most: int = 1024, timeout: float | None = None) -> Batch:
        """Returns some expirations, waiting for the first. It is empty if the time is up."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._session.events:
            if self._session.state == states.ENDED:
                raise self._session.exception()
            left = None if end is None else left_until(end)
            if not self._step(left) and left == 0.0:
                break
        return Batch(self._session.take(most), self.post_ack)

    def batches(self, most: int = 1024) -> Iterator[Batch]:
        """Yields expirations as they come, as buffers. Ends when the queue is closed."""
        while True:
            if self._session.state == states.ENDED and \
                    self._session.error == errno.ESHUTDOWN:
                return
            batch = self.receive(most)
            if len(batch):
                yield batch

    def __iter__(self) -> Iterator[Due]:
        for batch in self.batches(256):
            connection = self._session.connections
            for record in RECORD.iter_unpack(batch.data):
                yield Due(record, self.post_ack)
                # Expirations of a connection that broke are delivered again.
                if self._session.connections != connection or \
                        self._session.state == states.DOWN:
                    break

    # ------------------------------------------------------------------
    # Life

    def close(self) -> None:
        """Closes the connection. Waits a second at most for answers to what was posted."""
        session = self._session
        end = time.monotonic() + CLOSE
        while session.posts and session.state == states.UP and time.monotonic() < end:
            self._step(end - time.monotonic())
        session.end(errno.ESHUTDOWN)
        self._drop()

    def __enter__(self) -> Queue:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()

    def fileno(self) -> int:
        """Returns the connection's descriptor, for select and poll; -1 without one."""
        return self._socket.fileno() if self._socket else -1

    # ------------------------------------------------------------------
    # Input and output

    def _call(self, request: R) -> R:
        if request.count:
            request.waiter = WAITING
            self._session.submit(request)
            self._wait(request)
        return request

    def _one(self, asked: Asked) -> Record:
        """Carries out one request, and returns its reply. Most find nothing under way, and
        get their reply and nothing else: these do without a Request and the rows of the
        session."""
        data, id, _ = asked
        session = self._session
        if not session.begin_alone():
            return reply_of(self._call(Single(*asked)))
        assert self._socket
        timeout = self._options.timeout
        try:
            self._socket.sendall(data)
            # SO_RCVTIMEO would not do: recv() begins anew with each signal that comes.
            if timeout is not None and not self._readable(timeout):
                raise TimeoutError
            size = self._socket.recv_into(self._buffer)
        except OSError:
            # _wait() meets it, too, behind what the server had sent before.
            request = self._sent(asked)
        except BaseException:
            self._sent(asked).waiter = None
            raise
        else:
            reply = session.take_alone(data, id, self._buffer, size)
            if reply:
                return reply
            request = self._sent(asked)
            self._received(size)
        self._wait(request)
        return reply_of(request)

    def _sent(self, asked: Asked) -> Single:
        """Gives a request that was sent after begin_alone() its place in the row."""
        request = Single(*asked)
        request.waiter = WAITING
        self._session.submit_sent(request)
        return request

    def _wait(self, request: Request) -> None:
        try:
            while request.waiter is not None:
                self._step()
        except BaseException:
            # KeyboardInterrupt: the request keeps its place in the row of answers.
            request.waiter = None
            raise

    def _list(self, request: ListRequest) -> ListRequest:
        self._call(request)
        return request

    def _post(self, request: Request) -> None:
        if not request.count:
            return
        if self._session.posts + request.count > self._options.posts_max:
            self.flush()
        request.posted = True
        self._session.posts += request.count
        self._session.submit(request)

    def _step(self, wait: float | None = None) -> bool:
        """Sends, and waits for bytes or, while there is no connection, for the next
        attempt. @wait: seconds at most. Returns whether something may have changed."""
        session = self._session
        if session.state == states.ENDED:
            self._drop()
            raise session.exception()
        if session.state == states.UP:
            return self._exchange(wait)
        moved = True
        if session.state != states.DOWN:
            moved = self._greet(wait)
        else:
            pause = session.retry_at - time.monotonic()
            if pause > 0:
                if wait is not None and wait < pause:
                    time.sleep(wait)
                    return False
                time.sleep(pause)
                if wait is not None:
                    wait -= pause
            self._check_silence()
            if session.state == states.DOWN:
                self._dial(wait)
        if session.state == states.DOWN:
            self._drop()
        # Asked anew: mypy does not know that it changes.
        if self._session.state == states.ENDED:
            self._drop()
            raise session.refusal or session.exception()
        return moved

    def _exchange(self, wait: float | None) -> bool:
        """As _step(), on a connection."""
        session = self._session
        if not self._write():
            return True
        timeout = self._options.timeout
        if timeout is not None and (session.row or session.state == states.GREETING):
            left = max(timeout - session.silent_for(), 0.0)
            wait = left if wait is None else min(wait, left)
        if wait is not None and not self._readable(wait):
            self._check_silence()
            return False
        self._read()
        return True

    def _readable(self, wait: float) -> bool:
        assert self._socket
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(-(-wait * 1000 // 1)))

    def _check_silence(self) -> None:
        timeout = self._options.timeout
        if timeout is not None and self._session.silent_for() >= timeout:
            self._session.timed_out()
            if self._session.state in (states.DOWN, states.ENDED):
                self._drop()

    def _write(self) -> bool:
        """Returns False if the connection ended."""
        while out := self._session.output():
            if not self._send(out[0] if len(out) == 1 else b"".join(out)):
                return False
        return True

    def _send(self, data: Buffer) -> bool:
        """Returns False if the connection ended."""
        assert self._socket
        try:
            self._socket.sendall(data)
        except BlockingIOError:
            self._fail(errno.ETIMEDOUT)
            return False
        except OSError:
            # What the server had sent before comes first.
            self._session.in_flight = self._session.window
            self._read()
            return False
        return True

    def _read(self) -> None:
        assert self._socket
        try:
            size = self._socket.recv_into(self._buffer)
        except OSError as error:
            self._fail(error.errno or errno.ECONNRESET)
            return
        self._received(size)

    def _received(self, size: int) -> None:
        """Takes what was read into the buffer."""
        if not size:
            self._fail(errno.ECONNRESET)
        elif not self._session.input(self._buffer, size):
            self._drop()

    def _fail(self, number: int) -> None:
        self._drop()
        self._session.lost(number)

    def _drop(self) -> None:
        if self._socket:
            self._socket.close()
            self._socket = None

    def _attach(self) -> None:
        """Makes the first connection, and sees it through until requests may be sent.
        Raises the error of one that is final."""
        self._step()
        while self._session.state not in (states.UP, states.DOWN):
            self._step()

    def _dial(self, wait: float | None) -> None:
        """Connects, within @wait seconds, and greets."""
        session = self._session
        greeting = session.greeting()
        timeout = self._options.timeout
        self._rows = self._part = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._limit_sends(timeout if wait is None or timeout is None or timeout < wait
                              else wait)
            self._socket.connect(self._path)
            self._limit_sends(timeout)
            # A server at its limit of connections answers before it reads.
            try:
                self._socket.sendall(greeting)
            except (BrokenPipeError, ConnectionResetError):
                pass
        except OSError as error:
            self._drop()
            session.attempt_failed(NotAttached(error.errno or errno.EIO, HELLO, self._path))

    def _limit_sends(self, limit: float | None) -> None:
        """Limits the time that connect() and sends take. @limit: seconds, or None."""
        assert self._socket
        # 0 would be for ever.
        value = (0, 0) if limit is None else (int(limit), max(int(limit % 1 * 1e6), 1))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                                struct.pack("@ll", *value))

    def _greet(self, wait: float | None) -> bool:
        """As _step(), on a connection that cannot be used yet. It is kept for the next
        call when the time is up."""
        if self._session.state == states.RESTORING:
            self._restore(wait)
            return self._session.state != states.RESTORING
        return self._exchange(wait)

    def _restore(self, wait: float | None) -> None:
        """Restores, for @wait seconds. The next call continues where this one ended."""
        session = self._session
        end = None if wait is None else time.monotonic() + wait
        try:
            if self._rows is None:
                assert self._options.restore
                self._rows = iter(self._options.restore())  # type: ignore[arg-type]
                self._resume_at = 0.0
            while session.state == states.RESTORING:
                if not self._part:
                    rows = list(itertools.islice(self._rows, RESTORE_BATCH))
                    if not rows:
                        session.restored()
                        return
                    self._part = Part(self._calls.restore(rows))
                if not self._restore_part(self._part, end):
                    return
                self._part = None
                if end is not None and time.monotonic() >= end:
                    return
        except Exception as error:
            if session.state == states.RESTORING:
                session.restored(error)
            elif session.state != states.DOWN:
                raise
        except BaseException:
            # KeyboardInterrupt may have ended the program's iterator: begin anew.
            self._fail(errno.ECONNRESET)
            raise

    def _restore_part(self, part: Part, end: float | None) -> bool:
        """Returns False if the time is up, or if the connection was lost: then all is to be
        restored anew."""
        session = self._session
        while part.request:
            pause = self._resume_at - time.monotonic()
            if pause > 0:
                time.sleep(pause if end is None else min(pause, left_until(end)))
                if self._resume_at > time.monotonic():
                    return False
            request = part.request
            if request.waiter is None:
                request.waiter = WAITING
                session.first.append(request)
            while request.waiter is not None:
                if session.state == states.DOWN:
                    return False
                left = None if end is None else left_until(end)
                if not self._exchange(left) and left == 0.0:
                    return False
            if request.error:
                return False
            self._resume_at = time.monotonic() + part.answered()
        return True


def left_until(end: float) -> float:
    """Returns the seconds until a moment, 0 if it has passed."""
    return max(end - time.monotonic(), 0.0)
