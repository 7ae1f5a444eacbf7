# SPDX-License-Identifier: LGPL-2.1-or-later
"""Messages that wait in Redis for their time.

A message waits in the hash `parked`, in a field of its own: 32 hexadecimal digits, which
are id and cookie of its timer. The value is a line with deadline and list, and then the
message as the list gets it. The relay finds what to arm and to cancel in the list
`inbox`. Each step is one script. Redis runs a script whole or not at all, and running it
again changes nothing. So each program may be killed at any moment.

A message whose timer expiry refused is in the sorted set `refused` as well.

All keys begin with the prefix of the transport's options, then with "expiry:".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import expiry

# A task may wait several times, as after a retry that ran twice. This many can be
# revoked by the task's id. The last field is the message's own, so that there is always
# one that is free.
PLACES = 7
KEY = b"expiry-celery parked"

# KEYS: parked, inbox. ARGV: the line, message, deadline, then fields: the first that is
# free is taken. One with the same line is the same message, published again.
PARK = """
local line = ARGV[1] .. '\\n'
for i = 4, #ARGV do
    local held = redis.call('HGET', KEYS[1], ARGV[i])
    if not held or string.sub(held, 1, #line) == line then
        redis.call('HSET', KEYS[1], ARGV[i], line .. ARGV[2])
        redis.call('LPUSH', KEYS[2], ARGV[i] .. ' ' .. ARGV[3])
        return ARGV[i]
    end
end
return redis.error_reply('no field is free')
"""

# KEYS: parked, inbox. ARGV: fields. The inbox gets the message, too: its request is
# needed for the state REVOKED.
UNPARK = """
local count = 0
for i = 1, #ARGV do
    local held = redis.call('HGET', KEYS[1], ARGV[i])
    if held then
        redis.call('HDEL', KEYS[1], ARGV[i])
        redis.call('LPUSH', KEYS[2], ARGV[i] .. ' 0 ' .. held)
        count = count + 1
    end
end
return count
"""

# KEYS: parked. ARGV: fields and deadlines of expirations. A field that is there with
# another deadline is a later message: its field and deadline are returned.
MOVE = """
local other, moved = {}, 0
for i = 1, #ARGV, 2 do
    local held = redis.call('HGET', KEYS[1], ARGV[i])
    if held then
        local ends = string.find(held, '\\n', 1, true)
        local deadline, list = string.match(string.sub(held, 1, ends - 1), '^(%d+) (.*)$')
        if deadline == ARGV[i + 1] then
            redis.call('LPUSH', list, string.sub(held, ends + 1))
            redis.call('HDEL', KEYS[1], ARGV[i])
            moved = moved + 1
        else
            other[#other + 1] = ARGV[i]
            other[#other + 1] = deadline
        end
    end
end
return {moved, other}
"""

# KEYS: inbox, taken. ARGV: how many. What was taken before and not finished comes again,
# with what there is besides: wait() has taken one.
TAKE = """
for i = redis.call('LLEN', KEYS[2]) + 1, tonumber(ARGV[1]) do
    if not redis.call('RPOPLPUSH', KEYS[1], KEYS[2]) then
        break
    end
end
return redis.call('LRANGE', KEYS[2], 0, -1)
"""

# KEYS: owner. ARGV: name, milliseconds. 0: another relay has the inbox.
HOLD = """
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then
    return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""

# KEYS: owner. ARGV: name.
RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('DEL', KEYS[1])
end
"""

# KEYS: owner, taken. ARGV: name, how many. The oldest are at the end.
FINISH = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
    redis.call('LTRIM', KEYS[2], 0, -1 - ARGV[2])
end
"""

# KEYS: parked. ARGV: cursor, how many. Returns fields and deadlines without the messages.
LOOK = """
local part = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', ARGV[2])
local found = {}
for i = 1, #part[2], 2 do
    found[#found + 1] = part[2][i]
    found[#found + 1] = string.match(part[2][i + 1], '^%d+')
end
return {part[1], found}
"""


class Entry(NamedTuple):
    """What the inbox asks for. @deadline: 0 to cancel; @message: of one that was revoked"""

    id: int
    cookie: int
    deadline: int
    message: bytes


def field_of(id: int, cookie: int) -> str:
    return "%016x%016x" % (id, cookie)


def timer_of(field: bytes) -> tuple[int, int]:
    """Returns id and cookie."""
    return int(field[:16], 16), int(field[16:], 16)


def fields_of(task: str) -> list[str]:
    """Returns the fields in which messages of a task wait."""
    return [field_of(*expiry.id_of("%d %s" % (place, task), KEY))
            for place in range(PLACES)]


def own_field(message: str) -> str:
    """Returns the field that no other message has."""
    return field_of(*expiry.id_of("message " + message, KEY))


def member_of(entry: Entry) -> str:
    """Returns the text of which entry_of() makes the same again."""
    return "%s %d" % (field_of(entry.id, entry.cookie), entry.deadline)


def entry_of(text: bytes) -> Entry:
    field, deadline, *rest = text.split(b" ", 2)
    message = rest[0].partition(b"\n")[2] if rest else b""
    return Entry(*timer_of(field), int(deadline), message)


class Keys:
    """The keys below a prefix."""

    def __init__(self, prefix: str) -> None:
        self.parked = prefix + "expiry:parked"
        self.inbox = prefix + "expiry:inbox"
        self.taken = prefix + "expiry:taken"
        self.owner = prefix + "expiry:owner"
        self.refused = prefix + "expiry:refused"


class Parking:
    """The scripts of the relay.

    @client: of redis-py, without a prefix of its own
    @name: the relay's, in the key of the inbox's owner
    """

    def __init__(self, client: Any, prefix: str, name: str) -> None:
        self._client = client
        self._keys = Keys(prefix)
        self._name = name
        self._move = client.register_script(MOVE)
        self._take = client.register_script(TAKE)
        self._hold = client.register_script(HOLD)
        self._release = client.register_script(RELEASE)
        self._finish = client.register_script(FINISH)
        self._look = client.register_script(LOOK)

    def server(self) -> str:
        """Returns another text after Redis has started again."""
        return str(self._client.info("server")["run_id"])

    def count(self) -> int:
        return int(self._client.hlen(self._keys.parked))

    def hold(self, lease: float) -> bool:
        """Takes the inbox or keeps it, for @lease seconds. Returns whether it is ours."""
        return bool(self._hold(keys=[self._keys.owner],
                               args=[self._name, round(lease * 1000)]))

    def release(self) -> None:
        self._release(keys=[self._keys.owner], args=[self._name])

    def wait(self, seconds: float) -> None:
        """Waits until something is in the inbox, and takes it."""
        self._client.brpoplpush(self._keys.inbox, self._keys.taken, seconds)

    def take(self, most: int) -> list[Entry]:
        """Returns entries in their order. They come again until they are finished."""
        taken = self._take(keys=[self._keys.inbox, self._keys.taken], args=[most])
        return [entry_of(text) for text in reversed(taken)]

    def finish(self, count: int) -> None:
        """Removes the entries that take() returned, if the inbox is still ours."""
        self._finish(keys=[self._keys.owner, self._keys.taken], args=[self._name, count])

    def look(self, cursor: int, most: int) -> tuple[int, list[Entry]]:
        """Returns the next cursor, 0 at the end, and some of what is parked."""
        following, found = self._look(keys=[self._keys.parked], args=[cursor, most])
        return int(following), entries_of(found)

    def refuse(self, entries: Iterable[Entry]) -> None:
        """Notes messages whose timers were refused, in order of their deadlines."""
        # A score has 53 bits. A message may not be early: the milliseconds are rounded up.
        self._client.zadd(self._keys.refused, {
            member_of(entry): -(-entry.deadline // 10**6) for entry in entries})

    def first_refused(self) -> int | None:
        """Returns when the first of them is due, in ns; None: there is none."""
        found = self._client.zrange(self._keys.refused, 0, 0, withscores=True)
        return int(found[0][1]) * 10**6 if found else None

    def refused(self, most: int, until: int | None = None) -> list[Entry]:
        """Returns the first of them, or those that are due at a time."""
        found = self._client.zrangebyscore(
            self._keys.refused, "-inf", "+inf" if until is None else until // 10**6,
            start=0, num=most)
        return [entry_of(member) for member in found]

    def forget(self, entries: Iterable[Entry]) -> None:
        members = [member_of(entry) for entry in entries]
        if members:
            self._client.zrem(self._keys.refused, *members)

    def parked(self, entries: Iterable[Entry]) -> list[Entry]:
        """Returns those of whose timers a message waits, with its deadline."""
        # No message has the deadline 0, so none is moved.
        return self.move((entry.id, entry.cookie, 0) for entry in entries)[1]

    def move(self, timers: Iterable[tuple[int, int, int]]) -> tuple[int, list[Entry]]:
        """Gives messages to their lists. @timers: id, cookie and deadline. Returns how
        many, and what waits there for another time instead."""
        args: list[str] = []
        for id, cookie, deadline in timers:
            args += (field_of(id, cookie), str(deadline))
        moved, other = self._move(keys=[self._keys.parked], args=args)
        return int(moved), entries_of(other)


def entries_of(pairs: list[bytes]) -> list[Entry]:
    """Makes entries of fields and deadlines by turns."""
    return [Entry(*timer_of(field), int(deadline), b"")
            for field, deadline in zip(pairs[::2], pairs[1::2])]
