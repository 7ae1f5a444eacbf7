#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The programs of docs/python.md do what the page says, as they are written there."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "socket"))

import tap                              # noqa: E402
from daemon import ROOT                 # noqa: E402

SOURCES = os.path.join(ROOT, "clients", "python", "src")
SAID = ["expired: 42", "session 1001 has ended", "all expired: True",
        "sessions left: 0", "alice@example.org had 3 attempts"]


def programs(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return re.findall(r"^```python\n(.*?)^```$", file.read(), re.M | re.S)


def run(program, daemon):
    environment = dict(os.environ, EXPIRY_SOCKET=daemon.path, PYTHONPATH=SOURCES)
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], timeout=60,
                          env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout


def test_each_program_says_what_the_page_has_it_say(daemon):
    page = programs("docs", "python.md")
    assert len(page) == len(SAID)
    for program, said in zip(page, SAID):
        assert run(program, daemon) == said + "\n"


def test_the_first_expiration_takes_ten_lines_at_most(daemon):
    assert len(programs("docs", "python.md")[0].splitlines()) <= 10


def test_the_program_of_the_package(daemon):
    (program,) = programs("clients", "python", "README.md")
    assert run(program, daemon) == "expired: 42\n"


if __name__ == "__main__":
    tap.main()
