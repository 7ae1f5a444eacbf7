// SPDX-License-Identifier: LGPL-2.1-or-later

//! Driver of make bench-clients: the Rust client by orders on standard input, "blocking
//! single", "blocking batch" or "blocking consume". Prints the processor time and the time of an operation,
//! as JSON. The operations are those of client-python.py.

use expiry::{blocking::Queue, check, flag, op, Options, Record, Result};
use std::io::{BufRead, Read, Write};
use std::time::{Duration, Instant};

const BATCH: u64 = 512;
const BATCHES: u64 = 600;
const SINGLES: u64 = 9000;
const CONSUMED: u64 = 200_000;
const TTL: Duration = Duration::from_secs(3600);

fn main() {
    let path = std::env::args().nth(1).expect("usage: client-rust SOCKET");
    let redis = std::env::args().nth(2);
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("standard input");
        let (style, op) = line.split_once(' ').expect("STYLE OP");
        if style == "redis" {
            println!("{}", measure_redis(redis.as_ref().expect("REDIS_SOCKET")));
        } else {
            println!("{}", measure(&path, op).expect("the server"));
        }
    }
}

/// Measures pipelines of 512 ZADD, ZADD, ZREM in turn, without a library of Redis: less
/// than one would cost.
fn measure_redis(path: &str) -> String {
    let mut socket = std::os::unix::net::UnixStream::connect(path).expect("Redis");
    let mut answers = vec![0; 65536];
    let (cpu, begun) = (processor_time(), Instant::now());
    for at in 0..BATCHES / 30 {
        for op in ["ZADD", "ZADD", "ZREM"] {
            let mut out = Vec::new();
            for id in 1 + at * BATCH..=(at + 1) * BATCH {
                let now = std::time::SystemTime::now();
                let since = now.duration_since(std::time::UNIX_EPOCH).expect("after 1970");
                let due = format!("{}", since.as_secs_f64() + 3600.0);
                let id = id.to_string();
                let mut words = vec![op, "due"];
                if op == "ZADD" {
                    words.push(&due);
                }
                words.push(&id);
                write!(out, "*{}\r\n", words.len()).expect("memory");
                for word in words {
                    write!(out, "${}\r\n{}\r\n", word.len(), word).expect("memory");
                }
            }
            socket.write_all(&out).expect("Redis");
            let mut lines = 0;
            while lines < BATCH as usize {
                let nr = socket.read(&mut answers).expect("Redis");
                assert!(nr > 0, "Redis has ended");
                lines += answers[..nr].iter().filter(|&&byte| byte == b'\n').count();
            }
        }
    }
    let ops = BATCHES / 30 * 3 * BATCH;
    format!(
        "{{\"ns\": {:.1}, \"took\": {:.1}, \"p50\": 0}}",
        (processor_time() - cpu) as f64 / ops as f64,
        begun.elapsed().as_nanos() as f64 / ops as f64
    )
}

fn measure(path: &str, op: &str) -> Result<String> {
    let name = format!("bench-rust-{}", op);
    let options = Options::new().socket(path).keyed();
    let consumes = op == "consume";
    let options = if consumes { options.consume().credit(4096) } else { options };
    let mut q = Queue::open(&name, options)?;
    let mut times = Vec::new();
    let ops = match op {
        "single" => SINGLES,
        "consume" => CONSUMED,
        _ => BATCHES * BATCH,
    };
    if consumes {
        prepare(&mut q)?;
    }
    let (cpu, begun) = (processor_time(), Instant::now());
    if op == "single" {
        single(&mut q, &mut times)?;
    } else if consumes {
        for due in q.due().take(CONSUMED as usize) {
            due?;
        }
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

fn prepare(q: &mut Queue) -> Result<()> {
    let arm = Record { op: op::ARM, flags: flag::RELATIVE, ..Record::default() };
    let mut records: Vec<_> = (1..=CONSUMED).map(|id| Record { id, ..arm }).collect();
    q.submit(&mut records)?;
    assert!(check(&records).is_empty());
    Ok(())
}

fn batch(q: &mut Queue) -> Result<()> {
    let deadline = TTL.as_nanos() as u64;
    let relative = |op| Record { op, flags: flag::RELATIVE, deadline, ..Record::default() };
    let models =
        [relative(op::ARM), relative(op::REFRESH), Record { op: op::CANCEL, ..Record::default() }];
    let mut records = [Record::default(); BATCH as usize];
    for at in 0..BATCHES / 3 {
        for model in models {
            records.fill(model);
            for (record, id) in records.iter_mut().zip(1 + at * BATCH..) {
                record.id = id;
            }
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
