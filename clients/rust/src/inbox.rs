// SPDX-License-Identifier: LGPL-2.1-or-later

//! Expirations that the program has not taken yet.

use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::options::{Options, CONSUME, OBSERVE};
use crate::record::{op, Record};
use std::collections::VecDeque;

/// Expirations, so that replies never wait for a slow consumer. Credit bounds them.
pub(crate) struct Inbox {
    ring: VecDeque<Record>,
    credit: usize,
    granted: usize,
    due: u32,
    consumes: bool,
    observes: bool,
    events: bool,
}

impl Inbox {
    pub(crate) fn new(options: &Options) -> Inbox {
        let receives = options.has(CONSUME | OBSERVE);
        let credit = options.credit as usize;
        Inbox {
            ring: VecDeque::with_capacity(if receives { credit + 2 } else { 0 }),
            credit,
            granted: 0,
            due: 0,
            consumes: options.has(CONSUME),
            observes: options.has(OBSERVE),
            events: options.events,
        }
    }

    pub(crate) fn receives(&self) -> bool {
        self.consumes || self.observes
    }

    fn is_room(&self, more: usize) -> bool {
        self.ring.len() + more < self.credit + 2
    }

    /// Keeps the events by which the records begin.
    pub(crate) fn add_from(&mut self, from: &mut Buffer) -> Result<()> {
        let mut ended = Ok(());
        let mut taken = 0;
        for record in from.records().take_while(Record::is_event) {
            ended = self.add(record);
            if ended.is_err() {
                break;
            }
            taken += 1;
        }
        from.skip(taken);
        ended
    }

    /// Keeps an event. Steps of the clock are joined, and so are an observer's copies
    /// that do not fit.
    pub(crate) fn add(&mut self, record: Record) -> Result<()> {
        if !self.receives() || self.consumes && record.op == op::MISSED {
            return Err(Error::Protocol("an event for a connection that has none"));
        }
        if record.op == op::EXPIRED && self.consumes {
            if self.granted == 0 {
                return Err(Error::Protocol("more expirations than credit"));
            }
            self.granted -= 1;
            self.ring.push_back(record);
        } else if record.op == op::EXPIRED && self.is_room(2) {
            self.ring.push_back(record);
        } else if record.op == op::CLOCK_SET {
            let is_room = self.events && self.is_room(self.granted + 2);
            match self.ring.back_mut() {
                Some(last) if last.op == op::CLOCK_SET => *last = record,
                _ if is_room => self.ring.push_back(record),
                _ => {}
            }
        } else {
            let nr = if record.op == op::MISSED { record.cookie } else { 1 };
            let is_room = self.is_room(1);
            match self.ring.back_mut() {
                Some(last) if last.op == op::MISSED => {
                    last.cookie = last.cookie.saturating_add(nr)
                }
                _ if is_room => self.ring.push_back(Record {
                    op: op::MISSED,
                    cookie: nr,
                    ..Record::default()
                }),
                _ => {}
            }
        }
        Ok(())
    }

    /// Hands out one record.
    pub(crate) fn take(&mut self) -> Option<Record> {
        let record = self.ring.pop_front();
        self.top_up();
        record
    }

    /// Hands out as many records as there are, and there is room for. Returns how many.
    pub(crate) fn take_into(&mut self, to: &mut [Record]) -> usize {
        let nr = self.ring.len().min(to.len());
        for (place, record) in to.iter_mut().zip(self.ring.drain(..nr)) {
            *place = record;
        }
        self.top_up();
        nr
    }

    /// Asks for more credit when half of it is used up. Counts all that is held, so that
    /// what was granted always fits.
    pub(crate) fn top_up(&mut self) {
        let used = self.granted + self.ring.len();
        if self.consumes && used < self.credit && self.credit - used >= (self.credit + 1) / 2 {
            let more = self.credit - used;
            // Before it is sent: the server may answer before this side goes on.
            self.granted += more;
            self.due += more as u32;
        }
    }

    #[cfg(feature = "tokio")]
    pub(crate) fn is_credit_due(&self) -> bool {
        self.due > 0
    }

    /// Returns the record that gives credit, if any is due.
    pub(crate) fn take_credit(&mut self) -> Option<Record> {
        let due = std::mem::take(&mut self.due);
        (due > 0).then(|| Record { op: op::CREDIT, period_ms: due, ..Record::default() })
    }

    /// Drops what the server will deliver again.
    pub(crate) fn lost(&mut self) {
        if self.consumes {
            let step = self.ring.iter().rev().find(|r| r.op == op::CLOCK_SET).copied();
            self.ring.clear();
            self.ring.extend(step);
            self.granted = 0;
            self.due = 0;
        }
    }
}
