// SPDX-License-Identifier: LGPL-2.1-or-later

//! The driver of a connection of many tasks: it connects, reads and writes.

use crate::buffer::Buffer;
use crate::error::{errno, Error, Result};
use crate::handshake::{Handshake, Life, PAUSE, PAUSE_MAX, REFUSED_TIME};
use crate::options::{nanoseconds, KEYED};
use crate::shared::Shared;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::OwnedReadHalf;
use tokio::net::UnixStream;
use tokio::time::Sleep;

/// Reads and writes before other tasks get their turn.
const STEPS: usize = 16;
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// The connection: a future that ends when all clients and the stream are dropped, or with
/// an error.
pub struct Driver(Pin<Box<dyn Future<Output = Result<()>> + Send>>);

impl Future for Driver {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.0.as_mut().poll(cx)
    }
}

/// std has it from Rust 1.64 on.
pub(crate) struct PollFn<F>(F);

impl<F> Unpin for PollFn<F> {}

impl<T, F: FnMut(&mut Context<'_>) -> Poll<T>> Future for PollFn<F> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        (self.0)(cx)
    }
}

pub(crate) fn poll_fn<T, F: FnMut(&mut Context<'_>) -> Poll<T>>(f: F) -> PollFn<F> {
    PollFn(f)
}

/// The driver's own.
pub(crate) struct Link {
    shared: Arc<Shared>,
    reader: Option<OwnedReadHalf>,
    input: Buffer,
    life: Life,
}

impl Drop for Link {
    /// The driver may be dropped with its runtime.
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.disconnect();
        state.fail(Error::Closed);
    }
}

impl Link {
    pub(crate) fn new(shared: Arc<Shared>) -> Link {
        Link {
            shared,
            reader: None,
            input: Buffer::new(),
            life: Life::default(),
        }
    }

    pub(crate) fn into_driver(self) -> Driver {
        Driver(Box::pin(self.drive()))
    }

    async fn drive(mut self) -> Result<()> {
        loop {
            let mut why = self.serve().await;
            self.reader = None;
            self.shared.state().disconnect();
            if self.shared.options.reconnect && why.is_server_gone() {
                let timers = self.prepare();
                why = match self.reconnect().await {
                    Ok(()) => {
                        let mut state = self.shared.state();
                        state.timers = timers;
                        state.reconnects += 1;
                        continue;
                    }
                    Err(why) => why,
                };
            }
            self.shared.state().fail(why.clone());
            return if why == Error::Closed { Ok(()) } else { Err(why) };
        }
    }

    /// Prepares for the next connection. Returns the number of timers, to be kept.
    fn prepare(&mut self) -> u64 {
        let keyed = self.shared.options.has(KEYED);
        let mut state = self.shared.state();
        state.inbox.lost();
        state.doubt = state.row.lost(keyed);
        self.life.arms += std::mem::take(&mut state.row.arms);
        state.timers
    }

    /// Reads and writes until the connection breaks. Returns why.
    async fn serve(&mut self) -> Error {
        let shared = self.shared.clone();
        let timeout = shared.options.timeout;
        let mut alarm = timeout.map(|timeout| Box::pin(tokio::time::sleep(timeout)));
        shared.state().restart_silence();
        poll_fn(|cx| {
            if let (Some(alarm), Some(timeout)) = (&mut alarm, timeout) {
                if is_silent(&shared, alarm, timeout, cx) {
                    return Poll::Ready(Error::TimedOut);
                }
            }
            let mut state = shared.state();
            let mut ended = match state.is_over(cx) {
                Some(why) => Err(why),
                None => state.write(Some(cx)),
            };
            drop(state);
            for _ in 0..STEPS {
                match ended.and_then(|_| self.read(cx)) {
                    Ok(true) => {}
                    Ok(false) => return Poll::Pending,
                    Err(why) => return Poll::Ready(why),
                }
                let mut state = shared.state();
                ended = state.sort(&mut self.input).and_then(|()| state.write(Some(cx)));
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    /// Reads once. Returns whether something came.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        let reader = self.reader.as_mut().ok_or(Error::Closed)?;
        // Unlike try_read, this knows from a short read that there is no more.
        let mut room = ReadBuf::new(self.input.room());
        match Pin::new(reader).poll_read(cx, &mut room) {
            Poll::Pending => Ok(false),
            Poll::Ready(Err(e)) => Err(Error::io(&e)),
            Poll::Ready(Ok(())) if room.filled().is_empty() => Err(Error::Io(errno::ECONNRESET)),
            Poll::Ready(Ok(())) => {
                let nr = room.filled().len();
                self.input.add(nr);
                Ok(true)
            }
        }
    }

    /// Connects and attaches. A server that is silent for longer than `limit` has failed.
    pub(crate) async fn connect(&mut self, limit: Option<Duration>) -> Result<()> {
        let shared = self.shared.clone();
        self.input.clear();
        let path = shared.options.path();
        let connected = UnixStream::connect(&path).await;
        let stream = connected.map_err(|e| Error::connect(path.as_ref(), &e))?;
        let mut handshake = Handshake::new(&shared.options, &shared.name, &self.life);
        while !handshake.feed(&mut self.input, &shared.options, &mut self.life)? {
            let output = std::mem::take(&mut handshake.output);
            let pause = std::mem::take(&mut handshake.pause);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            let io = exchange(&stream, output.bytes(), &mut self.input);
            match limit {
                Some(limit) => tokio::time::timeout(limit, io).await.unwrap_or(Err(Error::TimedOut)),
                None => io.await,
            }?;
        }
        let mut state = shared.state();
        state.window = handshake.window;
        state.timers = handshake.timers;
        state.durable = handshake.durable;
        state.clock = handshake.clock();
        if let Some(step) = handshake.step.filter(|_| state.inbox.receives()) {
            state.inbox.add(step)?;
        }
        state.inbox.top_up();
        // All calls, those in doubt and others, began before this connection.
        let (begun, now) = state.clock;
        state.row.make_absolute(|moment| {
            now.saturating_sub(nanoseconds(begun.saturating_duration_since(moment)))
                .saturating_add(nanoseconds(moment.saturating_duration_since(begun)))
        });
        let (reader, writer) = stream.into_split();
        self.reader = Some(reader);
        state.writer = Some(writer);
        Ok(())
    }

    /// Makes the next connection, unless this side is closed.
    async fn reconnect(&mut self) -> Result<()> {
        let mut pause = Duration::ZERO;
        let mut refused = None;
        loop {
            let shared = self.shared.clone();
            let limit = Some(shared.options.timeout.unwrap_or(HANDSHAKE_TIME));
            let why = match unless_over(&shared, self.connect(limit)).await {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            if why.is_final() {
                return Err(why);
            }
            let since = *refused.get_or_insert_with(Instant::now);
            if why.is_server_gone() {
                refused = None;
            } else if since.elapsed() >= REFUSED_TIME {
                return Err(why);
            }
            let sleep = async {
                tokio::time::sleep(pause).await;
                Ok(())
            };
            unless_over(&shared, sleep).await?;
            pause = (2 * pause).clamp(PAUSE, PAUSE_MAX);
        }
    }
}

/// Returns whether the server has been silent for too long, and sets the alarm for that.
fn is_silent(
    shared: &Shared,
    alarm: &mut Pin<Box<Sleep>>,
    timeout: Duration,
    cx: &mut Context<'_>,
) -> bool {
    let since = shared.state().silent;
    loop {
        // Without an answer due it is woken now and then, which costs little.
        let end = since.unwrap_or_else(Instant::now) + timeout;
        if since.is_some() && Instant::now() >= end {
            return true;
        }
        if alarm.as_mut().poll(cx).is_pending() {
            return false;
        }
        alarm.as_mut().reset(end.into());
    }
}

async fn unless_over<T>(
    shared: &Shared,
    future: impl Future<Output = Result<T>>,
) -> Result<T> {
    tokio::pin!(future);
    poll_fn(|cx| {
        // The future takes the lock, too.
        let over = shared.state().is_over(cx);
        match over {
            Some(why) => Poll::Ready(Err(why)),
            None => future.as_mut().poll(cx),
        }
    })
    .await
}

/// Writes all of `output`, then reads once.
async fn exchange(stream: &UnixStream, mut output: &[u8], input: &mut Buffer) -> Result<()> {
    while !output.is_empty() {
        stream.writable().await.map_err(|e| Error::io(&e))?;
        match stream.try_write(output) {
            Ok(nr) => output = &output[nr..],
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            // A server above its limits answers and does not read.
            Err(_) => break,
        }
    }
    loop {
        stream.readable().await.map_err(|e| Error::io(&e))?;
        match stream.try_read(input.room()) {
            Ok(0) => return Err(Error::Io(errno::ECONNRESET)),
            Ok(nr) => {
                input.add(nr);
                return Ok(());
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(Error::io(&e)),
        }
    }
}
