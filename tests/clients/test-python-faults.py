#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Each fault of a server has an error of its own type in Python, which says what was carried
out. Both styles, with a server that the test plays."""

import asyncio
import contextlib
import errno
import os
import socket
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "socket"),
                os.path.join(HERE, "..", "..", "clients", "python", "src")]

import tap                              # noqa: E402

import expiry                           # noqa: E402
from expiry import wire                 # noqa: E402

LIMIT = 20
WINDOW = 2
GARBAGE = bytes(range(255, 223, -1))


def hello(status=0):
    return wire.RECORD.pack(wire.HELLO, 0, status, 0, 0, 0, WINDOW)


@contextlib.contextmanager
def played_by(play):
    """Yields the path of a socket that @play(listener) serves, in a thread."""
    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(folder, "s")
        listener.bind(path)
        listener.listen()
        listener.settimeout(LIMIT)
        thread = threading.Thread(target=play, args=(listener,))
        thread.start()
        try:
            yield path
        finally:
            thread.join()


def server(*steps):
    """Plays a server: a number reads that many records, bytes are sent, None waits for the
    client to go. Then it ends the connection."""
    def play(listener):
        with listener.accept()[0] as connection:
            connection.settimeout(LIMIT)
            for step in steps:
                if step is None:
                    connection.recv(1)
                elif isinstance(step, int):
                    connection.recv(step * wire.SIZE, socket.MSG_WAITALL)
                else:
                    connection.sendall(step)
    return played_by(play)


def blocking(path):
    with expiry.sync.connect(path=path, keyed=True, consume=False, timeout=0.3) as queue:
        queue.cancel_many([1, 2, 3, 4])


def asynchronous(path):
    async def main():
        async with expiry.connect(path=path, keyed=True, consume=False,
                                  timeout=0.3) as queue:
            await queue.cancel_many([1, 2, 3, 4])
    asyncio.run(main())


def error_of(*steps):
    """Yields the error that each style raises."""
    for use in blocking, asynchronous:
        with server(*steps) as path:
            try:
                use(path)
            except expiry.ExpiryError as error:
                yield error
            else:
                raise AssertionError("no error")


def test_a_server_that_cannot_be_attached_to():
    for kind, number, *steps in (
            (expiry.UnsupportedVersion, errno.EPROTONOSUPPORT, 1,
             hello(-errno.EPROTONOSUPPORT)),
            (expiry.NotAttached, errno.EACCES, 1, hello(-errno.EACCES)),
            (expiry.ProtocolError, errno.EPROTO, 1, b"HTTP/1.1 400 Bad Request\r\n\r\n....."),
            (expiry.NotAttached, errno.ECONNRESET, 1),
            (expiry.NotAttached, errno.ETIMEDOUT, 1, None)):
        for error in error_of(*steps):
            assert type(error) is kind and error.errno == number, (kind, steps, error)


def test_a_server_that_fails_in_a_batch():
    """Of four requests one is answered, two are in doubt, and one was not sent."""
    answer = wire.RECORD.pack(wire.CANCEL, 0, 0, 0, 1, 0, 0)
    lie = wire.RECORD.pack(wire.QUERY, 0, 0, 0, 2, 0, 0)
    for kind, number, *fault in (
            (expiry.ConnectionLost, errno.ECONNRESET),
            (expiry.ConnectionLost, errno.ECONNRESET, answer[:9]),
            (expiry.ProtocolError, errno.EPROTO, lie, None),
            (expiry.ProtocolError, errno.EPROTO, GARBAGE, None),
            (expiry.ProtocolError, errno.EPROTO, hello(), None),
            (expiry.TimedOut, errno.ETIMEDOUT, None)):
        for error in error_of(1, hello(), 2, answer, 1, *fault):
            assert type(error) is kind and error.errno == number, (kind, fault, error)
            assert (error.answered, error.doubtful, error.unsent) == (1, 2, 1), (fault, error)
            assert "1 answered, 2 may have been carried out, 1 not sent" in str(error)


def test_receive_ends_in_time_while_it_reconnects():
    """The server is silent before it answers HELLO, and before it answers restore. What was
    begun is continued by the next call."""
    released, restores = [threading.Event(), threading.Event()], []

    def get(connection, count):
        return connection.recv(count * wire.SIZE, socket.MSG_WAITALL)

    def play(listener):
        with listener.accept()[0] as first:
            get(first, 1)
            first.sendall(hello())
            arm = get(first, 1)
            first.sendall(arm)
        with listener.accept()[0] as second:
            get(second, 2)
            released[0].wait(4)
            second.sendall(hello() + wire.RECORD.pack(wire.STAT, 0, 0, 16, 0, 0, 0) +
                           bytes(16 * wire.SIZE))
            arm = get(second, 1)
            released[1].wait(4)
            second.sendall(arm)
            assert get(second, 1)[0] == wire.CREDIT
            second.sendall(wire.RECORD.pack(wire.EXPIRED, 0, 0, 0, 7, 0, 0))
            second.recv(1)

    def restore():
        restores.append(0)
        return [(7, 10**18, 0)]

    with played_by(play) as path, \
            expiry.sync.connect("q", path=path, keyed=True, ack=True, reconnect=True,
                                restore=restore) as queue:
        for event in released:
            for timeout in 0, 0.1, 0.1:
                begun = time.monotonic()
                assert not len(queue.receive(timeout=timeout))
                took = time.monotonic() - begun
                assert timeout <= took < 2, took
            event.set()
        (due,) = queue.receive(timeout=LIMIT)
        assert due.id == 7 and queue.connections == 2 and len(restores) == 2, restores


def test_a_full_backlog_is_a_pause():
    async def main(path, listener):
        loop = asyncio.get_running_loop()
        opening = asyncio.ensure_future(expiry.connect(
            "q", path=path, keyed=True, consume=False, reconnect=True))
        with (await loop.sock_accept(listener))[0] as first:
            await loop.sock_recv(first, wire.SIZE)
            await loop.sock_sendall(first, hello())
            queue = await opening
            waiting = fill(path)
        call = asyncio.create_task(queue.query(1))
        await asyncio.sleep(0.2)
        assert not call.done(), call
        for one in waiting:
            one.close()
            (await loop.sock_accept(listener))[0].close()
        with (await loop.sock_accept(listener))[0] as second:
            assert len(await loop.sock_recv(second, 2 * wire.SIZE)) == 2 * wire.SIZE
            await loop.sock_sendall(second, hello() + wire.RECORD.pack(
                wire.STAT, 0, 0, 16, 0, 0, 0) + bytes(16 * wire.SIZE))
            assert (await loop.sock_recv(second, wire.SIZE))[0] == wire.QUERY
            await loop.sock_sendall(second, wire.RECORD.pack(
                wire.QUERY, 0, -errno.ENOENT, 0, 1, 0, 0))
            assert await call is None
            await queue.aclose()

    def fill(path):
        """Returns connections that fill the backlog."""
        made = []
        with contextlib.suppress(BlockingIOError):
            for _ in range(9):
                one = socket.socket(socket.AF_UNIX)
                one.setblocking(False)
                one.connect(path)
                made.append(one)
            raise AssertionError("the backlog is not full")
        one.close()
        return made

    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX) as listener:
        path = os.path.join(folder, "s")
        listener.bind(path)
        listener.listen(0)
        listener.setblocking(False)
        asyncio.run(asyncio.wait_for(main(path, listener), LIMIT))


if __name__ == "__main__":
    tap.main()
