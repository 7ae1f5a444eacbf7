# SPDX-License-Identifier: LGPL-2.1-or-later
"""A busy daemon, a server for scrapes of it, and a Prometheus that scrapes it once a
second. Each ends with its `with` statement."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import urllib.parse
import urllib.request

from daemon import ROOT, Daemon

CTL = os.path.join(ROOT, "build", "expiryctl")
EXPORTER = os.path.join(ROOT, "build", "expiry-exporter")
RULES = os.path.join(ROOT, "packaging/prometheus/expiry.rules.yml")
LIMIT = 120

CONFIG = """
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ["%s"]
scrape_configs:
  - job_name: expiry
    static_configs: [{ targets: ["%s"] }]
"""


class Scrapes:
    """An expiry-exporter on a free port. @address: HOST:PORT"""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [EXPORTER, "--socket", path, "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.address = self.process.stdout.readline().split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate(timeout=LIMIT)


class Busy:
    """A daemon with four queues. Timers of `busy` are armed and consumed all the time,
    and those of the durable queue `kept` are armed again.
    `idle` has a due timer and no consumer. `lost` ended with the previous daemon."""

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="expiry-dashboard.")
        self.path = os.path.join(self.dir, "socket")
        self.journal = os.path.join(self.dir, "journal")
        os.mkdir(self.journal, 0o700)
        self.ended = threading.Event()
        self.daemon = Daemon(path=self.path, options=["--journal", self.journal]).__enter__()
        self.ctl("--queue", "lost", "arm", "+1h", "1")
        return self

    def restart(self):
        """Starts the next daemon, which has no queue `lost`."""
        self.daemon.__exit__(None)
        self.daemon = Daemon(path=self.path, options=["--journal", self.journal]).__enter__()
        for queue in ("idle", "busy"):
            self.ctl("--queue", queue, "arm", "+1ms", "1")
        self.watch = subprocess.Popen([CTL, "--socket", self.path, "--queue", "busy", "watch"],
                                      stdout=subprocess.DEVNULL)
        self.load = threading.Thread(target=self.keep_busy)
        self.load.start()

    def keep_busy(self):
        while not self.ended.wait(0.2):
            self.ctl("--queue", "busy", "load", "-", text="+300ms 1\n" * 50)
            self.ctl("--queue", "kept", "--durable", "arm", "--id", "1", "+1h")

    def ctl(self, *arguments, text=None):
        subprocess.run([CTL, "--socket", self.path, *arguments], input=text, text=True,
                       stdout=subprocess.DEVNULL, check=True, timeout=LIMIT)

    def __exit__(self, *_):
        self.ended.set()
        if hasattr(self, "load"):
            self.load.join()
            self.watch.terminate()
            self.watch.wait(LIMIT)
        self.daemon.__exit__(None)
        shutil.rmtree(self.dir)


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


class Prometheus:
    """A Prometheus that scrapes @target and has the project's rules."""

    def __init__(self, target):
        self.target = target
        self.port = free_port()

    def __enter__(self):
        self.dir = tempfile.mkdtemp(prefix="expiry-prometheus.")
        config = os.path.join(self.dir, "prometheus.yml")
        with open(config, "w", encoding="ascii") as file:
            file.write(CONFIG % (RULES, self.target))
        self.log = open(os.path.join(self.dir, "log"), "wb")
        self.process = subprocess.Popen(
            ["prometheus", "--config.file=" + config,
             "--storage.tsdb.path=" + os.path.join(self.dir, "data"),
             "--web.listen-address=127.0.0.1:%d" % self.port],
            stdout=self.log, stderr=self.log)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(LIMIT)
        self.log.close()
        shutil.rmtree(self.dir)

    def get(self, path, **parameters):
        """Returns the data of an answer, or None while no server answers."""
        assert self.process.poll() is None, self.said()
        url = "http://127.0.0.1:%d/api/v1/%s?%s" % (
            self.port, path, urllib.parse.urlencode(parameters))
        try:
            with urllib.request.urlopen(url, timeout=LIMIT) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None
            raise AssertionError(error.read().decode()) from None
        except urllib.error.URLError:
            return None

    def said(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8") as file:
            return file.read()[-2000:]

    def values(self, query):
        """Returns the current values of a query, without NaN."""
        data = self.get("query", query=query) or {"result": []}
        values = [float(row["value"][1]) for row in data["result"]]
        return [value for value in values if value == value]
