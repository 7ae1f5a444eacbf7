// SPDX-License-Identifier: LGPL-2.1-or-later

//! What the agents of the Rust clients share: clients/README.md describes the commands.

use expiry::{flag, op, Clock, Error, Options, QueueRow, Record, Scan, Stat, Timer};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A command of the driver.
pub struct Words {
    pub name: String,
    values: HashMap<String, String>,
}

impl Words {
    pub fn parse(line: &str) -> Words {
        let mut parts = line.split_whitespace();
        let name = parts.next().unwrap_or("").to_string();
        let values = parts
            .filter_map(|part| part.split_once('='))
            .map(|(key, value)| {
                (key.to_string(), if value == "-" { "" } else { value }.to_string())
            })
            .collect();
        Words { name, values }
    }

    pub fn text(&self, key: &str) -> &str {
        self.values.get(key).map_or("", |value| value.as_str())
    }

    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    pub fn number(&self, key: &str) -> u64 {
        match self.text(key) {
            "" => 0,
            text => text.parse().expect("a number"),
        }
    }

    fn lists(&self, key: &str, word: &str) -> bool {
        self.text(key).split(',').any(|one| one == word)
    }

    fn bytes(&self, key: &str) -> Vec<u8> {
        let text = self.text(key);
        (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
    }

    /// Returns the record of a request.
    pub fn record(&self, name: &str) -> Record {
        let mut flags = 0;
        if self.has("ttl") {
            flags |= flag::RELATIVE;
        }
        if self.lists("flags", "new") {
            flags |= flag::NEW;
        }
        if self.lists("flags", "later") {
            flags |= flag::LATER;
        }
        Record {
            op: match name {
                "arm" => op::ARM,
                "refresh" => op::REFRESH,
                "cancel" => op::CANCEL,
                "ack" => op::ACK,
                "query" => op::QUERY,
                "clear" => op::CLEAR,
                _ => panic!("no such request: {}", name),
            },
            flags,
            id: self.number("id"),
            cookie: self.number("cookie"),
            period_ms: self.number("period") as u32,
            deadline: self.number(if self.has("ttl") { "ttl" } else { "at" }),
            status: 0,
        }
    }

    /// Returns the records of a batch.
    pub fn batch(&self) -> Vec<Record> {
        let first = self.record(self.text("op"));
        (0..self.number("count"))
            .map(|i| Record {
                id: if self.has("from") { self.number("from") + i } else { 0 },
                cookie: if self.has("cookie") { first.cookie + i } else { 0 },
                ..first
            })
            .collect()
    }

    pub fn options(&self, restores: &Arc<Restores>) -> Options {
        let mut options = Options::new().socket(self.text("path")).events();
        for (word, choose) in [
            ("consume", Options::consume as fn(Options) -> Options),
            ("ack", Options::ack),
            ("keyed", Options::keyed),
            ("durable", Options::durable),
            ("existing", Options::existing),
            ("observe", Options::observe),
            ("reconnect", Options::reconnect),
        ] {
            if self.lists("flags", word) {
                options = choose(options);
            }
        }
        options = options.clock(match self.text("clock") {
            "monotonic" => Clock::Monotonic,
            "boottime" => Clock::Boottime,
            _ => Clock::Realtime,
        });
        if self.has("credit") {
            options = options.credit(self.number("credit") as u32);
        }
        if self.number("timeout_ms") > 0 {
            options = options.timeout(Duration::from_millis(self.number("timeout_ms")));
        }
        restores.calls.store(0, Ordering::Relaxed);
        restores.timers.store(0, Ordering::Relaxed);
        if self.has("restore") {
            let numbers: Vec<u64> =
                self.text("restore").split(':').map(|part| part.parse().unwrap()).collect();
            let restores = restores.clone();
            options = options.restore(move || {
                restores.calls.fetch_add(1, Ordering::Relaxed);
                let restores = restores.clone();
                let deadline = numbers[2];
                Ok::<_, Error>((numbers[0]..numbers[0] + numbers[1]).map(move |id| {
                    restores.timers.fetch_add(1, Ordering::Relaxed);
                    Timer { id, deadline, cookie: id }
                }))
            });
        }
        options
    }

    /// Carries out what needs no connection.
    pub fn alone(&self, can: &str, restores: &Restores) -> Option<Vec<String>> {
        let answer = match self.name.as_str() {
            "agent" => format!("ok language=rust can={}", can),
            "encode" => {
                let record = Record {
                    op: self.number("op") as u8,
                    flags: self.number("flags") as u8,
                    status: self.text("status").parse().unwrap(),
                    period_ms: self.number("period") as u32,
                    id: self.number("id"),
                    deadline: self.number("deadline"),
                    cookie: self.number("cookie"),
                };
                let hex: Vec<_> = record.to_bytes().iter().map(|b| format!("{:02x}", b)).collect();
                format!("ok hex={}", hex.concat())
            }
            "decode" => {
                let mut bytes = [0; 32];
                bytes.copy_from_slice(&self.bytes("hex"));
                let r = Record::from_bytes(&bytes);
                format!(
                    "ok op={} flags={} status={} period={} id={} deadline={} cookie={}",
                    r.op, r.flags, r.status, r.period_ms, r.id, r.deadline, r.cookie
                )
            }
            "id_of" => match expiry::id_of(&self.bytes("name"), &self.bytes("key")) {
                Ok((id, check)) => format!("ok id={} check={}", id, check),
                Err(why) => failure(&why),
            },
            "restored" => format!(
                "ok calls={} timers={}",
                restores.calls.load(Ordering::Relaxed),
                restores.timers.load(Ordering::Relaxed)
            ),
            _ => return None,
        };
        Some(vec![answer])
    }
}

/// Counts what the restore function did.
#[derive(Default)]
pub struct Restores {
    calls: AtomicU64,
    timers: AtomicU64,
}

fn errno_name(errno: i32) -> String {
    match errno {
        1 => "EPERM",
        2 => "ENOENT",
        5 => "EIO",
        11 => "EAGAIN",
        12 => "ENOMEM",
        13 => "EACCES",
        16 => "EBUSY",
        17 => "EEXIST",
        19 => "ENODEV",
        22 => "EINVAL",
        24 => "EMFILE",
        28 => "ENOSPC",
        71 => "EPROTO",
        93 => "EPROTONOSUPPORT",
        95 => "EOPNOTSUPP",
        104 => "ECONNRESET",
        107 => "ENOTCONN",
        110 => "ETIMEDOUT",
        111 => "ECONNREFUSED",
        116 => "ESTALE",
        122 => "EDQUOT",
        _ => return errno.to_string(),
    }
    .to_string()
}

/// Returns the answer to a command that failed.
pub fn failure(why: &Error) -> String {
    let mut text = match why.errno() {
        Some(errno) => format!("error {}", errno_name(errno)),
        None => "error ESHUTDOWN".to_string(),
    };
    match why {
        Error::Unanswered { answered, in_doubt, not_sent, .. } => {
            text += &format!(" answered={} doubtful={} unsent={}", answered, in_doubt, not_sent)
        }
        Error::Refused { errno: 104, .. } => text += " answered=0 doubtful=1 unsent=0",
        _ => {}
    }
    text
}

/// Returns the answer to one request.
pub fn reply(r: &Record) -> String {
    if r.status != 0 {
        return failure(&Error::Refused { op: r.op, id: r.id, errno: -i32::from(r.status) });
    }
    match r.op {
        op::ARM => format!("ok id={} deadline={}", r.id, r.deadline),
        op::REFRESH => format!("ok deadline={}", r.deadline),
        op::QUERY => {
            format!("ok deadline={} cookie={} period={}", r.deadline, r.cookie, r.period_ms)
        }
        op::CLEAR => format!("ok count={}", r.cookie),
        _ => "ok".to_string(),
    }
}

/// Returns the answer to `open`.
pub fn opened(timers: u64, durable: Option<Duration>) -> String {
    format!(
        "ok timers={} durable={} commit={}",
        timers,
        u8::from(durable.is_some()),
        durable.unwrap_or_default().as_millis()
    )
}

/// Returns the answer to a batch.
pub fn replies(w: &Words, records: &[Record]) -> String {
    let refusals = expiry::check(records);
    let refused: Vec<_> =
        refusals.iter().map(|r| format!("{}:{}", r.index, errno_name(r.errno))).collect();
    let mut text = format!(
        "ok done={} refused={}",
        records.len() - refused.len(),
        if refused.is_empty() { "-".to_string() } else { refused.join(",") }
    );
    if !w.has("from") && records.len() <= 16 {
        let ids: Vec<_> = records.iter().map(|r| r.id.to_string()).collect();
        text += &format!(" ids={}", ids.join(","));
    }
    text
}

pub fn timer(word: &str, r: &Record) -> String {
    format!(
        "{} id={} deadline={} cookie={} period={} redelivered={} late={}",
        word,
        r.id,
        r.deadline,
        r.cookie,
        r.period_ms,
        u8::from(r.is_redelivered()),
        u8::from(r.is_late())
    )
}

pub fn scan(part: &Scan) -> Vec<String> {
    let mut lines: Vec<_> = part.timers.iter().map(|r| timer("timer", r)).collect();
    lines.push(format!("ok cursor={}", part.cursor));
    lines
}

pub fn stat(stat: &Stat) -> String {
    format!(
        "ok now={} next={} armed={} unacked={} limit={} arms={} delivered={} engine={} uptime={}",
        stat.now(),
        stat.next(),
        stat.armed(),
        stat.unacked(),
        stat.limit(),
        stat.arms(),
        stat.delivered(),
        stat.engine(),
        stat.uptime()
    )
}

pub fn queues(rows: &[QueueRow], cursor: u64) -> Vec<String> {
    let mut lines: Vec<_> = rows
        .iter()
        .map(|row| {
            let name = if row.name.is_empty() { "-" } else { &row.name };
            format!(
                "queue name={} armed={} uid={} consumers={}",
                name,
                row.stat.armed(),
                row.uid(),
                row.consumers()
            )
        })
        .collect();
    lines.push(format!("ok cursor={}", cursor));
    lines
}

/// What `receive` has taken.
#[derive(Default)]
pub struct Received {
    pub lines: Vec<String>,
    pub count: u64,
}

impl Received {
    pub fn add(&mut self, r: &Record) {
        self.lines.push(match r.op {
            op::CLOCK_SET => format!("clock_set now={}", r.deadline),
            op::MISSED => format!("missed count={}", r.cookie),
            _ => {
                self.count += 1;
                timer("due", r)
            }
        });
    }

    pub fn end(mut self, why: Option<&Error>) -> Vec<String> {
        match why {
            Some(why) if self.count == 0 => self.lines.push(failure(why)),
            _ => self.lines.push(format!("ok count={}", self.count)),
        }
        self.lines
    }
}

/// What `drain` has taken.
#[derive(Default)]
pub struct Drained {
    pub count: u64,
    sum: u64,
    early: u64,
    unordered: u64,
    redelivered: u64,
    last: u64,
}

impl Drained {
    /// Adds expirations. Returns their acknowledgements.
    pub fn add(&mut self, due: &[Record], now: u64) -> Vec<Record> {
        let mut acks = Vec::new();
        for r in due.iter().filter(|r| r.op == op::EXPIRED) {
            self.count += 1;
            self.sum = self.sum.wrapping_add(r.id);
            self.early += u64::from(r.deadline > now);
            self.unordered += u64::from(r.deadline < self.last);
            self.redelivered += u64::from(r.is_redelivered());
            self.last = r.deadline;
            acks.push(Record { op: op::ACK, id: r.id, ..Record::default() });
        }
        acks
    }

    pub fn end(&self) -> String {
        format!(
            "ok count={} sum={} early={} unordered={} redelivered={}",
            self.count, self.sum, self.early, self.unordered, self.redelivered
        )
    }
}

/// Returns the time that is left.
pub fn left(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now())
}

/// Returns when a command must have ended.
pub fn end_of(w: &Words) -> Instant {
    Instant::now() + Duration::from_millis(w.number("timeout_ms"))
}

/// Returns how many threads there are besides this one. One that ends is given a moment.
pub fn threads() -> usize {
    let count = || std::fs::read_dir("/proc/self/task").map_or(0, |tasks| tasks.count() - 1);
    for _ in 0..1000 {
        if count() == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    count()
}
