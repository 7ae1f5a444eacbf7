# SPDX-License-Identifier: LGPL-2.1-or-later
"""A daemon's calls for memory, counted and refused (fail-calls.c)."""

import mmap
import struct
import tempfile

import tap

BYTES = 32


class Refuser:
    """What a daemon's calls for memory are counted and refused by: one of them, or
    some in a row, so that what is tried again fails again."""

    def __init__(self):
        self.preload = tap.preload("fail-calls.so", "malloc() is the sanitizer's")
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(BYTES)
        self.map = mmap.mmap(self.file.fileno(), BYTES)

    def daemon(self, make, refused=0):
        """A daemon whose call of that number is refused."""
        struct.pack_into("3Qq", self.map, 0, 0, refused, 1, 0)
        return make(environment={"LD_PRELOAD": self.preload,
                                 "EXPIRY_FAIL_CALLS": self.file.name})

    def calls(self):
        return struct.unpack_from("Q", self.map)[0]

    def allocated(self):
        """Returns the bytes that the daemon has and did not give back."""
        return struct.unpack_from("q", self.map, 24)[0]

    def refuse(self, number, in_a_row=1):
        """Lets the call of that number from now on fail, 0 = none, and those
        behind it."""
        struct.pack_into("2Q", self.map, 8, number and self.calls() + number, in_a_row)
