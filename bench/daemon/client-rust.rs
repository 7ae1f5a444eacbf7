// SPDX-License-Identifier: LGPL-2.1-or-later

//! Driver of make bench-clients: the Rust client by orders on standard input, "blocking
//! single" or "blocking batch". Prints the processor time and the time of an operation,
//! as JSON. The operations are those of client-python.py.

use expiry::{blocking::Queue, check, flag, op, Options, Record, Result};
use std::io::BufRead;
use std::time::{Duration, Instant};

const BATCH: u64 = 512;
const BATCHES: u64 = 600;
const SINGLES: u64 = 9000;
const TTL: Duration = Duration::from_secs(3600);

fn main() {
    let path = std::env::args().nth(1).expect("usage: client-rust SOCKET");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("standard input");
        let op = line.split(' ').nth(1).expect("STYLE OP");
        println!("{}", measure(&path, op).expect("the server"));
    }
}

fn measure(path: &str, op: &str) -> Result<String> {
    let name = format!("bench-rust-{}", op);
    let mut q = Queue::open(&name, Options::new().socket(path).keyed())?;
    let mut times = Vec::new();
    let ops = if op == "single" { SINGLES } else { BATCHES * BATCH };
    let (cpu, begun) = (processor_time(), Instant::now());
    if op == "single" {
        single(&mut q, &mut times)?;
    } else {
        batch(&mut q)?;
    }
    let took = begun.elapsed().as_nanos();
    let cpu = processor_time() - cpu;
    times.sort_unstable();
    Ok(format!(
        "{{\"ns\": {:.1}, \"took\": {:.1}, \"p50\": {}}}",
        cpu as f64 / ops as f64,
        took as f64 / ops as f64,
        times.get(times.len() / 2).unwrap_or(&0)
    ))
}

fn single(q: &mut Queue, times: &mut Vec<u128>) -> Result<()> {
    for id in 1..=SINGLES / 3 {
        for op in [op::ARM, op::REFRESH, op::CANCEL] {
            let begun = Instant::now();
            match op {
                op::ARM => q.arm(id, TTL, 0)?,
                op::REFRESH => assert!(q.refresh(id, TTL)?),
                _ => assert!(q.cancel(id)?),
            }
            times.push(begun.elapsed().as_nanos());
        }
    }
    Ok(())
}

fn batch(q: &mut Queue) -> Result<()> {
    let deadline = TTL.as_nanos() as u64;
    let relative = |op| Record { op, flags: flag::RELATIVE, deadline, ..Record::default() };
    let models =
        [relative(op::ARM), relative(op::REFRESH), Record { op: op::CANCEL, ..Record::default() }];
    let mut records = Vec::with_capacity(BATCH as usize);
    for at in 0..BATCHES / 3 {
        for model in models {
            records.clear();
            records.extend((0..BATCH).map(|i| Record { id: 1 + at * BATCH + i, ..model }));
            q.submit(&mut records)?;
            assert!(check(&records).is_empty());
        }
    }
    Ok(())
}

/// Returns the nanoseconds that the one thread of this program has run.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}
