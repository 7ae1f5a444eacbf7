// SPDX-License-Identifier: LGPL-2.1-or-later

//! The agent of the blocking client.

mod words;

use expiry::blocking::Queue;
use expiry::{Error, Record, Result};
use std::io::BufRead;
use std::sync::Arc;
use words::{Drained, Received, Restores, Words};

fn main() {
    let restores = Arc::new(Restores::default());
    let mut queue = None;
    for line in std::io::stdin().lock().lines() {
        let w = Words::parse(&line.expect("a line"));
        let answer = match w.alone("names,restore,many", &restores) {
            Some(answer) => answer,
            None => command(&w, &mut queue, &restores)
                .unwrap_or_else(|why| vec![words::failure(&why)]),
        };
        for line in answer {
            println!("{}", line);
        }
    }
}

fn command(w: &Words, open: &mut Option<Queue>, restores: &Arc<Restores>) -> Result<Vec<String>> {
    let one = |line: String| Ok(vec![line]);
    match w.name.as_str() {
        "open" => {
            let queue = Queue::open(w.text("queue"), w.options(restores))?;
            let line = words::opened(queue.timers(), queue.durable());
            *open = Some(queue);
            return one(line);
        }
        "left" => return one(format!("ok tasks={}", words::threads())),
        "close" => {
            *open = None;
            return one("ok".to_string());
        }
        _ => {}
    }
    let q = match open {
        Some(queue) => queue,
        None => return one("error ENOTCONN".to_string()),
    };
    match w.name.as_str() {
        "batch" => {
            let mut records = w.batch();
            q.submit(&mut records)?;
            one(words::replies(w, &records))
        }
        "receive" => Ok(receive(w, q)),
        "drain" => drain(w, q),
        "scan" => Ok(words::scan(&q.scan(w.number("cursor"), w.number("max") as u32)?)),
        "stat" => one(words::stat(&q.stat()?)),
        "queues" => {
            let (rows, cursor) = q.queues(w.number("cursor"), w.number("max") as u32)?;
            Ok(words::queues(&rows, cursor))
        }
        "drop" => q.drop_queue().map(|()| vec!["ok".to_string()]),
        name => {
            let mut records = [w.record(name)];
            q.submit(&mut records)?;
            one(words::reply(&records[0]))
        }
    }
}

fn receive(w: &Words, q: &mut Queue) -> Vec<String> {
    let end = words::end_of(w);
    let mut got = Received::default();
    let mut due = [Record::default()];
    while got.count < w.number("max") {
        match q.receive(&mut due, Some(words::left(end))) {
            Ok(0) => break,
            Ok(_) => got.add(&due[0]),
            Err(why) => return got.end(Some(&why)),
        }
    }
    got.end(None)
}

fn drain(w: &Words, q: &mut Queue) -> Result<Vec<String>> {
    let end = words::end_of(w);
    let mut done = Drained::default();
    let mut due = vec![Record::default(); 512];
    while done.count < w.number("count") {
        let most = due.len().min((w.number("count") - done.count) as usize);
        let nr = q.receive(&mut due[..most], Some(words::left(end)))?;
        if nr == 0 {
            return Err(Error::TimedOut);
        }
        let mut acks = done.add(&due[..nr], q.now());
        if w.text("ack") == "yes" {
            q.submit(&mut acks)?;
        }
    }
    Ok(vec![done.end()])
}
