#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients of DHCP on one interface, each with a MAC address of its own.

Reads commands from standard input: `lease N`, `renew N` or `release N`, where N is the
number of a client. Answers with `ADDRESS SECONDS`, or `none`.
"""

import select
import socket
import struct
import sys
import time

INTERFACE = sys.argv[1]
COOKIE = b"\x63\x82\x53\x63"
DISCOVER, OFFER, REQUEST, ACK, RELEASE = 1, 2, 3, 5, 7
BROADCAST = 0x8000
WAIT = 3        # seconds, then the request is sent again


def mac(number):
    return struct.pack(">HI", 0x0200, number)


def packet(kind, number, xid, flags, ciaddr=b"\0" * 4, options=b""):
    head = struct.pack(">BBBBIHH4s4s4s4s16s192x", 1, 1, 6, 0, xid, 0, flags, ciaddr,
                       b"\0" * 4, b"\0" * 4, b"\0" * 4, mac(number))
    return head + COOKIE + bytes((53, 1, kind)) + options + b"\xff"


def parsed(data):
    """Returns xid, the address given, and options."""
    xid, address = data[4:8], data[16:20]
    options, at = {}, 240
    while at < len(data) and data[at] != 255:
        if data[at] == 0:
            at += 1
            continue
        options[data[at]] = data[at + 2:at + 2 + data[at + 1]]
        at += 2 + data[at + 1]
    return int.from_bytes(xid, "big"), address, options


class Clients:
    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE,
                               INTERFACE.encode() + b"\0")
        self.socket.bind(("", 68))
        self.xid = int(time.time()) & 0xffffff
        self.leases = {}

    def ask(self, wanted, *arguments, **more):
        """Sends a request until its answer comes."""
        self.xid += 1
        for _ in range(5):
            self.socket.sendto(packet(arguments[0], arguments[1], self.xid, BROADCAST,
                                      **more), ("255.255.255.255", 67))
            end = time.monotonic() + WAIT
            while select.select([self.socket], [], [], max(end - time.monotonic(), 0))[0]:
                xid, address, options = parsed(self.socket.recv(2048))
                if xid == self.xid and options.get(53) == bytes((wanted,)):
                    return address, options
        return None, {}

    def lease(self, number):
        address, offer = self.ask(OFFER, DISCOVER, number)
        if not address:
            return "none"
        return self.granted(number, self.ask(ACK, REQUEST, number, options=bytes(
            (50, 4)) + address + bytes((54, 4)) + offer[54]))

    def renew(self, number):
        # As a client that starts again: the answer to one with an address comes there.
        address, _ = self.leases[number]
        return self.granted(number, self.ask(ACK, REQUEST, number,
                                             options=bytes((50, 4)) + address))

    def granted(self, number, answer):
        address, options = answer
        if not address:
            return "none"
        self.leases[number] = address, options[54]
        return "%s %d" % (socket.inet_ntoa(address), int.from_bytes(options[51], "big"))

    def release(self, number):
        address, server = self.leases.pop(number)
        self.xid += 1
        self.socket.sendto(packet(RELEASE, number, self.xid, 0, ciaddr=address,
                                  options=bytes((54, 4)) + server), ("255.255.255.255", 67))
        return "%s 0" % socket.inet_ntoa(address)


clients = Clients()
for line in sys.stdin:
    name, number = line.split()
    print(getattr(clients, name)(int(number)), flush=True)
