// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"context"
	"math"
	"syscall"
	"time"

	expiry "expiry.example/clients/go"
	"github.com/gomodule/redigo/redis"
)

// PEXPIRETIME's answers that are no time.
const (
	answerForever = -1
	answerNoKey   = -2
)

// asker asks Redis when keys expire, and arms their timers. The question itself has
// Redis remove a key whose time has passed, and say `expired`. So there is one question
// for a key that got a time, and for one whose timer has expired.
type asker struct {
	s       *session
	c       redis.Conn
	names   *names
	refused *refused
	retries bool          // refused timers are among those that are asked for
	ahead   time.Duration // the server's clock, ahead of this machine's
	records []expiry.Record
	asked   []question
}

// question is a key that Redis is asked about. isDue: its timer has expired.
type question struct {
	key   string
	id    uint64
	isDue bool
}

func newAsker(s *session, c redis.Conn) *asker {
	return &asker{s: s, c: c, names: newNames(), refused: newRefused(s.m)}
}

func (a *asker) compareClocks() (err error) {
	a.ahead, err = clockAhead(a.c)
	return err
}

// run takes what there is, at most a batch at a time. Expired timers come before events,
// and events before keys of a pass over all of them.
func (a *asker) run(ctx context.Context) error {
	beats := time.NewTicker(heartbeat)
	defer beats.Stop()
	for {
		select {
		case ids := <-a.s.due:
			a.takeDue(ids)
		default:
			select {
			case ids := <-a.s.due:
				a.takeDue(ids)
			case e := <-a.s.events:
				a.takeEvent(e)
			case keys := <-a.s.scannedUnless(len(a.s.events) > 0):
				for _, key := range keys {
					a.add(key, a.names.id(key), false)
				}
			case now := <-a.refused.wait():
				a.takeRefused(now)
			case <-beats.C:
				if err := a.beat(); err != nil {
					return err
				}
			case err := <-a.s.failed:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		for len(a.asked) < batchMax && len(a.s.events) > 0 {
			a.takeEvent(<-a.s.events)
		}
		if err := a.ask(ctx); err != nil {
			return err
		}
	}
}

// scannedUnless returns the channel of scanned keys, or one from which nothing comes.
func (s *session) scannedUnless(isBusy bool) chan []string {
	if isBusy {
		return nil
	}
	return s.scanned
}

func (a *asker) beat() error {
	if err := checkMaster(a.c); err != nil {
		return err
	}
	return a.compareClocks()
}

func (a *asker) takeDue(ids []uint64) {
	for _, id := range ids {
		if key, ok := a.names.name(id); ok {
			a.add(key, id, true)
		}
	}
}

// takeRefused takes keys that have no timer: those that are due, or whose timers are to
// be tried again.
func (a *asker) takeRefused(now time.Time) {
	ids, isDue := a.refused.take(batchMax, now)
	for _, id := range ids {
		if key, ok := a.names.name(id); ok {
			a.add(key, id, isDue)
		}
	}
	a.retries = !isDue
}

func (a *asker) takeEvent(e event) {
	id := a.names.id(e.key)
	if _, isKnown := a.names.name(id); isKnown || !e.isGone {
		a.add(e.key, id, false)
	}
}

func (a *asker) add(key string, id uint64, isDue bool) {
	a.asked = append(a.asked, question{key, id, isDue})
}

// ask asks about all keys in one turn, and has expiryd carry out what follows in another.
func (a *asker) ask(ctx context.Context) error {
	retries := a.retries
	a.retries = false
	if len(a.asked) == 0 {
		return nil
	}
	for i := range a.asked {
		if err := a.c.Send("PEXPIRETIME", a.asked[i].key); err != nil {
			return err
		}
	}
	if err := a.c.Flush(); err != nil {
		return err
	}
	now := time.Now()
	for i := range a.asked {
		at, err := redis.Int64(a.c.Receive())
		if err != nil {
			return err
		}
		a.answer(&a.asked[i], at, now)
	}
	a.s.m.asked.Add(int64(len(a.asked)))
	a.s.m.keys.Store(int64(a.names.len()))
	a.asked = a.asked[:0]
	records := a.records
	a.records = a.records[:0]
	if err := a.s.queue.Submit(ctx, records); err != nil {
		return err
	}
	wasRefused, err := a.check(records)
	if retries {
		a.refused.tried(wasRefused)
	}
	return err
}

// answer makes a request to expiryd from Redis' answer.
func (a *asker) answer(q *question, at int64, now time.Time) {
	if at < 0 {
		armed, isKnown := a.names.remove(q.id)
		switch {
		case q.isDue && at == answerNoKey:
			a.s.m.tell(now.Add(a.ahead).Sub(time.UnixMilli(armed)))
		case isKnown && !q.isDue:
			a.records = append(a.records, expiry.Record{Op: expiry.OpCancel, ID: q.id})
		}
		return
	}
	// A key is gone in the millisecond after its time.
	when := time.UnixMilli(at + 1).Add(-a.ahead)
	if q.isDue && when.Before(now.Add(time.Millisecond)) {
		// The server's clock is behind what was thought.
		when = now.Add(time.Millisecond)
	}
	deadline, err := expiry.At(when)
	if err != nil {
		deadline = expiry.Never
	}
	a.names.put(q.id, q.key, at)
	a.records = append(a.records, expiry.Record{Op: expiry.OpArm, ID: q.id,
		Deadline: deadline})
}

// check keeps the keys whose timers were refused, and forgets those that have one. An
// error is a refusal that will not end. A timer to be cancelled may have expired, or may
// have been refused.
func (a *asker) check(records []expiry.Record) (wasRefused bool, err error) {
	for i := range records {
		r := &records[i]
		errno := syscall.Errno(-r.Status)
		switch {
		case r.Op == expiry.OpCancel || r.Status == 0:
			a.refused.remove(r.ID)
		case !isLater(errno):
			return wasRefused, expiry.Check(records[i : i+1])
		case r.Deadline < math.MaxInt64: // else it is centuries away
			a.refused.add(r.ID, time.Unix(0, int64(r.Deadline)), errno)
			wasRefused = true
		}
	}
	return wasRefused, nil
}
