#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Driver: the Python client, or redis-py beside it, by orders on standard input: a style
and an op. Prints the processor time and the time of that work, as JSON.

    client-python.py EXPIRYD_SOCKET [REDIS_SOCKET]

    sync|asyncio single    BATCHES' ops one by one: ARM, REFRESH, CANCEL in turn
    sync|asyncio batch     the same in batches of 512
    asyncio tasks          100 tasks with an op each
    sync|asyncio consume   a million is taken one by one, after it was armed
    sync|asyncio floor     single without the client: bytes, a socket or a transport
    uvloop single|batch|tasks|consume|floor      as asyncio, on that loop
    redis batch            pipelines of 512: ZADD, ZADD, ZREM in turn
    redis-asyncio tasks    100 tasks with a ZADD each
"""

import asyncio
import json
import pathlib
import socket
import struct
import sys
import time
from array import array

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "clients/python/src"))

import expiry       # noqa: E402

BATCH = 512
SINGLES = 9000
BATCHES = 600
TASKS = 100
ROUNDS = 60
CONSUMED = 200000
HOUR = 3600


class Watch:
    """Takes processor time and time; p50 of single calls."""

    def __init__(self):
        self.times = []

    def __enter__(self):
        self.cpu, self.begun = time.process_time_ns(), time.perf_counter_ns()
        return self

    def __exit__(self, *_):
        self.cpu = time.process_time_ns() - self.cpu
        self.took = time.perf_counter_ns() - self.begun

    def took_since(self, begun):
        """Keeps the time of a call. Returns when the next one begins."""
        self.times.append(time.perf_counter_ns() - begun)
        return time.perf_counter_ns()

    def row(self, ops):
        times = sorted(self.times)
        return {"ns": self.cpu / ops, "took": self.took / ops,
                "p50": times[len(times) // 2] if times else 0}


def batches():
    return [array("Q", range(1 + at * BATCH, 1 + (at + 1) * BATCH))
            for at in range(BATCHES // 3)]


def sync_single(queue):
    with Watch() as watch:
        for id in range(1, SINGLES // 3 + 1):
            begun = time.perf_counter_ns()
            queue.arm(id, ttl=HOUR)
            begun = watch.took_since(begun)
            queue.refresh(id, ttl=HOUR)
            begun = watch.took_since(begun)
            queue.cancel(id)
            watch.took_since(begun)
    return watch.row(SINGLES)


def sync_batch(queue):
    with Watch() as watch:
        for ids in batches():
            queue.arm_many(ids, ttl=HOUR)
            queue.refresh_many(ids, ttl=HOUR)
            queue.cancel_many(ids)
    return watch.row(BATCHES * BATCH)


def sync_consume(queue):
    queue.arm_many(range(1, CONSUMED + 1), ttl=0)
    left = CONSUMED
    with Watch() as watch:
        for due in queue:
            left -= 1
            if not left:
                break
    return watch.row(CONSUMED)


async def asyncio_single(queue):
    with Watch() as watch:
        for id in range(1, SINGLES // 3 + 1):
            begun = time.perf_counter_ns()
            await queue.arm(id, ttl=HOUR)
            begun = watch.took_since(begun)
            await queue.refresh(id, ttl=HOUR)
            begun = watch.took_since(begun)
            await queue.cancel(id)
            watch.took_since(begun)
    return watch.row(SINGLES)


async def asyncio_batch(queue):
    with Watch() as watch:
        for ids in batches():
            await queue.arm_many(ids, ttl=HOUR)
            await queue.refresh_many(ids, ttl=HOUR)
            await queue.cancel_many(ids)
    return watch.row(BATCHES * BATCH)


async def asyncio_tasks(queue):
    async def work(id):
        for _ in range(ROUNDS):
            await queue.arm(id, ttl=HOUR)
    with Watch() as watch:
        await asyncio.gather(*(work(id) for id in range(1, TASKS + 1)))
    return watch.row(TASKS * ROUNDS)


async def asyncio_consume(queue):
    await queue.arm_many(range(1, CONSUMED + 1), ttl=0)
    left = CONSUMED
    with Watch() as watch:
        async for due in queue:
            left -= 1
            if not left:
                break
    return watch.row(CONSUMED)


RECORD = struct.Struct("=BBhIQQQ")


def attach():
    """Returns the HELLO of a keyed queue that ends with the connection."""
    return struct.pack("=BBhI24s", 64, 8, 1, 0, b"")


def requests():
    """Yields the records of BATCHES' ops one by one."""
    for id in range(1, SINGLES // 3 + 1):
        for op, flags, deadline in (1, 1, HOUR * 10**9), (2, 1, HOUR * 10**9), (3, 0, 0):
            yield op, flags, 0, 0, id, deadline, 0


def sync_floor(path):
    buffer = bytearray(65536)
    with socket.socket(socket.AF_UNIX) as connection, Watch() as watch:
        connection.connect(path)
        connection.sendall(attach())
        connection.recv_into(buffer)
        for request in requests():
            begun = time.perf_counter_ns()
            connection.sendall(RECORD.pack(*request))
            connection.recv_into(buffer)
            reply = RECORD.unpack_from(buffer)
            watch.took_since(begun)
            assert reply[0] == request[0] and not reply[2]
    return watch.row(SINGLES)


class Floor(asyncio.BufferedProtocol):
    """A connection that only tells that bytes came."""

    def __init__(self):
        self.buffer = bytearray(65536)
        self.came = None

    def get_buffer(self, _):
        return self.buffer

    def buffer_updated(self, _):
        self.came.set_result(None)


async def asyncio_floor(path):
    loop = asyncio.get_running_loop()
    transport, floor = await loop.create_unix_connection(Floor, path)
    floor.came = loop.create_future()
    transport.write(attach())
    await floor.came
    with Watch() as watch:
        for request in requests():
            begun = time.perf_counter_ns()
            floor.came = loop.create_future()
            transport.write(RECORD.pack(*request))
            await floor.came
            reply = RECORD.unpack_from(floor.buffer)
            watch.took_since(begun)
            assert reply[0] == request[0] and not reply[2]
    transport.abort()
    return watch.row(SINGLES)


def redis_batch(client):
    with Watch() as watch:
        for ids in batches()[:BATCHES // 30]:
            for op in "ZADD", "ZADD", "ZREM":
                pipeline = client.pipeline(transaction=False)
                for id in ids:
                    if op == "ZADD":
                        pipeline.zadd("due", {str(id): time.time() + HOUR})
                    else:
                        pipeline.zrem("due", str(id))
                pipeline.execute()
    return watch.row(BATCHES // 30 * 3 * BATCH)


async def redis_asyncio_tasks(path):
    import redis.asyncio
    client = redis.asyncio.Redis(unix_socket_path=path)

    async def work(id):
        for _ in range(ROUNDS):
            await client.zadd("due", {str(id): time.time() + HOUR})
    await client.ping()
    try:
        with Watch() as watch:
            await asyncio.gather(*(work(id) for id in range(1, TASKS + 1)))
        return watch.row(TASKS * ROUNDS)
    finally:
        await client.close()


def order(style, op, path, redis_path):
    if style == "redis-asyncio":
        return asyncio.run(redis_asyncio_tasks(redis_path))
    if style == "redis":
        import redis
        client = redis.Redis(unix_socket_path=redis_path)
        try:
            return redis_batch(client)
        finally:
            client.close()
    options = {"path": path, "keyed": True, "consume": op == "consume", "credit": 4096}
    if style == "sync" and op == "floor":
        return sync_floor(path)
    if style == "sync":
        with expiry.sync.connect("bench-" + op, **options) as queue:
            return globals()["sync_" + op](queue)

    async def main():
        if op == "floor":
            return await asyncio_floor(path)
        async with expiry.connect("bench-" + op, **options) as queue:
            return await globals()["asyncio_" + op](queue)
    if style == "uvloop":
        import uvloop
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main())
    return asyncio.run(main())


def main(path, redis_path=None):
    for line in sys.stdin:
        style, op = line.split()
        print(json.dumps(order(style, op, path, redis_path)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
