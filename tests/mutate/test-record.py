#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The record of mutants has files that are finished, and forgets those that changed."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "socket")]
import copies  # noqa: E402
import mutants  # noqa: E402
import record  # noqa: E402
import tap  # noqa: E402

mutate = copies.load("mutate", HERE + "/mutate")

FILE = "core/setup.c"
KILLED = dict.fromkeys(record.VERDICTS, 0) | {"killed": 29, "equivalent": 1}
ONE_LEFT = KILLED | {"killed": 28, "survived": 1}


def test_a_record_is_read_as_it_was_written():
    with tap.new_path("mutants.md") as path:
        for name, verdicts in (FILE, KILLED), ("core/slots.c", ONE_LEFT):
            record.Record(path).put(name, "1234", verdicts)
        assert record.Record(path).rows == {FILE: ("1234", KILLED),
                                            "core/slots.c": ("1234", ONE_LEFT)}


def test_a_file_that_changed_or_has_survivors_is_not_finished():
    with tap.new_path("mutants.md") as path:
        kept = record.Record(path)
        kept.put(FILE, "1234", KILLED)
        kept.put("core/slots.c", "1234", ONE_LEFT)
        assert kept.get(FILE, "1234") == KILLED
        for name, digest in (FILE, "1235"), ("core/slots.c", "1234"), ("core/none.c", "1234"):
            assert kept.get(name, digest) is None, (name, digest)


def test_a_file_is_finished_with_its_last_mutant():
    found = list(mutants.mutants_of(FILE))
    with tap.new_path("mutants.md") as path:
        report = mutate.Report(found, None, record.Record(path))
        for mutant in found:
            assert record.Record(path).rows == {}
            report.add(mutant, "killed by test-slots")
        rows = record.Record(path).rows
        assert rows[FILE][1]["killed"] == len(found) and list(rows) == [FILE], rows
        report = mutate.Report(found, None, record.Record(path))
        assert report.count_recorded(found) == [] and report.done == len(found)


def test_a_survivor_is_tried_again():
    found = list(mutants.mutants_of(FILE))
    with tap.new_path("mutants.md") as path:
        with open(path + ".log", "w", encoding="utf-8") as log:
            for mutant in found:
                what = "survived" if mutant is found[3] else "killed by test-slots"
                print(what, mutant, copies.digest_of([FILE]), sep="\t", file=log)
        for kept, left in (None, []), (record.Record(path), [found[3]]):
            report = mutate.Report(found, None, kept)
            assert mutate.go_on(found, path + ".log", report) == left
        assert record.Record(path).rows == {}


def test_a_file_that_is_gone_has_no_row():
    with tap.new_path("mutants.md") as path:
        record.Record(path).put("core/none.c", "1234", KILLED)
        assert record.Record(path).rows == {}


if __name__ == "__main__":
    tap.main(needs_daemon=False)
