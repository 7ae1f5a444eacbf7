// SPDX-License-Identifier: LGPL-2.1-or-later

//! A server that a test plays.

// No test uses all of it.
#![allow(dead_code)]

use expiry::{errno, op, Record};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A folder that the test removes.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("expiry-rust-{}-{}", std::process::id(), number);
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Folder(path)
    }

    pub fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    pub fn listen(&self) -> UnixListener {
        UnixListener::bind(self.socket()).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Takes a connection. Reads that wait in vain fail.
pub fn accept(listener: &UnixListener) -> UnixStream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream
}

/// Reads records of a client.
pub fn get(stream: &mut UnixStream, nr: usize) -> Vec<Record> {
    let mut bytes = vec![0; 32 * nr];
    stream.read_exact(&mut bytes).unwrap();
    bytes
        .chunks_exact(32)
        .map(|chunk| {
            let mut one = [0; 32];
            one.copy_from_slice(chunk);
            Record::from_bytes(&one)
        })
        .collect()
}

pub fn put(stream: &mut UnixStream, records: &[Record]) {
    for record in records {
        stream.write_all(&record.to_bytes()).unwrap();
    }
}

/// Answers the HELLO of a first connection.
pub fn greet(stream: &mut UnixStream) {
    get(stream, 1);
    put(stream, &[Record { op: op::HELLO, cookie: 4096, ..Record::default() }]);
}

/// Answers a first HELLO: the queue is empty. Then it refuses all of three timers once.
pub fn refuse_once(stream: &mut UnixStream) {
    greet(stream);
    let mut requests = get(stream, 3);
    requests.iter_mut().for_each(|request| request.status = -(errno::EBUSY as i16));
    put(stream, &requests);
    let requests = get(stream, 3);
    put(stream, &requests);
}

/// The queue's clock when HELLO is answered.
pub const NOW: u64 = 1 << 50;

/// Answers the HELLO and the STAT of a later connection.
pub fn greet_again(stream: &mut UnixStream) {
    get(stream, 2);
    let hello = Record { op: op::HELLO, deadline: NOW, cookie: 4096, ..Record::default() };
    let stat = Record { op: op::STAT, period_ms: 16, ..Record::default() };
    put(stream, &[hello, stat]);
    put(stream, &[Record::default(); 16]);
}
