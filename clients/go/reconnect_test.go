// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestALostQueueEndsTheHandle(t *testing.T) {
	leftovers(t)
	ctx := soon(t)
	d := startDaemon(t)
	q := d.open("lost", Keyed(), Reconnect())
	if err := q.Arm(ctx, 1, time.Hour); err != nil {
		t.Fatal(err)
	}
	d.kill()
	d.start()
	if err := q.Arm(ctx, 2, time.Hour); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("%v", err)
	}
	q.Close()
	d.kill()
}

func TestALostQueueIsRestored(t *testing.T) {
	const timers = 3000
	leftovers(t)
	ctx := soon(t)
	d := startDaemon(t)
	var calls int32
	restore := func(_ context.Context, yield func(id, deadline, cookie uint64) bool) error {
		atomic.AddInt32(&calls, 1)
		for id := uint64(1); id <= timers; id++ {
			if !yield(id, 0, ^id) {
				break
			}
		}
		return nil
	}
	q := d.open("restored", Keyed(), Ack(), Consume(), Reconnect(), Restore(restore))
	for life := int32(1); life <= 2; life++ {
		seen := map[uint64]bool{}
		due := make([]Record, 100)
		for len(seen) < timers {
			n, err := q.Receive(ctx, due)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range due[:n] {
				if seen[r.ID] || r.Cookie != ^r.ID {
					t.Fatalf("life %d: %+v", life, r)
				}
				seen[r.ID] = true
			}
		}
		if nr := atomic.LoadInt32(&calls); nr != life {
			t.Errorf("life %d: restored %d times", life, nr)
		}
		d.kill()
		d.start()
		// What is asked meanwhile waits.
		if err := q.Arm(ctx, timers+1, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	q.Close()
	d.kill()
}

// What was sent and is not idempotent is reported, the rest is sent again, in order,
// and credit comes last.
func TestWhatIsSentAgain(t *testing.T) {
	again := make(chan []Record, 1)
	path := fake(t, func(conn net.Conn) {
		greet(conn)
		get(conn, 1+4) // credit, and the batch
	}, func(conn net.Conn) {
		greetAgain(conn, 4096)
		requests := get(conn, 3)
		again <- requests
		put(conn, requests[:2]...)
		get(conn, 1)
	})
	ctx := soon(t)
	q, err := Open(ctx, "q", Keyed(), Ack(), Consume(), Reconnect(), Socket(path))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	// Have the credit sent alone and first.
	waitFor(t, "credit", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.inbox.due == 0
	})
	begun := q.Now()
	records := []Record{
		{Op: OpArm, ID: 1},
		{Op: OpArm, ID: 2, Flags: New},
		{Op: OpArm, ID: 3, Flags: Relative, Deadline: uint64(time.Hour)},
		{Op: OpCancel, ID: 4},
	}
	if err := q.Submit(ctx, records); err != nil {
		t.Fatal(err)
	}
	reset := -int16(syscall.ECONNRESET)
	for i, status := range []int16{reset, reset, 0, 0} {
		if records[i].Status != status {
			t.Errorf("%+v", records[i])
		}
	}
	requests := <-again
	late := requests[0].Deadline - begun - uint64(time.Hour)
	if requests[0].ID != 3 || requests[0].Flags != 0 || late > uint64(time.Minute) ||
		requests[1] != (Record{Op: OpCancel, ID: 4}) ||
		requests[2] != (Record{Op: OpCredit, PeriodMS: defaultCredit}) {
		t.Errorf("%+v", requests)
	}
}

// Two requests in doubt are given up: all before the next connection, or the second one
// while it waits for the window. Credit follows all the same.
func TestCreditDoesNotWaitForCallsThatWereGivenUp(t *testing.T) {
	for _, isSent := range []bool{false, true} {
		later := make(chan []Record, 1)
		ready, givenUp := make(chan struct{}), make(chan struct{})
		path := fake(t, func(conn net.Conn) {
			greet(conn)
			get(conn, 1+2)
		}, func(conn net.Conn) {
			if !isSent {
				close(ready)
				<-givenUp
			}
			greetAgain(conn, 1)
			if isSent {
				first := get(conn, 1)
				close(ready)
				<-givenUp
				put(conn, first...)
			}
			later <- get(conn, 1)
		})
		q, err := Open(soon(t), "q", Keyed(), Ack(), Consume(), Reconnect(), Socket(path))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(soon(t))
		calls := []context.Context{ctx, ctx}
		if isSent {
			calls[0] = soon(t)
		}
		ended := make(chan error, len(calls))
		for i, ctx := range calls {
			ctx, id := ctx, uint64(i+1)
			go func() { ended <- q.AckIDs(ctx, id) }()
			waitFor(t, "the request", func() bool { return q.Info().Unanswered == i+1 })
		}
		<-ready
		cancel()
		for _, call := range calls {
			if call != ctx {
				continue
			}
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
		}
		close(givenUp)
		if got := <-later; len(got) != 1 || got[0].Op != OpCredit {
			t.Errorf("sent: %v: %+v", isSent, got)
		}
		q.Close()
	}
}

// Listings before a request that is not sent again begin anew.
func TestListingsAreRepeated(t *testing.T) {
	again := make(chan []Record, 1)
	path := fake(t, func(conn net.Conn) {
		greet(conn)
		get(conn, 4)
		put(conn, Record{Op: OpScan, ID: 1})
	}, func(conn net.Conn) {
		greetAgain(conn, 4096)
		again <- get(conn, 3)
		put(conn, Record{Op: OpScan, ID: 2}, Record{Op: OpScan, Cookie: 3},
			Record{Op: OpStat, PeriodMS: 16}, Record{Deadline: 4})
		put(conn, make([]Record, 15)...)
		put(conn, Record{Op: OpQueues, Cookie: 5})
		get(conn, 1)
	})
	ctx := soon(t)
	q, err := Open(ctx, "q", Reconnect(), Socket(path))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	var rows []Record
	var stat QueueStat
	var cursors [2]uint64
	errs := make(chan error)
	for i, call := range []func() error{
		func() (err error) {
			rows, cursors[0], err = q.Scan(ctx, 0, 9)
			return
		},
		func() (err error) {
			stat, _, err = q.Stat(ctx)
			return
		},
		func() (err error) {
			_, cursors[1], err = q.Queues(ctx, 0, 9)
			return
		},
		func() error {
			if _, err := q.Add(ctx, time.Hour); !errors.Is(err, syscall.ECONNRESET) {
				return fmt.Errorf("ARM: %w", err)
			}
			return nil
		},
	} {
		call := call
		waitFor(t, "the call before", func() bool { return q.Info().Unanswered == i })
		go func() { errs <- call() }()
	}
	for i := 0; i < 4; i++ {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if len(rows) != 1 || rows[0].ID != 2 || stat.Armed != 4 || cursors != [2]uint64{3, 5} {
		t.Errorf("%+v, %d armed, %v", rows, stat.Armed, cursors)
	}
	requests := <-again
	if len(requests) < 3 || requests[0].Op != OpScan || requests[1].Op != OpStat || requests[2].Op != OpQueues {
		t.Errorf("%+v", requests)
	}
}

// One request is in flight at the break, one waits for the window, and one is asked for
// during the pause.
func TestRelativeDeadlinesCountFromTheCall(t *testing.T) {
	again := make(chan []Record, 1)
	waiting, paused, asked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	path := fake(t, func(conn net.Conn) {
		get(conn, 1)
		put(conn, Record{Op: OpHello, Cookie: 1})
		get(conn, 1)
		<-waiting
	}, func(conn net.Conn) {
		close(paused)
		<-asked
		greetAgain(conn, 4096)
		requests := get(conn, 3)
		put(conn, requests...)
		again <- requests
	})
	ctx := soon(t)
	q, err := Open(ctx, "q", Keyed(), Reconnect(), Socket(path))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	var begun [3]uint64
	errs := make(chan error, 3)
	arm := func(i int) {
		begun[i] = q.Now()
		go func() { errs <- q.Arm(ctx, uint64(i+1), time.Hour) }()
		waitFor(t, "the request", func() bool { return q.Info().Unanswered == i+1 })
	}
	arm(0)
	arm(1)
	close(waiting)
	<-paused
	arm(2)
	time.Sleep(100 * time.Millisecond)
	connected := q.Now()
	close(asked)
	for range begun {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for i, r := range <-again {
		called := r.Deadline - uint64(time.Hour)
		if r.ID != uint64(i+1) || r.Flags != 0 || called < begun[i] || called >= connected {
			t.Errorf("%+v, begun %d, connected %d", r, begun[i], connected)
		}
	}
}

// It is not final, however long it lasts.
func TestAFullBacklogIsLikeNoServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	listener, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(listener)
	if err := syscall.Bind(listener, &syscall.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(listener, 0); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 9; i++ {
		conn, err := net.Dial("unix", path)
		if err != nil {
			if !errors.Is(err, syscall.EAGAIN) || !isServerGone(err) {
				t.Errorf("%v", err)
			}
			return
		}
		defer conn.Close()
	}
	t.Error("the backlog is not full")
}

// restoreThree yields three timers.
func restoreThree(_ context.Context, yield func(id, deadline, cookie uint64) bool) error {
	for id := uint64(1); id <= 3 && yield(id, Never, 7*id); id++ {
	}
	return nil
}

// busy answers batches of ARM, of which it refuses these. It counts the records.
func busy(conn net.Conn, nr *int, refused ...map[uint64]syscall.Errno) {
	get(conn, 1)
	put(conn, Record{Op: OpHello, Cookie: 4096})
	size := 3
	for _, ids := range refused {
		records := get(conn, size)
		if records == nil {
			return
		}
		*nr += size
		size = 0
		for i := range records {
			if errno := ids[records[i].ID]; errno != 0 {
				records[i].Status = -int16(errno)
				records[i].Cookie = 0
				size++
			}
		}
		put(conn, records...)
	}
}

func TestRestoreSendsAgainWhatABusyServerRefused(t *testing.T) {
	nr, rest := 0, make(chan []Record, 1)
	path := fake(t, func(conn net.Conn) {
		busy(conn, &nr, map[uint64]syscall.Errno{1: syscall.EBUSY, 3: syscall.EBUSY},
			map[uint64]syscall.Errno{3: syscall.EBUSY})
		rest <- get(conn, 1)
		put(conn, Record{Op: OpArm, ID: 3})
		get(conn, 1)
	})
	begun := time.Now()
	q, err := Open(soon(t), "q", Keyed(), Restore(restoreThree), Socket(path))
	if err != nil {
		t.Fatal(err)
	}
	last := <-rest
	if nr != 5 || len(last) != 1 || last[0] != (Record{Op: OpArm, ID: 3, Deadline: Never, Cookie: 21}) {
		t.Errorf("%d, %+v", nr, last)
	}
	if q.life.arms != 3 || time.Since(begun) < 2*pauseFirst {
		t.Errorf("%d armed, after %v", q.life.arms, time.Since(begun))
	}
	q.Close()
}

func TestRestoreFailsByARefusalThatStays(t *testing.T) {
	defer func(was time.Duration) { refusedTime = was }(refusedTime)
	refusedTime = 50 * time.Millisecond
	held := map[uint64]syscall.Errno{2: syscall.EBUSY}
	for want, refused := range map[syscall.Errno][]map[uint64]syscall.Errno{
		syscall.EBUSY:  {held, held, held, held, held, held, held, held},
		syscall.ENOSPC: {{2: syscall.EBUSY, 3: syscall.ENOSPC}},
	} {
		nr := 0
		path := fake(t, func(conn net.Conn) {
			busy(conn, &nr, refused...)
			get(conn, 1)
		})
		begun := time.Now()
		_, err := Open(soon(t), "q", Keyed(), Restore(restoreThree), Socket(path))
		if !errors.Is(err, want) {
			t.Errorf("%v instead of %v", err, want)
		}
		if want == syscall.EBUSY && time.Since(begun) < refusedTime {
			t.Errorf("after %v", time.Since(begun))
		}
	}
}
