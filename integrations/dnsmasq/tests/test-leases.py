#!/usr/bin/env -S python3 -B
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Leases of a real dnsmasq end once, when it said: ../README.md has the oracle."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path[:0] = [os.path.join(ROOT, "tests", "socket"),
                os.path.join(ROOT, "clients", "python", "src")]

import expiry.sync          # noqa: E402
import tap                  # noqa: E402

SCRIPT = os.path.join(ROOT, "integrations", "dnsmasq", "lease-script")
COUNT = 60
RENEWED = range(0, 20)
RELEASED = range(20, 35)
LEASE = 120         # seconds, dnsmasq's least
LATE = 5            # seconds that only a very busy machine needs


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def namespaces():
    """Two network namespaces with a pair of interfaces, veth0 and veth1."""
    names = ["expiry-%d-%s" % (os.getpid(), side) for side in ("server", "client")]
    made = []
    try:
        for name in names:
            run("ip", "netns", "add", name)
            made.append(name)
        run("ip", "-n", names[0], "link", "add", "veth0", "type", "veth", "peer", "name",
            "veth1", "netns", names[1])
        for number, name in enumerate(names):
            run("ip", "-n", name, "address", "add", "10.77.0.%d/16" % (number + 1), "dev",
                "veth%d" % number)
            for device in "lo", "veth%d" % number:
                run("ip", "-n", name, "link", "set", device, "up")
        yield names
    finally:
        for name in made:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def number_of(address):
    return int.from_bytes(socket.inet_aton(address), "big")


class Dnsmasq:
    """@calls(): the calls of the lease script, and when they were"""

    def __init__(self, namespace, folder, daemon):
        self.log = os.path.join(folder, "calls")
        script = os.path.join(folder, "script")
        with open(script, "w", encoding="ascii") as file:
            file.write("""#!/bin/sh
echo "$(date +%%s.%%N) $1 $3 ${DNSMASQ_LEASE_EXPIRES:--}" >>%s
export EXPIRY_SOCKET=%s EXPIRYCTL=%s/build/expiryctl
exec %s "$@" >>%s.out 2>&1
""" % (self.log, daemon.path, ROOT, SCRIPT, self.log))
        os.chmod(script, 0o755)
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, "dnsmasq", "--keep-in-foreground",
             "--conf-file=/dev/null", "--port=0", "--interface=veth0", "--bind-interfaces",
             "--user=root", "--dhcp-scriptuser=root", "--no-ping", "--dhcp-authoritative",
             "--dhcp-range=10.77.1.1,10.77.1.200,255.255.0.0,%d" % LEASE,
             "--dhcp-leasefile=" + os.path.join(folder, "leases"),
             "--dhcp-script=" + script, "--script-on-renewal",
             "--pid-file=" + os.path.join(folder, "pid"),
             "--log-facility=" + os.path.join(folder, "log")])

    def calls(self):
        with open(self.log, encoding="ascii") as file:
            return [(float(at), what, address, expires)
                    for at, what, address, expires in map(str.split, file)]

    def said(self):
        with open(self.log + ".out", encoding="utf-8") as file:
            return file.read()

    def end(self):
        self.process.terminate()
        self.process.wait()


class Clients:
    def __init__(self, namespace):
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, sys.executable, "-B",
             os.path.join(HERE, "dhcp.py"), "veth1"], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, what, number):
        self.process.stdin.write("%s %d\n" % (what, number))
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        assert len(answer) == 2, (what, number, answer)
        return answer[0], int(answer[1])

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def test_a_lease_without_an_end_has_no_timer(daemon):
    """dnsmasq calls the script with the time 0 for one."""
    def call(expires, address):
        environment = dict(os.environ, EXPIRY_SOCKET=daemon.path,
                           EXPIRYCTL=os.path.join(ROOT, "build", "expiryctl"),
                           DNSMASQ_LEASE_EXPIRES=str(expires))
        subprocess.run([SCRIPT, "old", "02:00:00:00:00:01", address], env=environment,
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with expiry.sync.connect("leases", path=daemon.path, keyed=True, ack=True) as queue:
        later = int(time.time()) + 3600
        call(later, "10.0.0.1")
        call(later, "10.0.0.2")
        call(0, "10.0.0.1")
        call(0, "10.0.0.3")
        assert [timer.id for timer in queue.scan()] == [number_of("10.0.0.2")]
        with queue.receive(64, 0) as batch:
            assert not len(batch), list(batch.ids)
        queue.clear()


def test_each_lease_ends_once_and_in_time(daemon):
    tap.need_root()
    for program in "dnsmasq", "ip":
        if not shutil.which(program):
            raise tap.Skip(program + " is not installed")
    folder = tempfile.mkdtemp(prefix="expiry-dnsmasq-")
    os.chmod(folder, 0o755)
    try:
        with namespaces() as (server, client):
            dnsmasq, clients = Dnsmasq(server, folder, daemon), Clients(client)
            try:
                time.sleep(1)
                scenario(daemon, dnsmasq, clients)
            finally:
                clients.end()
                dnsmasq.end()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def scenario(daemon, dnsmasq, clients):
    with expiry.sync.connect("leases", path=daemon.path, keyed=True, ack=True) as queue:
        addresses = {}
        for number in range(COUNT):
            addresses[number], seconds = clients.ask("lease", number)
            assert seconds == LEASE, seconds
        assert len(set(addresses.values())) == COUNT
        time.sleep(10)
        for number in RENEWED:
            assert clients.ask("renew", number)[0] == addresses[number]
        for number in RELEASED:
            clients.ask("release", number)
        ended = []      # id, deadline, time
        limit = time.monotonic() + LEASE + 15
        while time.monotonic() < limit:
            with queue.receive(64, 1) as batch:
                now = time.time()
                ended += [(id, deadline / 1e9, now)
                          for id, deadline in zip(batch.ids, batch.deadlines)]
        assert queue.stat().queue["armed"] == 0
    judge(dnsmasq, addresses, ended)


def judge(dnsmasq, addresses, ended):
    """Compares with what dnsmasq said: the last end of each lease, before its `del`."""
    ends, deleted, calls = {}, {}, dnsmasq.calls()
    for at, what, address, expires in calls:
        if what == "del":
            deleted[number_of(address)] = at
        else:
            ends[number_of(address)] = int(expires)
    assert len(ends) == COUNT, (len(ends), dnsmasq.said())
    renewals = sum(what == "old" for _, what, *_ in calls)
    assert renewals >= len(RENEWED), calls
    released = {number_of(addresses[number]) for number in RELEASED}
    assert sorted(id for id, *_ in ended) == sorted(set(ends) - released), dnsmasq.said()
    for id, deadline, now in ended:
        assert deadline == ends[id], (id, deadline, ends[id])
        assert 0 <= now - deadline < LATE, (id, now - deadline)
    both = [deleted[id] - deadline for id, deadline, _ in ended if id in deleted]
    assert both and min(both) > 0, both
    print("# %d leases ended, late %.1f ms at most; %d renewed, %d released; dnsmasq noticed "
          "%d ends, %.1f to %.1f s late" % (
              len(ended), 1e3 * max(now - deadline for _, deadline, now in ended), len(RENEWED),
              len(RELEASED), len(both), min(both), max(both)))


if __name__ == "__main__":
    tap.main()
