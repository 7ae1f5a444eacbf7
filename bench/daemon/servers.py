# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is measured: a server on a socket of its own, and its driver, the
program that fills it and then measures by orders."""

import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from report.machine import value

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/bench/daemon"
EXPIRYD = os.environ.get("EXPIRYD", ROOT / "build/expiryd")
WAIT = 60               # seconds for a server to start, or to end

STORES = "none", "rocksdb", "sqlite", "lmdb"

running = []            # servers that are to be ended


def say(what):
    print("bench: " + what, file=sys.stderr, flush=True)


def end_all():
    """Ends what an error left running."""
    for server in running[:]:
        server.close()


def end_on_signal():
    """SIGTERM ends the servers, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Missing(Exception):
    """Something to compare with is not installed here."""


def redis(folder):
    """Its package has the server under another name, as one program with many
    names; so no service has to be installed for it."""
    there = shutil.which("redis-server")
    if there:
        return there
    other = shutil.which("redis-check-rdb")
    if not other:
        raise Missing("no Redis (package redis-tools)")
    link = os.path.join(folder, "redis-server")
    if not os.path.exists(link):
        os.symlink(other, link)
    return link


def postgresql(data):
    """Makes an empty cluster. It refuses to work as root, so Debian's user does."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))
    if not found:
        raise Missing("no PostgreSQL (package postgresql)")
    programs = pathlib.Path(found[-1]).parent
    prefix = []
    if os.geteuid() == 0:
        prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        shutil.chown(data, "postgres", "postgres")
    subprocess.run(prefix + [programs / "initdb", "-D", data, "-A", "trust",
                             "-U", "postgres"], cwd="/", check=True,
                   stdout=subprocess.DEVNULL)
    return prefix + [programs / "postgres", "-D", data, "-k", data,
                     "-c", "listen_addresses=", "-c", "shared_buffers=1GB",
                     "-c", "max_wal_size=4GB"]


def durable_command(name, folder, socket, data):
    """Those of bench-durable, with their files in @data; None: not one of them."""
    if name in STORES:
        if not (BUILD / f"store-{name}").exists():
            raise Missing(f"no {name} (package lib{name}-dev)")
        return [BUILD / f"store-{name}", "--socket", socket, "--folder", data]
    if name == "redis always":
        return [redis(folder), "--port", "0", "--unixsocket", socket, "--save", "",
                "--appendonly", "yes", "--appendfsync", "always", "--dir", data]
    if name == "beanstalkd sync":
        if not shutil.which("beanstalkd"):
            raise Missing("no beanstalkd (package beanstalkd)")
        return ["beanstalkd", "-l", "unix:" + socket, "-b", data, "-f", "0"]
    return postgresql(data) if name == "postgresql" else None


def command(name, folder, socket, config):
    if name in ("expiryd", "expiryd epoll", "no-histograms"):
        return [BUILD / name if name == "no-histograms" else EXPIRYD, "--engine",
                os.environ.get("EXPIRY_ENGINE", "embedded"),
                "--loop", "epoll" if name == "expiryd epoll" else
                os.environ.get("EXPIRY_LOOP", "auto"),
                "--config", config, "--socket", socket]
    if name == "echo":
        return [BUILD / name, "--config", config, "--socket", socket]
    if name.startswith("redis"):
        # With keys: as early as it can notify.
        return [redis(folder), "--port", "0", "--unixsocket", socket,
                "--save", "", "--appendonly", "no", "--dir", folder] + (
                    ["--notify-keyspace-events", "Ex", "--hz", "500",
                     "--active-expire-effort", "10"]
                    if name == "redis keys" else [])
    if not shutil.which("beanstalkd"):
        raise Missing("no beanstalkd (package beanstalkd)")
    return ["beanstalkd", "-l", "unix:" + socket]


class Server:
    """A server, started. @data: a folder of its own for its files."""

    count = 0

    def __init__(self, name, folder, options=(), config="/dev/null", data=None):
        Server.count += 1
        self.name = name
        self.socket = os.path.join(folder, "s%d" % Server.count)
        arguments = durable_command(name, folder, self.socket, data) or command(
            name, folder, self.socket, config)
        if name == "postgresql":
            self.socket = os.path.join(data, ".s.PGSQL.5432")
        self.log = open(os.path.join(folder, "log"), "ab")
        self.process = subprocess.Popen(
            arguments + list(options), stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log)
        running.append(self)
        end = time.monotonic() + WAIT
        while not os.path.exists(self.socket):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("%s does not start: see %s"
                                   % (name, self.log.name))
            time.sleep(0.01)

    def _proc(self, file):
        return pathlib.Path("/proc/%d" % self.process.pid, file).read_text(
            encoding="utf-8")

    def resident(self):
        """Bytes, shared ones by halves."""
        for line in self._proc("smaps_rollup").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("no Pss")

    def cpu_ns(self):
        return int(self._proc("schedstat").split()[0])

    def cpu_s(self):
        """Of all its threads, also of those that have ended."""
        ticks = self._proc("stat").rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def late_ns(self):
        """How long its first thread was ready and had no processor."""
        return int(self._proc("schedstat").split()[1])

    def written(self):
        """Bytes for the disk, of the processes that it started, too."""
        children = self._proc(f"task/{self.process.pid}/children").split()
        return sum(int(value("/proc/%s/io" % pid, "write_bytes"))
                   for pid in [self.process.pid, *children])

    def switches(self):
        """How often it went to sleep or was made to wait."""
        return sum(int(line.split()[1])
                   for line in self._proc("status").splitlines()
                   if "ctxt_switches" in line)

    def close(self):
        running.remove(self)
        self.process.terminate()
        try:
            self.process.wait(WAIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Driver:
    """A driver that has filled its server and waits for orders."""

    PROGRAMS = {
        "expiryd": ["expiry"], "expiryd epoll": ["expiry"],
        "no-histograms": ["expiry"], "echo": ["expiry", "--echo"],
        "lateness": ["lateness"], "scaling": ["scaling"],
        "redis zset": ["redis"], "redis keys": ["redis", "--keys"],
        "library plain": ["library"], "library keyed": ["library", "--keyed"],
        "beanstalkd": ["beanstalk"], "libevent": ["local-libevent"],
        "libev": ["local-libev"], "timerfd": ["local-timerfd"],
        "expiryd keyed": ["expiry", "--keyed"], "disk": ["flush"],
        "redis always": ["redis"], "beanstalkd sync": ["beanstalk"],
        "postgresql": ["postgres"],
    } | {name: ["expiry", "--keyed"] for name in STORES}

    def __init__(self, name, timers, server=None, options=()):
        self.name, self.timers, self.server = name, timers, server
        program, *more = self.PROGRAMS[name]
        more += options
        if not (BUILD / program).exists():
            raise Missing("no %s (package %s-dev)" % (name, name))
        arguments = [BUILD / program, *more, "--timers", str(timers)]
        before = server.resident() if server else 0
        if server:
            arguments += ["--socket", server.socket]
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        self.filled = self._answer()
        self.bytes = (server.resident() - before) / timers \
            if server and timers else None

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("%s ended" % self.name)
        return json.loads(line)

    def measure(self, op, batch=1, connections=1, requests=1, depth=0, **more):
        """Returns the driver's figures, with @more of what the row is. @depth:
        batches in flight a connection, 0: as the driver likes."""
        self.process.stdin.write("%s %d %d %d %d\n"
                                 % (op, batch, connections, requests, depth))
        self.process.stdin.flush()
        return self._answer() | more

    def close(self):
        self.process.stdin.close()
        self.process.wait(WAIT)
        if self.server in running:
            self.server.close()
