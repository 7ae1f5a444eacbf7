# SPDX-License-Identifier: LGPL-2.1-or-later
"""Lets all actors of one process live at once, on one server."""

import itertools
import os
import random
import select
import time

from actor import Actor
from connection import Waiting
from model import Failure
from still import Leader
from wire import CLOCKS, MS, SECOND, TimerFd

TICK = 5 * MS
READS = 4               # buffers taken from a connection at once


class Tally:
    def __init__(self):
        self.operations = self.expirations = self.redeliveries = 0
        self.lost = self.waited = self.copies = 0


class Driver:
    """
    @path: the server's socket
    @slack: how late an expiration may be, beyond ten times what a timerfd was
    """

    def __init__(self, path, seed, operations, queues, slack, number=0,
                 quick=False, patience=30 * SECOND):
        self.path = path
        self.seed = seed
        self.operations = operations
        self.slack = slack
        self.patience = patience
        self.rng = random.Random("%d.%d" % (seed, number))
        self.prefix = "c%x.%d" % (os.getpid(), number)
        self.tally = Tally()
        self.epoll = select.epoll()
        self.by_fd = {}
        self.clocks = {clock: TimerFd(clock) for clock in CLOCKS}
        self.offset = self.clock_offset()
        self.batch_most = max(1, min(700, operations // (4 * queues)))
        if quick:
            self.batch_most = min(self.batch_most, 60)
        kinds = list(itertools.product(CLOCKS, (False, True), (False, True),
                                       (False, True)))
        self.rng.shuffle(kinds)
        self.kinds = itertools.cycle(kinds)
        self.queues = queues
        self.actors = []

    def rng_for(self, number):
        return random.Random("%d/%d" % (self.rng.getrandbits(60), number))

    def next_kind(self):
        return next(self.kinds)

    # ------------------------------------------------------ for the actors

    def has_work(self):
        return self.tally.operations < self.operations

    def count(self, operations):
        self.tally.operations += operations

    def add(self, connection, actor):
        if connection.fd not in self.by_fd:
            self.epoll.register(connection.fd, select.EPOLLIN)
        self.by_fd[connection.fd] = (connection, actor)

    def remove(self, connection):
        if self.by_fd.pop(connection.fd, None) and not connection.ended:
            self.epoll.unregister(connection.fd)

    def change(self, connection):
        if not connection.ended:
            self.epoll.modify(connection.fd, select.EPOLLIN | (
                select.EPOLLOUT if connection.writes else 0))

    def bound(self, clock):
        return self.slack + 10 * self.clocks[clock].recent

    # ------------------------------------------------------------- the loop

    @staticmethod
    def clock_offset():
        return time.clock_gettime_ns(time.CLOCK_REALTIME) - \
            time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def run(self):
        """Live all lives; a Failure tells which actor's it was."""
        self.live([Leader(self, 100)])
        self.live([Actor(self, nr) for nr in range(self.queues)])
        self.live([Leader(self, 101)])

    def live(self, actors):
        self.actors = actors
        for actor in list(self.actors):
            self.resume(actor)
        ticked = 0
        while self.actors:
            now = time.monotonic_ns()
            wake = min(actor.wake for actor in self.actors)
            wait = min(max(wake - now, 0), TICK) / SECOND
            woken = {}
            for fd, events in self.epoll.poll(wait):
                connection, actor = self.by_fd.get(fd, (None, None))
                if connection is None:
                    continue
                woken[actor.number] = actor
                self.guard(actor, self.serve, connection, events)
            now = time.monotonic_ns()
            if now - ticked > TICK:
                ticked = now
                self.tick()
            for actor in list(self.actors):
                if actor.number in woken or actor.wake <= now:
                    self.resume(actor)

    def serve(self, connection, events):
        if events & select.EPOLLOUT:
            connection.flush()
        if events & ~select.EPOLLOUT:
            for _ in range(READS):
                if not connection.read():
                    break
        if connection.ended and connection.fd in self.by_fd:
            self.epoll.unregister(connection.fd)
            del self.by_fd[connection.fd]

    def guard(self, actor, function, *args):
        try:
            return function(*args)
        except Waiting:
            self.tally.waited += 1
            actor.abandon()
        except Failure as failure:
            failure.actor = actor
            raise
        return None

    def resume(self, actor):
        actor.wake = self.guard(actor, self.advance, actor) or 0

    def advance(self, actor):
        try:
            return next(actor.script)
        except StopIteration:
            self.actors.remove(actor)
            return 0

    def tick(self):
        for clock in self.clocks.values():
            clock.read()
        offset = self.clock_offset()
        if abs(offset - self.offset) > 2 * MS:
            for actor in self.actors:
                if actor.queue and actor.queue.clock == 0:
                    actor.queue.unclocked = True
        self.offset = offset
        for actor in self.actors:
            self.guard(actor, self.look_for_late, actor)

    def look_for_late(self, actor):
        queue, consumer = actor.queue, actor.consumer
        if not consumer or consumer.ended or consumer.queue is not queue:
            return
        if not queue.late(queue.now(), self.bound(queue.clock)):
            return
        for clock in self.clocks.values():
            clock.read()
        while consumer.read():
            pass
        late = queue.late(queue.now(), self.bound(queue.clock))
        if late:
            timer, ns = late
            raise Failure(
                "%.3f s late" % (ns / SECOND), allowed="EXPIRED within %.3f s "
                "of its deadline: %s; a timerfd of this clock was %.3f s late "
                "at most" % (self.bound(queue.clock) / SECOND, timer,
                             self.clocks[queue.clock].recent / SECOND))
