# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which Python runs a test: the one that has the distribution's packages."""

import importlib.util
import os
import sys

SKIPPED = 4


def need(*modules):
    """Goes on with $EXPIRY_TEST_PYTHON or Debian's Python, if this one lacks a module.
    Skips the test if they are nowhere."""
    missing = [name for name in modules if not importlib.util.find_spec(name)]
    if not missing:
        return
    for other in os.environ.get("EXPIRY_TEST_PYTHON"), "/usr/bin/python3":
        tried = os.environ.get("EXPIRY_TEST_TRIED", "").split(":")
        if other and os.path.exists(other) and other not in tried:
            os.environ["EXPIRY_TEST_TRIED"] = ":".join([*tried, other])
            os.execv(other, [other, "-B", *sys.argv])
    print("1..0 # SKIP not installed for Python: %s" % ", ".join(missing))
    sys.exit(SKIPPED)
