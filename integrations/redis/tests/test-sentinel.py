#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bridge follows a Sentinel's failover, and leaves a master that became a replica."""

import contextlib
import os
import shutil
import socket
import sys
import threading
import time

from bridge import BRIDGE, Listener, Program, Setup, wait_until     # first: it finds redis

import redis
import tap                              # noqa: E402
from redis_server import RedisServer, free_port, ping   # noqa: E402

SENTINEL = os.environ.get("REDIS_SENTINEL") or shutil.which("redis-sentinel") or \
    shutil.which("valkey-sentinel")
if not SENTINEL:
    print("1..0 # SKIP redis-sentinel is not installed")
    sys.exit(4)


def start_sentinel(on, master):
    port = free_port()
    path = os.path.join(on.redis.folder, "sentinel.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write("port %d\nbind 127.0.0.1\ndir %s\n"
                   "sentinel monitor shop 127.0.0.1 %d 1\n"
                   "sentinel down-after-milliseconds shop 500\n"
                   "sentinel failover-timeout shop 2000\n" % (port, on.redis.folder, master))
    program = Program([SENTINEL, path], dict(os.environ),
                      os.path.join(on.redis.folder, "sentinel.log"))
    wait_until(lambda: ping(port) == b"+PONG\r\n")
    return program, redis.Redis(port=port, decode_responses=True)


def expires(server):
    """Sets a key on this server; waits until the server reports its end."""
    listener = Listener(server.port)
    client = redis.Redis(port=server.port)
    name = "key at %d" % server.port

    def is_told():
        # While the bridge reads all keys anew, the key waits for it.
        with contextlib.suppress(redis.ConnectionError):
            if name not in listener.told and not client.exists(name):
                client.set(name, 1, px=100)
        return name in listener.told
    wait_until(is_told, 60)


def is_master(server):
    # A Sentinel has the server it promotes close all connections.
    with contextlib.suppress(redis.ConnectionError):
        return redis.Redis(port=server.port).role()[0] == b"master"
    return False


def with_replica(on, replica):
    redis.Redis(port=replica.port).replicaof("127.0.0.1", on.redis.port)
    wait_until(lambda: redis.Redis(port=replica.port).info("replication")
               ["master_link_status"] == "up", 60)


def test_the_bridge_follows_a_failover():
    with Setup() as on, RedisServer() as replica:
        with_replica(on, replica)
        sentinel, client = start_sentinel(on, on.redis.port)
        try:
            wait_until(lambda: int(client.sentinel_master("shop")["num-slaves"]) == 1, 60)
            on.start("-sentinel", "127.0.0.1:1,127.0.0.1:%d" % client.connection_pool
                     .connection_kwargs["port"], "-master", "shop")
            expires(on.redis)
            on.redis.kill()
            wait_until(lambda: is_master(replica), 60)
            expires(replica)
        finally:
            sentinel.kill()


def test_a_master_that_became_a_replica_is_left():
    with Setup() as on, RedisServer() as other:
        on.start()
        began = time.monotonic()
        on.client.replicaof("127.0.0.1", other.port)
        wait_until(lambda: "not the master" in on.bridge.log())
        assert time.monotonic() - began < 20
        on.client.replicaof("NO", "ONE")
        expires(on.redis)


def test_the_master_may_have_an_address_of_ipv6():
    with Setup() as on, socket.create_server(("127.0.0.1", 0)) as sentinel:
        try:
            on.client.config_set("bind", "127.0.0.1 ::1")
        except redis.ResponseError as error:
            raise tap.Skip("no IPv6 here: %s" % error) from None
        port = str(on.redis.port)

        def answer():
            while True:
                try:
                    connection, _ = sentinel.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1024)
                    connection.sendall(("*2\r\n$3\r\n::1\r\n$%d\r\n%s\r\n" % (
                        len(port), port)).encode())
        threading.Thread(target=answer, daemon=True).start()
        on.start("-sentinel", "127.0.0.1:%d" % sentinel.getsockname()[1])
        expires(on.redis)


if __name__ == "__main__":
    tap.main()
