# SPDX-License-Identifier: LGPL-2.1-or-later
"""A private server of Redis or Valkey: started, killed, started again with its data."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

WAIT = 30


def program():
    """Returns $REDIS_SERVER, redis-server or valkey-server; None if none is installed."""
    return os.environ.get("REDIS_SERVER") or shutil.which("redis-server") or \
        shutil.which("valkey-server")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ping(port):
    """Returns the answer to PING, empty if there is no server."""
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as connection:
            connection.settimeout(1)
            connection.sendall(b"PING\r\n")
            return connection.recv(64)
    except OSError:
        return b""


class RedisServer:
    """On a port of its own, with an append-only file that has what was answered, also
    after a kill. @settings: name and value by turns"""

    def __init__(self, *settings):
        if not program():
            print("1..0 # SKIP neither redis-server nor valkey-server is installed")
            sys.exit(4)
        self.folder = tempfile.mkdtemp(prefix="expiry-redis-")
        self.port = free_port()
        self.settings = settings
        self.process = None
        self.start()

    @property
    def url(self):
        return "redis://127.0.0.1:%d/0" % self.port

    def start(self):
        # With everysec, which is the default, a write is answered and kept in memory for up
        # to 2 s while the disk is busy with the last fsync. A kill loses it.
        command = [program(), "--port", str(self.port), "--bind", "127.0.0.1",
                   "--dir", self.folder, "--save", "", "--appendonly", "yes",
                   "--appendfsync", "no",
                   "--logfile", os.path.join(self.folder, "log")]
        for name, value in zip(self.settings[::2], self.settings[1::2]):
            command += ["--" + name, value]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL)
        limit = time.monotonic() + WAIT
        # It answers -LOADING while it reads its file.
        while ping(self.port) != b"+PONG\r\n" and not ping(self.port).startswith(b"-NOAUTH"):
            assert self.process.poll() is None and time.monotonic() < limit, self.log()
            time.sleep(0.01)

    def log(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8") as file:
            return file.read()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def resident(self):
        """Returns resident memory in bytes."""
        with open("/proc/%d/statm" % self.process.pid, encoding="utf-8") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
