// SPDX-License-Identifier: LGPL-2.1-or-later

//! The agent of the client for tokio.

mod words;

use expiry::tokio::{connect, Client, Due};
use expiry::{Error, Result};
use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use words::{Drained, Received, Restores, Words};

/// An open connection. One task at a time takes expirations.
struct Open {
    client: Client,
    due: Arc<tokio::sync::Mutex<Due>>,
    driver: JoinHandle<Result<()>>,
    timeout: u64,
}

fn main() {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let restores = Arc::new(Restores::default());
    let mut open = None;
    let mut started: HashMap<String, JoinHandle<Vec<String>>> = HashMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line.expect("a line");
        let w = Words::parse(&line);
        let mut parts = line.splitn(3, ' ').skip(1);
        let tag = parts.next().unwrap_or("").to_string();
        let answer = match w.name.as_str() {
            "start" => {
                let task = ask(Words::parse(parts.next().unwrap_or("")), &open);
                started.insert(tag, runtime.spawn(task));
                // Until it waits for its answer.
                runtime.block_on(async {
                    for _ in 0..4 {
                        tokio::task::yield_now().await;
                    }
                });
                vec!["ok".to_string()]
            }
            "abandon" => {
                started[&tag].abort();
                vec!["ok".to_string()]
            }
            "wait" => match started.remove(&tag).map(|task| runtime.block_on(task)) {
                Some(Ok(answer)) => answer,
                _ => vec!["error ECANCELED".to_string()],
            },
            _ => w
                .alone("names,restore,start,abandon,many", &restores)
                .or_else(|| alone(&w, &runtime, &mut open, &restores))
                .unwrap_or_else(|| runtime.block_on(ask(w, &open))),
        };
        for line in answer {
            println!("{}", line);
        }
    }
}

/// Carries out what opens and closes.
fn alone(
    w: &Words,
    runtime: &Runtime,
    open: &mut Option<Open>,
    restores: &Arc<Restores>,
) -> Option<Vec<String>> {
    let answer = match w.name.as_str() {
        "open" => {
            let options = w.options(restores);
            match runtime.block_on(connect(w.text("queue"), options)) {
                Err(why) => words::failure(&why),
                Ok((client, due, driver)) => {
                    let line = words::opened(client.timers(), client.durable());
                    *open = Some(Open {
                        client,
                        due: Arc::new(tokio::sync::Mutex::new(due)),
                        driver: runtime.spawn(driver),
                        timeout: w.number("timeout_ms"),
                    });
                    line
                }
            }
        }
        "close" => {
            if let Some(open) = open.take() {
                open.client.close();
                let _ = runtime.block_on(open.driver);
            }
            "ok".to_string()
        }
        "left" => format!("ok tasks={}", words::threads()),
        _ => return None,
    };
    Some(vec![answer])
}

/// Carries out a command on the connection, which the future shares.
fn ask(w: Words, open: &Option<Open>) -> impl std::future::Future<Output = Vec<String>> {
    let parts = open.as_ref().map(|open| (open.client.clone(), open.due.clone(), open.timeout));
    async move {
        let (client, due, timeout) = match parts {
            Some(parts) => parts,
            None => return vec!["error ENOTCONN".to_string()],
        };
        let answer = match w.name.as_str() {
            "receive" => return receive(&w, &due).await,
            "drain" => drain(&w, &client, &due).await,
            // The driver ends a call of a silent server. While it connects, calls wait.
            _ if timeout > 0 => {
                let limit = Duration::from_millis(2 * timeout);
                let call = tokio::time::timeout(limit, command(&w, &client)).await;
                call.unwrap_or(Err(Error::TimedOut))
            }
            _ => command(&w, &client).await,
        };
        answer.unwrap_or_else(|why| vec![words::failure(&why)])
    }
}

async fn command(w: &Words, client: &Client) -> Result<Vec<String>> {
    let max = w.number("max") as u32;
    Ok(match w.name.as_str() {
        "batch" => {
            let (records, ended) = client.submit(w.batch()).await;
            ended?;
            vec![words::replies(w, &records)]
        }
        "scan" => words::scan(&client.scan(w.number("cursor"), max).await?),
        "stat" => vec![words::stat(&client.stat().await?)],
        "queues" => {
            let (rows, cursor) = client.queues(w.number("cursor"), max).await?;
            words::queues(&rows, cursor)
        }
        "drop" => {
            client.drop_queue().await?;
            vec!["ok".to_string()]
        }
        name => vec![words::reply(&client.request(w.record(name)).await?)],
    })
}

async fn receive(w: &Words, due: &tokio::sync::Mutex<Due>) -> Vec<String> {
    let end = words::end_of(w);
    let mut due = due.lock().await;
    let mut got = Received::default();
    while got.count < w.number("max") {
        match tokio::time::timeout(words::left(end), due.next()).await {
            Err(_) => break,
            Ok(Some(Ok(record))) => got.add(&record),
            Ok(Some(Err(why))) => return got.end(Some(&why)),
            Ok(None) => return got.end(Some(&Error::Closed)),
        }
    }
    got.end(None)
}

async fn drain(
    w: &Words,
    client: &Client,
    due: &tokio::sync::Mutex<Due>,
) -> Result<Vec<String>> {
    let end = words::end_of(w);
    let mut due = due.lock().await;
    let mut done = Drained::default();
    let mut batch = Vec::new();
    while done.count < w.number("count") {
        let next = tokio::time::timeout(words::left(end), due.next()).await;
        batch.push(next.map_err(|_| Error::TimedOut)?.ok_or(Error::Closed)??);
        let left = w.number("count") - done.count;
        if batch.len() < 512 && (batch.len() as u64) < left {
            continue;
        }
        let acks = done.add(&batch, client.now());
        batch.clear();
        if w.text("ack") == "yes" {
            client.submit(acks).await.1?;
        }
    }
    Ok(vec![done.end()])
}
