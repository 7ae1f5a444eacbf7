// SPDX-License-Identifier: LGPL-2.1-or-later

//! Connecting within a limit.

use std::io;
use std::mem;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// An attempt to connect, in a thread of its own. std has no limit for it, and it waits while
/// the server's backlog is full. An attempt that is dropped goes on until the server takes
/// connections, or is gone. The next one to the same socket continues it: however often a
/// server that hangs is tried, it costs one thread.
pub(crate) struct Dial {
    attempt: Arc<Attempt>,
    /// `None` once it was waited for.
    thread: Option<JoinHandle<()>>,
}

struct Attempt {
    socket: Socket,
    state: Mutex<State>,
    ended: Condvar,
}

/// A socket's file, of which another one may be made at its path.
#[derive(PartialEq)]
struct Socket {
    path: PathBuf,
    device_and_inode: Option<(u64, u64)>,
}

enum State {
    Connecting,
    /// It is still connecting, and its connection is not wanted.
    Dropped,
    Ended(io::Result<UnixStream>),
    /// What it came to was taken, or was not wanted.
    Gone,
}

/// Attempts that nobody waits for.
static DROPPED: Mutex<Vec<(Arc<Attempt>, JoinHandle<()>)>> = Mutex::new(Vec::new());

impl Dial {
    pub(crate) fn begin(path: PathBuf) -> io::Result<Dial> {
        let socket = Socket::at(path);
        if let Some(dial) = Dial::dropped(&socket) {
            return Ok(dial);
        }
        let (state, ended) = (Mutex::new(State::Connecting), Condvar::new());
        let attempt = Arc::new(Attempt { socket, state, ended });
        let connecting = attempt.clone();
        let connect = move || connecting.end(UnixStream::connect(&connecting.socket.path));
        let thread = thread::Builder::new().name("expiry-connect".into()).spawn(connect)?;
        Ok(Dial { attempt, thread: Some(thread) })
    }

    /// Returns an attempt that goes on and is not wanted so far.
    fn dropped(socket: &Socket) -> Option<Dial> {
        let mut dropped = lock(&DROPPED);
        let at = dropped
            .iter()
            .position(|(attempt, _)| attempt.socket == *socket && attempt.go_on())?;
        let (attempt, thread) = dropped.swap_remove(at);
        Some(Dial { attempt, thread: Some(thread) })
    }

    /// Returns the connection, or why there is none. If neither is known within that time
    /// it returns the attempt, which goes on.
    pub(crate) fn wait(mut self, limit: Duration) -> Result<io::Result<UnixStream>, Dial> {
        match self.attempt.wait(limit) {
            State::Ended(connected) => {
                // It ends now: a caller that counts its threads finds none.
                let _ = self.thread.take().map(JoinHandle::join);
                Ok(connected)
            }
            _ => Err(self),
        }
    }
}

impl Drop for Dial {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let mut dropped = lock(&DROPPED);
            dropped.retain(|(attempt, _)| matches!(*lock(&attempt.state), State::Dropped));
            let mut state = lock(&self.attempt.state);
            if let State::Connecting = *state {
                *state = State::Dropped;
                dropped.push((self.attempt.clone(), thread));
            }
        }
    }
}

impl Attempt {
    /// Has its connection wanted again. Returns whether it is connecting still.
    fn go_on(&self) -> bool {
        let mut state = lock(&self.state);
        let is_connecting = matches!(*state, State::Dropped);
        if is_connecting {
            *state = State::Connecting;
        }
        is_connecting
    }

    fn end(&self, connected: io::Result<UnixStream>) {
        let mut state = lock(&self.state);
        *state = match *state {
            State::Connecting => State::Ended(connected),
            _ => State::Gone,
        };
        self.ended.notify_one();
    }

    /// Returns what it has come to, or that it is connecting when the time is up.
    fn wait(&self, limit: Duration) -> State {
        let state = lock(&self.state);
        let is_connecting = |state: &mut State| matches!(state, State::Connecting);
        let waited = self.ended.wait_timeout_while(state, limit, is_connecting);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let State::Connecting = *state {
            return State::Connecting;
        }
        mem::replace(&mut *state, State::Gone)
    }
}

impl Socket {
    fn at(path: PathBuf) -> Socket {
        let device_and_inode = path.metadata().ok().map(|file| (file.dev(), file.ino()));
        Socket { path, device_and_inode }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
