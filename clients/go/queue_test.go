// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"context"
	"errors"
	"math/rand"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestTimersExpireInOrder(t *testing.T) {
	leftovers(t)
	ctx := soon(t)
	for _, clock := range []Clock{Realtime, Monotonic, Boottime} {
		q := startDaemon(t).open("", Consume(), Keyed(), OnClock(clock))
		// The far one first: the nearer ones must move the alarm. These come in one
		// batch: on a busy machine the second of two calls may be 20 ms later.
		if err := q.Arm(ctx, 1, time.Hour); err != nil {
			t.Fatal(err)
		}
		now, ms := q.Now(), uint64(time.Millisecond)
		arms := []Record{{Op: OpArm, ID: 2, Deadline: now + 40*ms, Cookie: 20},
			{Op: OpArm, ID: 3, Deadline: now + 20*ms, Cookie: 30}}
		if err := q.Submit(ctx, arms); err != nil || arms[0].Status|arms[1].Status != 0 {
			t.Fatal(err, arms)
		}
		for _, id := range []uint64{3, 2} {
			var due [1]Record
			if _, err := q.Receive(ctx, due[:]); err != nil {
				t.Fatal(err)
			}
			if due[0].ID != id || due[0].Cookie != 10*id || q.Now() < due[0].Deadline {
				t.Errorf("clock %d: %+v", clock, due[0])
			}
		}
		if ok, err := q.Cancel(ctx, 1); !ok || err != nil {
			t.Errorf("clock %d: cancel: %v %v", clock, ok, err)
		}
		if ok, err := q.Cancel(ctx, 1); ok || err != nil {
			t.Errorf("clock %d: cancel again: %v %v", clock, ok, err)
		}
		q.Close()
	}
}

func TestRequestsOfEachKind(t *testing.T) {
	ctx := soon(t)
	d := startDaemon(t)
	q := d.open("kinds", Keyed())
	at := time.Now().Add(time.Hour)
	if err := q.ArmAt(ctx, 1, at, Every(250*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	r, ok, err := q.Query(ctx, 1)
	if !ok || err != nil || !r.Time().Equal(at) || r.Period() != 250*time.Millisecond {
		t.Errorf("%+v %v %v", r, ok, err)
	}
	if err := q.Arm(ctx, 1, time.Hour, NewOnly()); !errors.Is(err, syscall.EEXIST) {
		t.Errorf("NewOnly: %v", err)
	}
	if ok, err := q.RefreshAt(ctx, 1, at.Add(-time.Minute), NotEarlier()); !ok || err != nil {
		t.Errorf("refresh: %v %v", ok, err)
	}
	if r, _, _ := q.Query(ctx, 1); !r.Time().Equal(at) {
		t.Errorf("NotEarlier moved it: %v", r.Time())
	}
	if ok, err := q.Refresh(ctx, 2, time.Hour); ok || err != nil {
		t.Errorf("refresh of none: %v %v", ok, err)
	}
	var refusals Refusals
	err = q.ArmMany(ctx, []uint64{5, 0, 6}, time.Hour)
	if !errors.As(err, &refusals) || len(refusals) != 1 || refusals[0].Index != 1 ||
		!errors.Is(err, syscall.EINVAL) {
		t.Errorf("ArmMany: %v", err)
	}
	rows, next, err := q.Scan(ctx, 0, 100)
	if len(rows) != 3 || next != 0 || err != nil {
		t.Errorf("scan: %v %d %v", rows, next, err)
	}
	stat, server, err := q.Stat(ctx)
	if stat.Armed != 3 || server.Engine != engineEmbedded || err != nil {
		t.Errorf("stat: %+v %v", stat, err)
	}
	queues, _, err := q.Queues(ctx, 0, 100)
	if len(queues) != 1 || queues[0].Name != "kinds" || queues[0].Stat.Armed != 3 {
		t.Errorf("queues: %+v %v", queues, err)
	}
	if nr, err := q.Clear(ctx); nr != 3 || err != nil {
		t.Errorf("clear: %d %v", nr, err)
	}
	if err := q.Drop(ctx); err != nil {
		t.Errorf("drop: %v", err)
	}
	plain := d.open("plain")
	id, err := plain.Add(ctx, time.Hour)
	if id == 0 || err != nil {
		t.Errorf("add: %d %v", id, err)
	}
}

func TestArgumentsThatCannotBeSent(t *testing.T) {
	ctx := soon(t)
	d := startDaemon(t)
	q := d.open("", Keyed(), OnClock(Monotonic))
	for name, err := range map[string]error{
		"time of day": q.ArmAt(ctx, 1, time.Now()),
		"period":      q.Arm(ctx, 1, 0, Every(time.Microsecond)),
		"long period": q.Arm(ctx, 1, 0, Every(1<<32*time.Millisecond)),
		"op":          q.Submit(ctx, []Record{{Op: OpScan}}),
	} {
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := At(time.Date(2600, 1, 1, 0, 0, 0, 0, time.UTC)); err == nil {
		t.Error("the year 2600 has a deadline")
	}
	if _, err := q.Receive(ctx, make([]Record, 1)); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("receive: %v", err)
	}
	for name, options := range map[string][]Option{
		"":                          {Reconnect()},
		"plain-consumer":            {Reconnect(), Consume()},
		"not-keyed":                 {Restore(nothing)},
		"a/slash":                   {},
		"abcdefghijklmnopqrstuvwxy": {},
		"much-credit":               {Credit(creditMax + 1)},
	} {
		if _, err := Open(ctx, name, append(options, Socket(d.path))...); !errors.Is(err,
			syscall.EINVAL) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if r, ok, err := q.Query(ctx, 1); ok || err != nil {
		t.Errorf("something was sent: %+v %v", r, err)
	}
}

func nothing(context.Context, func(id, deadline, cookie uint64) bool) error { return nil }

// Each goroutine compares its own answers with what it has asked, while many calls are
// given up at random moments.
func TestGoroutinesGetTheirOwnAnswers(t *testing.T) {
	const goroutines, calls = 64, 400
	var group sync.WaitGroup

	leftovers(t)
	q := startDaemon(t).open("", Keyed())
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func(g int) {
			defer group.Done()
			random := rand.New(rand.NewSource(int64(g)))
			for i := 0; i < calls; i++ {
				ctx, cancel := context.WithCancel(context.Background())
				if random.Intn(4) == 0 {
					time.AfterFunc(time.Duration(random.Intn(200))*time.Microsecond,
						cancel)
				}
				checkOwn(t, ctx, q, random, uint64(g)<<32)
				cancel()
			}
		}(g)
	}
	group.Wait()
	q.Close()
}

// checkOwn arms timers in one batch and looks at one.
func checkOwn(t *testing.T, ctx context.Context, q *Queue, random *rand.Rand, base uint64) {
	records := make([]Record, 1+random.Intn(40))
	for i := range records {
		records[i] = Record{Op: OpArm, ID: base + uint64(i) + 1, Deadline: Never,
			Cookie: random.Uint64()}
	}
	asked := append([]Record{}, records...)
	err := q.Submit(ctx, records)
	var unanswered *Unanswered
	if errors.As(err, &unanswered) && (!errors.Is(err, context.Canceled) ||
		unanswered.Answered+unanswered.InDoubt+unanswered.NotSent != len(records)) {
		t.Error(err)
	}
	for i, r := range records {
		if r != asked[i] {
			t.Errorf("%+v instead of %+v", r, asked[i])
		}
	}
	if err != nil {
		return
	}
	i := random.Intn(len(asked))
	r, ok, err := q.Query(ctx, asked[i].ID)
	if err == nil && (!ok || r.Cookie != asked[i].Cookie) {
		t.Errorf("%+v instead of %+v", r, asked[i])
	}
}

func TestBatchesAllocateNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	q := startDaemon(t).open("", Keyed())
	records := make([]Record, 512)
	submit := func() {
		for i := range records {
			records[i] = Record{Op: OpArm, ID: uint64(i) + 1, Deadline: Never}
		}
		if err := q.Submit(ctx, records); err != nil {
			t.Fatal(err)
		}
	}
	submit()
	// The race detector allocates by itself.
	if nr := testing.AllocsPerRun(200, submit); nr > 2 {
		t.Errorf("%v allocations for 512 records", nr)
	}
	if nr := testing.AllocsPerRun(200, func() { q.Refresh(ctx, 1, time.Hour) }); nr > 2 {
		t.Errorf("%v allocations for a call", nr)
	}
}

// A slow consumer must not delay replies, and gets everything.
func TestRepliesDoNotWaitForTheConsumer(t *testing.T) {
	const timers = 5000
	ctx := soon(t)
	q := startDaemon(t).open("", Consume(), Ack(), Keyed(), Credit(16))
	ids := make([]uint64, timers)
	for i := range ids {
		ids[i] = uint64(i) + 1
	}
	if err := q.ArmMany(ctx, ids, 0); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 100; i++ {
		if err := q.Arm(ctx, 1<<40, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[uint64]bool{}
	due := make([]Record, 7)
	for len(seen) < timers {
		n, err := q.Receive(ctx, due)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range due[:n] {
			if seen[r.ID] || r.Redelivered() {
				t.Fatalf("twice: %+v", r)
			}
			seen[r.ID] = true
			if err := q.AckIDs(ctx, r.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if stat, _, _ := q.Stat(ctx); stat.Unacked != 0 || stat.Armed != 1 {
		t.Errorf("%+v", stat)
	}
}

func TestCloseEndsCallsOfAHungServer(t *testing.T) {
	const callers = 20
	leftovers(t)
	hang := make(chan struct{})
	path := fake(t, func(conn net.Conn) { greet(conn); <-hang })
	q, err := Open(soon(t), "", Keyed(), Consume(), Socket(path))
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, callers+1)
	for i := 0; i < callers; i++ {
		go func() { failed <- q.Submit(context.Background(), make1000()) }()
	}
	go func() {
		_, err := q.Receive(context.Background(), make([]Record, 1))
		failed <- err
	}()
	waitFor(t, "the socket to be full", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.row.unsent != nil && q.row.inFlight > 0
	})
	q.Close()
	for i := 0; i <= callers; i++ {
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	}
	if err := q.Arm(soon(t), 1, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	close(hang)
}

func make1000() []Record {
	records := make([]Record, 1000)
	for i := range records {
		records[i] = Record{Op: OpCancel, ID: uint64(i) + 1}
	}
	return records
}

func TestACallThatIsGivenUpKeepsItsPlace(t *testing.T) {
	answer := make(chan struct{})
	path := fake(t, func(conn net.Conn) {
		greet(conn)
		requests := get(conn, 2)
		<-answer
		put(conn, requests...)
		requests = get(conn, 1)
		put(conn, requests...)
		get(conn, 1)
	})
	q, err := Open(soon(t), "", Keyed(), Socket(path))
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	ctx, cancel := context.WithCancel(context.Background())
	records := []Record{{Op: OpCancel, ID: 1}, {Op: OpCancel, ID: 2}}
	failed := make(chan error)
	go func() { failed <- q.Submit(ctx, records) }()
	waitFor(t, "both to be sent", func() bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.row.inFlight == 2
	})
	cancel()
	var unanswered *Unanswered
	if err := <-failed; !errors.As(err, &unanswered) || unanswered.InDoubt != 2 {
		t.Errorf("%v", err)
	}
	close(answer)
	if ok, err := q.Cancel(soon(t), 3); !ok || err != nil {
		t.Errorf("the next call: %v %v", ok, err)
	}
	if err := q.Arm(ctx, 1, 0); !errors.As(err, &unanswered) || unanswered.NotSent != 1 {
		t.Errorf("a context that is done: %v", err)
	}
}
