// SPDX-License-Identifier: LGPL-2.1-or-later

//! Replies of several records: SCAN, STAT and QUEUES.

use crate::buffer::Buffer;
use crate::error::{errno, Error, Result};
use crate::record::{op, Record};

/// Units of struct expiry_stat.
const STAT_UNITS: u32 = 16;
/// Units behind a record: 64 KiB.
const BODY_MAX: u32 = 2048;
const EMBEDDED: u64 = 1;

/// A part of a queue's timers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// In no order; those that are delivered and not acknowledged are redelivered.
    pub timers: Vec<Record>,
    /// Where to go on, 0 at the end.
    pub cursor: u64,
}

/// Counters: `struct expiry_stat` of `<linux/expiry.h>` and `struct expiry_server_stat` of
/// `<expiry/wire.h>`, which describe each field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// Both structs, as units of 8 bytes.
    words: Vec<u64>,
}

impl Stat {
    /// Returns the 64-bit word at a byte offset into both structs, 0 if this daemon has
    /// none there.
    pub fn word(&self, offset: usize) -> u64 {
        self.words.get(offset / 8).copied().unwrap_or(0)
    }
    /// Now on the queue's clock, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.word(0)
    }
    /// The earliest deadline.
    pub fn next(&self) -> u64 {
        self.word(8)
    }
    /// Timers that are armed.
    pub fn armed(&self) -> u64 {
        self.word(16)
    }
    /// Timers that are delivered and not acknowledged.
    pub fn unacked(&self) -> u64 {
        self.word(24)
    }
    /// Most timers.
    pub fn limit(&self) -> u64 {
        self.word(32)
    }
    /// Timers that were ever armed.
    pub fn arms(&self) -> u64 {
        self.word(80)
    }
    /// Expirations that were delivered.
    pub fn delivered(&self) -> u64 {
        self.word(112)
    }
    /// The daemon's engine: 1 embedded, 2 kernel.
    pub fn engine(&self) -> u64 {
        let bytes = self.word(512).to_ne_bytes();
        u64::from(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
    /// Nanoseconds since the daemon started.
    pub fn uptime(&self) -> u64 {
        self.word(528)
    }

    /// Of a durable queue a number that no other one ever has, else 0.
    pub fn durable(&self) -> u64 {
        self.word(1664)
    }

    pub(crate) fn is_embedded(&self) -> bool {
        self.engine() == EMBEDDED
    }

    fn of(units: &[Record]) -> Stat {
        let mut words = Vec::with_capacity(units.len() * 4);
        for unit in units {
            for chunk in unit.to_bytes().chunks_exact(8) {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(chunk);
                words.push(u64::from_ne_bytes(bytes));
            }
        }
        Stat { words }
    }
}

/// A queue of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueRow {
    /// Empty if it is anonymous.
    pub name: String,
    /// Its counters; behind them `struct expiry_queue_stat` of `<expiry/wire.h>`.
    pub stat: Stat,
}

impl QueueRow {
    /// The owner.
    pub fn uid(&self) -> u32 {
        self.half(520, 0)
    }
    /// 1 if it has a consumer, else 0.
    pub fn consumers(&self) -> u32 {
        self.half(528, 0)
    }

    fn half(&self, offset: usize, which: usize) -> u32 {
        let bytes = self.stat.word(offset).to_ne_bytes();
        let at = 4 * which;
        u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    }
}

/// The reply to a request that lists, kept as it came.
#[derive(Debug)]
pub(crate) struct Listing {
    op: u8,
    max: u32,
    rows: u32,
    left: u32,
    pub(crate) begun: bool,
    pub(crate) complete: bool,
    cursor: u64,
    units: Vec<Record>,
    errno: i32,
}

impl Listing {
    pub(crate) fn new(request: &Record) -> Listing {
        Listing {
            op: request.op,
            max: if request.op == op::STAT { 1 } else { request.period_ms },
            rows: 0,
            left: 0,
            begun: false,
            complete: false,
            cursor: 0,
            units: Vec::new(),
            errno: 0,
        }
    }

    /// Begins again on another connection.
    #[cfg(feature = "tokio")]
    pub(crate) fn restart(&mut self) {
        let request = Record { op: self.op, period_ms: self.max, ..Record::default() };
        *self = Listing::new(&request);
    }

    /// Takes records of the reply, until it is complete or there are no more.
    pub(crate) fn take(&mut self, from: &mut Buffer) -> Result<()> {
        while !self.complete {
            let record = match from.first() {
                Some(record) => record,
                None => break,
            };
            if self.left > 0 {
                self.left -= 1;
                self.complete = self.left == 0 && self.op == op::STAT;
                self.units.push(record);
            } else {
                self.head(record)?;
            }
            from.skip(1);
        }
        Ok(())
    }

    /// Takes a record that is not inside a body.
    fn head(&mut self, record: Record) -> Result<()> {
        if record.op != self.op || record.status > 0 || record.status < 0 && self.begun {
            return Err(Error::Protocol("another record inside the reply to a listing"));
        }
        self.begun = true;
        if record.status < 0 {
            self.errno = -i32::from(record.status);
            self.complete = true;
            return Ok(());
        }
        let is_last = self.op == op::SCAN && record.id == 0
            || self.op == op::QUEUES && record.period_ms == 0;
        if is_last {
            self.cursor = record.cookie;
            self.complete = true;
            return Ok(());
        }
        self.rows += 1;
        if self.rows > self.max {
            return Err(Error::Protocol("more rows than wanted"));
        }
        if self.op != op::SCAN {
            if !(STAT_UNITS..=BODY_MAX).contains(&record.period_ms) {
                return Err(Error::Protocol("a body that is no counters"));
            }
            self.left = record.period_ms;
        }
        self.units.push(record);
        Ok(())
    }

    fn result(self) -> Result<Listing> {
        let errno = match self.errno {
            0 if self.complete => return Ok(self),
            0 => errno::ECONNRESET,
            errno => errno,
        };
        Err(Error::Refused { op: self.op, id: 0, errno })
    }

    pub(crate) fn scan(self) -> Result<Scan> {
        let done = self.result()?;
        Ok(Scan { timers: done.units, cursor: done.cursor })
    }

    pub(crate) fn stat(self) -> Result<Stat> {
        let done = self.result()?;
        Ok(Stat::of(&done.units[1..]))
    }

    pub(crate) fn queues(self) -> Result<(Vec<QueueRow>, u64)> {
        let done = self.result()?;
        let mut rows = Vec::new();
        let mut rest = &done.units[..];
        while let Some((head, units)) = rest.split_first() {
            let (body, after) = units.split_at(head.period_ms as usize);
            let name = head.to_bytes();
            let name = String::from_utf8_lossy(&name[8..]);
            rows.push(QueueRow {
                name: name.trim_end_matches('\0').to_string(),
                stat: Stat::of(body),
            });
            rest = after;
        }
        Ok((rows, done.cursor))
    }
}
