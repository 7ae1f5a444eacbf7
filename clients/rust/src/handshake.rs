// SPDX-License-Identifier: LGPL-2.1-or-later

//! The beginning of a connection, without the connection: HELLO, whether the queue is the
//! one of before, and what is restored.

use crate::buffer::{Buffer, Output};
use crate::error::{errno, Error, Result};
use crate::listing::Listing;
use crate::options::{Options, Timer, DURABLE};
use crate::record::{op, Record};
use std::time::{Duration, Instant};

/// Timers that are restored in one batch.
const BATCH: usize = 512;

/// Pauses between attempts to connect, or to restore, and for how long a server may refuse.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(1);
pub(crate) const REFUSED_TIME: Duration = Duration::from_secs(5);

/// Error of /proc/uptime, which has hundredths of a second.
const BOOT_ERROR: u64 = 10_000_000;

/// A moment: on CLOCK_MONOTONIC, and on CLOCK_BOOTTIME where that can be read. The latter
/// counts while the machine is suspended, but is less precise.
#[derive(Clone, Copy, Debug)]
struct Moment {
    running: Instant,
    boot: Option<u64>,
}

impl Moment {
    fn now() -> Moment {
        let text = std::fs::read_to_string("/proc/uptime").ok();
        let seconds = text.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
        Moment { running: Instant::now(), boot: seconds.map(|s| (s * 1e9) as u64) }
    }

    /// Returns the time since this moment, never more than it was, in nanoseconds.
    fn elapsed(&self) -> u64 {
        let now = Moment::now();
        let running = (now.running - self.running).as_nanos() as u64;
        match (self.boot, now.boot) {
            (Some(before), Some(now)) => running.max(now.saturating_sub(before + BOOT_ERROR)),
            _ => running,
        }
    }
}

/// What is known of a queue from one connection to the next.
#[derive(Debug, Default)]
pub(crate) struct Life {
    attached: Option<Moment>,
    /// Least number of timers that the queue has counted.
    pub(crate) arms: u64,
    /// Of a durable queue, else 0.
    number: u64,
    /// It is empty, and to be restored.
    is_empty: bool,
}

impl Life {
    /// Checks that this is the queue of before. A durable queue has its number. With the
    /// embedded engine another one is at most as old as its daemon. With the kernel's, it
    /// has counted at least as many timers, unless other clients made up the difference.
    fn check(&mut self, before: Option<Moment>, listing: Listing) -> Result<()> {
        let stat = listing.stat()?;
        let arms = std::mem::replace(&mut self.arms, stat.arms());
        let number = std::mem::replace(&mut self.number, stat.durable());
        self.attached = Some(Moment::now());
        let before = match before {
            Some(before) => before,
            None if self.number == 0 => {
                return Err(Error::Protocol("a durable queue without a number"))
            }
            None => return Ok(()),
        };
        if number != self.number {
            return Err(Error::Lost("another one has its name, or it is durable no more"));
        }
        if number != 0 {
            return Ok(());
        }
        if stat.is_embedded() && stat.uptime() < before.elapsed() {
            return Err(Error::Lost("the daemon was started anew"));
        }
        if stat.arms() < arms {
            return Err(Error::Lost("another one has its name"));
        }
        Ok(())
    }
}

enum Stage {
    Hello,
    /// The moment is of the connection before.
    Stat(Option<Moment>, Listing),
    Restore(Restore),
    Done,
}

/// What restore yielded. A server that is held up refuses some with EBUSY and does nothing:
/// these are sent again after pauses. After REFUSED_TIME without one armed it is final.
struct Restore {
    timers: Box<dyn Iterator<Item = Timer> + Send>,
    batch: Vec<Record>,
    answered: usize,
    busy: Vec<Record>,
    /// Since when the server armed none of them.
    refused: Option<Instant>,
    pause: Duration,
}

impl Restore {
    fn new(timers: Box<dyn Iterator<Item = Timer> + Send>) -> Restore {
        Restore {
            timers,
            batch: Vec::new(),
            answered: 0,
            busy: Vec::new(),
            refused: None,
            pause: Duration::ZERO,
        }
    }

    /// Makes what was refused the batch, to be sent after the pause.
    fn again(&mut self) -> Result<()> {
        match self.refused {
            Some(since) if self.busy.len() == self.batch.len() => {
                if since.elapsed() >= REFUSED_TIME {
                    let id = self.busy[0].id;
                    return Err(Error::Refused { op: op::ARM, id, errno: errno::EBUSY });
                }
                self.pause = (2 * self.pause).min(PAUSE_MAX);
            }
            _ => {
                self.refused = Some(Instant::now());
                self.pause = PAUSE;
            }
        }
        self.batch = std::mem::take(&mut self.busy);
        Ok(())
    }

    /// Makes the next timers the batch.
    fn next(&mut self, most: usize) {
        self.refused = None;
        self.batch.clear();
        self.batch.extend(self.timers.by_ref().take(most).map(|timer| Record {
            op: op::ARM,
            id: timer.id,
            deadline: timer.deadline,
            cookie: timer.cookie,
            ..Record::default()
        }));
    }
}

/// A handshake in progress. [`Handshake::feed`] takes what was received;
/// [`Handshake::output`] is to be sent after [`Handshake::pause`].
pub(crate) struct Handshake {
    stage: Stage,
    /// To be sent; cleared when that is done.
    pub(crate) output: Output,
    /// Cleared by the caller, too.
    pub(crate) pause: Duration,
    begun: Instant,
    /// Timers in the queue, by HELLO.
    pub(crate) timers: u64,
    /// Most requests in flight.
    pub(crate) window: usize,
    /// Of a durable queue: the time between flushes.
    pub(crate) durable: Option<Duration>,
    /// The queue's clock at `begun`, or somewhat later.
    pub(crate) now: u64,
    /// The last step of the clock.
    pub(crate) step: Option<Record>,
}

impl Handshake {
    pub(crate) fn new(options: &Options, name: &str, life: &Life) -> Handshake {
        let mut output = Output::default();
        output.add_bytes(&options.hello(name));
        if life.attached.is_some() {
            output.add(&[Record { op: op::STAT, ..Record::default() }]);
        }
        Handshake {
            stage: Stage::Hello,
            output,
            pause: Duration::ZERO,
            begun: Instant::now(),
            timers: 0,
            window: 0,
            durable: None,
            now: 0,
            step: None,
        }
    }

    /// Returns a moment, and the queue's clock then or somewhat later.
    pub(crate) fn clock(&self) -> (Instant, u64) {
        (self.begun, self.now)
    }

    /// Takes records. Returns whether the connection can be used. Each call gets what
    /// [`new`](Handshake::new) got.
    pub(crate) fn feed(
        &mut self,
        from: &mut Buffer,
        options: &Options,
        life: &mut Life,
    ) -> Result<bool> {
        loop {
            if let Some(first) = from.first() {
                let inside = matches!(&self.stage, Stage::Stat(_, listing) if listing.begun);
                if !inside && !matches!(self.stage, Stage::Hello | Stage::Done)
                    && first.is_event()
                {
                    if first.op != op::CLOCK_SET {
                        return Err(Error::Protocol("an expiration without credit"));
                    }
                    self.step = Some(first);
                    from.skip(1);
                    continue;
                }
            }
            let is_waiting = match &mut self.stage {
                Stage::Done => return Ok(true),
                Stage::Hello => self.hello(from, options, life)?,
                Stage::Stat(_, listing) => {
                    listing.take(from)?;
                    !listing.complete || self.stat(options, life)?
                }
                Stage::Restore(..) => self.restore(from, life)?,
            };
            if is_waiting {
                return Ok(false);
            }
        }
    }

    /// Takes the reply to HELLO. Returns whether it is still to come.
    fn hello(
        &mut self,
        from: &mut Buffer,
        options: &Options,
        life: &mut Life,
    ) -> Result<bool> {
        let reply = match from.first() {
            Some(reply) => reply,
            None => return Ok(true),
        };
        from.skip(1);
        if reply.op != op::HELLO || reply.status > 0 {
            return Err(Error::Protocol("the answer to HELLO is none: not expiryd"));
        }
        match -i32::from(reply.status) {
            0 => {}
            errno::EPROTO => return Err(Error::Protocol("the server found HELLO malformed")),
            errno::ENOENT if life.attached.is_some() => {
                return Err(Error::Lost("it was dropped"))
            }
            errno => return Err(Error::Refused { op: op::HELLO, id: 0, errno }),
        }
        let window = reply.cookie & u64::from(u32::MAX);
        if window == 0 {
            return Err(Error::Protocol("HELLO without a window"));
        }
        if reply.flags & DURABLE != 0 {
            self.durable = Some(Duration::from_millis(reply.cookie >> 32));
        } else if options.has(DURABLE) {
            return Err(Error::Protocol("the server does not say that the queue is durable"));
        }
        self.timers = reply.id;
        self.now = reply.deadline;
        self.window = window.min(u64::from(options.window)) as usize;
        life.is_empty |= reply.id == 0;
        let request = Record { op: op::STAT, ..Record::default() };
        match life.attached {
            Some(before) => {
                self.stage = Stage::Stat(Some(before), Listing::new(&request));
                Ok(false)
            }
            None if self.durable.is_some() && options.reconnect => {
                self.output.add(&[request]);
                self.stage = Stage::Stat(None, Listing::new(&request));
                Ok(false)
            }
            None => {
                life.attached = Some(Moment::now());
                // Each was armed once. A periodic one may count twice: it is armed and
                // not acknowledged.
                life.arms = reply.id / 2;
                self.begin_restore(options, life)
            }
        }
    }

    fn stat(&mut self, options: &Options, life: &mut Life) -> Result<bool> {
        if let Stage::Stat(before, listing) = std::mem::replace(&mut self.stage, Stage::Done) {
            match life.check(before, listing) {
                Err(Error::Lost(_)) if options.restore.is_some() => {
                    life.is_empty = true;
                }
                other => other?,
            }
        }
        self.begin_restore(options, life)
    }

    fn begin_restore(&mut self, options: &Options, life: &Life) -> Result<bool> {
        self.stage = if life.is_empty && options.restore.is_some() {
            Stage::Restore(Restore::new(options.load()?))
        } else {
            Stage::Done
        };
        Ok(false)
    }

    /// Takes the replies to a batch, and makes the next one. Returns whether replies are
    /// to come.
    fn restore(&mut self, from: &mut Buffer, life: &mut Life) -> Result<bool> {
        let this = match &mut self.stage {
            Stage::Restore(this) => this,
            _ => return Ok(false),
        };
        while this.answered < this.batch.len() {
            let reply = match from.first() {
                Some(reply) if !reply.is_event() => reply,
                Some(_) => return Ok(false),
                None => return Ok(true),
            };
            from.skip(1);
            let request = this.batch[this.answered];
            if !reply.is_reply_to(&request) {
                return Err(Error::Protocol("a reply to another request"));
            }
            if -i32::from(reply.status) == errno::EBUSY {
                this.busy.push(request);
            } else {
                reply.result()?;
                life.arms += 1;
            }
            this.answered += 1;
        }
        this.answered = 0;
        if this.busy.is_empty() {
            this.next(BATCH.min(self.window));
        } else {
            this.again()?;
            self.pause = this.pause;
        }
        if this.batch.is_empty() {
            life.is_empty = false;
            self.stage = Stage::Done;
            return Ok(false);
        }
        self.output.add(&this.batch);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timers() -> std::result::Result<Vec<Timer>, Error> {
        Ok((1..=3).map(|id| Timer { id, deadline: 0, cookie: 7 * id }).collect())
    }

    /// Answers with these statuses. Returns what comes of it.
    fn feed(
        handshake: &mut Handshake,
        options: &Options,
        life: &mut Life,
        answers: &[(u8, u64, i32)],
    ) -> Result<bool> {
        let mut from = Buffer::new();
        for (op, id, errno) in answers {
            let status = -*errno as i16;
            let cookie = u64::from(*op == op::HELLO) * 4096;
            let reply = Record { op: *op, status, id: *id, cookie, ..Record::default() };
            from.room()[..32].copy_from_slice(&reply.to_bytes());
            from.add(32);
            handshake.output.clear();
            if handshake.feed(&mut from, options, life)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn records(timers: &[u64]) -> Output {
        let mut wanted = Output::default();
        for id in timers {
            wanted.add(&[Record { op: op::ARM, id: *id, cookie: 7 * id, ..Record::default() }]);
        }
        wanted
    }

    #[test]
    fn what_a_busy_server_refused_is_restored_later() {
        let options = Options::new().keyed().restore(timers);
        let mut life = Life::default();
        let mut handshake = Handshake::new(&options, "q", &life);
        let arm = |id, errno| (op::ARM, id, errno);
        assert_eq!(feed(&mut handshake, &options, &mut life, &[(op::HELLO, 0, 0)]), Ok(false));
        assert_eq!(handshake.output.bytes(), records(&[1, 2, 3]).bytes());
        assert_eq!(handshake.pause, Duration::ZERO);
        let busy = errno::EBUSY;
        for (answers, again, pause) in [
            (vec![arm(1, busy), arm(2, 0), arm(3, busy)], &[1, 3][..], PAUSE),
            (vec![arm(1, busy), arm(3, busy)], &[1, 3][..], 2 * PAUSE),
            (vec![arm(1, 0), arm(3, busy)], &[3][..], PAUSE),
        ] {
            assert_eq!(feed(&mut handshake, &options, &mut life, &answers), Ok(false));
            assert_eq!(handshake.output.bytes(), records(again).bytes());
            assert_eq!(handshake.pause, pause);
        }
        assert_eq!(feed(&mut handshake, &options, &mut life, &[arm(3, 0)]), Ok(true));
        assert_eq!(life.arms, 3);
    }

    #[test]
    fn a_refusal_that_stays_ends_restore() {
        const ENOSPC: i32 = 28;
        let options = Options::new().keyed().restore(timers);
        for errno in [errno::EBUSY, ENOSPC] {
            let mut life = Life::default();
            let mut handshake = Handshake::new(&options, "q", &life);
            let busy = (op::ARM, 1, errno::EBUSY);
            let refused = (op::ARM, 1, errno);
            let all = [(op::HELLO, 0, 0), busy, (op::ARM, 2, 0), (op::ARM, 3, 0)];
            assert_eq!(feed(&mut handshake, &options, &mut life, &all), Ok(false));
            assert_eq!(feed(&mut handshake, &options, &mut life, &[busy]), Ok(false));
            if let Stage::Restore(restore) = &mut handshake.stage {
                restore.refused = restore.refused.map(|since| since - REFUSED_TIME);
            }
            assert_eq!(
                feed(&mut handshake, &options, &mut life, &[refused]),
                Err(Error::Refused { op: op::ARM, id: 1, errno })
            );
        }
    }
}
