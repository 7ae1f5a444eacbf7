// SPDX-License-Identifier: LGPL-2.1-or-later

//! Connecting within a limit.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// An attempt to connect, in a thread of its own. std has no limit for it, and it waits while
/// the server's backlog is full. The thread of an attempt that is dropped ends with it: once
/// the server takes connections, or is gone.
pub(crate) struct Dial {
    connected: mpsc::Receiver<io::Result<UnixStream>>,
    /// When the attempt began, or was given up and continued.
    pub(crate) begun: Instant,
}

impl Dial {
    pub(crate) fn begin(path: PathBuf) -> io::Result<Dial> {
        let (sender, connected) = mpsc::channel();
        let connect = move || drop(sender.send(UnixStream::connect(path)));
        thread::Builder::new().name("expiry-connect".into()).spawn(connect)?;
        Ok(Dial { connected, begun: Instant::now() })
    }

    /// Returns the connection, or why there is none; `None`: not within that time.
    pub(crate) fn wait(&self, limit: Duration) -> Option<io::Result<UnixStream>> {
        match self.connected.recv_timeout(limit) {
            Ok(connected) => Some(connected),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(io::ErrorKind::Other.into())),
        }
    }
}
