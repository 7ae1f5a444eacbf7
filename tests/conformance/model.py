# SPDX-License-Identifier: LGPL-2.1-or-later
"""What must be true of one queue: its timers, its consumer's credit, and the
expirations that come."""

import heapq
import random
import time

import far
import near
from near import MAY, MUST, NO
from wire import (ACKING, CLOCK_NAMES, EXPIRED, KEYED, NEVER, REALTIME,
                  RECORD, REDELIVERED, SECOND, add)

FAR_BASE = 3 * 3600 * SECOND
WATCHED = 60 * SECOND   # deadlines beyond this do not come in one run


class Failure(Exception):
    """The server did what the protocol does not allow."""

    def __init__(self, why, sent=None, received=None, allowed=""):
        super().__init__(why)
        self.why = why
        self.sent = sent
        self.received = received
        self.allowed = allowed
        self.where = ""


class Model:
    """
    @far, @ids, @gone, @pool: far timers by id, ids to draw from, ids that have
        ended (plain) and ids that the client draws from (keyed)
    @near, @arming: near timers by id, or by cookie before the server gave one
    @credit_out: expirations that the consumer may still be sent
    @credit_at: when that became more than none
    @heap: (deadline, number, since, timer) of near timers
    @sent_at: when the last batch was begun
    @just: ids that have expired since a request was sent that looks at all
    @observed: what the consumer got while an observer is there, else None
    @tally: counters of the whole run
    """

    def __init__(self, rng, number, clock, acking, keyed, name, tally):
        self.rng = rng
        self.bits = rng.getrandbits
        self.pack = RECORD.pack
        self.number = number
        self.clock = clock
        self.acking = acking
        self.keyed = keyed
        self.name = name
        self.tally = tally
        self.unclocked = False
        self.observed = None
        self.cookie = number << 40 | 1 << 62
        self.serial = 0
        self.start()

    def start(self):
        """A queue that the server makes now."""
        self.far, self.ids, self.gone, self.given_ids = {}, [], [], set()
        self.near, self.arming, self.near_ids = {}, {}, []
        self.heap = []
        self.credit_out, self.credit_at, self.leaving = 0, 0, 0
        self.lost_most = 0
        self.just = set()
        self.arms = self.refreshes = self.cancels = self.acks = 0
        self.delivered = self.redelivered = self.credit_lost = 0
        self.counted = True
        self.sent_at = self.now()
        self.base = self.sent_at + FAR_BASE
        self.equal = self.sent_at
        self.most = 40 + self.bits(9)
        self.near_most = 48
        bits = self.bits
        self.pool = [bits(8 + bits(5)) + 1 for _ in range(16)] + \
            [bits(62) | 1 << 40 for _ in range(64 + bits(8))] + \
            [1 << 32, 1, NEVER, NEVER - 1]
        self.pool = sorted(set(self.pool))
        rng = random.Random(bits(32))
        self.near_pool = sorted({bits(62) | 1 << 50 for _ in range(4096)} -
                                set(self.pool))
        rng.shuffle(self.near_pool)
        self.near_pool = self.near_pool[:64 << bits(2)]
        self.kinds = far.kinds(bits(8) % len(far.MIXES))
        self.fill = far.fill_keyed if self.keyed else far.fill_plain

    def now(self):
        return time.clock_gettime_ns(self.clock)

    def mode(self):
        return (ACKING if self.acking else 0) | (KEYED if self.keyed else 0)

    def __str__(self):
        return "queue %d (%s, %s, %s, %s)" % (
            self.number, CLOCK_NAMES[self.clock],
            "keyed" if self.keyed else "plain",
            "ack" if self.acking else "no ack",
            "named " + self.name if self.name else "anonymous")

    # ------------------------------------------------------------- requests

    def batch(self, count, out, want):
        """Append @count requests to @out, what must come to @want."""
        self.sent_at = self.now()
        if not self.bits(3):
            self.equal = self.sent_at + self.bits(26)
        self.fill(self, count, out, want)

    def near_op(self, out, want):
        op = near.request(self, out)
        if op is not None:
            want.append(op)

    def burst(self, count, out, want):
        """Many near timers at once."""
        self.sent_at = self.now()
        self.equal = self.sent_at + self.bits(24)
        before, self.near_most = self.near_most, 1 << 30
        for _ in range(count):
            op = near.arm_new(self, self.bits(64) & ~(0xf << 60), out)
            if op is not None:
                want.append(op)
        self.near_most = before

    def is_from_now(self, relative, deadline, now, sent_at=None):
        if sent_at is None:
            sent_at = self.sent_at
        return self.unclocked or \
            add(sent_at, relative) <= deadline <= add(now, relative)

    def take_id(self, timer):
        """Note an id that the server gives; whether it may."""
        if not timer & 0xffffffff or timer in self.given_ids:
            return False
        self.given_ids.add(timer)
        return True

    def add_near(self, timer):
        self.near[timer.id] = timer

    def some_near(self, r):
        """A near timer by chance."""
        ids = self.near_ids
        if len(ids) < len(self.near) or len(ids) > 2 * len(self.near) + 16:
            ids[:] = self.near
        while True:
            at = r % len(ids)
            timer = self.near.get(ids[at])
            if timer is not None:
                return timer
            ids[at] = ids[-1]
            ids.pop()
            if not ids:
                ids[:] = self.near

    def settle(self, timer):
        if timer.is_gone() and self.near.get(timer.id) is timer:
            del self.near[timer.id]

    def watch(self, timer):
        """See to it that it comes in time and in order."""
        if timer.due < timer.since + WATCHED:
            self.serial += 1
            heapq.heappush(self.heap,
                           (timer.due, self.serial, timer.since, timer))

    def watch_again(self, timer):
        self.serial += 1
        heapq.heappush(self.heap, (timer.given, self.serial, self.now(),
                                   timer))

    def cleared(self, count, now, credit):
        """CLEAR is answered by @count: whether that may be."""
        least = most = len(self.far)
        for timer in self.near.values():
            low, high = self.present(timer, now, credit)
            least += low
            most += high
        if not least <= count <= most:
            return False
        for timer in list(self.near.values()):
            if timer.owed or timer.again or (
                    timer.due is not None and timer.due <= now and credit):
                timer.stray.append([timer.cookie, now, 1 << 30, False])
            timer.forget_deliveries()
            timer.due, timer.doubt = None, False
            self.settle(timer)
        self.far.clear()
        self.gone = self.ids[:far.STALE]
        self.ids.clear()
        self.counted = False
        return True

    # ---------------------------------------------------------- expirations

    def give_credit(self, count):
        if not self.credit_out:
            self.credit_at = self.now()
        self.credit_out += count

    def expired(self, record, now):
        """An expiration came, or CLOCK_SET."""
        op, flags, _, _, number, deadline, cookie = record
        if self.observed is not None:
            self.observed.append(record)
        if op != EXPIRED:
            self.clock_set(record, now)
            return
        self.tally.expirations += 1
        if self.credit_out <= 0:
            raise Failure("an expiration without credit", received=record,
                          allowed="no expiration")
        self.credit_out -= 1
        if deadline > now and not self.unclocked:
            raise Failure("an expiration %d ns early" % (deadline - now),
                          received=record, allowed="none before its deadline")
        if flags & ~(REDELIVERED if self.acking else 0):
            raise Failure("an expiration with flags that mean nothing here",
                          received=record)
        if flags:
            self.tally.redeliveries += 1
            self.redelivered += 1
        self.delivered += 1
        self.just.add(number)
        timer = self.near.get(number)
        if timer is None:
            timer = self.arming.get(cookie)
        if timer is None:
            raise Failure("an expiration of what is not armed",
                          received=record,
                          allowed="far timer %s" % (self.far[number],)
                          if number in self.far else "no such timer")
        if timer.op is not None:
            timer.early.append((record, now))
        else:
            self.take(timer, record, now)
            self.settle(timer)
        self.check_order(timer, record, now)

    def take(self, timer, record, now):
        """@record is an expiration of @timer: is it the right one?"""
        _, flags, _, count, number, deadline, cookie = record
        if number == timer.id:
            for stray in timer.stray:
                if stray[0] == cookie and deadline <= stray[1] and stray[2]:
                    if cookie == timer.cookie and (
                            deadline == timer.due or timer.again or
                            deadline in timer.owed[:1] or (
                                timer.doubt and timer.steps(deadline))):
                        continue
                    stray[2] -= 1
                    if not stray[2]:
                        timer.stray.remove(stray)
                    if stray[3]:
                        timer.deliver(timer.last_of(deadline, count))
                    return
            if cookie == timer.cookie and (
                    self.unclocked or
                    timer.is_count(count, deadline, flags, now,
                                   self.credit_at)):
                if self.take_flagged(timer, deadline) if flags else \
                        self.take_first(timer, deadline, count, now):
                    return
        raise Failure("not the expiration that this timer has",
                      received=record, allowed=str(timer))

    def take_first(self, timer, deadline, count, now):
        if timer.again == MUST and deadline >= timer.given:
            return False
        if timer.again == MAY and timer.due is not None:
            timer.again = NO
        if timer.owed:
            if timer.owed[0] != deadline or count > len(timer.owed):
                return False
            del timer.owed[:max(count, 1)]
            if self.acking:
                timer.deliver(timer.last_of(deadline, count))
            return True
        steps = timer.steps(deadline)
        if steps is None or (steps and not timer.doubt):
            return False
        if steps and not timer.stray:
            self.lost(1)
        timer.doubt = timer.moved = False
        timer.due = timer.next_after(deadline, count)
        timer.since = now
        if timer.due is not None:
            self.watch(timer)
        if self.acking:
            timer.deliver(timer.last_of(deadline, count))
        return True

    def take_flagged(self, timer, deadline):
        if timer.again == NO:
            return False
        if timer.given == deadline:
            timer.again = NO
            return True
        if timer.again == MUST or timer.steps(deadline) is None:
            if not timer.is_again(deadline):
                return False
            timer.again, timer.given = NO, deadline
            return True
        timer.moved = False
        timer.due = timer.next_after(deadline, 1)
        timer.again = NO
        timer.deliver(deadline)
        if timer.due is not None:
            self.watch(timer)
        return True

    def clock_set(self, record, now):
        if self.clock != REALTIME or record[1] or record[2]:
            raise Failure("CLOCK_SET on a queue of another clock",
                          received=record)
        self.unclocked = True

    def lost(self, count):
        """On a plain queue a consumer that leaves may take some along."""
        self.lost_most -= count
        self.tally.lost += count
        if self.lost_most < 0:
            raise Failure("more is lost than the consumer that left had credit "
                          "for")

    # ------------------------------------------------------- order and time

    def first(self):
        """The entry of the first near timer that is surely armed."""
        heap = self.heap
        while heap:
            entry = heap[0]
            deadline, _, since, timer = entry
            if timer.op is not None:
                return None
            if (timer.due == deadline and timer.since == since and
                    not timer.doubt and not timer.again) or \
                    (timer.again == MUST and timer.given == deadline):
                return entry
            heapq.heappop(heap)
        return None

    def check_order(self, timer, record, now):
        entry = self.first()
        if entry is None or self.unclocked:
            return
        deadline, _, since, other = entry
        # It was taken at its deadline or later, and when there was credit.
        taken = max(record[5], self.credit_at)
        if other.again and (other.moved or other.ended):
            return          # its deadline is another then
        if other is not timer and deadline < record[5] and since < taken and \
                not record[1]:
            raise Failure("out of order: a timer with deadline %d was armed "
                          "before and is not delivered" % deadline,
                          received=record, allowed=str(other))

    def late(self, now, bound):
        """The first timer that is too late, by how much, or None."""
        if self.credit_out <= 0 or self.unclocked:
            return None
        entry = self.first()
        if entry is None:
            return None
        deadline, _, since, timer = entry
        late = now - max(deadline, since, self.credit_at)
        if now - deadline > bound and late > bound:
            return timer, late
        return None

    def nr_due(self, now):
        """How many may be on their way."""
        return sum(1 for timer in self.near.values()
                   if timer.again or timer.owed or timer.stray or
                   (timer.due is not None and timer.due <= now))

    def nr_counted_twice(self):
        """How many are armed and delivered at once, if HELLO counts so."""
        return sum(1 for timer in self.near.values()
                   if self.acking and timer.period)

    # ------------------------------------------------------------ consumers

    def consumer_goes(self):
        """It has closed its connection: its credit goes with it."""
        self.leaving, self.credit_out = self.credit_out, 0

    def consumer_left(self, now, since=None):
        """The server knows it, @since: not before."""
        left, self.leaving = self.leaving, 0
        self.credit_lost += left
        if left and not self.acking:
            self.lost_most += left
        for timer in self.near.values():
            due = timer.due is not None and timer.due <= now
            if not self.acking:
                if timer.owed and left:
                    self.lost(1)
                    timer.owed = []
                if left and due:
                    timer.doubt = now
                continue
            if timer.again == NO:
                # Else it is due again already.
                timer.again_since, timer.again_due = since or now, []
            if timer.owed:
                timer.given, timer.owed = timer.owed[-1], []
                timer.unsure = False
            if timer.given is not None and timer.again != MAY:
                timer.again = MAY if timer.unsure else MUST
            if left and (due or timer.may_be_given()):
                timer.again = MAY
        if not self.acking:
            for timer in list(self.near.values()):
                self.settle(timer)

    def attached(self, now):
        """Another consumer is there, whose HELLO was sent @now; it has no credit
        yet."""
        for timer in self.near.values():
            if timer.again:
                timer.again_due.append(timer.due or 0)
            if timer.again == MUST:
                self.watch_again(timer)

    def awaited(self, bound):
        """A near timer that is still to come, or to be answered, or None."""
        now = self.now()
        overdue = now - bound
        waits = None
        for timer in list(self.near.values()):
            if timer.again == MAY and max(timer.again_since, self.credit_at) \
                    < overdue and timer.op is None:
                self.did_not_come(timer)
                continue
            if timer.again or timer.owed or timer.given is not None or \
                    timer.doubt or timer.op is not None:
                waits = timer
            elif timer.due is not None and timer.due < now + WATCHED:
                waits = timer
        return waits

    def did_not_come(self, timer):
        """What might have been delivered again was not: it need not be."""
        if timer.due is not None and not timer.period and not timer.unsure \
                and timer.due <= self.now() - SECOND:
            raise Failure("an expiration is lost", allowed=str(timer))
        timer.again = NO
        if timer.unsure:
            timer.given, timer.unsure = None, False
        self.settle(timer)

    def forget_strays(self):
        """Nothing is on its way any more."""
        for timer in list(self.near.values()):
            timer.stray = []
            if timer.again == MAY and timer.due is None and \
                    timer.given is None:
                timer.again = NO
            self.settle(timer)

    # --------------------------------------------------------------- counts

    def present(self, timer, now, credit):
        """Least and most that the queue counts for it."""
        if timer.due is not None:
            if timer.doubt or (credit and timer.due <= now and
                               not self.acking and not timer.period):
                return 0, 1
            return (0, 1) if timer.again == MAY else (1, 1)
        if timer.given is not None or (self.acking and timer.owed):
            return (0, 1) if timer.unsure else (1, 1)
        return (0, 1) if timer.again else (0, 0)

    def bounds(self, now, credit):
        """Least and most armed, unacknowledged, and of all timers."""
        armed = [len(self.far), len(self.far)]
        unacked = [0, 0]
        total = [len(self.far), len(self.far)]
        for timer in self.near.values():
            low, high = self.present(timer, now, credit)
            total[0] += low
            total[1] += high
            taken = timer.due is not None and credit and timer.due <= now
            if timer.again or timer.doubt or timer.unsure or \
                    timer.may_be_given():
                armed[1] += 1
                unacked[1] += 1
                continue
            if timer.due is not None:
                armed[0] += not taken or bool(timer.period)
                armed[1] += 1
                unacked[1] += bool(taken and self.acking and
                                   timer.given is None)
            if self.acking and (timer.given is not None or timer.owed):
                unacked[0] += 1
                unacked[1] += 1
        if not self.acking:
            unacked = [0, 0]
        return armed, unacked, total

    def describe(self):
        return "%s: %d far, %d near, credit %d" % (
            self, len(self.far), len(self.near), self.credit_out)

