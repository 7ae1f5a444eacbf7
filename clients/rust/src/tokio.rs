// SPDX-License-Identifier: LGPL-2.1-or-later

//! A connection of many tasks, with tokio.
//!
//! [`connect`] returns three parts. The [`Client`] sends requests; it can be cloned, and
//! requests of several tasks go to the daemon together. [`Due`] is the stream of
//! expirations. The [`Driver`] is the connection itself: a future for `tokio::spawn`. It ends
//! when the others are dropped.
//!
//! A future of a call that is dropped leaves its place among the answers to the requests
//! that were sent.

pub use crate::driver::Driver;

use crate::driver::{poll_fn, Link};
use crate::error::{errno, Error, Result};
use crate::listing::{Listing, QueueRow, Scan, Stat};
use crate::options::{nanoseconds, Arm, Options};
use crate::record::{are_requests, flag, op, Record};
use crate::row::{Answer, Call};
use crate::shared::{Handle, Shared, State};
use futures_core::Stream;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;

const NO_REQUEST: Error = Error::Invalid("an op that is not a request about timers");

/// Attaches to a queue, which is made if it is not there. Without a name the queue ends with
/// its connection. Waits until the server has answered and has all restored timers.
pub async fn connect(name: &str, options: Options) -> Result<(Client, Due, Driver)> {
    options.check(name)?;
    let shared = Arc::new(Shared::new(name, options));
    let mut link = Link::new(shared.clone());
    link.connect(shared.options.timeout).await?;
    let client = Client(Arc::new(Handle::new(&shared)));
    let due = Due(Handle::new(&shared));
    Ok((client, due, link.into_driver()))
}

/// Sends requests, from any task.
#[derive(Clone)]
pub struct Client(Arc<Handle>);

impl Client {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0 .0.state()
    }

    /// Returns the number of timers in the queue when it was opened.
    pub fn timers(&self) -> u64 {
        self.state().timers
    }

    /// Returns the time between flushes of a durable queue's journal. Zero: requests are
    /// answered once they are on the disk. `None`: the queue is not durable.
    pub fn durable(&self) -> Option<Duration> {
        self.state().durable
    }

    /// Returns how many connections were made after the first.
    pub fn reconnects(&self) -> u32 {
        self.state().reconnects
    }

    /// Returns the time on the queue's clock in nanoseconds, or somewhat later.
    pub fn now(&self) -> u64 {
        let (begun, now) = self.state().clock;
        now.saturating_add(nanoseconds(begun.elapsed()))
    }

    /// Ends the connection. Calls that wait end with [`Error::Closed`].
    pub fn close(&self) {
        let mut state = self.state();
        state.fail(Error::Closed);
        state.wake_driver();
    }

    /// Begins a call. The row ends each call before it drops it: so there is an answer.
    fn call(
        &self,
        records: Vec<Record>,
        listing: Option<Box<Listing>>,
    ) -> oneshot::Receiver<Answer> {
        let (caller, answer) = oneshot::channel();
        self.state().submit(Call::new(records, listing, caller));
        answer
    }

    /// Has requests carried out, in order. Returns them as their replies, and how the call
    /// ended. A refused request is no error: its record has the status, see
    /// [`check`](crate::check).
    pub async fn submit(&self, records: Vec<Record>) -> (Vec<Record>, Result<()>) {
        if !are_requests(&records) {
            return (records, Err(NO_REQUEST));
        }
        if records.is_empty() {
            return (records, Ok(()));
        }
        match self.call(records, None).await {
            Ok(answer) => (answer.records, answer.ended),
            Err(_) => (Vec::new(), Err(Error::Closed)),
        }
    }

    /// Carries out one request.
    pub async fn request(&self, request: Record) -> Result<Record> {
        if !are_requests(&[request]) {
            return Err(NO_REQUEST);
        }
        let answer = self.call(vec![request], None).await.map_err(|_| Error::Closed)?;
        answer.ended?;
        answer.records[0].result()
    }

    /// Arms a timer of a keyed queue. An armed id gets the new deadline, cookie and period.
    pub async fn arm(&self, id: u64, ttl: Duration, cookie: u64) -> Result<()> {
        self.request(Arm::after(id, ttl).cookie(cookie).record()).await.map(drop)
    }

    /// Arms a timer as described. Returns its id and its deadline.
    pub async fn arm_with(&self, arm: Arm) -> Result<(u64, u64)> {
        let reply = self.request(arm.record()).await?;
        Ok((reply.id, reply.deadline))
    }

    async fn find(&self, request: Record) -> Result<Option<Record>> {
        match self.request(request).await {
            Err(Error::Refused { errno: errno::ENOENT, .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Moves the deadline of an armed timer to `ttl` from now. Returns false if none is
    /// armed: the timer expired, was cancelled, or never was.
    pub async fn refresh(&self, id: u64, ttl: Duration) -> Result<bool> {
        let deadline = nanoseconds(ttl);
        let flags = flag::RELATIVE;
        let request = Record { op: op::REFRESH, flags, id, deadline, ..Record::default() };
        Ok(self.find(request).await?.is_some())
    }

    /// Disarms a timer. Returns false if none is armed: its expiration may be on its way.
    pub async fn cancel(&self, id: u64) -> Result<bool> {
        Ok(self.find(Record { op: op::CANCEL, id, ..Record::default() }).await?.is_some())
    }

    /// Returns an armed timer.
    pub async fn query(&self, id: u64) -> Result<Option<Record>> {
        self.find(Record { op: op::QUERY, id, ..Record::default() }).await
    }

    /// Acknowledges an expiration. Returns false if it is not delivered, or was
    /// acknowledged before.
    pub async fn ack(&self, id: u64) -> Result<bool> {
        Ok(self.find(Record { op: op::ACK, id, ..Record::default() }).await?.is_some())
    }

    /// Cancels and forgets every timer of the queue. Returns how many there were.
    pub async fn clear(&self) -> Result<u64> {
        Ok(self.request(Record { op: op::CLEAR, ..Record::default() }).await?.cookie)
    }

    /// Removes the queue and its timers, for all clients. It needs a name, and no other
    /// connection may be attached.
    pub async fn drop_queue(&self) -> Result<()> {
        let request = Record { op: op::DROP, ..Record::default() };
        let answer = self.call(vec![request], None).await.map_err(|_| Error::Closed)?;
        answer.ended?;
        answer.records[0].result().map(drop)
    }

    async fn list(&self, request: Record) -> Result<Listing> {
        let listing = Some(Box::new(Listing::new(&request)));
        let answer = self.call(vec![request], listing).await.map_err(|_| Error::Closed)?;
        answer.ended?;
        answer.listing.map(|listing| *listing).ok_or(Error::Closed)
    }

    /// Lists up to `max` timers from a cursor on; the first one is 0.
    pub async fn scan(&self, cursor: u64, max: u32) -> Result<Scan> {
        let request = Record { op: op::SCAN, id: cursor, period_ms: max, ..Record::default() };
        self.list(request).await?.scan()
    }

    /// Returns the counters of the queue and of the daemon.
    pub async fn stat(&self) -> Result<Stat> {
        self.list(Record { op: op::STAT, ..Record::default() }).await?.stat()
    }

    /// Lists up to `max` queues of the daemon from a cursor on, and returns the next one.
    pub async fn queues(&self, cursor: u64, max: u32) -> Result<(Vec<QueueRow>, u64)> {
        let request = Record { op: op::QUEUES, id: cursor, period_ms: max, ..Record::default() };
        self.list(request).await?.queues()
    }
}

/// The expirations: a stream that ends with an error, or without one at
/// [`Client::close`].
pub struct Due(Handle);

impl Due {
    /// Waits for the next expiration.
    pub async fn next(&mut self) -> Option<Result<Record>> {
        poll_fn(|cx| self.poll(cx)).await
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Record>>> {
        let mut state = self.0 .0.state();
        if let Some(record) = state.inbox.take() {
            if state.inbox.is_credit_due() {
                state.wake_driver();
            }
            return Poll::Ready(Some(Ok(record)));
        }
        if !state.inbox.receives() {
            return Poll::Ready(None);
        }
        match state.broken.clone() {
            Some(Error::Closed) => Poll::Ready(None),
            Some(why) => {
                // The stream ends behind the error.
                state.broken = Some(Error::Closed);
                Poll::Ready(Some(Err(why)))
            }
            None => {
                state.due = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Stream for Due {
    type Item = Result<Record>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Record>>> {
        self.get_mut().poll(cx)
    }
}
