#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The record of targets keeps what a run did not renew."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "socket")]
import record  # noqa: E402
import tap  # noqa: E402

RELEASES = ["bookworm", "trixie"]
BEFORE = {("all", "bookworm"): "ok 4 s, 1234567", ("all", "trixie"): "FAILED 9 s, 1234567",
          ("deb", "trixie"): "ok 60 s, 1 skipped, 1234567"}


def test_a_record_is_read_as_it_was_written():
    with tap.new_path("targets.md") as path:
        record.write(path, BEFORE, RELEASES, ["all", "deb", "run"], {"fly": "has no wings"})
        assert record.read(path) == BEFORE, record.read(path)


def test_a_run_renews_its_cell_only():
    with tap.new_path("targets.md") as path:
        record.write(path, BEFORE, RELEASES, ["all", "deb"], {})
        record.renew(path, ("all", "trixie"), "ok 5 s, 7654321", RELEASES,
                     ["all", "deb", "run"], {})
        assert record.read(path) == {**BEFORE, ("all", "trixie"): "ok 5 s, 7654321"}


def test_a_target_that_is_gone_has_no_row():
    with tap.new_path("targets.md") as path:
        record.write(path, BEFORE, RELEASES, ["deb"], {})
        assert list(record.read(path)) == [("deb", "trixie")]


def test_there_may_be_no_record_yet():
    with tap.new_path("targets.md") as path:
        assert record.read(path) == {}


if __name__ == "__main__":
    tap.main(needs_daemon=False)
