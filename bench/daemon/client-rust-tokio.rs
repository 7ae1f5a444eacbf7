// SPDX-License-Identifier: LGPL-2.1-or-later

//! Driver of make bench-clients: the Rust client for tokio, on one thread, by orders on
//! standard input: "tokio single", "tokio batch", "tokio tasks", "tokio consume" or "tokio
//! floor", which is single without the client: tokio's socket and one task. Prints the
//! processor time and the time of an operation, as JSON. The operations are those of
//! client-python.py.

use expiry::tokio::{connect, Client, Due};
use expiry::{check, flag, op, Options, Record, Result};
use std::future::Future;
use std::io::{BufRead, Error};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::UnixStream;

const BATCH: u64 = 512;
const BATCHES: u64 = 600;
const SINGLES: u64 = 9000;
const CONSUMED: u64 = 200_000;
const TASKS: u64 = 100;
const ROUNDS: u64 = 60;
const TTL: Duration = Duration::from_secs(3600);

fn main() {
    let path = std::env::args().nth(1).expect("usage: client-rust-tokio SOCKET");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("standard input");
        let op = line.split(' ').nth(1).expect("STYLE OP");
        // A task, as in most services. Waking block_on's own future costs an eventfd more.
        let task = runtime.spawn(measure(path.clone(), op.to_string()));
        println!("{}", runtime.block_on(task).expect("a task").expect("the server"));
    }
}

async fn measure(path: String, op: String) -> Result<String> {
    if op == "floor" {
        return Ok(floor(&path).await.expect("the server"));
    }
    let options = Options::new().socket(path).keyed();
    let options = if op == "consume" { options.consume().credit(4096) } else { options };
    let (client, due, driver) = connect(&format!("bench-tokio-{}", op), options).await?;
    let driver = tokio::spawn(driver);
    if op == "consume" {
        prepare(&client).await?;
    }
    let mut times = Vec::new();
    let (cpu, begun) = (processor_time(), Instant::now());
    let ops = match op.as_str() {
        "single" => single(&client, &mut times).await?,
        "tasks" => together(&client).await?,
        "consume" => consume(due).await?,
        _ => batch(&client).await?,
    };
    let took = begun.elapsed().as_nanos();
    let cpu = processor_time() - cpu;
    driver.abort();
    Ok(row(cpu, took, ops, times))
}

fn row(cpu: u64, took: u128, ops: u64, mut times: Vec<u128>) -> String {
    times.sort_unstable();
    format!(
        "{{\"ns\": {:.1}, \"took\": {:.1}, \"p50\": {}}}",
        cpu as f64 / ops as f64,
        took as f64 / ops as f64,
        times.get(times.len() / 2).unwrap_or(&0)
    )
}

async fn single(client: &Client, times: &mut Vec<u128>) -> Result<u64> {
    for id in 1..=SINGLES / 3 {
        for op in [op::ARM, op::REFRESH, op::CANCEL] {
            let begun = Instant::now();
            match op {
                op::ARM => client.arm(id, TTL, 0).await?,
                op::REFRESH => assert!(client.refresh(id, TTL).await?),
                _ => assert!(client.cancel(id).await?),
            }
            times.push(begun.elapsed().as_nanos());
        }
    }
    Ok(SINGLES)
}

/// A read of one record, which comes as a whole.
struct Reply<'a>(&'a mut UnixStream);

impl Future for Reply<'_> {
    type Output = std::result::Result<[u8; 32], Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // As the client does: from more room than comes, tokio knows that there is no more.
        let mut room = [0; 64];
        let mut buffer = ReadBuf::new(&mut room);
        match Pin::new(&mut *self.0).poll_read(cx, &mut buffer) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(e)) => Poll::Ready(Err(e)),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(buffer.filled().try_into().expect("a record"))),
        }
    }
}

async fn ask(stream: &mut UnixStream, request: &[u8; 32]) -> std::result::Result<[u8; 32], Error> {
    assert_eq!(stream.try_write(request)?, 32);
    Reply(stream).await
}

async fn floor(path: &str) -> std::result::Result<String, Error> {
    let mut stream = UnixStream::connect(path).await?;
    let mut hello = [0; 32];
    // HELLO of a keyed queue, version 1, REALTIME.
    hello[..3].copy_from_slice(&[64, 8, 1]);
    ask(&mut stream, &hello).await?;
    let mut times = Vec::new();
    let (cpu, begun) = (processor_time(), Instant::now());
    for id in 1..=SINGLES / 3 {
        for model in [relative(op::ARM, TTL), relative(op::REFRESH, TTL), cancel()] {
            let begun = Instant::now();
            let mut request = [0; 32];
            request[..2].copy_from_slice(&[model.op, model.flags]);
            request[8..16].copy_from_slice(&id.to_ne_bytes());
            request[16..24].copy_from_slice(&model.deadline.to_ne_bytes());
            let reply = ask(&mut stream, &request).await?;
            times.push(begun.elapsed().as_nanos());
            assert_eq!((reply[0], &reply[2..4]), (model.op, &[0, 0][..]));
        }
    }
    Ok(row(processor_time() - cpu, begun.elapsed().as_nanos(), SINGLES, times))
}

fn cancel() -> Record {
    Record { op: op::CANCEL, ..Record::default() }
}

fn relative(op: u8, ttl: Duration) -> Record {
    Record { op, flags: flag::RELATIVE, deadline: ttl.as_nanos() as u64, ..Record::default() }
}

async fn batch(client: &Client) -> Result<u64> {
    let models = [
        relative(op::ARM, TTL),
        relative(op::REFRESH, TTL),
        cancel(),
    ];
    for at in 0..BATCHES / 3 {
        for model in models {
            let ids = 1 + at * BATCH..=(at + 1) * BATCH;
            send(client, ids.map(|id| Record { id, ..model }).collect()).await?;
        }
    }
    Ok(BATCHES * BATCH)
}

async fn together(client: &Client) -> Result<u64> {
    let tasks: Vec<_> = (1..=TASKS)
        .map(|id| {
            let client = client.clone();
            tokio::spawn(async move {
                for _ in 0..ROUNDS {
                    client.arm(id, TTL, 0).await?;
                }
                Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task")?;
    }
    Ok(TASKS * ROUNDS)
}

async fn prepare(client: &Client) -> Result<()> {
    let arm = relative(op::ARM, Duration::ZERO);
    send(client, (1..=CONSUMED).map(|id| Record { id, ..arm }).collect()).await
}

async fn consume(mut due: Due) -> Result<u64> {
    for _ in 0..CONSUMED {
        due.next().await.expect("an expiration")?;
    }
    Ok(CONSUMED)
}

async fn send(client: &Client, records: Vec<Record>) -> Result<()> {
    let (answers, result) = client.submit(records).await;
    result?;
    assert!(check(&answers).is_empty());
    Ok(())
}

/// Returns the nanoseconds that the one thread of this program has run.
fn processor_time() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("a number")
}
