# SPDX-License-Identifier: LGPL-2.1-or-later
"""Explanations of errnos, and what to do about each: the texts of expiry_explain()."""

import errno
import os

ANY, ARM, REFRESH, ACK, HELLO, SCAN, STAT, DROP, QUEUES = 0, 1, 2, 4, 64, 66, 67, 68, 69

EXPLANATIONS = {
    (HELLO, errno.EINVAL):
        "the queue exists with another clock or mode or is not durable, or its "
        "name is not of A-Z a-z 0-9 . _ -; attach as it was made",
    (HELLO, errno.EACCES):
        "it belongs to another user; run this as that user or as root, or take "
        "another queue",
    (HELLO, errno.EBUSY):
        "the queue has a consumer already: end that one, or attach without "
        "consuming; or it has as many observers as it may; or the daemon has no "
        "place for one more connection: try again later",
    (HELLO, errno.ENOENT):
        "no such queue exists; or no daemon is there: start it with: systemctl "
        "start expiryd",
    (HELLO, errno.ECONNREFUSED):
        "no daemon answers; start it with: systemctl start expiryd",
    (HELLO, errno.ECONNRESET):
        "the daemon ended the connection without an answer: it is stopping, or "
        "its log says why",
    (HELLO, errno.EDQUOT):
        "you have as many queues as one user may; drop one, or raise the "
        "daemon's limit",
    (HELLO, errno.ENOSPC):
        "the daemon has as many queues as it may; drop one, or raise its limit; "
        "or its journal is full",
    (HELLO, errno.EOPNOTSUPP):
        "library and daemon are of different versions: restart the daemon; or it"
        " has no journal for a durable queue: set journal in expiryd.conf; or a "
        "device was asked for a name",
    (HELLO, errno.EIO):
        "the engine or the journal failed; the daemon's log says why",
    (HELLO, errno.EPROTO):
        "what answers there is not expiryd; look at the path",
    (HELLO, errno.EMFILE):
        "no file descriptor is left, here or in the daemon; raise the limit: "
        "ulimit -n here, LimitNOFILE= of the service",
    (HELLO, errno.ENAMETOOLONG):
        "the path is longer than that of a socket may be",
    (HELLO, errno.EPERM):
        "the limit asked for is above the module's maximum",
    (ARM, errno.EINVAL):
        "flags or id are wrong for this queue: a keyed one wants an id that is "
        "not 0, a plain one gives the ids itself",
    (ARM, errno.EEXIST):
        "that id is armed already",
    (ARM, errno.ENOSPC):
        "the queue is full: cancel or acknowledge timers, or raise its limit; or"
        " the disk of the daemon's journal is full",
    (REFRESH, errno.ENOSPC):
        "the disk of the daemon's journal is full; cancel and acknowledge go on",
    (ARM, errno.EDQUOT):
        "you have as many timers as one user may; cancel some, or raise the "
        "daemon's limit",
    (ARM, errno.ECONNRESET):
        "the connection broke before the answer came: it may be armed; look for "
        "it, or arm it again",
    (ACK, errno.ENOENT):
        "not delivered, or acknowledged before",
    (ACK, errno.EINVAL):
        "not an acknowledging queue: there is nothing to acknowledge",
    (SCAN, errno.EINVAL):
        "not a cursor this queue gave",
    (SCAN, errno.ECANCELED):
        "the list was not continued for long, or the daemon was started anew: begin anew",
    (SCAN, errno.ENOENT):
        "the queue is gone: it was dropped",
    (STAT, errno.ENOENT):
        "the queue is gone: it was dropped",
    (DROP, errno.ENOENT):
        "the queue is gone: it was dropped",
    (QUEUES, errno.ENOENT):
        "the queue is gone: it was dropped",
    (DROP, errno.EINVAL):
        "the queue has no name: it goes with its connection",
    (DROP, errno.EBUSY):
        "others are attached to it; end them first",
    (ANY, errno.ENOENT):
        "no such timer is armed: it expired, was cancelled, or never was",
    (ANY, errno.EINVAL):
        "a field is wrong for this request: flags, status or id",
    (ANY, errno.EOPNOTSUPP):
        "the server does not know this request",
    (ANY, errno.ENOMEM):
        "the machine is short of memory; nothing was changed",
    (ANY, errno.EACCES):
        "this handle may not do that: it only observes, or the queue belongs to "
        "another user",
    (ANY, errno.EBUSY):
        "the daemon was held up and did nothing: try again; or replies are "
        "outstanding: take them first",
    (ANY, errno.EIO):
        "the engine or the journal failed; the daemon's log says why",
    (ANY, errno.ENODEV):
        "the queue's device is gone; restart the daemon",
    (ANY, errno.ENOBUFS):
        "more than was agreed would be on its way",
    (ANY, errno.ECONNRESET):
        "the daemon ended the connection; its log says why; connect again",
    (ANY, errno.ETIMEDOUT):
        "the daemon does not answer; it is stopped or overloaded",
    (ANY, errno.EPROTO):
        "the daemon broke the protocol; connect again",
    (ANY, errno.ESTALE):
        "the queue was lost with its timers; open it again and arm them",
    (ANY, errno.ENOTCONN):
        "the queue is gone, or was never set up",
}


def explain(number: int, op: int = ANY) -> str:
    """Returns an English phrase for an errno, as the answer to a request of this op."""
    number = abs(number)
    return EXPLANATIONS.get((op, number)) or EXPLANATIONS.get((ANY, number)) or \
        os.strerror(number)
