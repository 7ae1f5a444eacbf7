# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is measured: a server on a socket of its own, and its driver, the
program that fills it and then does as it is told."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build/bench/daemon"
WAIT = 60               # seconds for a server to come, or to go


started = []            # servers that are to be ended
expiryd = [ROOT / "build/expiryd", "/dev/null"]     # and its configuration


def use(program, config):
    """Another expiryd, or other settings, from now on."""
    expiryd[:] = program, config


def end_all():
    """What an error left running."""
    for server in started[:]:
        server.close()


def end_when_told():
    """SIGTERM ends the servers, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Missing(Exception):
    """Something to compare with is not installed here."""


def redis(folder):
    """Its package has the server under another name, as a program that is
    many; so no service has to be installed for it."""
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


def command(name, folder, socket):
    if name in ("expiryd", "bare"):
        return [BUILD / "bare" if name == "bare" else expiryd[0], "--engine",
                os.environ.get("EXPIRY_ENGINE", "embedded"),
                "--loop", os.environ.get("EXPIRY_LOOP", "auto"),
                "--config", expiryd[1], "--socket", socket]
    if name == "echo":
        return [BUILD / "echo", "--config", "/dev/null", "--socket", socket]
    if name.startswith("redis"):
        common = [redis(folder), "--port", "0", "--unixsocket", socket,
                  "--save", "", "--appendonly", "no", "--dir", folder]
        # As punctual as it can be had.
        return common + (["--notify-keyspace-events", "Ex", "--hz", "500",
                          "--active-expire-effort", "10"]
                         if name == "redis keys" else [])
    if name == "beanstalkd":
        if not shutil.which(name):
            raise Missing("no beanstalkd (package beanstalkd)")
        return [name, "-l", "unix:" + socket]
    return None


class Server:
    """A server, started."""

    def __init__(self, name, folder, number, options=()):
        self.socket = os.path.join(folder, "s%d" % number)
        self.log = open(os.path.join(folder, "log"), "ab")
        arguments = command(name, folder, self.socket) + list(options)
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=self.log,
            stderr=self.log)
        self.name = name
        started.append(self)
        end = time.monotonic() + WAIT
        while not os.path.exists(self.socket):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("%s does not start: see %s"
                                   % (name, self.log.name))
            time.sleep(0.01)

    def _proc(self, file):
        with open("/proc/%d/%s" % (self.process.pid, file),
                  encoding="utf-8") as text:
            return text.read()

    def resident(self):
        """Bytes, shared ones by halves."""
        for line in self._proc("smaps_rollup").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("no Pss")

    def cpu_ns(self):
        return int(self._proc("schedstat").split()[0])

    def switches(self):
        """How often it went to sleep or was made to wait."""
        return sum(int(line.split()[1])
                   for line in self._proc("status").splitlines()
                   if "ctxt_switches" in line)

    def close(self):
        started.remove(self)
        self.process.terminate()
        try:
            self.process.wait(WAIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


class Driver:
    """A driver that is filled and waits for orders."""

    PROGRAMS = {
        "expiryd": ["expiry"], "bare": ["expiry"],
        "echo": ["expiry", "--echo"],
        "lateness": ["lateness"], "scaling": ["scaling"], "redis zset": ["redis"],
        "redis keys": ["redis", "--keys"], "beanstalkd": ["beanstalk"],
        "libevent": ["local-libevent"], "libev": ["local-libev"],
        "timerfd": ["local-timerfd"],
    }

    def __init__(self, name, timers, server=None):
        self.name, self.timers, self.server = name, timers, server
        program, *more = self.PROGRAMS[name]
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

    def measure(self, op, batch=1, connections=1, requests=1):
        self.process.stdin.write("%s %d %d %d\n"
                                 % (op, batch, connections, requests))
        self.process.stdin.flush()
        return self._answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait(WAIT)
        if self.server:
            self.server.close()
