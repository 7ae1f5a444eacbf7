# SPDX-License-Identifier: LGPL-2.1-or-later
"""Requests for durable queues, and what each queue holds after each of them."""

import errno
import hashlib
import random

from client import (ACKING, ARM, BOOTTIME, CANCEL, DURABLE, EXISTING, HOUR, KEYED,
                    MONOTONIC, NEVER, REALTIME, REFRESH, RELATIVE, Connection, Record,
                    attach, pack)

FLAGS = DURABLE | KEYED | ACKING
CLOCKS = {"real": REALTIME, "monotonic": MONOTONIC, "boot": BOOTTIME}
IDS, BATCH = 3000, 512


def number_of(row):
    """Returns a number for a timer. The sum of them all stands for a queue's state."""
    text = repr((row.id, row.deadline, row.cookie, row.period)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little")


def sum_of(rows):
    return sum(number_of(row) for row in rows) % 2**128


class Queue:
    """A connection, and its queue's state after each request that was answered.

    @fine: statuses of replies: but for 0, the request changed nothing
    @sums: of the state after each request
    @round_ends: how many requests were answered after each round
    """

    fine = {0, -errno.ENOENT}

    def __init__(self, path, name, seed):
        self.name = name
        self.random = random.Random(f"{seed} {name}")
        self.connection = attach(path, name, FLAGS, clock=CLOCKS[name])
        self.timers = {}
        self.sums, self.round_ends = [0], [0]

    def request(self):
        op = self.random.choice((ARM, ARM, ARM, REFRESH, REFRESH, CANCEL))
        deadline = NEVER if self.random.random() < 0.01 else \
            self.random.randrange(HOUR, 1000 * HOUR)
        return Record(op, 0 if deadline == NEVER or op == CANCEL else RELATIVE,
                      period=self.random.choice((0, 0, 1000)) if op == ARM else 0,
                      id=self.random.randrange(1, IDS + 1),
                      deadline=0 if op == CANCEL else deadline,
                      cookie=self.random.getrandbits(64) if op == ARM else 0)

    def send(self):
        requests = []
        for _ in range(self.random.randrange(1, 4)):
            requests += [self.request() for _ in range(
                self.random.choice((1, 10, BATCH)))]
        self.connection.socket.sendall(pack(requests))
        return len(requests)

    def receive(self, count):
        """Takes the replies, and notes the state after each."""
        self.note(self.connection.replies(count))

    def note(self, replies):
        state = self.sums[-1]
        for reply in replies:
            assert reply.status in self.fine, reply
            assert reply.status != -errno.ENOENT or reply.op != ARM, reply
            if not reply.status:
                old = self.timers.pop(reply.id, None)
                if old:
                    state -= number_of(old)
                if reply.op != CANCEL:
                    # A row of SCAN: REFRESH leaves the cookie and the period.
                    self.timers[reply.id] = reply
                    state += number_of(reply)
            self.sums.append(state % 2**128)
        self.round_ends.append(len(self.sums) - 1)

    def judge(self, rows, answered):
        """Returns what is wrong with these rows after a loss of power, when so many
        rounds had been answered and no more than one other begun."""
        return self.judge_sum(sum_of(rows), answered)

    def judge_sum(self, seen, answered, later=1):
        """The same by the sum of the rows. @later: rounds that may have been sent since"""
        most = self.round_ends[min(answered + later, len(self.round_ends) - 1)]
        allowed = self.sums[self.round_ends[answered]:most + 1]
        if seen in allowed:
            return None
        if seen in self.sums[:self.round_ends[answered]]:
            return f"queue {self.name} lost what was answered in round {answered}"
        return f"queue {self.name} is as it never was, after round {answered}"


def rows_of(path, name):
    """Returns a queue's timers, None if it does not exist."""
    with Connection(path) as connection:
        status = connection.hello(name, FLAGS | EXISTING, CLOCKS[name]).status
        assert status in (0, -errno.ENOENT), status
        return None if status else connection.scan(BATCH)
