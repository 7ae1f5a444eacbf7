// SPDX-License-Identifier: LGPL-2.1-or-later

//! Connecting within a limit.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// An attempt to connect, in a thread of its own. std has no limit for it, and it waits while
/// the server's backlog is full. The thread of an attempt that is dropped ends with it: once
/// the server takes connections, or is gone.
pub(crate) struct Dial {
    connected: mpsc::Receiver<io::Result<UnixStream>>,
    thread: JoinHandle<()>,
}

impl Dial {
    pub(crate) fn begin(path: PathBuf) -> io::Result<Dial> {
        let (sender, connected) = mpsc::channel();
        let connect = move || drop(sender.send(UnixStream::connect(path)));
        let thread = thread::Builder::new().name("expiry-connect".into()).spawn(connect)?;
        Ok(Dial { connected, thread })
    }

    /// Returns the connection, or why there is none. If neither is known within that time
    /// it returns the attempt, which goes on.
    pub(crate) fn wait(self, limit: Duration) -> Result<io::Result<UnixStream>, Dial> {
        let connected = match self.connected.recv_timeout(limit) {
            Err(RecvTimeoutError::Timeout) => return Err(self),
            Err(RecvTimeoutError::Disconnected) => Err(io::ErrorKind::Other.into()),
            Ok(connected) => connected,
        };
        // It ends now: a caller that counts its threads finds none.
        let _ = self.thread.join();
        Ok(connected)
    }
}
