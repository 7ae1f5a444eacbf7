// SPDX-License-Identifier: LGPL-2.1-or-later

//! Errors, which say what was carried out and what was not.

use crate::record::{op, Record};
use std::fmt;
use std::io;
use std::path::Path;

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// The errnos that this crate names itself: Linux's numbers.
#[allow(missing_docs)]
pub mod errno {
    pub const ENOENT: i32 = 2;
    pub const EBUSY: i32 = 16;
    pub const EEXIST: i32 = 17;
    pub const EINVAL: i32 = 22;
    pub const EPROTO: i32 = 71;
    pub const ECONNRESET: i32 = 104;
    pub const ETIMEDOUT: i32 = 110;
    pub const ECONNREFUSED: i32 = 111;
    pub const ESTALE: i32 = 116;
    pub const EDQUOT: i32 = 122;
}

/// Why a call failed. `Debug` is the same sentence as `Display`: it is what a `main` prints
/// that returns the error.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An argument that cannot be sent. Nothing was sent.
    Invalid(&'static str),
    /// The server did not carry out this request, or refused HELLO. With ECONNRESET the
    /// connection broke first: it may have been carried out.
    Refused {
        /// The request.
        op: u8,
        /// Its timer.
        id: u64,
        /// Why.
        errno: i32,
    },
    /// The call ended before all its answers came.
    Unanswered {
        /// From the first on; the records have their statuses.
        answered: usize,
        /// The next ones: sent, and perhaps carried out.
        in_doubt: usize,
        /// The rest: certainly not carried out.
        not_sent: usize,
        /// Why.
        why: Box<Error>,
    },
    /// The server does not speak the protocol. No more is read from it.
    Protocol(&'static str),
    /// The queue is not the one of before: its timers are gone.
    Lost(&'static str),
    /// The connection cannot be made: no daemon is there, for example.
    NotConnected {
        /// The socket.
        path: String,
        /// Why.
        errno: i32,
    },
    /// The connection broke.
    Io(i32),
    /// The server was silent for the time that was allowed. A connection that
    /// reconnects can still be used.
    TimedOut,
    /// The connection was closed by this side.
    Closed,
    /// The program's restore function failed.
    Restore(String),
}

impl Error {
    /// Returns the errno that says the same, if there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Error::Invalid(_) => Some(errno::EINVAL),
            Error::Refused { errno, .. }
            | Error::NotConnected { errno, .. }
            | Error::Io(errno) => Some(*errno),
            Error::Unanswered { why, .. } => why.errno(),
            Error::Protocol(_) => Some(errno::EPROTO),
            Error::Lost(_) => Some(errno::ESTALE),
            Error::TimedOut => Some(errno::ETIMEDOUT),
            Error::Closed | Error::Restore(_) => None,
        }
    }

    pub(crate) fn io(error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Error::TimedOut,
            io::ErrorKind::BrokenPipe => Error::Io(errno::ECONNRESET),
            _ => Error::Io(error.raw_os_error().unwrap_or(errno::ECONNRESET)),
        }
    }

    pub(crate) fn connect(path: &Path, error: &io::Error) -> Error {
        match Error::io(error) {
            Error::Io(errno) => Error::NotConnected { path: path.display().to_string(), errno },
            other => other,
        }
    }

    /// Returns whether no server is running, as in a restart.
    pub(crate) fn is_server_gone(&self) -> bool {
        use errno::*;
        match self {
            Error::Io(errno) | Error::NotConnected { errno, .. } => {
                matches!(*errno, ECONNREFUSED | ECONNRESET | ENOENT)
            }
            Error::TimedOut => true,
            _ => false,
        }
    }

    /// Returns whether another attempt to connect would not help.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Error::Protocol(_) | Error::Lost(_) | Error::Closed)
    }

    /// Returns the error of a call with this many records.
    pub(crate) fn of_call(self, answered: usize, sent: usize, total: usize) -> Error {
        Error::Unanswered {
            answered,
            in_doubt: sent - answered,
            not_sent: total - sent,
            why: Box::new(self),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(text) => write!(f, "{}", text),
            Error::Refused { op, errno, .. } if *op == op::HELLO => {
                write!(f, "refused: {}", explain(*op, *errno))
            }
            Error::Refused { op, id, errno } => {
                write!(f, "request {} for id {} refused: {}", op, id, explain(*op, *errno))
            }
            Error::Unanswered { answered, in_doubt, not_sent, why } => write!(
                f,
                "{} requests answered, {} in doubt, {} not sent: {}",
                answered, in_doubt, not_sent, why
            ),
            Error::Protocol(text) => write!(f, "the server broke the protocol: {}", text),
            Error::Lost(text) => write!(f, "the queue was lost: {}", text),
            Error::NotConnected { path, errno } => {
                write!(f, "no daemon at {}: {}", path, io::Error::from_raw_os_error(*errno))
            }
            Error::Io(errno) => {
                write!(f, "connection: {}", io::Error::from_raw_os_error(*errno))
            }
            Error::TimedOut => write!(f, "the server is silent"),
            Error::Closed => write!(f, "the connection is closed"),
            Error::Restore(text) => write!(f, "restore: {}", text),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        match error.errno() {
            Some(errno) => io::Error::new(io::Error::from_raw_os_error(errno).kind(), error),
            None => io::Error::new(io::ErrorKind::Other, error),
        }
    }
}

/// A request of a batch that the server refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its place in the batch.
    pub index: usize,
    /// Its timer.
    pub id: u64,
    /// Why.
    pub errno: i32,
}

/// Returns the refusals of a batch that was answered.
pub fn check(records: &[Record]) -> Vec<Refusal> {
    records
        .iter()
        .enumerate()
        .filter(|(_, r)| r.status != 0)
        .map(|(index, r)| Refusal { index, id: r.id, errno: -i32::from(r.status) })
        .collect()
}

fn explain(op: u8, errno: i32) -> String {
    use errno::*;
    let text = match (op, errno) {
        (op::HELLO, EINVAL) => {
            "the queue exists with another clock or mode, or its name is not of A-Z a-z 0-9 . _ -"
        }
        (op::HELLO, EBUSY) => {
            "the queue has a consumer already, or the daemon has no room for one more connection"
        }
        (op::HELLO, ENOENT) => "no such queue exists",
        (op::ARM, EINVAL) => {
            "flags or id are wrong for this queue: a keyed one needs an id that is not 0"
        }
        (op::ARM, EEXIST) => "the id is armed already",
        (op::ARM, EDQUOT) => "the user has as many timers as allowed",
        (op::ACK, ENOENT) => "not delivered, or acknowledged before",
        (op::ACK, EINVAL) => "the queue does not acknowledge",
        (_, ENOENT) => "no such timer is armed: it expired, was cancelled, or never was",
        (_, EBUSY) => "the daemon was held up and did nothing: send it again",
        (_, ECONNRESET) => "the connection broke before the answer: it may have been carried out",
        _ => return io::Error::from_raw_os_error(errno).to_string(),
    };
    format!("{}: {}", text, io::Error::from_raw_os_error(errno))
}
