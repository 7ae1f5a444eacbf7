# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a test of the transport needs: Redis, expiryd, relay and workers, each of its own,
and each may be killed and started again."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path[:0] = [os.path.join(ROOT, *folder) for folder in (
    ("integrations", "support"), ("integrations", "celery", "src"),
    ("clients", "python", "src"), ("tests", "socket"))]

import python           # noqa: E402
python.need("celery", "redis")

import redis            # noqa: E402
from processes import Expiryd, Program, wait_until   # noqa: E402,F401
from redis_server import RedisServer        # noqa: E402

SOURCES = os.pathsep.join([*sys.path[:3], HERE])


class Setup:
    """@transport: "expiry" or "redis", for the stock one; @variables: of the application"""

    def __init__(self, transport="expiry", daemon_options=(), settings=(), **variables):
        self.redis = RedisServer(*settings)
        self.daemon = Expiryd(*daemon_options)
        self.environment = dict(
            os.environ, BROKER=self.redis.url.replace("redis", transport),
            EXPIRY_SOCKET=self.daemon.path,
            PYTHONPATH=SOURCES, PYTHONDONTWRITEBYTECODE="1", **variables)
        self.client = redis.Redis(port=self.redis.port, retry_on_timeout=True)
        self.programs = []
        self.prefix = variables.get("KEY_PREFIX", "")
        os.environ.update({name: self.environment[name]
                           for name in ("BROKER", "EXPIRY_SOCKET", *variables)})

    def program(self, name, command):
        log = os.path.join(self.redis.folder, "%s-%d.log" % (name, len(self.programs)))
        started = Program(command, self.environment, log, HERE)
        self.programs.append(started)
        return started

    def relay(self, *options, module="expiry_celery"):
        return self.program("relay", [sys.executable, "-B", "-m", module, "-A", "tasks",
                                      "--log-interval", "1", *options])

    def worker(self, *options):
        worker = self.program("worker", [
            sys.executable, "-B", "-m", "celery", "-A", "tasks", "worker", "--pool", "solo",
            "--loglevel", "INFO", "--without-gossip", "--without-mingle", *options])
        wait_until(lambda: " ready." in worker.log(), 60)
        return worker

    def kill_daemon(self):
        self.daemon.kill()

    def parked(self):
        return self.client.hlen(self.prefix + "expiry:parked")

    def notes(self, kind="run"):
        """Returns what tasks noted: lists of the time in ns and words."""
        lines = [line.decode().split() for line in self.client.lrange("notes", 0, -1)]
        return [[int(line[0]), *line[2:]] for line in lines if line[1] == kind]

    def logs(self):
        return "\n".join("%s: %s" % (program.command[3:5], program.log()[-2000:])
                         for program in self.programs)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for program in self.programs:
            program.kill()
        if kind:
            print("\n".join("# " + line for line in self.logs().splitlines()))
        self.daemon.remove()
        self.redis.__exit__()
