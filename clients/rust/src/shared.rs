// SPDX-License-Identifier: LGPL-2.1-or-later

//! What clients, stream and driver share.

use crate::buffer::{Buffer, Output};
use crate::error::{Error, Result};
use crate::inbox::Inbox;
use crate::options::Options;
use crate::row::{Call, Row};
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use tokio::io::AsyncWrite;
use tokio::net::unix::OwnedWriteHalf;

/// Records that are written at a time.
const CHUNK: usize = 2048;

/// What the three parts share.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) options: Options,
    state: Mutex<State>,
}

pub(crate) struct State {
    /// What writes to the server: the driver, or a caller that is alone. `None` without a
    /// connection.
    pub(crate) writer: Option<OwnedWriteHalf>,
    output: Output,
    /// Of the output.
    written: usize,
    pub(crate) row: Row,
    pub(crate) inbox: Inbox,
    pub(crate) window: usize,
    /// Requests that are sent again before credit is given.
    pub(crate) doubt: usize,
    pub(crate) broken: Option<Error>,
    has_timeout: bool,
    /// With a timeout: since when the server owes an answer and is silent.
    pub(crate) silent: Option<Instant>,
    pub(crate) driver: Option<Waker>,
    pub(crate) due: Option<Waker>,
    /// Clients, and the stream.
    pub(crate) handles: usize,
    pub(crate) clock: (Instant, u64),
    pub(crate) timers: u64,
    pub(crate) durable: Option<Duration>,
    pub(crate) reconnects: u32,
}

impl Shared {
    pub(crate) fn new(name: &str, options: Options) -> Shared {
        let state = State {
            writer: None,
            output: Output::default(),
            written: 0,
            row: Row::new(options.reconnect),
            inbox: Inbox::new(&options),
            window: 0,
            doubt: 0,
            broken: None,
            has_timeout: options.timeout.is_some(),
            silent: None,
            driver: None,
            due: None,
            handles: 0,
            clock: (Instant::now(), 0),
            timers: 0,
            durable: None,
            reconnects: 0,
        };
        Shared { name: name.to_string(), options, state: Mutex::new(state) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // No code panics with the lock held; if it did, the state is still whole.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    pub(crate) fn wake_driver(&mut self) {
        if let Some(waker) = self.driver.take() {
            waker.wake();
        }
    }

    fn wake_due(&mut self) {
        if let Some(waker) = self.due.take() {
            waker.wake();
        }
    }

    pub(crate) fn fail(&mut self, why: Error) {
        self.row.fail(&why);
        self.broken.get_or_insert(why);
        self.wake_due();
    }

    /// Begins to count anew for how long the server is silent.
    pub(crate) fn restart_silence(&mut self) {
        self.silent = None;
        self.begin_silence();
    }

    /// Begins to count, if an answer is owed and this is not counted yet.
    fn begin_silence(&mut self) {
        if self.has_timeout && self.silent.is_none() && !self.row.is_empty() {
            self.silent = Some(Instant::now());
        }
    }

    /// Returns why the driver has to end, if it has to, and has it woken later.
    pub(crate) fn is_over(&mut self, cx: &mut Context<'_>) -> Option<Error> {
        if self.handles == 0 {
            return Some(Error::Closed);
        }
        match &self.driver {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            _ => self.driver = Some(cx.waker().clone()),
        }
        self.broken.clone()
    }

    /// Takes a call. One that is alone is written here: the driver need not run before the
    /// reply comes. Those that come before its reply are written together by the driver.
    pub(crate) fn submit(&mut self, call: Call) {
        if let Some(why) = &self.broken {
            let why = why.clone();
            return call.end(Some(why));
        }
        let is_alone = self.row.is_empty();
        self.row.push(call);
        self.begin_silence();
        let is_written = is_alone && matches!(self.write(None), Ok(true));
        if !is_written {
            self.wake_driver();
        }
    }

    /// Sorts what was received.
    pub(crate) fn sort(&mut self, input: &mut Buffer) -> Result<()> {
        let mut has_event = false;
        while let Some(record) = input.first() {
            if record.is_event() && !self.row.is_in_listing() {
                self.inbox.add_from(input)?;
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

    /// Gathers requests, and credit behind those in doubt, if all before is written. Returns
    /// whether there is something to be written.
    fn gather(&mut self) -> bool {
        if self.written < self.output.bytes().len() {
            return true;
        }
        if self.writer.is_none() || !self.row.has_unsent() && !self.inbox.is_credit_due() {
            return false;
        }
        self.output.clear();
        self.written = 0;
        let nr = self.row.gather(&mut self.output, CHUNK, self.window);
        // Calls that were given up meanwhile are not sent again.
        self.doubt = if self.row.has_unsent() { self.doubt.saturating_sub(nr) } else { 0 };
        if self.doubt == 0 {
            if let Some(credit) = self.inbox.take_credit() {
                self.output.add(&[credit]);
            }
        }
        !self.output.is_empty()
    }

    /// Writes what may be sent. Returns whether that is all. The driver, which gives its
    /// context, is woken when the socket takes the rest.
    pub(crate) fn write(&mut self, mut cx: Option<&mut Context<'_>>) -> Result<bool> {
        while self.gather() {
            let writer = match &mut self.writer {
                Some(writer) => writer,
                None => break,
            };
            let rest = &self.output.bytes()[self.written..];
            let wrote = match &mut cx {
                Some(cx) => match Pin::new(writer).poll_write(cx, rest) {
                    Poll::Ready(wrote) => wrote,
                    Poll::Pending => return Ok(false),
                },
                None => writer.try_write(rest),
            };
            match wrote {
                Ok(nr) => self.written += nr,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(false),
                // What the server has sent is still there to be read.
                Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                    self.written = self.output.bytes().len();
                }
                Err(e) => return Err(Error::io(&e)),
            }
        }
        Ok(true)
    }

    /// Ends the connection's half that writes, with what was not written.
    pub(crate) fn disconnect(&mut self) {
        self.writer = None;
        self.output.clear();
        self.written = 0;
    }
}

/// One of the parts that keep the connection.
pub(crate) struct Handle(pub(crate) Arc<Shared>);

impl Handle {
    pub(crate) fn new(shared: &Arc<Shared>) -> Handle {
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
