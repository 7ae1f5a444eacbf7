// SPDX-License-Identifier: LGPL-2.1-or-later

//! A connection of one thread, whose calls wait for their answers.

use crate::buffer::{Buffer, Output};
use crate::dial::Dial;
use crate::error::{errno, Error, Result};
use crate::handshake::{Handshake, Life, PAUSE, PAUSE_MAX, REFUSED_TIME};
use crate::inbox::Inbox;
use crate::listing::{Listing, QueueRow, Scan, Stat};
use crate::options::{nanoseconds, Arm, Options, KEYED};
use crate::record::{are_requests, armed, flag, op, Record};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// Records that are written at a time.
const CHUNK: usize = 2048;

/// For how long a server may be silent in a handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// A connection to a queue of expiryd.
pub struct Queue {
    name: String,
    options: Options,
    stream: Option<UnixStream>,
    /// Of a connection that cannot be used yet. A later call continues it.
    dial: Option<Dial>,
    handshake: Option<Handshake>,
    /// In both: when the server was heard last, or given up. In the handshake: when to send.
    heard: Instant,
    resume: Instant,
    limits: Limits,
    input: Buffer,
    output: Output,
    inbox: Inbox,
    life: Life,
    window: usize,
    timers: u64,
    durable: Option<Duration>,
    clock: (Instant, u64),
    reconnects: u32,
    broken: Option<Error>,
    // Of attempts to reconnect, from one call to the next.
    pause: Duration,
    refused: Option<Instant>,
}

/// The socket's timeouts, which are set only when they change.
#[derive(Default)]
struct Limits {
    read: Option<Duration>,
}

impl Limits {
    fn read(&mut self, stream: &UnixStream, limit: Option<Duration>) -> Result<()> {
        if self.read != limit {
            // A limit of 0 would be none.
            let limit = limit.map(|time| time.max(Duration::from_micros(1)));
            stream.set_read_timeout(limit).map_err(|e| Error::io(&e))?;
            self.read = limit;
        }
        Ok(())
    }
}

impl Queue {
    /// Attaches to a queue, which is made if it is not there. Without a name the queue ends
    /// with its connection. Waits until the server has answered and has all restored
    /// timers.
    pub fn open(name: &str, options: Options) -> Result<Queue> {
        options.check(name)?;
        let mut queue = Queue {
            name: name.to_string(),
            stream: None,
            dial: None,
            handshake: None,
            heard: Instant::now(),
            resume: Instant::now(),
            limits: Limits::default(),
            input: Buffer::new(),
            output: Output::default(),
            inbox: Inbox::new(&options),
            life: Life::default(),
            window: 0,
            timers: 0,
            durable: None,
            clock: (Instant::now(), 0),
            reconnects: 0,
            broken: None,
            pause: Duration::ZERO,
            refused: None,
            options,
        };
        queue.connect(queue.options.timeout, None)?;
        Ok(queue)
    }

    /// Returns the number of timers in the queue when it was opened.
    pub fn timers(&self) -> u64 {
        self.timers
    }

    /// Returns the time between flushes of a durable queue's journal. Zero: requests are
    /// answered once they are on the disk. `None`: the queue is not durable.
    pub fn durable(&self) -> Option<Duration> {
        self.durable
    }

    /// Returns how many connections were made after the first.
    pub fn reconnects(&self) -> u32 {
        self.reconnects
    }

    /// Returns the time on the queue's clock in nanoseconds, or somewhat later: counted
    /// from what the server has said.
    pub fn now(&self) -> u64 {
        self.clock.1.saturating_add(nanoseconds(self.clock.0.elapsed()))
    }

    // ----------------------------------------------------------------------
    // Requests

    /// Has requests carried out, in order, and replaces each record by its reply. Any
    /// number may be given. A refused request is no error: its record has the status, see
    /// [`check`](crate::check). After [`Error::Unanswered`] the records behind those that
    /// were answered are requests.
    pub fn submit(&mut self, records: &mut [Record]) -> Result<()> {
        if !are_requests(records) {
            return Err(Error::Invalid("an op that is not a request about timers"));
        }
        self.carry_out(records)
    }

    /// Arms a timer of a keyed queue. An armed id gets the new deadline, cookie and period.
    pub fn arm(&mut self, id: u64, ttl: Duration, cookie: u64) -> Result<()> {
        self.arm_with(Arm::after(id, ttl).cookie(cookie)).map(drop)
    }

    /// Arms a timer as described. Returns its id and its deadline.
    pub fn arm_with(&mut self, arm: Arm) -> Result<(u64, u64)> {
        let reply = self.call(arm.record())?;
        Ok((reply.id, reply.deadline))
    }

    /// Moves the deadline of an armed timer to `ttl` from now. Returns false if none is
    /// armed: the timer expired, was cancelled, or never was.
    pub fn refresh(&mut self, id: u64, ttl: Duration) -> Result<bool> {
        let deadline = nanoseconds(ttl);
        self.find(Record { op: op::REFRESH, flags: flag::RELATIVE, id, deadline, ..Record::default() })
            .map(|found| found.is_some())
    }

    /// Disarms a timer. Returns false if none is armed: its expiration may be on its way.
    pub fn cancel(&mut self, id: u64) -> Result<bool> {
        self.find(Record { op: op::CANCEL, id, ..Record::default() }).map(|found| found.is_some())
    }

    /// Returns an armed timer.
    pub fn query(&mut self, id: u64) -> Result<Option<Record>> {
        self.find(Record { op: op::QUERY, id, ..Record::default() })
    }

    /// Acknowledges an expiration. Returns false if it is not delivered, or was
    /// acknowledged before.
    pub fn ack(&mut self, id: u64) -> Result<bool> {
        self.find(Record { op: op::ACK, id, ..Record::default() }).map(|found| found.is_some())
    }

    /// Cancels and forgets every timer of the queue. Returns how many there were.
    pub fn clear(&mut self) -> Result<u64> {
        self.call(Record { op: op::CLEAR, ..Record::default() }).map(|reply| reply.cookie)
    }

    /// Removes the queue and its timers, for all clients. It needs a name, and no other
    /// connection may be attached.
    pub fn drop_queue(&mut self) -> Result<()> {
        self.call(Record { op: op::DROP, ..Record::default() }).map(drop)
    }

    /// Lists up to `max` timers from a cursor on; the first one is 0.
    pub fn scan(&mut self, cursor: u64, max: u32) -> Result<Scan> {
        self.list(Record { op: op::SCAN, id: cursor, period_ms: max, ..Record::default() })?.scan()
    }

    /// Returns the counters of the queue and of the daemon.
    pub fn stat(&mut self) -> Result<Stat> {
        self.list(Record { op: op::STAT, ..Record::default() })?.stat()
    }

    /// Lists up to `max` queues of the daemon from a cursor on, and returns the next one.
    pub fn queues(&mut self, cursor: u64, max: u32) -> Result<(Vec<QueueRow>, u64)> {
        self.list(Record { op: op::QUEUES, id: cursor, period_ms: max, ..Record::default() })?.queues()
    }

    fn call(&mut self, request: Record) -> Result<Record> {
        let mut records = [request];
        self.carry_out(&mut records)?;
        records[0].result()
    }

    /// Carries out a request for a timer that may not be armed.
    fn find(&mut self, request: Record) -> Result<Option<Record>> {
        match self.call(request) {
            Err(Error::Refused { errno: errno::ENOENT, .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Carries out requests on as many connections as needed.
    fn carry_out(&mut self, records: &mut [Record]) -> Result<()> {
        let total = records.len();
        let begun = self.begin();
        let (mut answered, mut sent, mut doubt) = (0, 0, 0);
        let mut connection = self.reconnects;

        loop {
            let mut ended = self.attached(begun);
            if ended.is_ok() {
                if let Some(begun) = begun.filter(|_| connection != self.reconnects) {
                    let begun = self.clock_at(begun);
                    records[answered..].iter_mut().for_each(|r| r.make_absolute(begun));
                    connection = self.reconnects;
                }
                ended = self.exchange(records, &mut answered, &mut sent, doubt);
            }
            let why = match ended {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            // The time was up before there was a connection: what was begun of it is kept.
            let is_lost = !self.is_attached() && self.broken.is_none();
            if is_lost || !self.lost(&why) || why == Error::TimedOut {
                return Err(why.of_call(answered, sent.max(doubt), total));
            }
            doubt = doubt.max(sent);
            let keyed = self.options.has(KEYED);
            let last = records[answered..doubt].iter().rposition(|r| !r.is_idempotent(keyed));
            if let Some(last) = last {
                for record in &mut records[answered..=answered + last] {
                    record.status = -(errno::ECONNRESET as i16);
                }
                answered += last + 1;
            }
            sent = answered;
            if answered == total {
                return Ok(());
            }
        }
    }

    /// Exchanges requests and replies on one connection. Credit follows the first `doubt`
    /// requests, which are sent again.
    fn exchange(
        &mut self,
        records: &mut [Record],
        answered: &mut usize,
        sent: &mut usize,
        doubt: usize,
    ) -> Result<()> {
        self.limit(self.options.timeout)?;
        while *answered < records.len() {
            let room = self.window - (*sent - *answered);
            let nr = CHUNK.min(room).min(records.len() - *sent);
            if nr > 0 {
                self.output.add(&records[*sent..*sent + nr]);
                *sent += nr;
                if *sent >= doubt {
                    self.add_credit();
                }
                self.write()?;
            }
            if *sent < records.len() && *sent - *answered < self.window {
                continue;
            }
            self.take_replies(records, answered, *sent)?;
        }
        Ok(())
    }

    /// Waits for records, and takes those that have come.
    fn take_replies(
        &mut self,
        records: &mut [Record],
        answered: &mut usize,
        sent: usize,
    ) -> Result<()> {
        if self.input.len() == 0 {
            self.fill()?;
        }
        while let Some(first) = self.input.first() {
            if first.is_event() {
                self.inbox.add_from(&mut self.input)?;
                continue;
            }
            let taken = self.input.take_replies(&mut records[*answered..sent]);
            if taken == 0 {
                return Err(Error::Protocol(if *answered == sent {
                    "a reply without a request"
                } else {
                    "a reply to another request"
                }));
            }
            if self.options.reconnect {
                self.life.arms += armed(&records[*answered..*answered + taken]);
            }
            *answered += taken;
        }
        Ok(())
    }

    /// Carries out a request whose reply is a listing, which leaves no trace and may be
    /// repeated.
    fn list(&mut self, request: Record) -> Result<Listing> {
        let begun = self.begin();
        loop {
            let mut sent = 0;
            let ended = self.attached(begun).and_then(|()| {
                sent = 1;
                self.list_once(&request)
            });
            let why = match ended {
                Ok(listing) => return Ok(listing),
                Err(why) => why,
            };
            // The time was up before there was a connection: what was begun of it is kept.
            let is_lost = !self.is_attached() && self.broken.is_none();
            if is_lost || !self.lost(&why) || why == Error::TimedOut {
                return Err(why.of_call(0, sent, 1));
            }
        }
    }

    fn list_once(&mut self, request: &Record) -> Result<Listing> {
        let mut listing = Listing::new(request);
        self.limit(self.options.timeout)?;
        self.output.add(&[*request]);
        self.add_credit();
        self.write()?;
        while !listing.complete {
            match self.input.first() {
                None => self.fill()?,
                Some(record) if record.is_event() && !listing.begun => {
                    self.inbox.add(record)?;
                    self.input.skip(1);
                }
                Some(_) => listing.take(&mut self.input)?,
            }
        }
        Ok(listing)
    }

    // ----------------------------------------------------------------------
    // Expirations

    /// Takes expirations, waiting for the first at most `limit`, or without one for ever.
    /// Returns how many of `due` it has filled in, in order of deadline; 0 = the time is up.
    /// On an acknowledging queue the program calls [`ack`](Queue::ack) for what it has dealt
    /// with.
    pub fn receive(&mut self, due: &mut [Record], limit: Option<Duration>) -> Result<usize> {
        if !self.inbox.receives() || due.is_empty() {
            return Err(Error::Invalid("receive: needs room, and consume or observe"));
        }
        // Without a look at the clock where there is no need to wait.
        let nr = self.inbox.take_into(due);
        if nr > 0 {
            return Ok(nr);
        }
        // Too long to be counted is for ever.
        let end = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            if let Some(why) = &self.broken {
                return Err(why.clone());
            }
            let is_up = end.map_or(false, |end| Instant::now() >= end);
            match self.receive_more(end) {
                Err(Error::TimedOut) if is_up => return Ok(0),
                Err(Error::TimedOut) | Ok(()) => {}
                Err(why) => {
                    if !self.lost(&why) {
                        return Err(why);
                    }
                }
            }
            let nr = self.inbox.take_into(due);
            if nr > 0 {
                return Ok(nr);
            }
        }
    }

    /// Returns an iterator over expirations, which ends with an error.
    pub fn due(&mut self) -> impl Iterator<Item = Result<Record>> + '_ {
        let mut one = [Record::default()];
        let mut is_over = false;
        std::iter::from_fn(move || {
            if is_over {
                return None;
            }
            if let Some(record) = self.inbox.take() {
                return Some(Ok(record));
            }
            let got = self.receive(&mut one, None);
            is_over = got.is_err();
            Some(got.map(|_| one[0]))
        })
    }

    /// Gives credit, and waits for events.
    fn receive_more(&mut self, end: Option<Instant>) -> Result<()> {
        if !self.is_attached() {
            self.reconnect(end)?;
        }
        self.add_credit();
        // What the server has sent is there to be read, even if it reads no more.
        let written = self.write();
        self.limit(left_until(end))?;
        if self.input.len() == 0 {
            self.fill().map_err(|why| written.err().unwrap_or(why))?;
        }
        self.take_replies(&mut [], &mut 0, 0)
    }

    // ----------------------------------------------------------------------
    // The connection

    fn add_credit(&mut self) {
        self.inbox.top_up();
        if let Some(credit) = self.inbox.take_credit() {
            self.output.add(&[credit]);
        }
    }

    fn limit(&mut self, limit: Option<Duration>) -> Result<()> {
        match &self.stream {
            Some(stream) => self.limits.read(stream, limit),
            None => Err(Error::Closed),
        }
    }

    /// Writes what is to be sent. The server takes as many requests as its window says, so
    /// this waits only for a moment.
    fn write(&mut self) -> Result<()> {
        let stream = self.stream.as_mut().ok_or(Error::Closed)?;
        let ended = stream.write_all(self.output.bytes()).map_err(|e| Error::io(&e));
        self.output.clear();
        ended
    }

    /// Reads once.
    fn fill(&mut self) -> Result<()> {
        let stream = self.stream.as_mut().ok_or(Error::Closed)?;
        let mut interrupted = None;
        loop {
            match stream.read(self.input.room()) {
                Ok(0) => return Err(Error::Io(errno::ECONNRESET)),
                Ok(nr) => {
                    self.input.add(nr);
                    if self.input.len() > 0 {
                        return Ok(());
                    }
                }
                // The next read has the whole time again: signals may come more often.
                Err(e) if e.kind() == ErrorKind::Interrupted => {
                    let first: &mut Instant = interrupted.get_or_insert_with(Instant::now);
                    if matches!(self.limits.read, Some(limit) if first.elapsed() >= limit) {
                        return Err(Error::TimedOut);
                    }
                }
                Err(e) => return Err(Error::io(&e)),
            }
        }
    }

    /// Returns when a call begins. Only a connection that reconnects needs it.
    fn begin(&self) -> Option<Instant> {
        self.options.reconnect.then(Instant::now)
    }

    fn is_attached(&self) -> bool {
        self.stream.is_some() && self.handshake.is_none()
    }

    /// Has a connection, within the time that a call may wait.
    fn attached(&mut self, begun: Option<Instant>) -> Result<()> {
        if let Some(why) = &self.broken {
            return Err(why.clone());
        }
        if self.is_attached() {
            return Ok(());
        }
        self.reconnect(begun.zip(self.options.timeout).map(|(begun, timeout)| begun + timeout))
    }

    /// Handles an error. Returns whether another connection helps.
    fn lost(&mut self, why: &Error) -> bool {
        if self.broken.is_some() {
            return false;
        }
        let was_up = self.is_attached();
        self.stream = None;
        self.handshake = None;
        if self.options.reconnect && why.is_server_gone() {
            if was_up {
                self.inbox.lost();
                self.output.clear();
            }
            return true;
        }
        self.broken = Some(why.clone());
        false
    }

    /// Connects and attaches, until a moment. A server that is silent for longer than
    /// `limit` has failed. Returns whether the connection can be used. If not, the next call
    /// continues. Without a moment it always can.
    fn connect(&mut self, limit: Option<Duration>, end: Option<Instant>) -> Result<bool> {
        let mut handshake = match self.handshake.take() {
            Some(handshake) => handshake,
            None => match self.dial(limit, end)? {
                Some(stream) => self.shake_hands(stream)?,
                None => return Ok(false),
            },
        };
        let ended = match self.greet(&mut handshake, limit, end) {
            Ok(true) => self.attach(&handshake).map(|()| true),
            Ok(false) => {
                self.handshake = Some(handshake);
                Ok(false)
            }
            Err(why) => Err(why),
        };
        if ended.is_err() {
            self.stream = None;
        }
        ended
    }

    /// Connects, or returns `None`: the time is up. A server whose backlog stays full for
    /// longer than `limit` has failed.
    fn dial(&mut self, limit: Option<Duration>, end: Option<Instant>) -> Result<Option<UnixStream>> {
        let path = self.options.path();
        let failed = |e| Error::connect(path.as_ref(), &e);
        if limit.is_none() && end.is_none() {
            return UnixStream::connect(&path).map(Some).map_err(failed);
        }
        let dial = match self.dial.take() {
            Some(dial) => dial,
            None => {
                self.heard = Instant::now();
                Dial::begin(path.clone()).map_err(failed)?
            }
        };
        let silent = self.silent_for(limit);
        let left = left_until(end);
        let wait = left.into_iter().chain(silent).min().unwrap_or(HANDSHAKE_TIME);
        match dial.wait(wait) {
            Ok(connected) => return connected.map(Some).map_err(failed),
            Err(dial) => self.dial = Some(dial),
        }
        if is_less(left, silent) {
            return Ok(None);
        }
        self.heard = Instant::now();
        Err(Error::TimedOut)
    }

    /// Returns for how long the server may still be silent.
    fn silent_for(&self, limit: Option<Duration>) -> Option<Duration> {
        limit.map(|limit| limit.saturating_sub(self.heard.elapsed()))
    }

    /// Begins the handshake of a connection.
    fn shake_hands(&mut self, stream: UnixStream) -> Result<Handshake> {
        stream.set_write_timeout(self.options.timeout).map_err(|e| Error::io(&e))?;
        self.limits = Limits::default();
        self.stream = Some(stream);
        self.input.clear();
        self.heard = Instant::now();
        self.resume = self.heard;
        Ok(Handshake::new(&self.options, &self.name, &self.life))
    }

    /// Returns whether the handshake is complete, or false: the time is up.
    fn greet(
        &mut self,
        handshake: &mut Handshake,
        limit: Option<Duration>,
        end: Option<Instant>,
    ) -> Result<bool> {
        let mut written = Ok(());
        loop {
            let pause = std::mem::take(&mut handshake.pause);
            if !pause.is_zero() {
                self.resume = Instant::now() + pause;
            }
            let pause = self.resume.saturating_duration_since(Instant::now());
            thread::sleep(left_until(end).map_or(pause, |left| left.min(pause)));
            if self.resume > Instant::now() {
                return Ok(false);
            }
            if !handshake.output.is_empty() {
                self.output.add_bytes(handshake.output.bytes());
                handshake.output.clear();
                // A server above its limits answers and does not read.
                written = self.write();
                self.heard = Instant::now();
            }
            if handshake.feed(&mut self.input, &self.options, &mut self.life)? {
                return Ok(true);
            }
            if !handshake.output.is_empty() {
                continue;
            }
            let silent = self.silent_for(limit);
            let left = left_until(end);
            self.limit(left.into_iter().chain(silent).min())?;
            match self.fill() {
                Ok(()) => self.heard = Instant::now(),
                Err(Error::TimedOut) if is_less(left, silent) => return Ok(false),
                Err(why) => return written.and(Err(why)),
            }
        }
    }

    /// Takes what the handshake yielded.
    fn attach(&mut self, handshake: &Handshake) -> Result<()> {
        self.window = handshake.window;
        self.timers = handshake.timers;
        self.durable = handshake.durable;
        self.clock = handshake.clock();
        if let Some(step) = handshake.step.filter(|_| self.inbox.receives()) {
            self.inbox.add(step)?;
        }
        self.inbox.top_up();
        Ok(())
    }

    /// Returns the queue's clock at a moment, or somewhat later. The clock's reading is the
    /// present connection's.
    fn clock_at(&self, moment: Instant) -> u64 {
        let (begun, now) = self.clock;
        if moment >= begun {
            now.saturating_add(nanoseconds(moment - begun))
        } else {
            now.saturating_sub(nanoseconds(begun - moment))
        }
    }

    /// Makes the next connection, until a moment.
    fn reconnect(&mut self, end: Option<Instant>) -> Result<()> {
        let timers = self.timers;
        loop {
            let limit = self.options.timeout.unwrap_or(HANDSHAKE_TIME);
            let why = match self.connect(Some(limit), end) {
                Ok(false) => return Err(Error::TimedOut),
                Ok(true) => {
                    self.timers = timers;
                    self.reconnects += 1;
                    self.pause = Duration::ZERO;
                    self.refused = None;
                    return Ok(());
                }
                Err(why) => why,
            };
            let refused = *self.refused.get_or_insert_with(Instant::now);
            if why.is_server_gone() {
                self.refused = None;
            } else if why.is_final() || refused.elapsed() >= REFUSED_TIME {
                self.broken = Some(why.clone());
                return Err(why);
            }
            let left = left_until(end);
            if left.map_or(false, |left| left.is_zero()) {
                return Err(Error::TimedOut);
            }
            thread::sleep(left.unwrap_or(self.pause).min(self.pause));
            self.pause = (2 * self.pause).clamp(PAUSE, PAUSE_MAX);
        }
    }
}

/// Compares limits, of which none is for ever.
fn is_less(limit: Option<Duration>, other: Option<Duration>) -> bool {
    limit.map_or(false, |limit| other.map_or(true, |other| limit < other))
}

/// Returns the time until a moment, zero if it has passed.
fn left_until(end: Option<Instant>) -> Option<Duration> {
    end.map(|end| end.saturating_duration_since(Instant::now()))
}
