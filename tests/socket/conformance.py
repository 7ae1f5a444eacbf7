# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs tests/conformance, a client with a model.

EXPIRY_TEST_SEED: what chance draws (default: 12)."""

import os
import subprocess

from client import SLOWER, WAIT
from daemon import ROOT

CONFORMANCE = os.path.join(ROOT, "tests", "conformance", "conformance")
SEED = os.environ.get("EXPIRY_TEST_SEED", "12")


def run(path, *arguments):
    """The exit status and what it prints."""
    # On an emulated machine a turn of the daemon takes as many times longer.
    slack = 250 * SLOWER
    done = subprocess.run(
        [CONFORMANCE, "--socket", path, "--seed", SEED, "--slack-ms",
         str(slack), "--patience", str(WAIT), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False)
    return done.returncode, done.stdout
