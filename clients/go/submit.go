// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"context"
	"syscall"
)

// Submit has requests carried out, in order, and replaces each record by its reply.
// Any number may be given. It blocks until all are answered or the context is done.
// A refused request is no error: its record has the status, see Check.
//
// When the context is done earlier, the error is an *Unanswered, and the records
// behind those that were answered are unchanged. The requests that were sent keep
// their place among the server's answers.
func (q *Queue) Submit(ctx context.Context, records []Record) error {
	for i := range records {
		r := &records[i]
		if r.Op >= OpHello || r.Op == OpExpired || r.Op == OpClockSet {
			return &InvalidError{"an op that is not a request about timers"}
		}
	}
	if len(records) == 0 {
		return nil
	}
	c := getCall()
	c.records, c.total = records, len(records)
	return q.do(ctx, c)
}

// request carries out one request.
func (q *Queue) request(ctx context.Context, r *Record) error {
	c := getCall()
	c.one[0] = *r
	c.records, c.total = c.one[:], 1
	q.start(ctx, c)
	if err := q.wait(ctx, c); err != nil {
		return err
	}
	err := c.err
	*r = c.one[0]
	c.put()
	if err == nil && r.Status != 0 {
		err = Check([]Record{*r}).(Refusals)[0]
	}
	return err
}

// list carries out a request whose reply is a listing.
func (q *Queue) list(ctx context.Context, r Record, l *listing) error {
	c := getCall()
	l.op = r.Op
	c.one[0] = r
	c.records, c.total, c.listing = c.one[:], 1, l
	if err := q.do(ctx, c); err != nil {
		return err
	}
	if l.errno != 0 {
		return &Refused{Op: r.Op, ID: r.ID, Errno: l.errno}
	}
	if !l.complete {
		return &Refused{Op: r.Op, ID: r.ID, Errno: syscall.ECONNRESET}
	}
	return nil
}

// do starts a call, waits for it and gives it back.
func (q *Queue) do(ctx context.Context, c *call) error {
	q.start(ctx, c)
	if err := q.wait(ctx, c); err != nil {
		return err
	}
	err := c.err
	c.put()
	return err
}

// start adds a call to the row, unless that is of no use: then it has its error.
func (q *Queue) start(ctx context.Context, c *call) {
	if err := ctx.Err(); err != nil {
		c.err = c.unanswered(err)
		c.done <- struct{}{}
		return
	}
	if q.set.reconnect {
		c.begun = clockNow(q.set.clock)
	}
	q.mu.Lock()
	if q.err != nil {
		c.err = c.unanswered(q.err)
		q.mu.Unlock()
		c.done <- struct{}{}
		return
	}
	c.link = q.reconnects
	q.row.push(c)
	q.mu.Unlock()
	q.wake(q.wakeWriter)
}

// wait waits for a call. With an error the call is no longer the caller's.
func (q *Queue) wait(ctx context.Context, c *call) error {
	if ctx.Done() == nil {
		<-c.done
		return nil
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-c.done:
		return nil
	default:
	}
	// The reader writes no more into the caller's records, and drops the
	// replies that are still to come.
	err := c.unanswered(ctx.Err())
	isInFlight := c.sent > c.answered
	if c.sent < c.total {
		if q.row.unsent == c {
			q.row.unsent = c.next
		}
		c.total = c.sent
		// Credit may have waited for this call alone.
		q.wake(q.wakeWriter)
	}
	c.detached = true
	c.records = nil
	if !isInFlight {
		q.row.remove(c)
		c.put()
	}
	return err
}
