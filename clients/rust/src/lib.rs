// SPDX-License-Identifier: LGPL-2.1-or-later

//! Arms timers in the queues of expiryd and receives their expirations. The crate
//! speaks the protocol of the daemon's socket and depends on no other crate.
//!
//! [`blocking::Queue`] is a connection of one thread. With the feature `tokio`,
//! `expiry::tokio` has one for many tasks.
//!
//! Times are nanoseconds on the queue's clock. A deadline that has passed is due at
//! once. An expiration and the reply to a request can cross: `cancel` that returns
//! false means that the timer expired, was cancelled, or never was.
//!
//! A call that ends before all its answers came is [`Error::Unanswered`]. It says how
//! many requests were answered, how many were sent and may have been carried out, and
//! how many were never sent. What the server refused is [`Error::Refused`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod blocking;
mod buffer;
mod dial;
#[cfg(feature = "tokio")]
mod driver;
mod error;
mod handshake;
mod id;
mod inbox;
mod listing;
mod names;
mod options;
mod record;
#[cfg(feature = "tokio")]
mod row;
#[cfg(feature = "tokio")]
mod shared;
#[cfg(feature = "tokio")]
pub mod tokio;

pub use error::{check, errno, Error, Refusal, Result};
pub use id::id_of;
pub use listing::{QueueRow, Scan, Stat};
pub use names::{Collision, MemoryNames, Named, Names, Visit};
pub use options::{default_socket, Arm, Clock, Options, Timer};
pub use record::{at, flag, op, Record, NEVER};
