// SPDX-License-Identifier: LGPL-2.1-or-later

//! Bytes of a connection, as whole records.

use crate::record::{Record, SIZE};

const BYTES: usize = 1 << 16;

/// What was received and not taken.
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    from: usize,
    to: usize,
}

impl Buffer {
    pub(crate) fn new() -> Buffer {
        Buffer { bytes: vec![0; BYTES].into_boxed_slice(), from: 0, to: 0 }
    }

    /// Forgets everything: another connection begins.
    pub(crate) fn clear(&mut self) {
        self.from = 0;
        self.to = 0;
    }

    /// Returns how many whole records there are.
    pub(crate) fn len(&self) -> usize {
        (self.to - self.from) / SIZE
    }

    /// Returns the whole records.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.bytes[self.from..self.to].chunks_exact(SIZE).map(decode)
    }

    /// Returns the first record.
    pub(crate) fn first(&self) -> Option<Record> {
        self.records().next()
    }

    /// Takes records.
    pub(crate) fn skip(&mut self, nr: usize) {
        self.from += nr * SIZE;
    }

    /// Takes the replies to these requests, into their places, as far as they have come
    /// without an event between. Returns how many. No request has the op of an event.
    pub(crate) fn take_replies(&mut self, requests: &mut [Record]) -> usize {
        let pairs = self.records().zip(requests.iter());
        let taken = pairs.take_while(|(reply, request)| reply.is_reply_to(request)).count();
        // By itself, apart from the comparison, this is a copy of bytes.
        for (reply, request) in self.records().zip(&mut requests[..taken]) {
            *request = reply;
        }
        self.skip(taken);
        taken
    }

    /// Returns room for more bytes, at least for a record.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.from > 0 {
            self.bytes.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        &mut self.bytes[self.to..]
    }

    /// Adds bytes that were written to the room.
    pub(crate) fn add(&mut self, nr: usize) {
        self.to += nr;
    }
}

fn decode(chunk: &[u8]) -> Record {
    let mut bytes = [0; SIZE];
    bytes.copy_from_slice(chunk);
    Record::from_bytes(&bytes)
}

/// What is to be sent.
#[derive(Default)]
pub(crate) struct Output {
    /// Only the first `len` are to be sent. The rest is kept, so that no byte is written twice.
    bytes: Vec<u8>,
    len: usize,
}

impl Output {
    /// Returns room for so many bytes more, which count as added.
    fn extend(&mut self, more: usize) -> &mut [u8] {
        let begun = self.len;
        self.len += more;
        if self.bytes.len() < self.len {
            self.bytes.resize(self.len, 0);
        }
        &mut self.bytes[begun..self.len]
    }

    pub(crate) fn add(&mut self, records: &[Record]) {
        let bytes = self.extend(records.len() * SIZE);
        for (bytes, record) in bytes.chunks_exact_mut(SIZE).zip(records) {
            bytes.copy_from_slice(&record.to_bytes());
        }
    }

    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) {
        self.extend(bytes.len()).copy_from_slice(bytes);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }
}
