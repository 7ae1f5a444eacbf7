# SPDX-License-Identifier: LGPL-2.1-or-later
"""kombu's transport for Redis, except that messages with a future ETA are parked."""

from __future__ import annotations

import base64
import time
from datetime import datetime
from typing import Any

from kombu.transport import redis
from kombu.utils.json import dumps, loads

from expiry.times import instant_ns

from .parking import PARK, UNPARK, Keys, fields_of, own_field

PIDBOX = ".pidbox"      # ends the name of the exchange for commands to workers


def deadline_of(message: dict[str, Any]) -> int:
    """Returns nanoseconds since 1970, 0 for a message without a time that is certain."""
    eta = message.get("headers", {}).get("eta")
    try:
        at = datetime.fromisoformat(eta) if eta else None
        return instant_ns(at, 0) if at and at.utcoffset() is not None else 0
    except (TypeError, ValueError):
        return 0


def revoked_by(exchange: str, message: dict[str, Any]) -> list[str]:
    """Returns the ids of tasks that a command revokes for all workers."""
    if not exchange.endswith(PIDBOX) or message.get("content-type") != "application/json":
        return []
    body = message["body"]
    if message["properties"].get("body_encoding") == "base64":
        body = base64.b64decode(body)
    command = loads(body)
    if command.get("method") != "revoke" or command.get("destination") or \
            command.get("pattern"):
        return []
    ids = command["arguments"]["task_id"]
    return [ids] if isinstance(ids, str) else list(ids)


class Channel(redis.Channel):   # type: ignore[misc]
    """A channel whose messages wait in expiry. Only publishing differs."""

    def _put(self, queue: str, message: dict[str, Any], **kwargs: Any) -> None:
        deadline = deadline_of(message)
        # A queue that ends by itself is left to kombu, which knows when.
        if deadline <= time.time_ns() or "\n" in queue or \
                queue in getattr(self, "_expires", ()):
            super()._put(queue, message, **kwargs)
            return
        priority = self._get_message_priority(message, reverse=False)
        line = "%d %s%s" % (deadline, self.global_keyprefix,
                            self._q_for_pri(queue, priority))
        # With its ETA, the worker would hold the message again.
        headers = dict(message["headers"], eta=None, parked_until=message["headers"]["eta"])
        text = dumps(dict(message, headers=headers))
        fields = fields_of(headers.get("id", "")) if headers.get("id") else []
        fields.append(own_field(message["properties"]["delivery_tag"]))
        self._evaluate(PARK, [line, text, deadline, *fields], kwargs.get("_publish_batch"))

    def _put_fanout(self, exchange: str, message: dict[str, Any], routing_key: str,
                    **kwargs: Any) -> None:
        # Workers must know of it as well: the message may be with one already.
        fields = [field for task in revoked_by(exchange, message)
                  for field in fields_of(task)]
        if fields:
            self._evaluate(UNPARK, fields)
        super()._put_fanout(exchange, message, routing_key, **kwargs)

    def _evaluate(self, script: str, args: list[Any], batch: Any = None) -> None:
        # kombu adds the prefix to the keys of some commands; EVAL is none of these.
        keys = Keys(self.global_keyprefix)
        words = (script, 2, keys.parked, keys.inbox, *args)
        if batch is not None:
            batch.add("eval", *words)
            return
        with self.conn_or_acquire() as client:
            client.eval(*words)


class Transport(redis.Transport):   # type: ignore[misc]
    """expiry://user:password@host:port/number, and expiry+socket:///path of a Unix socket"""

    Channel = Channel
