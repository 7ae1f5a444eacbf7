# SPDX-License-Identifier: LGPL-2.1-or-later
"""The fields of the daemon's counters: a unique value for each, and its places in
expiryctl's output.

A NEW FIELD NEEDS A ROW HERE AND NOWHERE ELSE, in the table of its struct. Names,
order and sizes come from the headers. A field without a row, or a row without a field,
is an error of test-golden.py. A row has

  value   a unique number, so that no field is mistaken for another
  metric  "NAME KIND" of `expiryctl metrics`, without "expiry_" and suffixes;
          KIND is gauge, counter, seconds (a gauge; the field has nanoseconds),
          sizes (a histogram) or times (likewise, in seconds). "-" and the reason:
          it is no metric
  help    of the metric, word for word
  json    "COMMAND KEY": the key with the same number in --json, or "-"; a string if
          the field has 64 bits. "COMMAND KEY 1": the output is less by one, which
          is the command's own

Then `tests/tools/test-golden.py --write` writes the files in golden/ again. Compare
the changes there with the row by eye before the commit.
"""

import collections
import os
import re
import struct

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
HEADERS = ("include/uapi/linux/expiry.h", "include/expiry/wire.h")
SIZES = {"__u8": 1, "__s16": 2, "__u32": 4, "__u64": 8, "char": 1}
NEVER = 2**64 - 1
BUCKETS = 40

Field = collections.namedtuple("Field", "name value metric help json")

QUEUE_STAT = """
now_ns          | 2000000000123456789  | - a time, not a count            | | status now_ns
next_ns         | 2000000005423456789  | - shown as overdue               | | status next_ns
armed           | 9007199254740993     | queue_armed gauge       | Timers armed. | stats armed
unacked         | 10203                | queue_unacked gauge     | Timers delivered and not acknowledged. | stats unacked
limit           | 18446744073709551614 | queue_limit gauge       | Most timers. | stats limit
nodes           | 10305                | queue_nodes gauge       | Heap nodes, live and stale. | stats nodes
pages_heap      | 10406                | - memory: see stats              | | stats pages_heap
pages_slots     | 10507                | - memory: see stats              | | stats pages_slots
pages_index     | 10608                | - memory: see stats              | | stats pages_index
pages_resident  | 10709                | - memory: see stats              | | stats pages_resident
arms            | 9223372036854775809  | queue_arms counter      | Timers armed so far. | stats arms
refreshes       | 10911                | queue_refreshes counter | Timers refreshed so far. | stats refreshes
cancels         | 11012                | queue_cancels counter   | Timers cancelled so far. | stats cancels
acks            | 11113                | queue_acks counter      | Expirations acknowledged so far. | stats acks
delivered       | 11214                | queue_delivered counter | Expirations delivered so far. | stats delivered
redelivered     | 11315                | queue_redelivered counter | Of these delivered again. | stats redelivered
refused         | 11416                | queue_refused counter   | Requests refused so far. | stats refused
refused_limit   | 11517                | - a part of refused              | | stats refused_limit
clock_sets      | 11618                | - the machine's, not the queue's | | stats clock_sets
lateness_max_ns | 1234567890           | - the histogram tells more       | | stats lateness_max_ns
clock_id        | 0                    | - a word                         | | -
mode            | 2                    | - a word                         | | -
past            | 11719                | queue_delivered_past counter | Of these armed for a time that had passed. | stats past
held            | 11820                | queue_delivered_held counter | Of these held without a consumer or credit. | stats held
lateness        | 100 * (40 - n) + 3   | queue_lateness_seconds times | Lateness of the other deliveries. | stats lateness
"""

SERVER_STAT = """
engine              | 2                    | - a word                | | -
consumers           | 1                    | - shown for the queue   | | -
credit              | 20103                | - shown for the queue   | | -
producers           | 20204                | - shown for the queue   | | -
uptime_ns           | 93784005006007       | uptime_seconds seconds  | Since the daemon started. | status uptime_ns
queues              | 20305                | queues gauge            | Number of queues. | status queues
connections         | 20406                | connections gauge       | Open connections. | status connections 1
records             | 9007199254740995     | requests counter        | Requests answered. | status records
expirations         | 18446744073709551613 | expirations counter     | Expirations sent. | status expirations
refused_connections | 20709                | refused_connections counter | Connections refused for a limit. | status refused_connections
refused_queues      | 20810                | refused_queues counter  | Queues refused for a limit. | status refused_queues
refused_timers      | 20911                | refused_timers counter  | Timers refused for a limit. | status refused_timers
closed_protocol     | 21012                | closed_protocol counter | Connections closed for a protocol error. | status closed_protocol
refused_busy        | 21113                | refused_busy counter    | Requests refused because they waited too long. | status refused_busy
refused_credit      | 21214                | refused_credit counter  | Credit requests cut to the limit. | status refused_credit
closed_backlog      | 21315                | closed_backlog counter  | Connections closed for too many unread bytes. | status closed_backlog
backlog             | 21416                | backlog_bytes gauge     | Memory of bytes that clients have not read. | status backlog
loop                | 1                    | - a word                | | -
turn_ns             | 7 * n + 1 if n < 30 else 2 | turn_seconds times | Turns of the loop, without waiting. | stats turn_ns
batch               | 1000 - 25 * n        | batch_requests sizes    | Requests processed in one batch. | stats batch
request_ns          | 3 * n * n + 5        | request_seconds times   | Time from receiving requests to passing their replies to the kernel. | stats request_ns
timers              | 9007199254740997     | timers gauge            | Timers in all queues. | status timers
next_ns             | 4102444800123456789  | - a time, not a count   | | status next_of_all_ns
lateness_max_ns     | 7654321              | lateness_max_seconds seconds | Largest lateness of any expiration. | status lateness_max_ns
closed_hello        | 21517                | closed_hello counter    | Connections closed without HELLO. | status closed_hello
log_dropped         | 21618                | log_dropped counter     | Lost lines of the log. | status log_dropped
log_left_out        | 21719                | log_left_out counter    | Lines about clients beyond a user's budget. | status log_left_out
refused_observers   | 21820                | refused_observers counter | Observers refused for a limit. | status refused_observers
copies_missed       | 21921                | copies_missed counter   | Copies that observers did not get. | status copies_missed
durable             | 22022                | - no count              | | -
journal_queues      | 22123                | durable_queues gauge    | Number of durable queues. | status journal_queues
journal_timers      | 9007199254740999     | durable_timers gauge    | Timers in them. | status journal_timers
journal_overdue     | 22325                | durable_overdue gauge   | Of these overdue when the daemon started. | status journal_overdue
journal_waiting     | 22426                | journal_waiting gauge   | Records that wait for the disk. | status journal_waiting
journal_records     | 22527                | journal_records counter | Records written to the journal. | status journal_records
journal_commits     | 22628                | journal_commits counter | Blocks of records written to the journal. | status journal_commits
journal_bytes       | 22729                | journal_written_bytes counter | Written to the journal's files. | status journal_bytes
journal_size        | 22830                | journal_size_bytes gauge | The journal's files. | status journal_size
journal_checkpoints | 22931                | journal_checkpoints counter | Checkpoints of the journal. | status journal_checkpoints
journal_failures    | 23032                | journal_failures counter | Failed writes and flushes of the journal. | status journal_failures
journal_failed      | 3                    | journal_failed gauge    | Threads whose journal takes nothing now. | status journal_failed
refused_journal     | 23133                | refused_journal counter | Requests that the journal did not take. | status refused_journal
commit_ns           | 5 * n + 2            | commit_seconds times    | Commits of the journal. | stats commit_ns
"""

# Fields of a queue besides its counters.
QUEUE_DAEMON = """
number       | 30101      | - no count              | | -
uid          | 4294967294 | - no count              | | top uid
connections  | 30203      | queue_connections gauge | Connections attached. | top connections
consumers    | 1          | queue_consumers gauge   | 1 if there is a consumer. | -
credit       | 4294967290 | queue_credit gauge      | Expirations that the consumer may still receive. | top credit
consumer_pid | 30506      | - no count              | | top consumer_pid
observers    | 30607      | queue_observers gauge   | Connections that observe. | queues observers
access       | 33256      | - no count              | | -
gid          | 4294967293 | - no count              | | -
"""

# Values computed from several fields.
DERIVED = {"queue_overdue_seconds": (
    "seconds", "Time since the first deadline, if it has passed.")}


def layouts():
    """Returns {struct: [(field, number, bytes of one)]} from the headers."""
    found, numbers = {}, {}
    for path in HEADERS:
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        # A union counts by its first member.
        text = re.sub(r"\t(?:__extension__ )?union \{\n\t(\t[^;]*;\n).*?\n\t\};\n", r"\1", text,
                      flags=re.S)
        numbers.update(re.findall(r"#define\s+(\w+)\s+(\d+)", text))
        for name, body in re.findall(r"struct (\w+) \{\n(.*?)\n\};", text,
                                     re.S):
            found[name] = [
                (field, int(numbers.get(count, count) or 1), SIZES[kind])
                for kind, field, count in re.findall(
                    r"^\t(\w+) +(\w+)(?:\[(\w+)\])?;", body, re.M)]
            assert len(found[name]) == body.count(";"), name
    return found


LAYOUTS = layouts()


class Struct:
    """A struct with its table. pack() returns its bytes."""

    def __init__(self, name, table):
        self.name = name
        self.fields = [Field(*map(str.strip, line.split("|")))
                       for line in table.strip().splitlines()]

    def check(self):
        """Checks that each field has a row, and each row a field."""
        rows = [field.name for field in self.fields]
        there = [name for name, _, _ in LAYOUTS[self.name]
                 if not name.startswith("reserved")]
        assert rows == there, \
            "struct %s has %s, its table in support_fields.py has %s" % (
                self.name, set(there) - set(rows) or "another order",
                set(rows) - set(there))

    def values(self):
        """{field: number, or numbers by bucket}"""
        counts = {name: count for name, count, _ in LAYOUTS[self.name]}
        return {field.name: eval(field.value) if counts[field.name] == 1 else
                [eval(field.value, {"n": n}) for n in range(BUCKETS)]
                for field in self.fields if field.name in counts}

    def zeros(self):
        return {name: 0 if count == 1 else [0] * count
                for name, count, _ in LAYOUTS[self.name]}

    def json(self, name, value):
        """Returns the value in --json: a 64-bit number is a string."""
        size, = {size for field, _, size in LAYOUTS[self.name] if field == name}
        if size < 8:
            return value
        return list(map(str, value)) if isinstance(value, list) else str(value)

    def pack(self, values):
        data = b""
        for name, count, size in LAYOUTS[self.name]:
            value = values.get(name, 0 if count == 1 else [0] * count)
            numbers = value if count > 1 or isinstance(value, list) else [value]
            data += bytes(-len(data) % size)
            data += struct.pack("=%d%s" % (count, {4: "I", 8: "Q"}[size]),
                                *numbers)
        return data


STAT = Struct("expiry_stat", QUEUE_STAT)
SERVER = Struct("expiry_server_stat", SERVER_STAT)
DAEMON = Struct("expiry_queue_stat", QUEUE_DAEMON)

def stats(stat=None, server=None):
    """Returns the answer to STAT: all fields as above, except these."""
    return (STAT.pack(dict(STAT.values(), **(stat or {}))),
            SERVER.pack(dict(SERVER.values(), **(server or {}))))


def queue(name, stat=None, daemon=None):
    """Returns a queue in the answer to QUEUES, likewise."""
    return (name, STAT.pack(dict(STAT.values(), **(stat or {}))),
            DAEMON.pack(dict(DAEMON.values(), **(daemon or {}))))


# KIND of a row: type and unit of its metric.
KINDS = {"gauge": ("gauge", ""), "seconds": ("gauge", "seconds"),
         "counter": ("counter", ""), "times": ("histogram", "seconds"),
         "sizes": ("histogram", "")}


def families(*tables):
    """Returns {metric: (type, unit, help)} for all metrics, or only for these structs."""
    found = {}
    for table in tables or (SERVER, STAT, DAEMON):
        for field in table.fields:
            if not field.metric.startswith("-"):
                name, kind = field.metric.split()
                found["expiry_" + name] = *KINDS[kind], field.help
    if not tables:
        for name, (kind, text) in DERIVED.items():
            found["expiry_" + name] = *KINDS[kind], text
    return found


def all_stats():
    """Returns the arguments of a fake server with one queue, a unique value each."""
    return {"stats": [(STAT.pack(dict(STAT.values(), mode=0)),
                       SERVER.pack(SERVER.values()))],
            "queues": [[("q", STAT.pack(STAT.values()),
                         DAEMON.pack(DAEMON.values()))]]}
