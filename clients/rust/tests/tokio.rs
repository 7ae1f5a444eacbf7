// SPDX-License-Identifier: LGPL-2.1-or-later

//! The client for tokio against a daemon: `$EXPIRYD`. Without it nothing is tested.

#![cfg(feature = "tokio")]

use expiry::tokio::{connect, Client, Driver, Due};
use expiry::{errno, op, Arm, Error, Options, Record, Result, Timer};
use futures_core::Stream;
use std::future::Future;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use support::{accept, get, greet, greet_again, put, refuse_once, Folder, NOW};
use tokio::runtime::Builder;

mod support;

/// A daemon of the test's own.
struct Daemon {
    folder: PathBuf,
    process: Child,
}

impl Daemon {
    fn new(name: &str) -> Option<Daemon> {
        let program = std::env::var_os("EXPIRYD")?;
        let folder = std::env::temp_dir().join(format!("expiry-{}-{}", name, std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let socket = folder.join("socket");
        let process = Command::new(program)
            .args(["--engine", "embedded", "--socket"])
            .arg(&socket)
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        while UnixStream::connect(&socket).is_err() {
            assert!(Instant::now() < end, "the daemon does not start");
            std::thread::sleep(Duration::from_millis(1));
        }
        Some(Daemon { folder, process })
    }

    fn options(&self) -> Options {
        Options::new().keyed().socket(self.folder.join("socket"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn on_threads(test: impl Future<Output = ()>) {
    run(Builder::new_multi_thread().worker_threads(2), test);
}

/// There tasks begin in the order in which they are spawned.
fn on_one_thread(test: impl Future<Output = ()>) {
    run(&mut Builder::new_current_thread(), test);
}

fn run(builder: &mut Builder, test: impl Future<Output = ()>) {
    let limit = Duration::from_secs(60);
    let runtime = builder.enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(limit, test).await.expect("it hangs") });
}

/// Arms timers, gives up some of the calls, and looks at what is its own.
async fn one_task(client: Client, base: u64) {
    for round in 0..200 {
        let cookie = base ^ round << 8;
        let batch: Vec<Record> =
            (1..=9).map(|i| Arm::at(base + i, expiry::NEVER).cookie(cookie + i).record()).collect();
        if round % 4 == 0 {
            let call = client.submit(batch);
            let _ = tokio::time::timeout(Duration::from_micros(round), call).await;
            continue;
        }
        let (replies, ended) = client.submit(batch.clone()).await;
        ended.unwrap();
        assert_eq!(replies, batch);
        let timer = client.query(base + 5).await.unwrap().unwrap();
        assert_eq!(timer.cookie, cookie + 5);
    }
}

#[test]
fn tasks_get_their_own_answers_while_others_give_up() {
    let daemon = match Daemon::new("tasks") {
        Some(daemon) => daemon,
        None => return,
    };
    on_threads(async {
        let (client, due, driver) = connect("", daemon.options()).await.unwrap();
        let driver = tokio::spawn(driver);
        let tasks: Vec<_> =
            (1..=32).map(|i| tokio::spawn(one_task(client.clone(), i << 32))).collect();
        for task in tasks {
            task.await.unwrap();
        }
        // The driver ends with the last of the others.
        drop(client);
        drop(due);
        assert_eq!(driver.await.unwrap(), Ok(()));
    });
}

#[test]
fn the_stream_has_all_and_ends_at_close() {
    let daemon = match Daemon::new("stream") {
        Some(daemon) => daemon,
        None => return,
    };
    on_threads(async {
        let options = daemon.options().consume().ack().credit(16);
        let (client, mut due, driver) = connect("", options).await.unwrap();
        let driver = tokio::spawn(driver);
        let batch = (1..=3000).map(|id| Arm::after(id, Duration::ZERO).record()).collect();
        let (replies, ended) = client.submit(batch).await;
        ended.unwrap();
        assert!(expiry::check(&replies).is_empty());
        let mut sum = 0;
        for _ in 0..3000 {
            let timer = due.next().await.unwrap().unwrap();
            assert!(client.ack(timer.id).await.unwrap());
            sum += timer.id;
        }
        assert_eq!(sum, 3000 * 3001 / 2);
        let closer = client.clone();
        tokio::spawn(async move { closer.close() });
        assert!(due.next().await.is_none());
        assert_eq!(driver.await.unwrap(), Ok(()));
        assert!(client.cancel(1).await.is_err());
    });
}

#[test]
fn a_driver_that_is_dropped_ends_calls() {
    let daemon = match Daemon::new("dropped") {
        Some(daemon) => daemon,
        None => return,
    };
    on_threads(async {
        let (client, _due, driver) = connect("", daemon.options()).await.unwrap();
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.cancel(1).await }
        });
        tokio::task::yield_now().await;
        drop(driver);
        assert!(call.await.unwrap().is_err());
    });
}

#[test]
fn credit_does_not_wait_for_a_call_that_was_given_up() {
    let folder = Folder::new();
    let listener = folder.listen();
    let (connected, is_connected) = tokio::sync::oneshot::channel();
    let (gave_up, is_given_up) = mpsc::channel();
    let server = std::thread::spawn(move || {
        let mut first = accept(&listener);
        greet(&mut first);
        get(&mut first, 2); // credit and ACK
        drop(first);
        let mut second = accept(&listener);
        connected.send(()).unwrap();
        is_given_up.recv().unwrap();
        greet_again(&mut second);
        get(&mut second, 1)
    });
    on_threads(async {
        let options = Options::new().keyed().ack().consume().reconnect().socket(folder.socket());
        let (client, _due, driver) = connect("q", options).await.unwrap();
        let driver = tokio::spawn(driver);
        let call = tokio::spawn({
            let client = client.clone();
            async move { client.ack(1).await }
        });
        is_connected.await.unwrap();
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        gave_up.send(()).unwrap();
        let later = tokio::task::spawn_blocking(|| server.join().unwrap()).await.unwrap();
        assert_eq!(later[0].op, op::CREDIT);
        client.close();
        driver.await.unwrap().unwrap();
    });
}

/// Listings before a request that is not sent again begin anew.
#[test]
fn listings_are_repeated() {
    let folder = Folder::new();
    let listener = folder.listen();
    let server = std::thread::spawn(move || {
        let record = |op, id, cookie| Record { op, id, cookie, ..Record::default() };
        let mut first = accept(&listener);
        greet(&mut first);
        get(&mut first, 4);
        put(&mut first, &[record(op::SCAN, 1, 0)]);
        drop(first);
        let mut second = accept(&listener);
        greet_again(&mut second);
        let requests = get(&mut second, 3);
        put(&mut second, &[record(op::SCAN, 2, 0), record(op::SCAN, 0, 3)]);
        let stat = Record { op: op::STAT, period_ms: 16, ..Record::default() };
        put(&mut second, &[stat, Record { deadline: 4, ..Record::default() }]);
        put(&mut second, &[Record::default(); 15]);
        put(&mut second, &[record(op::QUEUES, 0, 5)]);
        requests.iter().map(|request| request.op).collect::<Vec<_>>()
    });
    on_one_thread(async {
        let options = Options::new().reconnect().socket(folder.socket());
        let (client, _due, driver) = connect("q", options).await.unwrap();
        let [a, b, c] = [client.clone(), client.clone(), client.clone()];
        let scan = tokio::spawn(async move { a.scan(0, 9).await });
        let stat = tokio::spawn(async move { b.stat().await });
        let queues = tokio::spawn(async move { c.queues(0, 9).await });
        let arm = tokio::spawn(async move {
            client.arm_with(Arm::after(0, Duration::from_secs(3600))).await
        });
        tokio::spawn(driver);
        let scan = scan.await.unwrap().unwrap();
        assert_eq!((scan.timers[0].id, scan.timers.len(), scan.cursor), (2, 1, 3));
        assert_eq!(stat.await.unwrap().unwrap().armed(), 4);
        assert_eq!(queues.await.unwrap().unwrap().1, 5);
        assert_eq!(arm.await.unwrap().unwrap_err().errno(), Some(errno::ECONNRESET));
        assert_eq!(server.join().unwrap(), [op::SCAN, op::STAT, op::QUEUES]);
    });
}

#[test]
fn a_relative_deadline_counts_from_a_call_during_the_pause() {
    let folder = Folder::new();
    let listener = folder.listen();
    let (connected, is_connected) = tokio::sync::oneshot::channel();
    let (asked, is_asked) = mpsc::channel();
    let server = std::thread::spawn(move || {
        let mut first = accept(&listener);
        greet(&mut first);
        drop(first);
        let second = accept(&listener);
        connected.send(()).unwrap();
        is_asked.recv().unwrap();
        drop(second);
        let mut third = accept(&listener);
        greet_again(&mut third);
        let requests = get(&mut third, 1);
        put(&mut third, &requests);
        requests[0]
    });
    on_one_thread(async {
        let options = Options::new().keyed().reconnect().socket(folder.socket());
        let (client, _due, driver) = connect("q", options).await.unwrap();
        let hour = Duration::from_secs(3600);
        tokio::spawn(driver);
        is_connected.await.unwrap();
        let call = tokio::spawn(async move { client.arm(1, hour, 0).await });
        let pause = Duration::from_millis(100);
        tokio::time::sleep(pause).await;
        asked.send(()).unwrap();
        call.await.unwrap().unwrap();
        let request = server.join().unwrap();
        assert_eq!(request.flags, 0);
        assert!(request.deadline <= NOW + (hour - pause).as_nanos() as u64, "{:?}", request);
    });
}

#[test]
fn a_busy_server_is_restored_later() {
    let folder = Folder::new();
    let listener = folder.listen();
    let server = std::thread::spawn(move || refuse_once(&mut accept(&listener)));
    let restore = || Ok::<_, Error>((1..=3).map(|id| Timer { id, deadline: 0, cookie: id }));
    on_threads(async {
        let options = Options::new().keyed().restore(restore).socket(folder.socket());
        let begun = Instant::now();
        connect("q", options).await.unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(10));
    });
    server.join().unwrap();
}

/// The compiler says whether a type still is what programs rely on: nothing runs here.
#[test]
fn types_are_for_tasks_on_any_thread() {
    fn is_shared<T: Clone + Send + Sync + 'static>() {}
    fn is_spawned<T: Future<Output = Result<()>> + Send + 'static>() {}
    fn is_stream<T: Stream<Item = Result<Record>> + Send + Unpin + 'static>() {}
    fn is_sent<T: Send>(_: impl Fn(&'static Client) -> T) {}

    is_shared::<Client>();
    is_spawned::<Driver>();
    is_stream::<Due>();
    is_sent(|client| client.arm(1, Duration::ZERO, 0));
    is_sent(|client| client.arm_with(Arm::after(1, Duration::ZERO)));
    is_sent(|client| client.refresh(1, Duration::ZERO));
    is_sent(|client| client.cancel(1));
    is_sent(|client| client.query(1));
    is_sent(|client| client.ack(1));
    is_sent(|client| client.clear());
    is_sent(|client| client.submit(Vec::new()));
    is_sent(|client| client.scan(0, 1));
    is_sent(|client| client.stat());
    is_sent(|client| client.queues(0, 1));
    is_sent(|client| client.drop_queue());
    is_sent(|_| connect("q", Options::new()));
}
