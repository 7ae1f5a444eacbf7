#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tests/conformance, a client with a model, finds nothing wrong with this daemon.

EXPIRY_TEST_OPERATIONS: how many requests (default: 200000, a quarter where the
engine is slow); EXPIRY_TEST_SEED: what chance draws (default: 12)."""

import os

import tap
from client import scaled
from conformance import run
from daemon import PROGRAM

IS_SLOW = os.path.realpath(PROGRAM) == os.path.realpath(tap.SLOW)
OPERATIONS = os.environ.get("EXPIRY_TEST_OPERATIONS") or \
    str(scaled(50000 if IS_SLOW else 200000))


def test_random_requests_find_nothing_wrong(daemon):
    status, text = run(daemon.path, "--operations", OPERATIONS)
    assert status == 0, text
    assert text.startswith("ok: "), text
    numbers = dict(zip(("operations", "expirations"),
                       (int(word) for word in text.split() if word.isdigit())))
    assert numbers["operations"] >= int(OPERATIONS), text
    assert numbers["expirations"] > 0, text


def test_several_processes_share_the_operations(daemon):
    status, text = run(daemon.path, "--quick", "--operations",
                       str(scaled(8000)), "--processes", "2")
    assert status == 0, text
    assert text.count("ok: ") == 2, text


if __name__ == "__main__":
    tap.main()
