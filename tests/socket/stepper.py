# SPDX-License-Identifier: LGPL-2.1-or-later
"""CLOCK_REALTIME stepped for a daemon alone (step-clock.c)."""

import contextlib
import os
import tempfile

import tap
from daemon import Daemon


@contextlib.contextmanager
def told(config=None):
    """A daemon, and a function that notifies all of its threads of a step."""
    stepper = tap.preload("step-clock.so")
    with tempfile.TemporaryDirectory() as folder:
        def step():
            for name in os.listdir(folder):
                with open(f"{folder}/{name}", "wb", buffering=0) as fifo:
                    fifo.write(b"!")
        # A sanitizer wants to be first; this replaces nothing of its own.
        options = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        with Daemon(config, environment={
                "LD_PRELOAD": stepper, "ASAN_OPTIONS": options,
                "EXPIRY_STEP_CLOCK": f"{folder}/thread"}) as daemon:
            yield daemon, step
