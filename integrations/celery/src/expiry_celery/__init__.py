# SPDX-License-Identifier: LGPL-2.1-or-later
"""Celery tasks with an ETA wait in expiry. Importing this package makes
expiry:// known as a broker's URL."""

from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES["expiry"] = "expiry_celery.transport:Transport"
