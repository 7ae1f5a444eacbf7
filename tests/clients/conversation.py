# SPDX-License-Identifier: LGPL-2.1-or-later
"""Carries out a conversation of clients/vectors: this is the server, an agent the
client."""

import os
import socket
import struct
import tempfile

from agents import PATIENCE, Answer
from vectors import bytes_of, values

RECORD = 32
CREDIT = 65
OPTIONAL = "clock_set", "missed"


class Skip(Exception):
    """An agent cannot do this, or need not."""


class Server:
    """A listening socket, and one connection to it. @piece: most bytes sent at a time,
    0 = any number."""

    def __init__(self, piece=0):
        self.piece = piece
        self.small = 2 * RECORD
        self.folder = tempfile.TemporaryDirectory(prefix="expiry-")
        self.path = os.path.join(self.folder.name, "s")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.listener.settimeout(PATIENCE)
        self.connection = None

    def accept(self):
        if not self.connection:
            self.connection = self.listener.accept()[0]
            self.connection.settimeout(PATIENCE)
        return self.connection

    def read(self, size):
        """Returns the next bytes from the client, without CREDIT."""
        data = b""
        while len(data) < size:
            more = self.accept().recv(RECORD - len(data) % RECORD)
            if not more:
                raise AssertionError("the client ended the connection")
            data += more
            if len(data) % RECORD == 0 and data[-RECORD] == CREDIT:
                credit = struct.unpack("<BBhIQQQ", data[-RECORD:])
                assert credit[1:3] + credit[4:] == (0, 0, 0, 0, 0) and credit[3], data
                data = data[:-RECORD]
        return data

    def write(self, data):
        # A socket takes few pieces while the client does not read: few are small.
        step = self.piece or len(data)
        if self.piece and self.small <= 0:
            step = 31
        try:
            for begin in range(0, len(data), step):
                self.accept().sendall(data[begin:begin + step])
        except (BrokenPipeError, ConnectionResetError):
            pass        # the client has ended the connection, as it may
        self.small -= len(data) if step < 31 else 0

    def cut(self):
        if self.connection:
            # Unread bytes would make it a reset, which drops what was sent.
            self.connection.setblocking(False)
            try:
                while self.connection.recv(1 << 16):
                    pass
            except OSError:
                pass
            self.connection.close()
            self.connection = None

    def close(self):
        if self.connection:
            self.connection.close()
        self.listener.close()
        self.folder.cleanup()


def compare(agent, answer, wanted):
    words = wanted.split(" ")
    kinds = words[0].split("|")
    assert answer.word in kinds, "%s instead of %s" % (answer, wanted)
    if answer.word == "error" and len(words) > 1:
        names = [word for word in words[1:] if "=" not in word][0].split("|")
        assert answer.error in names, "%s instead of %s" % (answer, wanted)
    for key, value in values(words).items():
        if key in ("doubtful", "unsent") and "doubt" not in agent.can:
            continue
        assert answer.values.get(key) == value, "%s instead of %s" % (answer, wanted)


def talk(agent, lines, piece):
    """Carries out a conversation with @agent; raises AssertionError."""
    server = Server(piece)
    optional = None
    try:
        for word, rest in lines:
            if word == "call":
                if rest.startswith("open "):
                    rest += " path=" + server.path
                agent.send(rest)
            elif word == ">":
                wanted = bytes_of(rest)
                got = server.read(len(wanted))
                assert got == wanted, "sent %s instead of %s" % (got.hex(" "), rest)
            elif word == "<":
                data, _, times = rest.partition(" *")
                for _ in range(int(times or 1)):
                    server.write(bytes_of(data))
            elif word == "cut":
                server.cut()
            elif word in ("answer", "answer?"):
                answer = optional or Answer(agent.line())
                optional = None
                if word == "answer?" and answer.word not in OPTIONAL:
                    optional = answer
                else:
                    compare(agent, answer, rest)
            else:
                assert word == "silent", word
    finally:
        server.close()
