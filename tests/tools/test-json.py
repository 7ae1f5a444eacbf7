#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What expiryctl prints with --json: strings where a number can have 64 bits,
dates beside times. The files in golden/ are test-golden.py's."""

import calendar
import json
import os
import re
import sys
import time

import support_fields as fields
from support_fields import DAEMON, SERVER, STAT, queue, stats
from support_fake import Server
from support_golden import GOLDEN, run

sys.path.insert(0, os.path.join(fields.ROOT, "tests", "socket"))
import tap  # noqa: E402
from client import ACKING  # noqa: E402

SECOND = 10**9
LEASES = ("--queue", "leases")

HOSTILE = b'so"ck\\et\x01\x1f \x7f\xc3\xa9'
ESCAPED = '"unix:so\\"ck\\\\et\\u0001\\u001f \\u007f\\ufffd\\ufffd"'


def test_json_is_escaped():
    """A fake daemon may send names that the protocol does not allow."""
    with Server(stats=[stats({"mode": 0})], name=os.fsdecode(HOSTILE),
                queues=[[queue('a"b\\c\n')]]) as server:
        _, out, _ = run(server, "--json", "status")
        assert out.startswith('{"address": ' + ESCAPED + ","), out
        assert json.loads(out)["address"] == \
            'unix:so"ck\\et\x01\x1f \x7f\ufffd\ufffd', out
        _, out, _ = run(server, "--json", "top", "--count", "1")
        assert json.loads(out)["queue"] == 'a"b\\c\n', out


def test_each_number_is_its_fields():
    """--json has each field's number, under its row's key."""
    with Server(mode=ACKING, stats=[stats()], queues=[[queue("leases")]]) \
            as server:
        rows = {}
        for call in ("status", *LEASES), ("stats", *LEASES), \
                ("top", "--count", "1"), ("queues",):
            _, out, _ = run(server, "--json", *call)
            rows[call[0]] = json.loads(out)
    for table in STAT, SERVER, DAEMON:
        values = table.values()
        for field in table.fields:
            if field.json != "-":
                command, key, *own = field.json.split()
                value = values[field.name] - int(own[0]) if own else \
                    values[field.name]
                assert rows[command].get(key) == \
                    table.json(field.name, value), \
                    (field, rows[command].get(key))


def numbers_of(value, key=""):
    """Yields (key, number) for each JSON number that is not a string."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield from numbers_of(member, name)
    elif isinstance(value, list):
        for member in value:
            yield from numbers_of(member, key)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield key, value


def test_all_64_bits_are_kept():
    """Even a reader with only doubles, such as jq 1.6, loses no bits of a field."""
    odd = iter(range(2**53 + 1, 2**63, 2**45 + 2))
    huge = {}
    for table in STAT, SERVER:
        huge[table.name] = {
            name: next(odd) if count == 1 else [next(odd) for _ in range(count)]
            for name, count, size in fields.LAYOUTS[table.name] if size == 8}
    both = stats(huge[STAT.name], huge[SERVER.name])
    rows = {}
    with Server(mode=ACKING, stats=[both],
                queues=[[queue("leases", huge[STAT.name])]]) as server:
        for call in ("status", *LEASES), ("stats", *LEASES), \
                ("top", "--count", "1"), ("queues",):
            _, out, _ = run(server, "--json", *call)
            rows[call[0]] = json.loads(out, parse_int=float)
    seen = 0
    for table in STAT, SERVER:
        for field in table.fields:
            if field.json != "-" and field.name in huge[table.name]:
                command, key, *own = field.json.split()
                value = huge[table.name][field.name]
                if own:
                    value -= int(own[0])
                expected = [str(n) for n in value] if isinstance(value, list) \
                    else str(value)
                assert rows[command][key] == expected, (key, rows[command][key])
                seen += 1
    assert seen >= 40, seen


# Keys with 32 bits, and rates.
NARROW = {"period_ms", "count", "uid", "connections", "observers", "consumer_pid",
          "commit_ms", "credit", "requests_per_second", "expirations_per_second"}


def test_numbers_of_json_are_narrow():
    """Checks all --json output in the files here."""
    seen = set()
    for name in os.listdir(GOLDEN):
        with open(os.path.join(GOLDEN, name), encoding="utf-8") as file:
            for line in file:
                if line.startswith("{"):
                    for key, number in numbers_of(json.loads(line)):
                        assert key in NARROW and number < 2**32, (key, line)
                        seen.add(key)
    assert seen == NARROW, NARROW - seen


DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.(\d{9})Z")
# Durations; all other keys that end in _ns are times on a clock.
SPANS = {"uptime_ns", "lateness_max_ns", "lateness_p50_ns", "lateness_p99_ns",
         "overdue_ns", "late_ns", "turn_ns", "request_ns", "commit_ns"}


def test_dates_stand_beside_times():
    """Each time has its date beside it, the same to the nanosecond, or null
    where its clock knows none."""
    dates = 0
    for name in os.listdir(GOLDEN):
        with open(os.path.join(GOLDEN, name), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.startswith("{")]
        for line in lines:
            for key in line:
                if not key.endswith("_ns") or key in SPANS:
                    continue
                date = line[key[:-len("_ns")]]
                if date is None:
                    continue
                found = DATE.fullmatch(date)
                assert found, line
                seconds = calendar.timegm(time.strptime(
                    date[:19], "%Y-%m-%dT%H:%M:%S"))
                assert seconds * SECOND + int(found[1]) == int(line[key]), line
                dates += 1
    assert dates >= 40, dates


if __name__ == "__main__":
    tap.main()
