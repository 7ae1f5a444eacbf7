# SPDX-License-Identifier: LGPL-2.1-or-later
"""The signal, and what its receivers get."""

from django.dispatch import Signal

EXPIRED = "expired"     # nobody came before the session's end
DELETED = "deleted"     # the program ended it: flush(), logout(), delete()

# Arguments: sender, the SessionStore; session_key; reason, EXPIRED or DELETED; data, the
# session as a dict, or None where the backend has removed it.
session_ended = Signal()
