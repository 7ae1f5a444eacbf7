# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads clients/vectors."""

import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "clients", "vectors")


def read(name):
    """Returns the blocks of a file: a list of (name, lines); a line is (word, rest)."""
    blocks = []
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line.startswith("["):
                blocks.append((line[1:-1], []))
            elif line and not line.startswith("#"):
                word, _, rest = line.partition(" ")
                blocks[-1][1].append((word, rest))
    assert blocks, name
    return blocks


def values(words):
    """Returns the key=value among words as a dictionary."""
    return dict(word.split("=", 1) for word in words if "=" in word)


def bytes_of(text):
    return bytes.fromhex(text.replace(" ", ""))
