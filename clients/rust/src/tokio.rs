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

use crate::buffer::Buffer;
use crate::buffer::encode;
use crate::error::{errno, Error, Result};
use crate::handshake::{Handshake, Life};
use crate::inbox::Inbox;
use crate::listing::{Listing, QueueRow, Scan, Stat};
use crate::options::{nanoseconds, Arm, Options, KEYED};
use crate::record::{flag, op, Record};
use crate::row::{Answer, Call, Row};
use futures_core::Stream;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::Sleep;

/// Records that are written at a time.
const CHUNK: usize = 2048;
/// Reads and writes before other tasks get their turn.
const STEPS: usize = 16;
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
const REFUSED_TIME: Duration = Duration::from_secs(5);
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// What the three parts share.
struct Shared {
    name: String,
    options: Options,
    state: Mutex<State>,
}

struct State {
    row: Row,
    inbox: Inbox,
    window: usize,
    /// Requests that are sent again before credit is given.
    doubt: usize,
    broken: Option<Error>,
    /// Since when the server owes an answer and is silent.
    silent: Option<Instant>,
    driver: Option<Waker>,
    due: Option<Waker>,
    /// Clients, and the stream.
    handles: usize,
    clock: (Instant, u64),
    timers: u64,
    durable: Option<Duration>,
    reconnects: u32,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics with the lock held; if it did, the state is still whole.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    fn wake_driver(&mut self) {
        if let Some(waker) = self.driver.take() {
            waker.wake();
        }
    }

    fn wake_due(&mut self) {
        if let Some(waker) = self.due.take() {
            waker.wake();
        }
    }

    fn fail(&mut self, why: Error) {
        self.row.fail(&why);
        self.broken.get_or_insert(why);
        self.wake_due();
    }

    /// Begins to count anew for how long the server is silent.
    fn restart_silence(&mut self) {
        self.silent = if self.row.is_empty() { None } else { Some(Instant::now()) };
    }

    /// Sorts what was received.
    fn sort(&mut self, input: &mut Buffer) -> Result<()> {
        let mut has_event = false;
        while let Some(record) = input.first() {
            if record.is_event() && !self.row.is_in_listing() {
                self.inbox.add(record)?;
                input.skip(1);
                has_event = true;
            } else {
                self.row.answer(input)?;
            }
        }
        if has_event {
            self.wake_due();
        }
        self.restart_silence();
        Ok(())
    }

    /// Adds requests to what is to be written, and credit behind those in doubt.
    fn gather(&mut self, output: &mut Vec<u8>) {
        let nr = self.row.gather(output, CHUNK, self.window);
        self.doubt = self.doubt.saturating_sub(nr);
        if self.doubt == 0 {
            if let Some(credit) = self.inbox.take_credit() {
                encode(output, &[credit]);
            }
        }
    }
}

/// One of the parts that keep the connection.
struct Handle(Arc<Shared>);

impl Handle {
    fn new(shared: &Arc<Shared>) -> Handle {
        shared.state().handles += 1;
        Handle(shared.clone())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.handles -= 1;
        if state.handles == 0 {
            state.wake_driver();
        }
    }
}

/// Attaches to a queue, which is made if it is not there. Without a name the queue ends with
/// its connection. Waits until the server has answered and has all restored timers.
pub async fn connect(name: &str, options: Options) -> Result<(Client, Due, Driver)> {
    options.check(name)?;
    let shared = Arc::new(Shared {
        name: name.to_string(),
        state: Mutex::new(State {
            row: Row::default(),
            inbox: Inbox::new(&options),
            window: 0,
            doubt: 0,
            broken: None,
            silent: None,
            driver: None,
            due: None,
            handles: 0,
            clock: (Instant::now(), 0),
            timers: 0,
            durable: None,
            reconnects: 0,
        }),
        options,
    });
    let mut link = Link::new(shared.clone());
    link.connect(shared.options.timeout).await?;
    let client = Client(Arc::new(Handle::new(&shared)));
    let due = Due(Handle::new(&shared));
    Ok((client, due, Driver(Box::pin(link.drive()))))
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

    async fn call(&self, records: Vec<Record>, listing: Option<Listing>) -> Answer {
        let (caller, answer) = oneshot::channel();
        let call = Call::new(records, listing, caller);
        {
            let mut state = self.state();
            match state.broken.clone() {
                Some(why) => call.end(Some(why)),
                None => {
                    state.row.push(call);
                    state.silent.get_or_insert_with(Instant::now);
                    state.wake_driver();
                }
            }
        }
        match answer.await {
            Ok(answer) => answer,
            // The row ends each call before it drops it.
            Err(_) => Answer { records: Vec::new(), listing: None, ended: Err(Error::Closed) },
        }
    }

    /// Has requests carried out, in order. Returns them as their replies, and how the call
    /// ended. A refused request is no error: its record has the status, see
    /// [`check`](crate::check).
    pub async fn submit(&self, records: Vec<Record>) -> (Vec<Record>, Result<()>) {
        let is_wrong = |r: &Record| r.op >= op::HELLO || matches!(r.op, op::EXPIRED | op::CLOCK_SET);
        if records.iter().any(is_wrong) {
            return (records, Err(Error::Invalid("an op that is not a request about timers")));
        }
        if records.is_empty() {
            return (records, Ok(()));
        }
        let answer = self.call(records, None).await;
        (answer.records, answer.ended)
    }

    /// Carries out one request.
    pub async fn request(&self, request: Record) -> Result<Record> {
        let (records, ended) = self.submit(vec![request]).await;
        ended?;
        records[0].result()
    }

    /// Arms a timer of a keyed queue. An armed id gets the new deadline, cookie and period.
    pub async fn arm(&self, id: u64, ttl: Duration, cookie: u64) -> Result<()> {
        self.arm_with(Arm::after(id, ttl).cookie(cookie)).await.map(drop)
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
        let answer = self.call(vec![request], None).await;
        answer.ended?;
        answer.records[0].result().map(drop)
    }

    async fn list(&self, request: Record) -> Result<Listing> {
        let answer = self.call(vec![request], Some(Listing::new(&request))).await;
        answer.ended?;
        answer.listing.ok_or(Error::Closed)
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

/// The connection: a future that ends when all clients and the stream are dropped, or with
/// an error.
pub struct Driver(Pin<Box<dyn Future<Output = Result<()>> + Send>>);

impl Future for Driver {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.0.as_mut().poll(cx)
    }
}

/// std has it from Rust 1.64 on.
struct PollFn<F>(F);

impl<F> Unpin for PollFn<F> {}

impl<T, F: FnMut(&mut Context<'_>) -> Poll<T>> Future for PollFn<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        (self.0)(cx)
    }
}

fn poll_fn<T, F: FnMut(&mut Context<'_>) -> Poll<T>>(f: F) -> PollFn<F> {
    PollFn(f)
}

/// The driver's own.
struct Link {
    shared: Arc<Shared>,
    stream: Option<UnixStream>,
    input: Buffer,
    output: Vec<u8>,
    written: usize,
    life: Life,
}

impl Drop for Link {
    /// The driver may be dropped with its runtime.
    fn drop(&mut self) {
        self.shared.state().fail(Error::Closed);
    }
}

impl Link {
    fn new(shared: Arc<Shared>) -> Link {
        Link {
            shared,
            stream: None,
            input: Buffer::new(),
            output: Vec::new(),
            written: 0,
            life: Life::default(),
        }
    }

    async fn drive(mut self) -> Result<()> {
        loop {
            let mut why = self.serve().await;
            self.stream = None;
            if self.shared.options.reconnect && why.is_server_gone() {
                let timers = self.prepare();
                why = match self.reconnect().await {
                    Ok(()) => {
                        let mut state = self.shared.state();
                        state.timers = timers;
                        state.reconnects += 1;
                        continue;
                    }
                    Err(why) => why,
                };
            }
            self.shared.state().fail(why.clone());
            return if why == Error::Closed { Ok(()) } else { Err(why) };
        }
    }

    /// Prepares for the next connection. Returns the number of timers, to be kept.
    fn prepare(&mut self) -> u64 {
        let keyed = self.shared.options.has(KEYED);
        let mut state = self.shared.state();
        state.inbox.lost();
        state.doubt = state.row.lost(keyed);
        self.life.arms += std::mem::take(&mut state.row.arms);
        state.timers
    }

    /// Reads and writes until the connection breaks. Returns why.
    async fn serve(&mut self) -> Error {
        let shared = self.shared.clone();
        let timeout = shared.options.timeout;
        let mut alarm = timeout.map(|timeout| Box::pin(tokio::time::sleep(timeout)));
        shared.state().restart_silence();
        poll_fn(|cx| {
            if let (Some(alarm), Some(timeout)) = (&mut alarm, timeout) {
                if is_silent(&shared, alarm, timeout, cx) {
                    return Poll::Ready(Error::TimedOut);
                }
            }
            for _ in 0..STEPS {
                if let Some(why) = is_over(&shared, cx) {
                    return Poll::Ready(why);
                }
                let wrote = match self.step_write(&shared, cx) {
                    Ok(wrote) => wrote,
                    Err(why) => return Poll::Ready(why),
                };
                match self.step_read(&shared, cx) {
                    Ok(false) if !wrote => return Poll::Pending,
                    Ok(_) => {}
                    Err(why) => return Poll::Ready(why),
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    /// Writes what is gathered. Returns whether it wrote something.
    fn step_write(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Result<bool> {
        let stream = self.stream.as_ref().ok_or(Error::Closed)?;
        if self.written == self.output.len() {
            self.output.clear();
            self.written = 0;
            shared.state().gather(&mut self.output);
        }
        if self.output.is_empty() {
            return Ok(false);
        }
        loop {
            match stream.try_write(&self.output[self.written..]) {
                Ok(nr) => {
                    self.written += nr;
                    return Ok(true);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if stream.poll_write_ready(cx).is_pending() {
                        return Ok(false);
                    }
                }
                // What the server has sent is still there to be read.
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                    self.written = self.output.len();
                    return Ok(true);
                }
                Err(e) => return Err(Error::io(&e)),
            }
        }
    }

    /// Reads once. Returns whether something came.
    fn step_read(&mut self, shared: &Shared, cx: &mut Context<'_>) -> Result<bool> {
        let stream = self.stream.as_ref().ok_or(Error::Closed)?;
        loop {
            match stream.try_read(self.input.room()) {
                Ok(0) => return Err(Error::Io(errno::ECONNRESET)),
                Ok(nr) => {
                    self.input.add(nr);
                    shared.state().sort(&mut self.input)?;
                    return Ok(true);
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if stream.poll_read_ready(cx).is_pending() {
                        return Ok(false);
                    }
                }
                Err(e) => return Err(Error::io(&e)),
            }
        }
    }

    /// Connects and attaches. A server that is silent for longer than `limit` has failed.
    async fn connect(&mut self, limit: Option<Duration>) -> Result<()> {
        let shared = self.shared.clone();
        self.input.clear();
        self.output.clear();
        self.written = 0;
        let path = shared.options.path();
        let stream = UnixStream::connect(path).await.map_err(|e| Error::io(&e))?;
        let mut handshake = Handshake::new(&shared.options, &shared.name, &mut self.life);
        while !handshake.feed(&mut self.input)? {
            let output = std::mem::take(&mut handshake.output);
            let io = exchange(&stream, &output, &mut self.input);
            match limit {
                Some(limit) => tokio::time::timeout(limit, io).await.unwrap_or(Err(Error::TimedOut)),
                None => io.await,
            }?;
        }
        let mut state = shared.state();
        state.window = handshake.window;
        state.timers = handshake.timers;
        state.durable = handshake.durable;
        state.clock = handshake.clock();
        if let Some(step) = handshake.step.filter(|_| state.inbox.receives()) {
            state.inbox.add(step)?;
        }
        state.inbox.top_up();
        if state.doubt > 0 {
            let (begun, now) = state.clock;
            state.row.make_absolute(|moment| {
                now.saturating_sub(nanoseconds(begun.saturating_duration_since(moment)))
                    .saturating_add(nanoseconds(moment.saturating_duration_since(begun)))
            });
        }
        self.stream = Some(stream);
        Ok(())
    }

    /// Makes the next connection, unless this side is closed.
    async fn reconnect(&mut self) -> Result<()> {
        let mut pause = Duration::ZERO;
        let mut refused = None;
        loop {
            let shared = self.shared.clone();
            let limit = Some(shared.options.timeout.unwrap_or(HANDSHAKE_TIME));
            let why = match unless_over(&shared, self.connect(limit)).await {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            if why.is_final() {
                return Err(why);
            }
            let since = *refused.get_or_insert_with(Instant::now);
            if why.is_server_gone() {
                refused = None;
            } else if since.elapsed() >= REFUSED_TIME {
                return Err(why);
            }
            let sleep = async {
                tokio::time::sleep(pause).await;
                Ok(())
            };
            unless_over(&shared, sleep).await?;
            pause = (2 * pause).clamp(PAUSE, PAUSE_MAX);
        }
    }
}

/// Returns why the driver has to end, if it has to, and has it woken later.
fn is_over(shared: &Shared, cx: &mut Context<'_>) -> Option<Error> {
    let mut state = shared.state();
    if state.handles == 0 {
        return Some(Error::Closed);
    }
    match &state.driver {
        Some(waker) if waker.will_wake(cx.waker()) => {}
        _ => state.driver = Some(cx.waker().clone()),
    }
    state.broken.clone()
}

/// Returns whether the server has been silent for too long, and sets the alarm for that.
fn is_silent(
    shared: &Shared,
    alarm: &mut Pin<Box<Sleep>>,
    timeout: Duration,
    cx: &mut Context<'_>,
) -> bool {
    let since = shared.state().silent;
    loop {
        // Without an answer due it is woken now and then, which costs little.
        let end = since.unwrap_or_else(Instant::now) + timeout;
        if since.is_some() && Instant::now() >= end {
            return true;
        }
        if alarm.as_mut().poll(cx).is_pending() {
            return false;
        }
        alarm.as_mut().reset(end.into());
    }
}

async fn unless_over<T>(
    shared: &Shared,
    future: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::pin!(future);
    poll_fn(|cx| match is_over(shared, cx) {
        Some(why) => Poll::Ready(Err(why)),
        None => future.as_mut().poll(cx),
    })
    .await
}

/// Writes all of `output`, then reads once.
async fn exchange(stream: &UnixStream, mut output: &[u8], input: &mut Buffer) -> Result<()> {
    while !output.is_empty() {
        stream.writable().await.map_err(|e| Error::io(&e))?;
        match stream.try_write(output) {
            Ok(nr) => output = &output[nr..],
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            // A server above its limits answers and does not read.
            Err(_) => break,
        }
    }
    loop {
        stream.readable().await.map_err(|e| Error::io(&e))?;
        match stream.try_read(input.room()) {
            Ok(0) => return Err(Error::Io(errno::ECONNRESET)),
            Ok(nr) => {
                input.add(nr);
                return Ok(());
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(Error::io(&e)),
        }
    }
}
