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

/// Adds records to bytes that are to be sent.
pub(crate) fn encode(to: &mut Vec<u8>, records: &[Record]) {
    to.reserve(records.len() * SIZE);
    for record in records {
        to.extend_from_slice(&record.to_bytes());
    }
}
