// SPDX-License-Identifier: LGPL-2.1-or-later

//! Calls of many tasks, in the order of their requests.

use crate::buffer::{Buffer, Output};
use crate::error::{errno, Error, Result};
use crate::listing::Listing;
use crate::record::{armed, Record};
use std::collections::VecDeque;
use std::time::Instant;
use tokio::sync::oneshot;

/// What a caller gets: its records, and how the call ended.
pub(crate) struct Answer {
    pub(crate) records: Vec<Record>,
    pub(crate) listing: Option<Box<Listing>>,
    pub(crate) ended: Result<()>,
}

/// A call without all its answers. A caller that has gone leaves it in its place until the
/// replies to what was sent have come.
pub(crate) struct Call {
    records: Vec<Record>,
    sent: usize,
    answered: usize,
    /// On a connection that reconnects.
    begun: Option<Instant>,
    listing: Option<Box<Listing>>,
    caller: oneshot::Sender<Answer>,
}

impl Call {
    pub(crate) fn new(
        records: Vec<Record>,
        listing: Option<Box<Listing>>,
        caller: oneshot::Sender<Answer>,
    ) -> Call {
        Call { records, sent: 0, answered: 0, begun: None, listing, caller }
    }

    pub(crate) fn end(self, why: Option<Error>) {
        let (answered, sent, total) = (self.answered, self.sent, self.records.len());
        let ended = why.map_or(Ok(()), |why| Err(why.of_call(answered, sent, total)));
        // A caller that has gone does not want it.
        let _ = self.caller.send(Answer { records: self.records, listing: self.listing, ended });
    }
}

/// The calls without all their answers.
#[derive(Default)]
pub(crate) struct Row {
    calls: VecDeque<Call>,
    /// The first call with requests that are not sent.
    unsent: usize,
    in_flight: usize,
    reconnects: bool,
    /// Timers armed, if it reconnects.
    pub(crate) arms: u64,
}

impl Row {
    pub(crate) fn new(reconnects: bool) -> Row {
        Row { reconnects, ..Row::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent < self.calls.len()
    }

    pub(crate) fn push(&mut self, mut call: Call) {
        call.begun = self.reconnects.then(Instant::now);
        self.calls.push_back(call);
    }

    /// Returns whether the next record is in the middle of a reply.
    pub(crate) fn is_in_listing(&self) -> bool {
        let first = self.calls.front().and_then(|call| call.listing.as_ref());
        first.map_or(false, |listing| listing.begun)
    }

    /// Adds unsent requests to what is to be written, at most `max` and as many as the
    /// window allows. Requests of callers that have gone are left out. Returns how many.
    pub(crate) fn gather(&mut self, to: &mut Output, max: usize, window: usize) -> usize {
        let mut nr = 0;
        while nr < max && self.in_flight < window && self.has_unsent() {
            let call = &mut self.calls[self.unsent];
            if call.caller.is_closed() {
                call.records.truncate(call.sent);
                if call.answered == call.sent {
                    let _ = self.calls.remove(self.unsent);
                } else {
                    self.unsent += 1;
                }
                continue;
            }
            let rest = &call.records[call.sent..];
            let some = rest.len().min(max - nr).min(window - self.in_flight);
            to.add(&rest[..some]);
            call.sent += some;
            nr += some;
            self.in_flight += some;
            self.unsent += usize::from(call.sent == call.records.len());
        }
        nr
    }

    fn pop(&mut self) {
        if let Some(call) = self.calls.pop_front() {
            self.unsent = self.unsent.saturating_sub(1);
            call.end(None);
        }
    }

    /// Takes the next records, the first of which is no event, for their caller.
    pub(crate) fn answer(&mut self, from: &mut Buffer) -> Result<()> {
        let call = match self.calls.front_mut() {
            Some(call) if call.answered < call.sent => call,
            _ => return Err(Error::Protocol("a reply without a request")),
        };
        let taken = if let Some(listing) = &mut call.listing {
            listing.take(from)?;
            usize::from(listing.complete)
        } else {
            let requests = &mut call.records[call.answered..call.sent];
            let taken = from.take_replies(requests);
            if taken == 0 {
                return Err(Error::Protocol("a reply to another request"));
            }
            if self.reconnects {
                self.arms += armed(&requests[..taken]);
            }
            taken
        };
        call.answered += taken;
        self.in_flight -= taken;
        if call.answered == call.records.len() {
            self.pop();
        }
        Ok(())
    }

    /// Ends all calls.
    pub(crate) fn fail(&mut self, why: &Error) {
        self.calls.drain(..).for_each(|call| call.end(Some(why.clone())));
        self.unsent = 0;
        self.in_flight = 0;
    }

    /// Prepares for the next connection. Requests up to the last one in flight that is not
    /// idempotent get ECONNRESET, and those of callers that have gone are dropped. The
    /// others are unsent again, and so are listings, which leave no trace. Returns how many
    /// of them are in doubt.
    pub(crate) fn lost(&mut self, keyed: bool) -> usize {
        let mut flying = 0;
        let mut last = 0;
        for call in &self.calls {
            for request in &call.records[call.answered..call.sent] {
                flying += 1;
                if !request.is_idempotent(keyed) && !call.caller.is_closed() {
                    last = flying;
                }
            }
        }
        let mut doubt = 0;
        for mut call in std::mem::take(&mut self.calls) {
            if call.listing.is_some() {
                last -= last.min(call.sent - call.answered);
            }
            while call.listing.is_none() && call.answered < call.sent && last > 0 {
                call.records[call.answered].status = -(errno::ECONNRESET as i16);
                call.answered += 1;
                last -= 1;
            }
            if call.caller.is_closed() {
                continue;
            }
            if call.answered == call.records.len() {
                call.end(None);
                continue;
            }
            doubt += call.sent - call.answered;
            call.sent = call.answered;
            if let Some(listing) = &mut call.listing {
                listing.restart();
            }
            self.calls.push_back(call);
        }
        self.unsent = 0;
        self.in_flight = 0;
        doubt
    }

    /// Has relative deadlines count from their calls. `clock_at` tells the queue's clock at
    /// a moment.
    pub(crate) fn make_absolute(&mut self, clock_at: impl Fn(Instant) -> u64) {
        for call in &mut self.calls {
            if let Some(begun) = call.begun.map(&clock_at) {
                call.records[call.sent..].iter_mut().for_each(|r| r.make_absolute(begun));
            }
        }
    }
}
