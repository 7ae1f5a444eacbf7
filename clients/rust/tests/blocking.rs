// SPDX-License-Identifier: LGPL-2.1-or-later

//! The blocking client against a daemon: `$EXPIRYD`. Without it nothing is tested.

use expiry::blocking::Queue;
use expiry::{errno, flag, op, Arm, Clock, Error, Options, Record, Timer};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{mpsc, Arc};
use std::thread;
use std::time::{Duration, Instant};
use support::{accept, get, greet, greet_again, put, refuse_once, Folder, NOW};

mod support;

const SOON: Option<Duration> = Some(Duration::from_secs(20));

/// A daemon of the test's own.
struct Daemon {
    folder: Folder,
    process: Child,
}

fn start(socket: &Path) -> Child {
    let program = std::env::var_os("EXPIRYD").expect("EXPIRYD");
    let process = Command::new(program)
        .args(["--engine", "embedded", "--socket"])
        .arg(socket)
        .spawn()
        .unwrap();
    let end = Instant::now() + SOON.unwrap();
    while UnixStream::connect(socket).is_err() {
        assert!(Instant::now() < end, "the daemon does not start");
        thread::sleep(Duration::from_millis(1));
    }
    process
}

impl Daemon {
    fn new() -> Option<Daemon> {
        std::env::var_os("EXPIRYD")?;
        let folder = Folder::new();
        let process = start(&folder.socket());
        Some(Daemon { folder, process })
    }

    fn open(&self, name: &str, options: Options) -> Queue {
        Queue::open(name, options.socket(self.folder.socket())).unwrap()
    }

    fn restart(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.process = start(&self.folder.socket());
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn timers_expire_in_order_on_each_clock() {
    let daemon = match Daemon::new() {
        Some(daemon) => daemon,
        None => return,
    };
    for clock in [Clock::Realtime, Clock::Monotonic, Clock::Boottime] {
        let mut q = daemon.open("", Options::new().keyed().consume().clock(clock));
        // The far one first: the nearer one must move the alarm.
        q.arm(1, Duration::from_secs(3600), 10).unwrap();
        // Together, so that both count from the same moment.
        let arm = |id, deadline| Record {
            op: op::ARM,
            flags: flag::RELATIVE,
            id,
            deadline,
            cookie: 10 * id,
            ..Record::default()
        };
        q.submit(&mut [arm(2, 40_000_000), arm(3, 20_000_000)]).unwrap();
        for id in [3, 2] {
            let mut due = [Record::default()];
            assert_eq!(q.receive(&mut due, SOON), Ok(1));
            assert_eq!((due[0].id, due[0].cookie), (id, 10 * id));
            assert!(q.now() >= due[0].deadline);
        }
        let begun = Instant::now();
        let pause = Duration::from_millis(30);
        assert_eq!(q.receive(&mut [Record::default()], Some(pause)), Ok(0));
        assert!(begun.elapsed() >= pause);
        assert_eq!(q.cancel(1), Ok(true));
        assert_eq!(q.cancel(1), Ok(false));
    }
}

#[test]
fn requests_of_each_kind() {
    let daemon = match Daemon::new() {
        Some(daemon) => daemon,
        None => return,
    };
    let mut q = daemon.open("kinds", Options::new().keyed());
    let deadline = expiry::at(std::time::SystemTime::now() + Duration::from_secs(3600)).unwrap();
    q.arm_with(Arm::at(1, deadline).every_ms(250)).unwrap();
    let timer = q.query(1).unwrap().unwrap();
    assert_eq!((timer.deadline, timer.period_ms), (deadline, 250));
    let refused = q.arm_with(Arm::after(1, Duration::ZERO).new_only()).unwrap_err();
    assert_eq!(refused, Error::Refused { op: op::ARM, id: 1, errno: errno::EEXIST });
    assert_eq!(q.refresh(2, Duration::ZERO), Ok(false));
    let mut records: Vec<_> =
        [5, 0, 6].iter().map(|id| Arm::at(*id, expiry::NEVER).record()).collect();
    q.submit(&mut records).unwrap();
    let refusals = expiry::check(&records);
    assert_eq!((refusals.len(), refusals[0].index, refusals[0].errno), (1, 1, errno::EINVAL));
    assert_eq!(q.scan(0, 100).unwrap().timers.len(), 3);
    assert_eq!(q.stat().unwrap().armed(), 3);
    let (rows, _) = q.queues(0, 100).unwrap();
    assert_eq!((rows[0].name.as_str(), rows[0].stat.armed()), ("kinds", 3));
    assert_eq!(q.clear(), Ok(3));
    q.drop_queue().unwrap();
    let mut plain = daemon.open("", Options::new());
    assert!(plain.arm_with(Arm::after(0, Duration::from_secs(60))).unwrap().0 > 0);
}

#[test]
fn a_batch_larger_than_the_window() {
    let daemon = match Daemon::new() {
        Some(daemon) => daemon,
        None => return,
    };
    let mut q = daemon.open("", Options::new().keyed().consume().credit(64).window(100));
    let mut records: Vec<_> =
        (1..=5000).map(|id| Arm::after(id, Duration::ZERO).cookie(!id).record()).collect();
    q.submit(&mut records).unwrap();
    assert!(expiry::check(&records).is_empty());
    let mut seen = 0;
    for due in q.due().take(5000) {
        let due = due.unwrap();
        assert_eq!(due.cookie, !due.id);
        seen += due.id;
    }
    assert_eq!(seen, 5000 * 5001 / 2);
}

#[test]
fn a_lost_queue_is_an_error_or_is_restored() {
    let mut daemon = match Daemon::new() {
        Some(daemon) => daemon,
        None => return,
    };
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let restore = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Error>((1..=2000).map(|id| Timer { id, deadline: 0, cookie: !id }))
    };
    let mut lost = daemon.open("lost", Options::new().keyed().reconnect());
    let mut q = daemon
        .open("restored", Options::new().keyed().ack().consume().reconnect().restore(restore));
    for life in 1..=2 {
        let sum: u64 = q.due().take(2000).map(|due| due.unwrap().id).sum();
        assert_eq!(sum, 2000 * 2001 / 2);
        assert_eq!(calls.load(Ordering::Relaxed), life);
        daemon.restart();
        q.arm(5000, Duration::from_secs(3600), 0).unwrap();
    }
    let why = lost.arm(1, Duration::ZERO, 0).unwrap_err();
    assert_eq!(why.errno(), Some(errno::ESTALE));
}

/// What was sent and is not idempotent is reported. The rest is sent again, in order, and
/// credit follows.
#[test]
fn what_is_sent_again() {
    let folder = Folder::new();
    let listener = folder.listen();
    let server = thread::spawn(move || {
        let mut first = accept(&listener);
        greet(&mut first);
        get(&mut first, 5);
        drop(first);
        let mut second = accept(&listener);
        greet_again(&mut second);
        let requests = get(&mut second, 3);
        put(&mut second, &requests[..2]);
        requests
    });
    let options = Options::new().keyed().ack().consume().reconnect().socket(folder.socket());
    let mut q = Queue::open("q", options).unwrap();
    let hour = 3_600_000_000_000;
    let mut records = [
        Record { op: op::ARM, id: 1, ..Record::default() },
        Record { op: op::ARM, id: 2, flags: flag::NEW, ..Record::default() },
        Record { op: op::ARM, id: 3, flags: flag::RELATIVE, deadline: hour, ..Record::default() },
        Record { op: op::CANCEL, id: 4, ..Record::default() },
    ];
    q.submit(&mut records).unwrap();
    let reset = -(errno::ECONNRESET as i16);
    let statuses: Vec<_> = records.iter().map(|r| r.status).collect();
    assert_eq!(statuses, [reset, reset, 0, 0]);
    let sent = server.join().unwrap();
    assert_eq!((sent[0].id, sent[0].flags), (3, 0));
    let late = NOW + hour - sent[0].deadline;
    assert!(late < 60_000_000_000, "{}", late);
    assert_eq!((sent[1].op, sent[2].op), (op::CANCEL, op::CREDIT));
}

#[test]
fn a_silent_server_ends_the_call_and_says_how_far() {
    let folder = Folder::new();
    let listener = folder.listen();
    let server = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        get(&mut client, 1);
        put(&mut client, &[Record { op: op::HELLO, cookie: 2, ..Record::default() }]);
        let request = get(&mut client, 1);
        put(&mut client, &request);
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
    });
    let options =
        Options::new().keyed().timeout(Duration::from_millis(100)).socket(folder.socket());
    let mut q = Queue::open("", options).unwrap();
    let mut records = [Record { op: op::CANCEL, id: 1, ..Record::default() }; 4];
    match q.submit(&mut records) {
        Err(Error::Unanswered { answered: 1, in_doubt: 2, not_sent: 1, why }) => {
            assert_eq!(*why, Error::TimedOut)
        }
        other => panic!("{:?}", other),
    }
    drop(q);
    server.join().unwrap();
}

#[test]
fn a_busy_server_is_restored_later() {
    let folder = Folder::new();
    let listener = folder.listen();
    let server = thread::spawn(move || refuse_once(&mut accept(&listener)));
    let restore = || Ok::<_, Error>((1..=3).map(|id| Timer { id, deadline: 0, cookie: id }));
    let options = Options::new().keyed().restore(restore).socket(folder.socket());
    let begun = Instant::now();
    Queue::open("q", options).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(10));
    server.join().unwrap();
}

/// The server is silent before it answers HELLO, and before it answers restore. What was
/// begun is continued by the next call.
#[test]
fn receive_ends_in_time_while_it_reconnects() {
    let folder = Folder::new();
    let listener = folder.listen();
    let (release, released) = mpsc::channel();
    let server = thread::spawn(move || {
        let wait = || released.recv_timeout(Duration::from_secs(4));
        let mut first = accept(&listener);
        greet(&mut first);
        let arm = get(&mut first, 1);
        put(&mut first, &arm);
        drop(first);
        let mut second = accept(&listener);
        let _ = wait();
        greet_again(&mut second);
        let arm = get(&mut second, 1);
        let _ = wait();
        put(&mut second, &arm);
        assert_eq!(get(&mut second, 1)[0].op, op::CREDIT);
        put(&mut second, &[Record { op: op::EXPIRED, id: 7, ..Record::default() }]);
        let _ = second.read(&mut [0]);
    });
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let restore = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Error>([Timer { id: 7, deadline: expiry::NEVER, cookie: 0 }])
    };
    let options = Options::new().keyed().ack().consume().reconnect().restore(restore);
    let mut q = Queue::open("q", options.socket(folder.socket())).unwrap();
    let mut due = [Record::default()];
    for _ in 0..2 {
        for limit in [0, 100, 100] {
            let limit = Duration::from_millis(limit);
            let begun = Instant::now();
            assert_eq!(q.receive(&mut due, Some(limit)), Ok(0));
            let took = begun.elapsed();
            assert!(took >= limit && took < Duration::from_secs(2), "{:?}", took);
        }
        release.send(()).unwrap();
    }
    assert_eq!((q.receive(&mut due, SOON), due[0].id), (Ok(1), 7));
    assert_eq!((q.reconnects(), calls.load(Ordering::Relaxed)), (1, 2));
    drop(q);
    server.join().unwrap();
}

/// Returns the error by which a server ends a batch of four. It reads so many requests and
/// sends these bytes, step by step. Then it hangs, or ends the connection.
fn fault_of(steps: Vec<(usize, Vec<u8>)>, hangs: bool) -> Error {
    let folder = Folder::new();
    let listener = folder.listen();
    let server = thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        for (requests, answer) in steps {
            get(&mut client, requests);
            client.write_all(&answer).unwrap();
        }
        if hangs {
            let _ = client.read(&mut [0]);
        }
    });
    let options =
        Options::new().keyed().timeout(Duration::from_millis(300)).socket(folder.socket());
    let mut records: Vec<Record> =
        (1..=4).map(|id| Record { op: op::CANCEL, id, ..Record::default() }).collect();
    let ended = Queue::open("", options).and_then(|mut q| q.submit(&mut records));
    server.join().unwrap();
    ended.unwrap_err()
}

fn hello(status: i16) -> Vec<u8> {
    Record { op: op::HELLO, status, cookie: 2, ..Record::default() }.to_bytes().to_vec()
}

#[test]
fn each_fault_before_the_server_is_attached_to_has_its_error() {
    const EPROTONOSUPPORT: i32 = 93;
    let version = fault_of(vec![(1, hello(-EPROTONOSUPPORT as i16))], true);
    assert_eq!(version, Error::Refused { op: op::HELLO, id: 0, errno: EPROTONOSUPPORT });
    let web = b"HTTP/1.1 400 Bad Request\r\n\r\n.....".to_vec();
    assert!(matches!(fault_of(vec![(1, web)], true), Error::Protocol(_)));
    assert_eq!(fault_of(vec![(1, Vec::new())], false), Error::Io(errno::ECONNRESET));
    assert_eq!(fault_of(vec![(1, Vec::new())], true), Error::TimedOut);
}

/// Of four requests one is answered, two are in doubt, and one was not sent.
#[test]
fn each_fault_within_a_batch_says_what_was_carried_out() {
    let bytes = |op| Record { op, id: 1, ..Record::default() }.to_bytes().to_vec();
    let is_protocol: fn(&Error) -> bool = |why| matches!(why, Error::Protocol(_));
    let is_cut: fn(&Error) -> bool = |why| *why == Error::Io(errno::ECONNRESET);
    let is_silent: fn(&Error) -> bool = |why| *why == Error::TimedOut;
    for (name, fault, hangs, is_wanted) in [
        ("cuts", Vec::new(), false, is_cut),
        ("cuts in a record", vec![0; 9], false, is_cut),
        ("lies", bytes(op::QUERY), true, is_protocol),
        ("sends garbage", (0..32).map(|nr| 255 - nr).collect(), true, is_protocol),
        ("says HELLO again", hello(0), true, is_protocol),
        ("hangs", Vec::new(), true, is_silent),
    ] {
        let steps = vec![(1, hello(0)), (2, bytes(op::CANCEL)), (1, fault)];
        match fault_of(steps, hangs) {
            Error::Unanswered { answered: 1, in_doubt: 2, not_sent: 1, why } => {
                assert!(is_wanted(&why), "{}: {}", name, why)
            }
            other => panic!("{}: {}", name, other),
        }
    }
}

/// Has no more room for a connection, as where the server hangs.
fn fill_backlog(path: &Path) {
    let (connects, connected) = mpsc::channel();
    let path = path.to_path_buf();
    thread::spawn(move || {
        while UnixStream::connect(&path).is_ok() && connects.send(()).is_ok() {}
    });
    while connected.recv_timeout(Duration::from_millis(300)).is_ok() {}
}

#[test]
fn a_full_backlog_has_the_limits_of_a_silent_server() {
    let folder = Folder::new();
    let listener = folder.listen();
    let limit = Duration::from_millis(100);
    let options = || Options::new().socket(folder.socket());
    let restore = || Ok::<_, Error>([Timer { id: 7, deadline: expiry::NEVER, cookie: 0 }]);
    let server = thread::spawn(move || {
        let mut first = accept(&listener);
        greet(&mut first);
        let arm = get(&mut first, 1);
        put(&mut first, &arm);
        (listener, first)
    });
    let reconnects = options().keyed().ack().consume().reconnect().restore(restore);
    let mut q = Queue::open("q", reconnects).unwrap();
    let (listener, first) = server.join().unwrap();
    fill_backlog(&folder.socket());

    let begun = Instant::now();
    let error = Queue::open("", options().timeout(limit)).err().expect("an error");
    assert_eq!(error, Error::TimedOut);
    // What was begun is continued by the next call.
    drop(first);
    for _ in 0..3 {
        assert_eq!(q.receive(&mut [Record::default()], Some(limit)), Ok(0));
    }
    let took = begun.elapsed();
    assert!(took >= 4 * limit && took < Duration::from_secs(2), "{:?}", took);
    let server = thread::spawn(move || loop {
        let mut next = accept(&listener);
        if next.read_exact(&mut [0; 32]).is_ok() {
            return next;
        }
    });
    let end = Instant::now() + SOON.unwrap();
    while !server.is_finished() {
        assert_eq!(q.receive(&mut [Record::default()], Some(limit)), Ok(0));
        assert!(Instant::now() < end, "no connection comes");
    }
    server.join().unwrap();
}

/// Returns how many threads of this process connect, of all tests.
fn connecting() -> usize {
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default()
    };
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks.filter(|task| task.is_ok()).map(name).filter(|name| name == "expiry-connect\n").count()
}

#[test]
fn a_server_that_hangs_costs_one_thread() {
    const TIMES: usize = 20;
    let folder = Folder::new();
    let mut listener = folder.listen();
    for _ in 0..2 {
        fill_backlog(&folder.socket());
        for _ in 0..TIMES {
            let options = Options::new().socket(folder.socket());
            let error = Queue::open("", options.timeout(Duration::from_millis(20))).err();
            assert_eq!(error, Some(Error::TimedOut));
        }
        assert!(connecting() < TIMES / 2, "{} threads", connecting());
        // A server that takes its place has another socket, to which nothing connects yet.
        std::fs::remove_file(folder.socket()).unwrap();
        let hung = std::mem::replace(&mut listener, folder.listen());
        let server = thread::spawn(move || {
            greet(&mut accept(&listener));
            listener
        });
        Queue::open("", Options::new().socket(folder.socket()).timeout(SOON.unwrap())).unwrap();
        listener = server.join().unwrap();
        drop(hung);
    }
}

#[test]
fn an_absent_daemon_is_named_by_its_socket() {
    let error = Queue::open("", Options::new().socket("/nowhere/s")).err().expect("an error");
    assert_eq!(error.errno(), Some(errno::ENOENT));
    // What a main prints that returns the error.
    let said = format!("{:?}", error);
    assert!(said.contains("/nowhere/s") && said.contains("No such file"), "{}", said);
}

#[test]
fn arguments_that_cannot_be_sent() {
    for (name, options) in [
        ("", Options::new().reconnect()),
        ("q", Options::new().reconnect().consume()),
        ("q", Options::new().restore(|| Ok::<_, Error>(Vec::new()))),
        ("a/slash", Options::new()),
        ("abcdefghijklmnopqrstuvwxy", Options::new()),
        ("q", Options::new().credit(0)),
    ] {
        let why = Queue::open(name, options.socket("/nowhere")).err().unwrap();
        assert_eq!(why.errno(), Some(errno::EINVAL), "{}", name);
    }
}
