#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What only a program in Python sees: types of errors, datetimes, `async with`, tasks and
descriptors that are left. The rest is in the vectors and scenarios."""

import asyncio
import contextlib
import ctypes
import errno
import gc
import math
import os
import socket
import sys
import tempfile
import threading
import time
from array import array
from datetime import datetime, timedelta, timezone

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "socket"))

import tap                              # noqa: E402
from daemon import ROOT, Daemon         # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "clients", "python", "src"))

import expiry                           # noqa: E402
from expiry import explanations, names, restore, times, wire    # noqa: E402

KEY = bytes(16)
HOUR = 3600


def raises(kind, function, *args, **keywords):
    try:
        function(*args, **keywords)
    except kind as error:
        return error
    raise AssertionError("no %s: %s %s" % (kind.__name__, args, keywords))


def left():
    gc.collect()
    return len(os.listdir("/proc/self/fd")), threading.active_count()


def run(main):
    """Runs a coroutine: no task and no descriptor may be left."""
    before = left()

    async def all():
        await asyncio.wait_for(main, 60)
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        assert not tasks, tasks
        # The loop has its own.
        assert len(os.listdir("/proc/self/fd")) <= before[0] + 4, os.listdir("/proc/self/fd")
    asyncio.run(all())
    assert left() == before, (left(), before)


def test_texts_of_errors_are_those_of_the_library():
    library = ctypes.CDLL(os.path.join(ROOT, "build", "libexpiry.so.0"))
    library.expiry_explain.restype = ctypes.c_char_p
    # Each op that has texts of its own, and one without.
    ops = {op for op, _ in explanations.EXPLANATIONS} | {wire.MISSED}
    pairs = [(op, number) for op in sorted(ops) for number in errno.errorcode]
    for op, number in pairs:
        wanted = library.expiry_explain(number, op).decode()
        assert expiry.explain(number, op) == expiry.explain(-number, op) == wanted, \
            (op, errno.errorcode[number], wanted)
    # Ops of the library's texts that Python's have not would be missed above.
    for op in set(range(256)) - ops:
        for number in errno.errorcode:
            assert library.expiry_explain(number, op) == library.expiry_explain(number, 0)


def test_the_version_is_that_of_the_project():
    with open(os.path.join(ROOT, "VERSION"), encoding="utf-8") as file:
        assert expiry.__version__ == file.read().strip()


def test_times_are_exact_or_refused():
    utc, east = timezone.utc, timezone(timedelta(hours=5, minutes=30))
    assert times.span_ns(1.5) == 1500000000 and times.span_ns(0) == 0
    assert times.span_ns(10**9) == 10**18
    assert times.span_ns(timedelta(microseconds=1)) == 1000
    assert times.span_ns(timedelta(days=10000, microseconds=1)) == 864000000 * 10**9 + 1000
    assert times.instant_ns(datetime(2026, 1, 2, 3, 4, 5, 678901, utc), 0) == \
        1767323045678901000
    assert times.instant_ns(datetime(2026, 1, 2, 8, 34, 5, 678901, east), 0) == \
        1767323045678901000
    assert times.period_ms(0.25) == 250 and times.period_ms(None) == 0
    for span in -1, -0.1, math.nan, math.inf, 2**65, timedelta(seconds=-1):
        raises(expiry.OutOfRange, times.span_ns, span)
    for span in "1", True, None, b"":
        raises(TypeError, times.span_ns, span)
    for period in 0, 0.0001, 2**32, 1e-9:
        raises(expiry.OutOfRange, times.period_ms, period)
    raises(expiry.NaiveDatetime, times.instant_ns, datetime(2026, 1, 1), 0)
    raises(expiry.OutOfRange, times.instant_ns, datetime(1969, 1, 1, tzinfo=utc), 0)
    raises(ValueError, times.instant_ns, datetime(2026, 1, 1, tzinfo=utc),
           expiry.MONOTONIC)
    for at in -1, 2**64:
        raises(expiry.OutOfRange, times.instant_ns, at, 0)
    raises(TypeError, times.instant_ns, 1.5, 0)


def test_options_that_cannot_be_are_refused():
    connect = expiry.sync.connect
    for options in ({"queue": "a/b"}, {"queue": "x" * 25}, {"queue": "\u00e4"},
                    {"clock": 5}, {"credit": 0}, {"credit": 2**21}, {"timeout": 0},
                    {"reconnect": True}, {"queue": "q", "reconnect": True},
                    {"restore": list}, {"observe": True}, {"existing": True, "ack": True},
                    {"posts_max": 0}):
        raises(ValueError, connect, path="/nowhere", **options)
        raises(ValueError, expiry.connect, path="/nowhere", **options)


def test_calls_out_of_range_send_nothing(daemon):
    naive, aware = datetime(2030, 1, 1), datetime(2030, 1, 1, tzinfo=timezone.utc)
    with expiry.sync.connect("q5", path=daemon.path, keyed=True, consume=False) as queue:
        records = queue.stat().server["records"]
        for kind, call in (
                (expiry.OutOfRange, lambda: queue.arm(0, ttl=1)),
                (expiry.OutOfRange, lambda: queue.arm(2**64, ttl=1)),
                (expiry.OutOfRange, lambda: queue.arm(-1, ttl=1)),
                (expiry.OutOfRange, lambda: queue.arm(1, ttl=1, cookie=2**64)),
                (expiry.OutOfRange, lambda: queue.cancel(0)),
                (expiry.OutOfRange, lambda: queue.ack(2**64)),
                (expiry.OutOfRange, lambda: queue.query(-5)),
                (expiry.OutOfRange, lambda: queue.refresh(0, ttl=1)),
                (expiry.OutOfRange, lambda: queue.arm_many([1, 0], ttl=1)),
                (expiry.OutOfRange, lambda: queue.arm_many([1, 2**64], ttl=1)),
                (expiry.OutOfRange, lambda: queue.cancel_many([-1])),
                (expiry.OutOfRange, lambda: queue.arm_many([1], deadlines=[-1])),
                (ValueError, lambda: queue.arm_many([1, 2], deadlines=[1])),
                (expiry.NaiveDatetime, lambda: queue.arm(1, at=naive)),
                (expiry.NaiveDatetime, lambda: queue.refresh_many([1], at=naive)),
                (TypeError, lambda: queue.arm(1)),
                (TypeError, lambda: queue.arm(1, ttl=1, at=aware)),
                (TypeError, lambda: queue.arm(ttl=1)),
                (TypeError, lambda: queue.arm("1", ttl=1)),
                (TypeError, lambda: queue.arm(1.0, ttl=1)),
                (TypeError, lambda: queue.arm(True, ttl=1)),
                (TypeError, lambda: queue.arm_many(count=1, ttl=1))):
            raises(kind, call)
        assert queue.stat().server["records"] == records + 1
        assert queue.arm(1, at=aware).deadline == 1893456000 * 10**9
        queue.drop()


def test_what_was_refused_is_known(daemon):
    with expiry.sync.connect("q6", path=daemon.path, keyed=True) as queue:
        queue.arm(2, ttl=HOUR)
        error = raises(expiry.Refused, queue.arm, 2, ttl=1, new=True)
        assert (error.errno, error.id, error.op) == (errno.EEXIST, 2, wire.ARM)
        assert "armed already" in error.__notes__[0]
        group = raises(expiry.Refusals, queue.arm_many, [1, 2, 3], ttl=1, new=True)
        assert [(one.index, one.id, one.errno) for one in group.exceptions] == \
            [(1, 2, errno.EEXIST)]
        assert group.total == 1 and group.replies.done == 2
        assert list(group.replies.statuses) == [0, -errno.EEXIST, 0]
        assert queue.cancel_many([1, 9, 3]).refused() == [(1, errno.ENOENT)]
        assert queue.cancel(9) is False and queue.refresh(9, ttl=1) is None
        assert queue.query(9) is None and queue.cancel(2) is True
        raises(expiry.Refused, queue.ack, 2)
        queue.drop()
    error = raises(expiry.NotAttached, expiry.sync.connect, path="/nowhere/s")
    assert error.errno == errno.ENOENT and "/nowhere/s" in str(error)


def test_columns_are_any_integers(daemon):
    with expiry.sync.connect("q7", path=daemon.path, keyed=True, consume=False) as queue:
        for ids in (range(1, 4), [1, 2, 3], array("Q", [1, 2, 3]), array("I", [1, 2, 3]),
                    (n for n in (1, 2, 3)), memoryview(array("Q", [1, 2, 3]))):
            replies = queue.arm_many(ids, ttl=HOUR, cookies=[7, 8, 9])
            assert list(replies.ids) == [1, 2, 3] and replies.done == 3
        assert queue.query(3).cookie == 9
        assert len(queue.arm_many([], ttl=1)) == 0
        assert sorted(timer.id for timer in queue.scan(2)) == [1, 2, 3]
        queue.drop()


def test_with_acknowledges_unless_an_exception_leaves_it(daemon):
    def connect():
        return expiry.sync.connect("q8", path=daemon.path, keyed=True, ack=True)
    with connect() as queue:
        queue.arm_many([1, 2, 3, 4], ttl=0)
        seen = []
        with contextlib.suppress(KeyError):
            for due in queue:
                with due:
                    seen.append(due.id)
                    if due.id == 2:
                        raise KeyError
        assert seen == [1, 2]
        queue.flush()
        assert queue.stat().queue["acks"] == 1
    with connect() as queue:
        with queue.receive(10, 10) as batch:
            assert list(batch.ids) == [2, 3, 4]
            assert all(timer.redelivered for timer in batch)
    with connect() as queue:
        assert not queue.receive(10, 0.05)
        queue.drop()


def test_query_says_whether_a_delivery_waits(daemon):
    """Of a periodic timer, which is armed meanwhile."""
    with expiry.sync.connect("q19", path=daemon.path, keyed=True, ack=True) as queue:
        queue.arm(1, ttl=0, period=HOUR)
        with queue.receive(1, 10):
            assert queue.query(1).redelivered
        queue.flush()
        assert not queue.query(1).redelivered
        queue.drop()


def test_async_with_acknowledges(daemon):
    async def main():
        async with expiry.connect("q9", path=daemon.path, keyed=True, ack=True) as queue:
            await queue.arm_many(range(1, 6), ttl=0)
            async for due in queue:
                async with due:
                    pass
                if due.id == 5:
                    break
        queue = await expiry.connect("q9", path=daemon.path, keyed=True, ack=True)
        assert (await queue.stat()).queue["unacked"] == 0
        await queue.drop()
        await queue.aclose()
    run(main())


def test_calls_of_a_turn_are_sent_together(daemon):
    async def main():
        async with expiry.connect("q10", path=daemon.path, keyed=True) as queue:
            await queue.query(1)        # with it goes the credit
            writes = []
            transport = queue._transport

            class Counting:
                def __getattr__(self, name):
                    return getattr(transport, name)

                def write(self, data):
                    writes.append(len(data))
                    transport.write(data)
            queue._transport = Counting()
            await asyncio.gather(*(queue.arm(id, ttl=HOUR) for id in range(1, 101)))
            for id in range(1, 101):
                queue.post_refresh(id, ttl=2 * HOUR)
            await queue.flush()
            # A call that finds nothing under way does not wait for others.
            assert writes == [32, 3168, 3200], writes
            await queue.drop()
    run(main())


def test_posts_are_bounded_and_report_refusals(daemon):
    refused = []

    async def main():
        async with expiry.connect("q11", path=daemon.path, keyed=True, posts_max=10,
                                  on_refused=lambda *what: refused.append(what)) as queue:
            for id in range(1, 11):
                queue.post_cancel(id)
            raises(BufferError, queue.post_cancel, 11)
            await queue.flush()
            queue.post_arm(11, ttl=HOUR)
            await queue.flush()
            assert await queue.cancel(11)
            await queue.drop()
    run(main())
    assert refused == [(wire.CANCEL, id, errno.ENOENT) for id in range(1, 11)]


def test_closing_ends_iterations_and_calls(daemon):
    async def main():
        queue = await expiry.connect("q12", path=daemon.path)

        async def consume():
            return [due async for due in queue]

        async def batches():
            return [batch async for batch in queue.batches()]
        tasks = [asyncio.create_task(one()) for one in (consume, batches)]
        with daemon.halted():
            call = asyncio.create_task(queue.arm(ttl=5))
            await asyncio.sleep(0.05)
            await queue.aclose()
            assert await asyncio.gather(*tasks) == [[], []]
            (error,) = await asyncio.gather(call, return_exceptions=True)
        assert isinstance(error, expiry.Closed) and error.doubtful == 1, error
        (error,) = await asyncio.gather(queue.arm(ttl=5), return_exceptions=True)
        assert isinstance(error, expiry.Closed) and error.unsent == 1, error
        await queue.aclose()
    run(main())


@contextlib.contextmanager
def silent():
    """A server that takes connections and never answers."""
    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(folder, "s")
        listener.bind(path)
        listener.listen(8)
        yield path


def test_a_server_that_hangs_is_left():
    with silent() as path:
        async def main():
            begun = time.monotonic()
            try:
                await expiry.connect(path=path, timeout=0.2)
                raise AssertionError("it answered")
            except expiry.NotAttached as error:
                assert error.errno == errno.ETIMEDOUT
            assert time.monotonic() - begun < 5
            # The program's own limit, or a cancelled task.
            try:
                async with asyncio.timeout(0.1):
                    await expiry.connect(path=path)
                raise AssertionError("it answered")
            except TimeoutError:
                pass
        run(main())
        before = left()
        error = raises(expiry.NotAttached, expiry.sync.connect, path=path, timeout=0.2)
        assert error.errno == errno.ETIMEDOUT and left() == before


def test_a_silent_server_is_a_timeout(daemon):
    async def main():
        async with expiry.connect("q14", path=daemon.path, keyed=True,
                                  timeout=0.3) as queue:
            with daemon.halted():
                try:
                    await queue.arm(1, ttl=5)
                    raise AssertionError("it answered")
                except TimeoutError as error:
                    assert isinstance(error, expiry.TimedOut) and error.doubtful == 1
    run(main())


def test_restore_may_be_asynchronous_and_may_fail(daemon):
    async def rows():
        for id in range(1, 1001):
            yield id, datetime(2100, 1, 1, tzinfo=timezone.utc), id

    def failing():
        yield 1, 10**19, 0
        raise LookupError("the truth is not there")

    async def main():
        async with expiry.connect("q15", path=daemon.path, keyed=True,
                                  restore=rows) as queue:
            assert (await queue.query(1000)).cookie == 1000
            await queue.drop()
        try:
            await expiry.connect("q15", path=daemon.path, keyed=True, restore=failing)
            raise AssertionError("it was attached")
        except expiry.RestoreFailed as error:
            assert isinstance(error.__cause__, LookupError)
    run(main())
    before = left()
    error = raises(expiry.RestoreFailed, expiry.sync.connect, "r15", path=daemon.path,
                   keyed=True, restore=failing)
    assert isinstance(error.__cause__, LookupError) and left() == before


class Busy(threading.Thread):
    """A server of one connection to an empty keyed queue. Its answer to the ARM of each
    id is -EBUSY for the first @refusals[id] times, or -@other for one of these ids.

    @armed: ids in their order; @times: when each ARM came
    """

    def __init__(self, path, refusals, others=None):
        super().__init__()
        self.refusals, self.others = dict(refusals), others or {}
        self.armed, self.times = [], []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(1)
        self.start()

    def run(self):
        with self.listener, self.listener.accept()[0] as stream:
            while data := stream.recv(32, socket.MSG_WAITALL):
                stream.sendall(self.answer(*wire.RECORD.unpack(data)))

    def answer(self, op, flags, _, period, id, deadline, cookie):
        status = 0
        if op == wire.HELLO:
            return wire.RECORD.pack(op, flags, 0, period, 0, 0, 8)
        assert op == wire.ARM, op
        self.times.append(time.monotonic())
        if self.refusals.get(id):
            self.refusals[id] -= 1
            status = -errno.EBUSY
        elif id in self.others:
            status = -self.others[id]
        else:
            self.armed.append(id)
        return wire.RECORD.pack(op, flags, status, period, id, deadline, cookie)


def restored_from(rows, refusals, others=None):
    """Yields for each style a busy server, and a function that connects to it."""
    with tempfile.TemporaryDirectory() as folder:
        for style in "sync", "asyncio":
            path = os.path.join(folder, style)
            server = Busy(path, refusals, others)
            options = {"path": path, "keyed": True, "consume": False,
                       "restore": lambda: iter(rows)}

            async def main(options=options):
                async with expiry.connect("busy", **options):
                    pass

            def connect(style=style, options=options, main=main):
                if style == "sync":
                    expiry.sync.connect("busy", **options).close()
                else:
                    asyncio.run(main())
            yield server, connect
            server.join(10)
            assert not server.is_alive()


def test_restore_sends_again_what_a_busy_server_refused():
    rows = [(id, 10**19, id) for id in range(1, 1001)]
    # Of both parts, one row alone, and the last one six times.
    refusals = {id: 1 for id in range(3, 40)} | {600: 2, 1000: 6}
    for server, connect in restored_from(rows, refusals):
        connect()
        assert sorted(server.armed) == list(range(1, 1001)), server.armed
        assert len(server.times) == 1000 + sum(refusals.values()), len(server.times)
        # 600 is armed by the third attempt; from there on: 10, 20, 40, 80 ms.
        last = server.times[-5:]
        gaps = [after - before for before, after in zip(last, last[1:])]
        assert all(gap >= 0.01 * 2**n for n, gap in enumerate(gaps)), gaps


def test_restore_fails_by_a_server_that_stays_busy():
    limit = 0.5
    rows = [(id, 10**19, id) for id in range(1, 4)]
    was, restore.REFUSED = restore.REFUSED, limit
    assert was == 5.0
    try:
        for server, connect in restored_from(rows, {2: 10**6}):
            error = raises(expiry.RestoreFailed, connect)
            assert error.errno == errno.EBUSY and server.armed == [1, 3], error
            assert limit <= server.times[-1] - server.times[1] < limit + 5
        # A refusal for another reason is one at once, whoever else is busy.
        for server, connect in restored_from(rows, {2: 10**6}, {3: errno.ENOSPC}):
            error = raises(expiry.RestoreFailed, connect)
            assert error.errno == errno.ENOSPC and len(server.times) == 3, error
    finally:
        restore.REFUSED = was


def test_nothing_is_left_while_it_reconnects():
    other = Daemon()
    with other:
        async def main():
            queue = await expiry.connect("q16", path=other.path, keyed=True, ack=True,
                                         reconnect=True)
            other.process.kill()
            other.process.wait()
            call = asyncio.create_task(queue.arm(1, ttl=5))
            await asyncio.sleep(0.1)
            await queue.aclose()
            (error,) = await asyncio.gather(call, return_exceptions=True)
            assert isinstance(error, expiry.Closed), error
        try:
            run(main())
        finally:
            other.end = lambda: 0


class Same(names.Names):
    """All names have one id."""

    def id(self, name):
        return 2**64 - 1


def test_names_collide_visibly_and_outlive_the_program():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "names")
        for make in expiry.MemoryStore, lambda: expiry.SqliteStore(path):
            keeper = expiry.Names(KEY, make())
            ids = {keeper.put("name %d" % n, b"value %d" % n): n for n in range(3000)}
            assert any(id >= 2**63 for id in ids) and len(ids) == 3000
            for id, n in ids.items():
                assert keeper.get(id) == (b"name %d" % n, b"value %d" % n)
            assert keeper.put("name 1", b"new") == keeper.id("name 1")
            assert keeper.get(keeper.id("name 1")) == (b"name 1", b"new")
            gone = list(ids)[:1000]
            keeper.delete(*gone)
            assert keeper.get(gone[0]) is None
            there = set(list(ids)[1500:]) | {5}
            arm, cancel = keeper.compare(there)
            assert sorted(arm) == sorted(list(ids)[1000:1500]) and cancel == [5]
            keeper.close()
            same = Same(KEY, make())
            same.put("one", b"1")
            raises(expiry.Collision, same.put, "two", b"2")
            assert same.get(2**64 - 1) == (b"one", b"1")
            same.close()
        assert expiry.Names(KEY, expiry.SqliteStore(path)).get(2**64 - 1) == (b"one", b"1")
    raises(expiry.OutOfRange, expiry.Names, b"short")


if __name__ == "__main__":
    tap.main()
