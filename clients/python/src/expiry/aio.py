# SPDX-License-Identifier: LGPL-2.1-or-later
"""The client for asyncio."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import time
from array import array
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable
from types import TracebackType
from typing import Any, TypeVar

from . import session as states
from .calls import (Asked, accepted, is_done, listed, refused, replies_of, reply_of,
                    stat_reply, timer_of)
from .due import Batch, Due
from .errors import NotAttached
from .handle import CLOSE, READ, RESTORE_BATCH, Handle
from .options import AsyncRestore
from .replies import GONE, Listed, Replies, Stat, Timer
from .request import ListRequest, Request, Single
from .restore import Part
from .times import REALTIME, Instant, Span
from .wire import ACK, CANCEL, CLEAR, DROP, HELLO, QUERY, RECORD, STAT

HANDED = 256    # expirations that become objects at a time

R = TypeVar("R", bound=Request)


class Protocol(asyncio.BufferedProtocol):
    """One connection of a queue."""

    def __init__(self, owner: Queue) -> None:
        self.owner = owner
        self.buffer = memoryview(bytearray(READ))
        self.ended = owner._loop.create_future()
        self.is_lost = False
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        if not self.is_lost:
            self.owner._received(self.buffer, nbytes)

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)
        if not self.is_lost:
            if exc is not None:
                self.read_rest()
            self.is_lost = True
            self.owner._lost(exc)

    def read_rest(self) -> None:
        """Reads what the server had sent before a write failed."""
        assert self.transport
        try:
            fd = self.transport.get_extra_info("socket").fileno()
            while size := os.readv(fd, [self.buffer]):
                self.buffer_updated(size)
        except (OSError, AttributeError):
            pass


class Connecting:
    """What connect() returns: to be awaited, or for `async with`."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def __await__(self) -> Generator[Any, None, Queue]:
        return self._queue._open().__await__()

    async def __aenter__(self) -> Queue:
        return await self._queue._open()

    async def __aexit__(self, kind: type[BaseException] | None,
                        error: BaseException | None,
                        traceback: TracebackType | None) -> None:
        await self._queue.aclose()


def connect(queue: str = "", *, path: str | None = None, clock: int = REALTIME,
            consume: bool = True, keyed: bool = False, ack: bool = False,
            durable: bool = False, existing: bool = False, observe: bool = False,
            reconnect: bool = False, credit: int = 1024, timeout: float | None = None,
            restore: AsyncRestore | None = None, posts_max: int = 65536,
            on_refused: Callable[[int, int, int], None] | None = None,
            on_clock_set: Callable[[int], None] | None = None,
            on_missed: Callable[[int], None] | None = None) -> Connecting:
    """Attaches to a queue, and makes it if it is not there.

    @queue: its name; "" is one that ends with the connection
    @path: of the socket; default_path() if None
    @clock: REALTIME, MONOTONIC or BOOTTIME
    @consume: take the expirations; a queue has one consumer
    @keyed: the program chooses the ids
    @ack: at least once: expirations are repeated until they are acknowledged
    @durable: the queue outlives the server and the machine. Needs a name, @keyed and @ack
    @existing: only a queue that exists
    @observe: get copies of what the queue's consumer gets
    @reconnect: outlive the connection. Needs a name, and @ack to consume
    @credit: most expirations on their way or held here
    @timeout: seconds that a call waits for a silent server; None is for ever
    @restore: yields (id, at, cookie) from where the program keeps its truth. Called when
        the queue is empty, and when it was lost. Needs a keyed queue
    @posts_max: most requests without an answer of post_refresh() and the like
    @on_refused: gets op, id and errno of a posted request that was refused
    @on_clock_set: gets the new time when REALTIME was stepped
    @on_missed: gets the number of copies that an observer missed
    """
    return Connecting(Queue(
        path, queue=queue, clock=clock, consume=consume, keyed=keyed, ack=ack,
        durable=durable, existing=existing, observe=observe, reconnect=reconnect, credit=credit,
        timeout=timeout, restore=restore, posts_max=posts_max, on_refused=on_refused,
        on_clock_set=on_clock_set, on_missed=on_missed))


class Queue(Handle):
    """A queue of the server. Any task of the loop may use it; calls of one turn of the
    loop are sent together, apart from one that finds nothing under way. A call that is cancelled may have been carried out."""

    _loop: asyncio.AbstractEventLoop

    def __init__(self, path: str | None = None, **options: Any) -> None:
        super().__init__(path, self._wake, **options)
        self._transport: asyncio.Transport | None = None
        self._protocol: Protocol | None = None
        self._waiting: set[asyncio.Future[None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._flushing = False
        self._ready: list[Due] = []

    # ------------------------------------------------------------------
    # Timers

    async def arm(self, id: int | None = None, *, ttl: Span | None = None,
                  at: Instant | None = None, cookie: int = 0, period: Span | None = None,
                  new: bool = False, later: bool = False) -> Timer:
        """Arms a timer. Returns it with its id and deadline.

        @id: 1 to 2^64 - 1 on a keyed queue, where an armed one is replaced; else None
        @ttl: seconds or a timedelta from now
        @at: instead an aware datetime, or nanoseconds on the queue's clock
        @cookie: 64 bits that come back with the expiration
        @period: seconds or a timedelta between expirations; None is once
        @new: refuse if it is armed (EEXIST)
        @later: never bring the deadline forward
        """
        reply = reply_of(await self._one(self._calls.arm(id, ttl, at, cookie, period, new,
                                                          later)))
        if reply[2]:
            raise refused(reply)
        return timer_of(reply)

    async def refresh(self, id: int, *, ttl: Span | None = None, at: Instant | None = None,
                      later: bool = False) -> int | None:
        """Moves a deadline. Returns the one in force, None if no such timer is armed."""
        reply = reply_of(await self._one(self._calls.refresh(id, ttl, at, later)))
        return reply[5] if is_done(reply) else None

    async def cancel(self, id: int) -> bool:
        """Returns False if no such timer is armed: it is over, or on its way."""
        return is_done(reply_of(await self._one(self._calls.one(CANCEL, id))))

    async def ack(self, id: int) -> bool:
        """Returns False if it is not delivered, or was acknowledged before."""
        return is_done(reply_of(await self._one(self._calls.one(ACK, id))))

    async def query(self, id: int) -> Timer | None:
        reply = reply_of(await self._one(self._calls.one(QUERY, id)))
        return timer_of(reply) if is_done(reply) else None

    async def clear(self) -> int:
        """Removes all timers of the queue; returns how many."""
        return accepted(reply_of(await self._one(self._calls.plain(CLEAR))))[6]

    async def arm_many(self, ids: Iterable[int] | None = None, *, count: int | None = None,
                       ttl: Span | None = None, at: Instant | None = None,
                       deadlines: Iterable[int] | None = None, cookie: int = 0,
                       cookies: Iterable[int] | None = None, period: Span | None = None,
                       new: bool = False, later: bool = False) -> Replies:
        """Arms many timers. Columns are arrays of type Q, or any integers. Raises Refusals
        if some were refused; the others are armed then."""
        return replies_of(await self._call(self._calls.arm_many(
            ids, count, ttl, at, deadlines, cookie, cookies, period, new, later)))

    async def refresh_many(self, ids: Iterable[int], *, ttl: Span | None = None,
                           at: Instant | None = None,
                           deadlines: Iterable[int] | None = None,
                           later: bool = False) -> Replies:
        """Moves many deadlines. Those that are gone are in the statuses, as -ENOENT."""
        return replies_of(await self._call(self._calls.refresh_many(
            ids, ttl, at, deadlines, later)), GONE)

    async def cancel_many(self, ids: Iterable[int]) -> Replies:
        return replies_of(await self._call(self._calls.many(CANCEL, ids)), GONE)

    async def ack_many(self, ids: Iterable[int]) -> Replies:
        return replies_of(await self._call(self._calls.many(ACK, ids)), GONE)

    # ------------------------------------------------------------------
    # Requests without waiting

    def post_arm(self, id: int, *, ttl: Span | None = None, at: Instant | None = None,
                 cookie: int = 0) -> None:
        """Arms without waiting; on_refused gets a refusal. Raises BufferError if posts_max
        requests have no answer."""
        self._post(Single(*self._calls.arm(id, ttl, at, cookie, None, False, False)))

    def post_refresh(self, id: int, *, ttl: Span | None = None,
                     at: Instant | None = None, later: bool = False) -> None:
        self._post(Single(*self._calls.refresh(id, ttl, at, later)))

    def post_cancel(self, id: int) -> None:
        self._post(Single(*self._calls.one(CANCEL, id)))

    def post_ack(self, ids: array[int]) -> None:
        """Acknowledges without waiting."""
        self._post(self._calls.many(ACK, ids))

    async def flush(self) -> None:
        """Waits until all that was posted is answered."""
        while self._session.posts:
            if self._session.state == states.ENDED:
                raise self._session.exception()
            await self._woken()

    # ------------------------------------------------------------------
    # Looking

    async def scan(self, most: int = 1024) -> AsyncIterator[Timer]:
        """Yields each timer of the queue. One that is armed throughout comes once."""
        cursor = 0
        while True:
            timers, cursor = await self.scan_part(cursor, most)
            for timer in timers:
                yield timer
            if not cursor:
                return

    async def scan_part(self, cursor: int = 0,
                        most: int = 1024) -> tuple[list[Timer], int]:
        """Returns some timers, and the cursor to go on with: 0 at the end."""
        timers, _, cursor = listed(await self._list(self._calls.scan(cursor, most)))
        return timers, cursor

    async def queues(self, cursor: int = 0, most: int = 256) -> tuple[list[Listed], int]:
        """Returns some queues of the server, and the cursor to go on with."""
        _, queues, cursor = listed(await self._list(self._calls.queues(cursor, most)))
        return queues, cursor

    async def stat(self) -> Stat:
        return stat_reply(await self._list(ListRequest(STAT)))

    async def drop(self) -> None:
        """Removes this named queue, for all clients."""
        accepted(reply_of(await self._one(self._calls.plain(DROP))))

    # ------------------------------------------------------------------
    # Expirations

    async def receive(self, most: int = 1024) -> Batch:
        """Returns some expirations, waiting for the first."""
        while not self._session.events:
            if self._session.state == states.ENDED:
                raise self._session.exception()
            await self._woken()
        batch = Batch(self._session.take(most), self.post_ack)
        self._kick()
        return batch

    async def batches(self, most: int = 1024) -> AsyncIterator[Batch]:
        """Yields expirations as they come, as buffers. Ends when the queue is closed."""
        while True:
            while not self._session.events:
                if self._session.state == states.ENDED:
                    if self._session.error == errno.ESHUTDOWN:
                        return
                    raise self._session.exception()
                await self._woken()
            batch = await self.receive(most)
            if len(batch):
                yield batch

    def __aiter__(self) -> Queue:
        return self

    async def __anext__(self) -> Due:
        while not self._ready:
            session = self._session
            if session.events:
                data = session.take(HANDED)
                self._kick()
                acknowledge = self.post_ack
                self._ready = [Due(record, acknowledge)
                               for record in RECORD.iter_unpack(data)]
                self._ready.reverse()
            elif session.state == states.ENDED:
                if session.error == errno.ESHUTDOWN:
                    raise StopAsyncIteration
                raise session.exception()
            else:
                await self._woken()
        return self._ready.pop()

    # ------------------------------------------------------------------
    # Life

    async def aclose(self) -> None:
        """Closes the connection. Waits a second at most for answers to what was posted.
        Calls that still wait raise Closed, and iterations end."""
        session = self._session
        try:
            if session.posts and session.state == states.UP:
                async with asyncio.timeout(CLOSE):
                    await self.flush()
        except (TimeoutError, OSError):
            pass
        finally:
            session.end(errno.ESHUTDOWN)
            await self._release()

    async def __aenter__(self) -> Queue:
        return self

    async def __aexit__(self, kind: type[BaseException] | None,
                        error: BaseException | None,
                        traceback: TracebackType | None) -> None:
        await self.aclose()

    async def _release(self) -> None:
        """Ends what runs for this queue, and waits for its end."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        task, self._task = self._task, None
        if task and task is not asyncio.current_task():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        protocol = self._protocol
        self._hang_up()
        if protocol:
            await protocol.ended
        # A connection that was aborted before is closed in the loop's next turn.
        await asyncio.sleep(0)

    def _hang_up(self) -> None:
        if self._protocol:
            self._protocol.is_lost = True
        if self._transport:
            self._transport.abort()
        self._transport = None
        self._protocol = None

    # ------------------------------------------------------------------
    # Input and output

    def _one(self, asked: Asked) -> asyncio.Future[Single]:
        """As _call(), of one request."""
        session = self._session
        request = Single(*asked)
        # What create_future() returns, without a call for it.
        future: asyncio.Future[Any] = asyncio.Future(loop=self._loop)
        request.waiter = future
        if not session.row and self._transport and session.begin_alone():
            # Before the turn ends: this spares a turn of the loop.
            session.submit_sent(request)
            self._transport.write(request.data)
            self._begin_watch()
        else:
            session.submit(request)
            if not self._flushing:
                self._kick()
        return future

    def _call(self, request: R) -> asyncio.Future[R]:
        """Returns what is done when the request is. Cancelled, it keeps its place in the
        row of answers."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if not request.count:
            future.set_result(request)
            return future
        request.waiter = future
        self._session.submit(request)
        self._kick()
        return future

    async def _list(self, request: ListRequest) -> ListRequest:
        await self._call(request)
        return request

    def _post(self, request: Request) -> None:
        if not request.count:
            return
        session = self._session
        if session.posts + request.count > self._options.posts_max and \
                session.posts:
            raise BufferError("%d posted requests have no answer" % session.posts)
        request.posted = True
        session.posts += request.count
        session.submit(request)
        self._kick()

    def _kick(self) -> None:
        """Sends at the end of this turn of the loop, once for all calls of the turn."""
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._send)

    def _send(self) -> None:
        self._flushing = False
        out = self._session.output() if self._transport else None
        if self._transport and out:
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))
        self._begin_watch()

    def _begin_watch(self) -> None:
        if self._options.timeout is not None and not self._timer:
            self._watch()

    def _watch(self) -> None:
        """Ends a connection whose server is silent while an answer is awaited."""
        timeout = self._options.timeout
        self._timer = None
        session = self._session
        if timeout is None or session.state == states.ENDED:
            return
        silent = session.silent_for()
        if silent >= timeout:
            session.timed_out()
            self._settle()
        if session.row or session.queue or session.first or \
                session.state in (states.GREETING, states.CHECKING):
            left = timeout - session.silent_for()
            self._timer = self._loop.call_later(max(left, 0.001), self._watch)

    def _received(self, buffer: memoryview, size: int) -> None:
        self._session.input(buffer, size)
        self._settle()

    def _lost(self, error: Exception | None) -> None:
        number = error.errno if isinstance(error, OSError) else None
        if number == errno.ENOTCONN:
            number = errno.EAGAIN       # asyncio takes a full backlog for a connection
        self._transport = None
        self._protocol = None
        self._session.lost(number or errno.ECONNRESET)
        self._settle()

    def _settle(self) -> None:
        """Follows the session's state after something happened."""
        session = self._session
        if session.state in (states.DOWN, states.ENDED):
            self._hang_up()
        if session.state == states.DOWN:
            self._ready.clear()
        if not self._task and (session.state == states.RESTORING or
                               session.state == states.DOWN and session.connections):
            self._task = self._loop.create_task(self._reconnect())
        if session.wants_output():
            self._kick()

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    async def _woken(self) -> None:
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)

    # ------------------------------------------------------------------
    # Connections

    async def _open(self) -> Queue:
        self._loop = asyncio.get_running_loop()
        session = self._session
        try:
            await self._attach()
            while session.state not in (states.UP, states.ENDED):
                await self._woken()
        except BaseException:
            session.end(errno.ESHUTDOWN)
            await self._release()
            raise
        if session.state == states.ENDED:
            await self._release()
            raise session.refusal or session.exception()
        return self

    async def _attach(self) -> None:
        """Makes one attempt to connect."""
        session = self._session
        greeting = session.greeting()
        try:
            async with asyncio.timeout(self._options.timeout):
                transport, protocol = await self._loop.create_unix_connection(
                    lambda: Protocol(self), self._path)
        except OSError as error:
            number = errno.ETIMEDOUT if isinstance(error, TimeoutError) else error.errno
            session.attempt_failed(NotAttached(number or errno.EIO, HELLO, self._path))
            return
        if session.state != states.GREETING:
            protocol.is_lost = True
            transport.abort()
            return
        self._transport, self._protocol = transport, protocol
        transport.write(greeting)
        self._kick()

    async def _reconnect(self) -> None:
        """Runs from the loss of a connection until the next one is usable."""
        session = self._session
        try:
            while session.state not in (states.UP, states.ENDED):
                if session.state == states.DOWN:
                    await asyncio.sleep(max(session.retry_at - time.monotonic(), 0))
                    if session.state == states.DOWN:
                        await self._attach()
                elif session.state == states.RESTORING:
                    await self._restore()
                else:
                    await self._woken()
        finally:
            if self._task is asyncio.current_task():
                self._task = None
        self._settle()

    async def _restore(self) -> None:
        session = self._session
        assert self._options.restore
        try:
            rows = self._options.restore()
            part: list[tuple[int, Instant, int]] = []
            if isinstance(rows, AsyncIterable):
                async for row in rows:
                    part.append(row)
                    if len(part) == RESTORE_BATCH:
                        if not await self._restore_part(part):
                            return
                        part = []
                if part and not await self._restore_part(part):
                    return
            else:
                iterator = iter(rows)
                while part := list(itertools.islice(iterator, RESTORE_BATCH)):
                    if not await self._restore_part(part):
                        return
            session.restored()
        except Exception as error:
            session.restored(error)
        self._settle()

    async def _restore_part(self, rows: list[tuple[int, Instant, int]]) -> bool:
        """Returns False if the connection was lost: all is to be restored anew."""
        session = self._session
        part = Part(self._calls.restore(rows))
        while part.request:
            if session.state != states.RESTORING:
                return False
            request = part.request
            future: asyncio.Future[Any] = self._loop.create_future()
            request.waiter = future
            session.first.append(request)
            self._kick()
            await future
            if request.error:
                return False
            pause = part.answered()
            if pause:
                await asyncio.sleep(pause)
        return True
