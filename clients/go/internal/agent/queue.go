// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	expiry "expiry.example/clients/go"
)

func (a *agent) open(ctx context.Context, w words) []string {
	options := []expiry.Option{expiry.Socket(w.values["path"]), expiry.Events()}
	for word, option := range map[string]expiry.Option{
		"consume": expiry.Consume(), "ack": expiry.Ack(), "keyed": expiry.Keyed(),
		"durable": expiry.Durable(), "existing": expiry.Existing(), "observe": expiry.Observe(),
		"reconnect": expiry.Reconnect(),
	} {
		if w.lists("flags", word) {
			options = append(options, option)
		}
	}
	clocks := map[string]expiry.Clock{"realtime": expiry.Realtime,
		"monotonic": expiry.Monotonic, "boottime": expiry.Boottime}
	options = append(options, expiry.OnClock(clocks[w.values["clock"]]))
	if w.has("credit") {
		options = append(options, expiry.Credit(uint32(w.number("credit"))))
	}
	if w.has("restore") {
		options = append(options, expiry.Restore(a.restorer(w.values["restore"])))
	}
	a.timeout = time.Duration(w.number("timeout_ms")) * time.Millisecond
	a.restores.Store(0)
	a.restored.Store(0)
	if a.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	queue, err := expiry.Open(ctx, w.values["queue"], options...)
	if err != nil {
		return one("%s", failure(err))
	}
	a.queue = queue
	info := queue.Info()
	return one("ok timers=%d durable=%d commit=%d", info.Timers, bit(info.Durable),
		info.CommitMS)
}

// restorer returns the function of FROM:COUNT:DEADLINE.
func (a *agent) restorer(text string) expiry.RestoreFunc {
	var number [3]uint64
	for i, part := range strings.SplitN(text, ":", 3) {
		number[i], _ = strconv.ParseUint(part, 10, 64)
	}
	return func(_ context.Context, yield func(id, deadline, cookie uint64) bool) error {
		a.restores.Add(1)
		for i := uint64(0); i < number[1]; i++ {
			id := number[0] + i
			if !yield(id, number[2], id) {
				break
			}
			a.restored.Add(1)
		}
		return nil
	}
}

// start begins a command, and waits until its requests are in the row.
func (a *agent) start(line string) []string {
	parts := strings.SplitN(line, " ", 3)
	ctx, cancel := context.WithCancel(context.Background())
	t := &task{cancel, make(chan []string, 1)}
	a.started[parts[1]] = t
	before := 0
	if a.queue != nil {
		before = a.queue.Info().Unanswered
	}
	go func() {
		defer cancel()
		t.answer <- a.command(ctx, parts[2])
	}()
	for i := 0; i < 50 && a.queue != nil && len(t.answer) == 0 &&
		a.queue.Info().Unanswered <= before; i++ {
		time.Sleep(time.Millisecond)
	}
	return one("ok")
}

// left counts goroutines. One that has ended may be seen for a moment.
func (a *agent) left() []string {
	nr := 0
	for i := 0; i < 100; i++ {
		nr = runtime.NumGoroutine() - a.goroutine
		if nr <= 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return one("ok tasks=%d", nr)
}

func (a *agent) receive(ctx context.Context, w words) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx,
		time.Duration(w.number("timeout_ms"))*time.Millisecond)
	defer cancel()
	var lines []string
	var one [1]expiry.Record

	count := uint64(0)
	for count < w.number("max") {
		_, err := a.queue.Receive(ctx, one[:])
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil && count > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		switch r := &one[0]; r.Op {
		case expiry.OpClockSet:
			lines = append(lines, fmt.Sprintf("clock_set now=%d", r.Deadline))
		case expiry.OpMissed:
			lines = append(lines, fmt.Sprintf("missed count=%d", r.Cookie))
		default:
			lines = append(lines, timer("due", r))
			count++
		}
	}
	return append(lines, fmt.Sprintf("ok count=%d", count)), nil
}

func (a *agent) drain(ctx context.Context, w words) ([]string, error) {
	var sum, last, count, early, unordered, redelivered uint64

	ctx, cancel := context.WithTimeout(ctx,
		time.Duration(w.number("timeout_ms"))*time.Millisecond)
	defer cancel()
	due := make([]expiry.Record, 512)
	for want := w.number("count"); count < want; {
		some := due
		if want-count < uint64(len(some)) {
			some = some[:want-count]
		}
		n, err := a.queue.Receive(ctx, some)
		if err != nil {
			return nil, err
		}
		now := a.queue.Now()
		acks := make([]expiry.Record, 0, n)
		for _, r := range some[:n] {
			if r.Op != expiry.OpExpired {
				continue
			}
			count++
			sum += r.ID
			if r.Deadline > now {
				early++
			}
			if r.Deadline < last {
				unordered++
			}
			if r.Redelivered() {
				redelivered++
			}
			last = r.Deadline
			acks = append(acks, expiry.Record{Op: expiry.OpAck, ID: r.ID})
		}
		if w.values["ack"] == "yes" {
			if err := a.queue.Submit(ctx, acks); err != nil {
				return nil, err
			}
		}
	}
	return one("ok count=%d sum=%d early=%d unordered=%d redelivered=%d", count, sum, early,
		unordered, redelivered), nil
}
