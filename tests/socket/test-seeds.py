#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The embedded engine's keyed queues hash ids by a secret of 16 random bytes, each
by its own. Who knows it makes all ids meet in one place of the index."""

import tempfile

import tap
from client import HOUR, KEYED, arm, attach
from daemon import ENGINE, Daemon


def test_each_queue_has_a_seed_of_its_own():
    if ENGINE != "embedded":
        raise tap.Skip("the module's seeds are the kernel's")
    preload = tap.preload("log-random.so", "the sanitizer has getrandom() of its own")
    with tempfile.NamedTemporaryFile("r") as log, Daemon(environment={
            "LD_PRELOAD": preload, "EXPIRY_LOG_RANDOM": log.name}) as daemon:
        before = log.read().splitlines()
        for name in ("one", "two", "three"):
            with attach(daemon.path, name, KEYED) as queue:
                assert queue.request(arm(HOUR, id=7)).status == 0
        seeds = log.read().splitlines()
        assert len(set(seeds) - set(before)) == len(seeds) == 3, (before, seeds)
        assert all(len(seed) == 2 * 16 for seed in seeds), seeds


if __name__ == "__main__":
    tap.main()
