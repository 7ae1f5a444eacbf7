#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Python without the library: only a socket and docs/protocol.md.

    ./by-hand.py SECONDS TEXT [SECONDS TEXT...]

Prints each TEXT after its SECONDS. All requests are sent at once. Replies and
expirations arrive in one stream of 32-byte records.
"""

import os
import socket
import struct
import sys

# op, flags, status, period_ms, id, deadline_ns, cookie: in native byte order
RECORD = struct.Struct("=BBhIQQQ")
HELLO = struct.Struct("=BBhI24s")
OP_ARM, OP_EXPIRED, OP_HELLO, OP_CREDIT = 1, 16, 64, 65
RELATIVE, CONSUME = 1, 1
REALTIME = 0


def default_path():
    """Returns the socket of the system's daemon, else of the user's own."""
    system = "/run/expiryd/socket"
    directory = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.environ.get("EXPIRY_SOCKET"):
        return os.environ["EXPIRY_SOCKET"]
    if os.geteuid() and directory.startswith("/") and not os.path.exists(system):
        return os.path.join(directory, "expiry/socket")
    return system


def records(connection):
    """Yields each received record; the stream may split records anywhere."""
    data = b""
    while more := connection.recv(65536):
        data += more
        whole = len(data) - len(data) % RECORD.size
        yield from RECORD.iter_unpack(data[:whole])
        data = data[whole:]
    sys.exit("by-hand: the daemon ended the connection")


def check(status, what):
    if status:
        sys.exit("by-hand: %s: %s" % (what, os.strerror(-status)))


def main(arguments):
    if not arguments or len(arguments) % 2:
        sys.exit("usage: by-hand.py SECONDS TEXT [SECONDS TEXT...]")
    seconds = [float(number) for number in arguments[::2]]
    texts = arguments[1::2]

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(default_path())
    except OSError as error:
        sys.exit("by-hand: %s: %s" % (default_path(), error.strerror))
    # Consume an anonymous queue, which ends with the connection.
    connection.sendall(HELLO.pack(OP_HELLO, CONSUME, 1, REALTIME, b""))
    stream = records(connection)
    _, _, status, _, _, _, in_flight = next(stream)
    check(status, "hello")

    # The server accepts this many requests before the client reads replies.
    if len(texts) > in_flight:
        sys.exit("by-hand: at most %d texts" % in_flight)
    requests = [RECORD.pack(OP_ARM, RELATIVE, 0, 0, 0, int(number * 1e9), cookie)
                for cookie, number in enumerate(seconds)]
    credit = RECORD.pack(OP_CREDIT, 0, 0, len(texts), 0, 0, 0)
    connection.sendall(credit + b"".join(requests))

    left = len(texts)
    while left:
        op, _, status, _, _, _, cookie = next(stream)
        # Expirations arrive between replies; a refused request has a status.
        check(status, "arm")
        if op == OP_EXPIRED:
            print(texts[cookie], flush=True)
            left -= 1
    connection.close()


if __name__ == "__main__":
    main(sys.argv[1:])
