# SPDX-License-Identifier: LGPL-2.1-or-later
"""A peer of the benchmark: the same transport, but the relay keeps the times in a sorted
set of Redis, and sleeps until the least of them. Run as a program, it is this relay."""

import os
import time

import redis as client_library
from kombu.transport import TRANSPORT_ALIASES, redis
from kombu.utils.json import dumps

from expiry_celery.transport import deadline_of

TRANSPORT_ALIASES["zset"] = "sorted_set:Transport"

# KEYS: times, messages. ARGV: now, how many.
MOVE = """
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
for _, id in ipairs(due) do
    local message = redis.call('HGET', KEYS[2], id)
    local ends = string.find(message, '\\n', 1, true)
    redis.call('LPUSH', string.sub(message, 1, ends - 1), string.sub(message, ends + 1))
    redis.call('HDEL', KEYS[2], id)
    redis.call('ZREM', KEYS[1], id)
end
return #due
"""
BATCH = 256


class Channel(redis.Channel):
    def _put(self, queue, message, **kwargs):
        deadline = deadline_of(message)
        if deadline <= time.time_ns():
            super()._put(queue, message, **kwargs)
            return
        message = dict(message, headers=dict(message["headers"], eta=None))
        tag = message["properties"]["delivery_tag"]
        with self.conn_or_acquire() as client, client.pipeline() as pipe:
            pipe.zadd("times", {tag: deadline / 1e6})
            pipe.hset("messages", tag, queue + "\n" + dumps(message))
            pipe.rpush("wake", 1)
            pipe.ltrim("wake", 0, 0)
            pipe.execute()


class Transport(redis.Transport):
    Channel = Channel


def relay():
    client = client_library.Redis.from_url(os.environ["BROKER"].replace("zset:", "redis:"))
    move = client.register_script(MOVE)
    while True:
        if move(keys=["times", "messages"], args=[time.time() * 1000, BATCH]):
            continue
        first = client.zrange("times", 0, 0, withscores=True)
        wait = first[0][1] / 1000 - time.time() if first else 1.0
        if wait > 0:
            # Redis 7 takes fractions of seconds; 0 would be for ever.
            client.blpop("wake", max(min(wait, 1.0), 0.001))


if __name__ == "__main__":
    relay()
