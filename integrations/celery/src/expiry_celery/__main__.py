# SPDX-License-Identifier: LGPL-2.1-or-later
"""expiry-celery-relay: hands parked messages to the workers when they are due."""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from types import FrameType
from typing import Any

import redis     # type: ignore[import]
from celery.app.task import Context
from celery.app.utils import find_app
from kombu import Connection
from kombu.utils.json import loads

from . import transport     # noqa: F401 - an app's URL needs it
from .parking import Parking
from .relay import Counters, Relay

log = logging.getLogger("expiry_celery")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="expiry-celery-relay", description="Hand messages that Celery's publishers "
        "have parked in Redis to the workers, when expiry says that they are due.")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("-A", "--app", help="the application, as for celery: its broker is "
                        "used, and its result backend gets the state REVOKED")
    source.add_argument("-b", "--broker", metavar="URL", help="the broker, without an "
                        "application: expiry://localhost/0")
    parser.add_argument("--queue", default="celery", help="expiry's queue; one for each "
                        "broker (celery)")
    parser.add_argument("--socket", metavar="PATH", help="expiryd's socket")
    parser.add_argument("--durable", choices=("auto", "yes", "no"), default="auto",
                        help="whether expiry's queue outlives the daemon: if it has a "
                        "journal (auto), or the relay waits for one (yes)")
    parser.add_argument("--log-interval", type=float, default=60.0, metavar="SECONDS",
                        help="print counters this often, if they have changed (60)")
    return parser.parse_args()


def revoker(app: Any) -> Any:
    """Returns a function that stores the state REVOKED, as a worker does."""
    def revoked(message: bytes) -> None:
        headers = loads(message)["headers"]
        request = Context(headers)
        try:
            app.backend.mark_as_revoked(headers["id"], "revoked", request=request,
                                        store_result=not request.ignore_result)
        except Exception as error:  # each backend has its own
            log.warning("task %s is revoked, its state not stored: %s", headers["id"], error)
    return revoked


def report(counters: Counters, interval: float) -> None:
    before = ""
    while True:
        time.sleep(interval)
        text = counters.totals()
        if text != before:
            log.info("%s, at most %.1f ms late", text, counters.take_late_ns() / 1e6)
        before = text


def ended(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


def main() -> None:
    options = arguments()
    logging.basicConfig(level=logging.INFO, format="expiry-celery-relay: %(message)s")
    sys.path.insert(0, os.getcwd())
    app = find_app(options.app) if options.app else None
    broker = app.connection_for_write() if app else Connection(options.broker)
    name = "%s %d %s" % (socket.gethostname(), os.getpid(), secrets.token_hex(8))

    def open_parking() -> Parking:
        channel = broker.clone().channel()
        return Parking(redis.Redis(connection_pool=channel.pool),
                       getattr(channel, "global_keyprefix", ""), name)

    signal.signal(signal.SIGTERM, ended)
    signal.signal(signal.SIGINT, ended)
    relay = Relay(open_parking, options.queue, revoker(app) if app else lambda message: None,
                  (redis.RedisError, *broker.connection_errors),
                  path=options.socket, durable=options.durable)
    if options.log_interval > 0:
        threading.Thread(target=report, args=(relay.counters, options.log_interval),
                         daemon=True).start()
    relay.run()


if __name__ == "__main__":
    main()
