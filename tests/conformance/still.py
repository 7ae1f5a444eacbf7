# SPDX-License-Identifier: LGPL-2.1-or-later
"""Deadlines of several queues on one clock while nothing else happens: what is
armed for soon must come in time whatever was armed for later on another queue.
Under load a server that forgets its own timer is woken by the next request; here
nothing wakes it."""

import near
from actor import Actor
from model import Model
from wire import (ARM, CANCEL, CLEAR, CLOCKS, HOUR, MS, REFRESH, RELATIVE)
from replies import Clear

QUEUES = 7              # a clock
ROUNDS = 3


class Member(Actor):
    """One of the queues; another actor moves it."""

    def __init__(self, driver, number, clock, leader):
        super().__init__(driver, number)
        self.leader = leader
        self.queue = Model(self.rng, number, clock, number & 1, number & 2, "",
                           driver.tally)
        self.doing = "far and near deadlines on several queues"
        self.script = self.rest()

    def connect(self):
        connection = super().connect()
        self.driver.add(connection, self.leader)
        return connection

    def rest(self):
        while self.queue is not None:
            yield self.patience()

    def ask(self, timer, op, flags, deadline):
        """A request for @timer, None: a new one; when it is answered."""
        queue = self.queue
        queue.sent_at = queue.now()
        self.leader.queue = queue
        out, number = [], 0
        if timer is None:
            queue.cookie += 1
            number = queue.cookie if queue.keyed else 0
            timer = near.Timer(number or None, queue.cookie)
            if queue.keyed:
                queue.add_near(timer)
            else:
                queue.arming[queue.cookie] = timer
        else:
            number = timer.id
        fields = (op, flags, 0, 0, number, deadline, timer.cookie)
        want = near.Op(queue, timer, fields, out)
        yield from self.send(self.consumer, out, [want])
        return timer

    def soon(self, timer=None, op=ARM):
        some = self.rng.randrange(30 * MS, 60 * MS)
        if self.rng.random() < 0.5:
            return (yield from self.ask(timer, op, RELATIVE, some))
        return (yield from self.ask(timer, op, 0, self.queue.now() + some))

    def late(self, timer=None, op=ARM):
        some = HOUR + self.rng.randrange(HOUR)
        return (yield from self.ask(timer, op, RELATIVE, some))


class Leader(Actor):
    """Moves the members."""

    def live(self):
        driver = self.driver
        self.doing = "far and near deadlines on several queues"
        for clock in CLOCKS:
            members = [Member(driver, 1000 + 10 * clock + nr, clock, self)
                       for nr in range(QUEUES)]
            driver.actors.extend(members)
            for member in members:
                self.queue = member.queue
                member.consumer = yield from member.attach(True)
                member.give(1000)
            for _ in range(ROUNDS):
                yield from self.round(members)
            for member in members:
                member.consumer.close()
                driver.actors.remove(member)
                member.queue = None

    def round(self, members):
        self.rng.shuffle(members)
        timers = []
        for member in members[:4]:
            timers.append((member, (yield from member.late())))
        for member in members[4:]:
            yield from member.soon()
        for member, timer in timers[:2]:
            yield from member.soon()
        yield from timers[2][0].soon(timers[2][1], REFRESH)
        # A deadline that was the first goes, or to later.
        member = members[4]
        first = yield from member.ask(None, ARM, RELATIVE, 25 * MS)
        if first.due is not None:
            yield from member.late(first, REFRESH)
        member, first = timers[3]
        if self.rng.random() < 0.5:
            yield from member.ask(first, CANCEL, 0, 0)
        yield from self.all_came(members)
        for member in members:
            if self.rng.random() < 0.5:
                self.queue = member.queue
                yield from member.one(CLEAR, Clear(member.queue.credit_out),
                                      connection=member.consumer)

    def all_came(self, members):
        limit = self.patience()
        while any(timer.due is not None and timer.due < member.queue.now() +
                  HOUR // 2 or timer.owed
                  for member in members
                  for timer in member.queue.near.values()):
            yield limit
