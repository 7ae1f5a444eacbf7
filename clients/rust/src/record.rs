// SPDX-License-Identifier: LGPL-2.1-or-later

//! Records, as the socket carries them.

use crate::error::{Error, Result};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Size of a record on the socket.
pub(crate) const SIZE: usize = 32;

/// The deadline that never comes.
pub const NEVER: u64 = u64::MAX;

/// What a record is.
#[allow(missing_docs)]
pub mod op {
    pub const ARM: u8 = 1;
    pub const REFRESH: u8 = 2;
    pub const CANCEL: u8 = 3;
    pub const ACK: u8 = 4;
    pub const QUERY: u8 = 5;
    pub const CLEAR: u8 = 6;
    pub const EXPIRED: u8 = 16;
    pub const CLOCK_SET: u8 = 17;
    pub const HELLO: u8 = 64;
    pub const CREDIT: u8 = 65;
    pub const SCAN: u8 = 66;
    pub const STAT: u8 = 67;
    pub const DROP: u8 = 68;
    pub const QUEUES: u8 = 69;
    pub const MISSED: u8 = 70;
}

/// Flags of a record.
pub mod flag {
    /// ARM, REFRESH: the deadline counts from now.
    pub const RELATIVE: u8 = 1;
    /// Outgoing: this expiration was delivered before.
    pub const REDELIVERED: u8 = 2;
    /// Out, durable queues: the deadline passed before the server started.
    pub const LATE: u8 = 16;
    /// ARM, keyed: refuse if armed.
    pub const NEW: u8 = 4;
    /// ARM, REFRESH: never bring the deadline forward.
    pub const LATER: u8 = 8;
}

/// A request, its reply, or an expiration.
// The fields are where they are in the bytes: converting is a copy then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// What it is: [`op`].
    pub op: u8,
    /// [`flag`].
    pub flags: u8,
    /// In: 0. Out: 0 or a negative errno.
    pub status: i16,
    /// Milliseconds between expirations, 0 = once. Of an expiration: how many times of a
    /// periodic timer it stands for, 0 if the timer has no period.
    pub period_ms: u32,
    /// Which timer.
    pub id: u64,
    /// Nanoseconds on the queue's clock.
    pub deadline: u64,
    /// The program's own.
    pub cookie: u64,
}

impl Record {
    /// Returns the bytes of the socket, in the machine's own order.
    pub fn to_bytes(&self) -> [u8; 32] {
        let mut to = [0; SIZE];
        to[0] = self.op;
        to[1] = self.flags;
        to[2..4].copy_from_slice(&self.status.to_ne_bytes());
        to[4..8].copy_from_slice(&self.period_ms.to_ne_bytes());
        to[8..16].copy_from_slice(&self.id.to_ne_bytes());
        to[16..24].copy_from_slice(&self.deadline.to_ne_bytes());
        to[24..32].copy_from_slice(&self.cookie.to_ne_bytes());
        to
    }

    /// Returns the record of these bytes.
    pub fn from_bytes(from: &[u8; 32]) -> Record {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&from[at..at + 8]);
            u64::from_ne_bytes(bytes)
        };
        Record {
            op: from[0],
            flags: from[1],
            status: i16::from_ne_bytes([from[2], from[3]]),
            period_ms: u32::from_ne_bytes([from[4], from[5], from[6], from[7]]),
            id: word(8),
            deadline: word(16),
            cookie: word(24),
        }
    }

    /// Whether an expiration was delivered before.
    pub fn is_redelivered(&self) -> bool {
        self.flags & flag::REDELIVERED != 0
    }

    /// Returns whether an expiration of a durable queue was due before the server started.
    pub fn is_late(&self) -> bool {
        self.flags & flag::LATE != 0
    }

    /// Returns the deadline of a record of a REALTIME queue.
    pub fn time(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(self.deadline)
    }

    /// Returns whether this record of the server is no reply. The reply to a request
    /// with such an op is refused, so its status is not 0.
    pub(crate) fn is_event(&self) -> bool {
        self.status == 0 && matches!(self.op, op::EXPIRED | op::CLOCK_SET | op::MISSED)
    }

    /// Returns whether this can be the reply to a request. Only ARM on a plain queue,
    /// whose id is 0, gets another id.
    pub(crate) fn is_reply_to(&self, request: &Record) -> bool {
        self.op == request.op
            && self.status <= 0
            && (self.id == request.id || request.op == op::ARM && request.id == 0)
    }

    /// Returns whether a request may be sent again if it may have been carried out.
    pub(crate) fn is_idempotent(&self, keyed: bool) -> bool {
        match self.op {
            // A plain queue would give a second id, and NEW would find its own
            // first timer.
            op::ARM => keyed && self.flags & flag::NEW == 0,
            op::CLEAR => false,
            _ => true,
        }
    }

    /// Has a relative deadline count from `begun`.
    pub(crate) fn make_absolute(&mut self, begun: u64) {
        if self.flags & flag::RELATIVE != 0 && matches!(self.op, op::ARM | op::REFRESH) {
            self.flags &= !flag::RELATIVE;
            self.deadline = self.deadline.saturating_add(begun);
        }
    }

    /// Returns what the server said about this request.
    pub(crate) fn result(self) -> Result<Record> {
        if self.status == 0 {
            return Ok(self);
        }
        Err(Error::Refused {
            op: self.op,
            id: self.id,
            errno: -i32::from(self.status),
        })
    }
}

/// Returns whether all have ops of requests about timers.
pub(crate) fn are_requests(records: &[Record]) -> bool {
    records.iter().all(|r| r.op < op::EXPIRED || r.op > op::CLOCK_SET && r.op < op::HELLO)
}

/// Returns how many timers these replies say are armed by them.
pub(crate) fn armed(replies: &[Record]) -> u64 {
    replies.iter().filter(|reply| reply.op == op::ARM && reply.status == 0).count() as u64
}

/// Returns a time of day as a deadline of a REALTIME queue. One before 1970 is due at
/// once. One after 2554, which the protocol cannot express, is [`Error::Invalid`].
pub fn at(time: SystemTime) -> Result<u64> {
    match time.duration_since(UNIX_EPOCH) {
        Err(_) => Ok(0),
        Ok(since) => u64::try_from(since.as_nanos())
            .map_err(|_| Error::Invalid("a time after the year 2554")),
    }
}
