// SPDX-License-Identifier: LGPL-2.1-or-later

//! What clients, stream and driver share.

use crate::buffer::{Buffer, Output};
use crate::error::{Error, Result};
use crate::inbox::Inbox;
use crate::options::Options;
use crate::row::Row;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::{Duration, Instant};

/// Records that are written at a time.
const CHUNK: usize = 2048;

/// What the three parts share.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) options: Options,
    state: Mutex<State>,
}

pub(crate) struct State {
    pub(crate) row: Row,
    pub(crate) inbox: Inbox,
    pub(crate) window: usize,
    /// Requests that are sent again before credit is given.
    pub(crate) doubt: usize,
    pub(crate) broken: Option<Error>,
    /// Since when the server owes an answer and is silent.
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
            row: Row::new(options.reconnect),
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
        self.silent = if self.row.is_empty() { None } else { Some(Instant::now()) };
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

    /// Adds requests to what is to be written, and credit behind those in doubt.
    pub(crate) fn gather(&mut self, output: &mut Output) {
        let nr = self.row.gather(output, CHUNK, self.window);
        self.doubt = self.doubt.saturating_sub(nr);
        if self.doubt == 0 {
            if let Some(credit) = self.inbox.take_credit() {
                output.add(&[credit]);
            }
        }
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
