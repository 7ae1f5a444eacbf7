# SPDX-License-Identifier: LGPL-2.1-or-later
"""An application. Its tasks note in Redis when they ran; $BROKER is the broker's URL, and
$TRANSPORT_MODULE makes its scheme known."""

import importlib
import os
import time

import redis
from celery import Celery

importlib.import_module(os.environ.get("TRANSPORT_MODULE", "expiry_celery"))
BROKER = os.environ["BROKER"]
STORE = "redis:" + BROKER.partition(":")[2]

app = Celery("tasks", broker=BROKER, backend=STORE)
app.conf.broker_connection_retry_on_startup = True
app.conf.broker_transport_options = {
    "visibility_timeout": float(os.environ.get("VISIBILITY_TIMEOUT", "3600")),
    "global_keyprefix": os.environ.get("KEY_PREFIX", ""),
}
app.conf.worker_send_task_events = False
app.conf.worker_eta_task_limit = int(os.environ.get("ETA_LIMIT", "0")) or None
# A restarted Redis is found again.
app.conf.result_backend_always_retry = True
notes = redis.Redis.from_url(STORE)


def note(*words):
    notes.rpush("notes", " ".join(str(word) for word in (time.time_ns(), *words)))


@app.task(bind=True, acks_late=True)
def run(self, number):
    note("run", number, self.request.id, self.request.eta)


@app.task(bind=True, max_retries=3)
def fail_twice(self, countdown):
    note("try", self.request.retries, self.request.id)
    if self.request.retries < 2:
        raise self.retry(countdown=countdown)
    return "done"
