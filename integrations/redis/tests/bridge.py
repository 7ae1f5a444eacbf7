# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a test of the bridge needs: Redis, expiryd and the bridge, and a subscriber that
notes when Redis said that a key has expired."""

import os
import sys
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
sys.path[:0] = [os.path.join(ROOT, *folder) for folder in (
    ("integrations", "support"), ("tests", "socket"))]

import python           # noqa: E402
python.need("redis")

import redis            # noqa: E402
from processes import Expiryd, Program, wait_until      # noqa: E402,F401
from redis_server import RedisServer                    # noqa: E402

BRIDGE = os.path.join(ROOT, "build", "expiry-redis-events")
if not os.path.exists(BRIDGE):
    print("1..0 # SKIP no build/expiry-redis-events: Go or its package redigo is missing")
    sys.exit(4)

# The keys have random times from now on, and values of ten bytes.
POPULATE = """
for i = ARGV[1], ARGV[2] do
    redis.call('SET', 'other:' .. i, 'xxxxxxxxxx', 'PX', ARGV[3] + math.random(ARGV[4]))
end
"""


def populate(client, count, least=3600, most=36000):
    """Sets @count volatile keys that expire in @least to @most seconds."""
    for begin in range(1, count + 1, 10000):
        client.eval(POPULATE, 0, begin, min(begin + 9999, count), least * 1000,
                    (most - least) * 1000)


class Listener:
    """A subscriber as people have it. @told: ns by key; @gaps: when it was not connected"""

    def __init__(self, port):
        self.port = port
        self.told = {}
        self.again = []
        self.gaps = []
        self.ready = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()
        assert self.ready.wait(10)

    def _run(self):
        while True:
            lost = time.time_ns()
            try:
                subscription = redis.Redis(port=self.port).pubsub()
                subscription.psubscribe("__keyevent@*__:expired")
                assert subscription.get_message(timeout=5)
                if self.ready.is_set():
                    self.gaps.append((lost, time.time_ns()))
                self.ready.set()
                for message in subscription.listen():
                    key = message["data"].decode()
                    if key in self.told:
                        self.again.append(key)
                    self.told[key] = time.time_ns()
            except redis.RedisError:
                time.sleep(0.005)


class Setup:
    def __init__(self, *options, settings=(), daemon_options=()):
        self.redis = RedisServer(*settings)
        self.client = redis.Redis(port=self.redis.port)
        self.daemon = Expiryd(*daemon_options)
        self.options = options
        self.bridge = None

    def start(self, *options):
        """Starts the bridge, and waits until it has read all keys."""
        self.begin(*options)
        self.wait_read(1)

    def begin(self, *options):
        self.bridge = Program(
            [BRIDGE, "-redis", self.redis.url, "-socket", self.daemon.path, *options],
            dict(os.environ), os.path.join(self.redis.folder, "bridge"))

    def metrics(self, port):
        """Returns the bridge's metrics without their prefix."""
        with urllib.request.urlopen("http://localhost:%d/metrics" % port, timeout=10) as page:
            lines = page.read().decode().splitlines()
        return {name.removeprefix("expiry_redis_"): float(value) for name, value in
                (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}

    def wait_read(self, times):
        wait_until(lambda: self.bridge.log().count("keys read") >= times, 120)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.bridge:
            self.bridge.kill()
            if kind:
                print("\n".join("# " + line for line in self.bridge.log().splitlines()[-20:]))
        self.daemon.remove()
        self.redis.__exit__()
