// SPDX-License-Identifier: LGPL-2.1-or-later

//! Which queue, and how.

use crate::error::{Error, Result};
use crate::record::{flag, op, Record};
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NAME_MAX: usize = 24;
const CREDIT_MAX: u32 = 1 << 20;
const WINDOW_MAX: u32 = 1 << 16;

pub(crate) const CONSUME: u8 = 0x01;
pub(crate) const ACK: u8 = 0x02;
pub(crate) const DURABLE: u8 = 0x04;
pub(crate) const KEYED: u8 = 0x08;
pub(crate) const EXISTING: u8 = 0x10;
pub(crate) const OBSERVE: u8 = 0x40;

/// One of the machine's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The time of day.
    Realtime = 0,
    /// Time that the machine runs.
    Monotonic = 1,
    /// Time since the machine's start, suspended or not.
    Boottime = 7,
}

/// A timer that a restore function yields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// Not 0.
    pub id: u64,
    /// Nanoseconds on the queue's clock: [`at`](crate::at).
    pub deadline: u64,
    /// The program's own.
    pub cookie: u64,
}

type Timers = Box<dyn Iterator<Item = Timer> + Send>;
type Restore = dyn FnMut() -> std::result::Result<Timers, String> + Send;

/// Choices for a queue.
#[derive(Clone)]
pub struct Options {
    pub(crate) socket: Option<PathBuf>,
    pub(crate) flags: u8,
    pub(crate) clock: Clock,
    pub(crate) credit: u32,
    pub(crate) window: u32,
    pub(crate) timeout: Option<Duration>,
    pub(crate) reconnect: bool,
    pub(crate) events: bool,
    pub(crate) restore: Option<Arc<Mutex<Restore>>>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("flags", &self.flags).field("clock", &self.clock).finish()
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            socket: None,
            flags: 0,
            clock: Clock::Realtime,
            credit: 1024,
            window: WINDOW_MAX,
            timeout: None,
            reconnect: false,
            events: false,
            restore: None,
        }
    }
}

impl Options {
    /// A REALTIME queue that chooses the ids, for a connection that does not consume.
    pub fn new() -> Options {
        Options::default()
    }

    /// Names the daemon's socket instead of [`default_socket`].
    pub fn socket(mut self, path: impl AsRef<Path>) -> Options {
        self.socket = Some(path.as_ref().to_path_buf());
        self
    }

    /// This connection takes the expirations. A queue has one consumer.
    pub fn consume(mut self) -> Options {
        self.flags |= CONSUME;
        self
    }

    /// The queue keeps an expired timer until it is acknowledged: at least once.
    pub fn ack(mut self) -> Options {
        self.flags |= ACK;
        self
    }

    /// The queue's clients choose the ids.
    pub fn keyed(mut self) -> Options {
        self.flags |= KEYED;
        self
    }

    /// The queue outlives the server and the machine. It needs a name, [`keyed`] and [`ack`].
    ///
    /// [`keyed`]: Options::keyed
    /// [`ack`]: Options::ack
    pub fn durable(mut self) -> Options {
        self.flags |= DURABLE;
        self
    }

    /// Attaches to a queue that exists, and makes none.
    pub fn existing(mut self) -> Options {
        self.flags |= EXISTING;
        self
    }

    /// Gets copies of what the queue's consumer gets, and may only look.
    pub fn observe(mut self) -> Options {
        self.flags |= OBSERVE;
        self.events()
    }

    /// The queue's clock, for its whole life.
    pub fn clock(mut self, clock: Clock) -> Options {
        self.clock = clock;
        self
    }

    /// Limits the expirations that the server may send before the program takes them:
    /// 32 bytes each.
    pub fn credit(mut self, nr: u32) -> Options {
        self.credit = nr;
        self
    }

    /// Limits the requests in flight, besides the server's own limit.
    pub fn window(mut self, nr: u32) -> Options {
        self.window = nr.clamp(1, WINDOW_MAX);
        self
    }

    /// Limits the time for which the server may be silent while an answer is due, or may
    /// take no connection.
    pub fn timeout(mut self, time: Duration) -> Options {
        self.timeout = Some(time);
        self
    }

    /// A broken connection is replaced by one to the same queue, and the program sees a
    /// pause. The queue must have a name and, to consume, acknowledge.
    ///
    /// Unanswered requests are sent again, in order. Not idempotent are ARM on a plain
    /// queue, [`flag::NEW`] and CLEAR: they end with ECONNRESET, as do unanswered
    /// requests before them. A queue that was lost is [`Error::Lost`], unless there is
    /// a restore function.
    pub fn reconnect(mut self) -> Options {
        self.reconnect = true;
        self
    }

    /// Has expirations come with CLOCK_SET, a step of the clock, and MISSED, the number
    /// of copies that an observer did not take in time.
    pub fn events(mut self) -> Options {
        self.events = true;
        self
    }

    /// Arms what `f` yields when the queue is empty, and, with
    /// [`reconnect`](Options::reconnect), when it was lost. Expirations come
    /// afterwards. The queue must be keyed, so that arming twice does no harm.
    pub fn restore<I, E>(
        mut self,
        mut f: impl FnMut() -> std::result::Result<I, E> + Send + 'static,
    ) -> Options
    where
        I: IntoIterator<Item = Timer>,
        I::IntoIter: Send + 'static,
        E: fmt::Display,
    {
        self.restore = Some(Arc::new(Mutex::new(move || match f() {
            Ok(timers) => Ok(Box::new(timers.into_iter()) as Timers),
            Err(why) => Err(why.to_string()),
        })));
        self
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(default_socket)
    }

    /// Calls the restore function.
    pub(crate) fn load(&self) -> Result<Timers> {
        match &self.restore {
            None => Ok(Box::new(std::iter::empty())),
            Some(f) => match f.lock() {
                Ok(mut f) => f().map_err(Error::Restore),
                Err(_) => Err(Error::Restore("it panicked before".to_string())),
            },
        }
    }

    /// Checks what the server cannot.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        let is_allowed = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
        let consuming = self.has(CONSUME);
        let wrong = if name.len() > NAME_MAX || !name.bytes().all(is_allowed) {
            "a name is up to 24 characters of A-Z a-z 0-9 . _ -"
        } else if self.credit == 0 || self.credit > CREDIT_MAX {
            "credit: 1 to 1048576"
        } else if self.has(DURABLE)
            && (name.is_empty() || !self.has(ACK) || !self.has(KEYED))
        {
            "durable: the queue needs a name, keyed and ack"
        } else if self.reconnect && name.is_empty() {
            "reconnect: the queue needs a name"
        } else if self.reconnect && consuming && !self.has(ACK) {
            "reconnect: a consumer's queue must acknowledge"
        } else if self.restore.is_some() && !self.has(KEYED) {
            "restore: the queue must be keyed"
        } else if self.restore.is_some() && self.has(OBSERVE | EXISTING) {
            "restore: not with observe or existing"
        } else if self.has(OBSERVE) && consuming {
            "observe: not with consume"
        } else {
            return Ok(());
        };
        Err(Error::Invalid(wrong))
    }

    /// Returns the first record of a connection.
    pub(crate) fn hello(&self, name: &str) -> [u8; 32] {
        let mut hello = Record {
            op: op::HELLO,
            flags: self.flags,
            status: 1,
            period_ms: self.clock as u32,
            ..Record::default()
        }
        .to_bytes();
        hello[8..8 + name.len()].copy_from_slice(name.as_bytes());
        hello
    }
}

/// Returns `$EXPIRY_SOCKET`, or `/run/expiryd/socket` if that exists or the user is root,
/// or the socket of the user's own daemon.
pub fn default_socket() -> PathBuf {
    use std::os::unix::fs::MetadataExt;

    let system = PathBuf::from("/run/expiryd/socket");
    if let Some(path) = env::var_os("EXPIRY_SOCKET") {
        if !path.is_empty() {
            return path.into();
        }
    }
    let is_root = std::fs::metadata("/proc/self").map_or(false, |about| about.uid() == 0);
    if is_root || system.symlink_metadata().is_ok() {
        return system;
    }
    match env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(dir) if dir.is_absolute() => dir.join("expiry/socket"),
        _ => system,
    }
}

/// A timer to be armed: an id, when, and what comes back.
///
/// ```
/// use expiry::Arm;
/// use std::time::Duration;
/// let arm = Arm::after(42, Duration::from_secs(30)).cookie(7);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Arm(pub(crate) Record);

impl Arm {
    /// Arms `id` of a keyed queue, which expires after `ttl`. On a plain queue the id is
    /// 0, and the server chooses one.
    pub fn after(id: u64, ttl: Duration) -> Arm {
        Arm(Record {
            op: op::ARM,
            flags: flag::RELATIVE,
            id,
            deadline: nanoseconds(ttl),
            ..Record::default()
        })
    }

    /// Likewise, at a deadline on the queue's clock: [`at`](crate::at).
    pub fn at(id: u64, deadline: u64) -> Arm {
        Arm(Record { op: op::ARM, id, deadline, ..Record::default() })
    }

    /// What comes back with the expiration.
    pub fn cookie(mut self, cookie: u64) -> Arm {
        self.0.cookie = cookie;
        self
    }

    /// Arms it again at each expiration, after this many milliseconds.
    pub fn every_ms(mut self, period: u32) -> Arm {
        self.0.period_ms = period;
        self
    }

    /// EEXIST if the id is armed. Keyed queues only.
    pub fn new_only(mut self) -> Arm {
        self.0.flags |= flag::NEW;
        self
    }

    /// Never brings the deadline of an armed timer forward.
    pub fn not_earlier(mut self) -> Arm {
        self.0.flags |= flag::LATER;
        self
    }

    /// Returns the request, for a batch.
    pub fn record(self) -> Record {
        self.0
    }
}

/// Returns a duration as a relative deadline; the longest ones never end.
pub(crate) fn nanoseconds(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX)
}
