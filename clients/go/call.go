// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"sync"
	"syscall"
)

// call is requests of one goroutine in the row of those without an answer. The
// Queue's mutex guards it while it is in the row.
type call struct {
	next     *call
	records  []Record // requests, replaced by their replies; the caller's
	total    int      // requests that are sent or will be
	sent     int
	answered int
	detached bool   // the caller has gone: replies are dropped
	begun    uint64 // when, on the queue's clock; for Reconnect
	link     uint32 // which connection it was, by the number of reconnects
	listing  *listing
	err      error
	done     chan struct{} // one message: all is answered, or err is set
	one      [1]Record
}

var callPool = sync.Pool{New: func() any {
	return &call{done: make(chan struct{}, 1)}
}}

func getCall() *call { return callPool.Get().(*call) }

func (c *call) put() {
	done := c.done
	*c = call{done: done}
	callPool.Put(c)
}

// callRow is the calls without all their answers, in the order of their requests.
// Those from unsent on have requests that are still to be sent.
type callRow struct {
	head, tail, unsent *call
	inFlight           uint32
	arms               uint64 // that were answered
}

// isInListing reports whether the next record is in the middle of a reply.
func (row *callRow) isInListing() bool {
	return row.head != nil && row.head.listing != nil && row.head.listing.begun
}

// unanswered returns how many requests have no answer.
func (row *callRow) unanswered() int {
	nr := 0
	for c := row.head; c != nil; c = c.next {
		nr += c.total - c.answered
	}
	return nr
}

func (row *callRow) push(c *call) {
	if row.tail != nil {
		row.tail.next = c
	} else {
		row.head = c
	}
	row.tail = c
	if row.unsent == nil {
		row.unsent = c
	}
}

// pop removes the head and tells its caller.
func (row *callRow) pop() { row.end(row.head) }

// end removes a call and tells its caller.
func (row *callRow) end(c *call) {
	row.remove(c)
	if c.detached {
		c.put()
		return
	}
	c.done <- struct{}{}
}

// remove takes a call out of the row that has nothing in flight.
func (row *callRow) remove(c *call) {
	var before *call

	for at := row.head; at != c; at = at.next {
		before = at
	}
	if before != nil {
		before.next = c.next
	} else {
		row.head = c.next
	}
	if row.tail == c {
		row.tail = before
	}
	if row.unsent == c {
		row.unsent = c.next
	}
	c.next = nil
}

// gather copies unsent requests, as many as fit and the window allows. On a later
// connection than that of their call, relative deadlines count from the call.
func (row *callRow) gather(to []Record, window, link uint32) int {
	n := 0
	for c := row.unsent; c != nil && n < len(to) && row.inFlight < window; c = row.unsent {
		some := to[n:]
		if room := int(window - row.inFlight); len(some) > room {
			some = some[:room]
		}
		k := copy(some, c.records[c.sent:c.total])
		if c.link != link {
			makeAbsolute(some[:k], c.begun)
		}
		c.sent += k
		n += k
		row.inFlight += uint32(k)
		if c.sent < c.total {
			break
		}
		row.unsent = c.next
	}
	return n
}

// answer hands replies to their callers. It returns how many records it took: fewer
// than it got if an event or the reply to a listing is next.
func (row *callRow) answer(replies []Record) (int, error) {
	taken := 0
	for taken < len(replies) {
		c := row.head
		if c == nil || c.answered == c.sent {
			if isEvent(&replies[taken]) {
				return taken, nil
			}
			return taken, &ProtocolError{"a reply without a request"}
		}
		n, err := c.take(replies[taken:])
		taken += n
		if err != nil {
			return taken, err
		}
		if c.listing == nil {
			row.inFlight -= uint32(n)
			row.countArms(replies[taken-n : taken])
		} else if c.listing.complete {
			c.answered++
			row.inFlight--
		}
		if c.answered == c.total {
			row.pop()
		} else if n == 0 || c.listing != nil {
			return taken, nil
		}
	}
	return taken, nil
}

func (row *callRow) countArms(replies []Record) {
	for i := range replies {
		if replies[i].Op == OpArm && replies[i].Status == 0 {
			row.arms++
		}
	}
}

// take takes replies up to the next event, which never stands inside a listing.
func (c *call) take(replies []Record) (int, error) {
	if c.listing != nil {
		if isEvent(&replies[0]) && !c.listing.begun {
			return 0, nil
		}
		return c.listing.take(replies)
	}
	n := c.sent - c.answered
	if n > len(replies) {
		n = len(replies)
	}
	if c.detached {
		for i := range replies[:n] {
			if isEvent(&replies[i]) {
				n = i
				break
			}
		}
		c.answered += n
		return n, nil
	}
	requests := c.records[c.answered : c.answered+n]
	for i := range requests {
		r := &replies[i]
		if isReply(r, &requests[i]) {
			continue
		}
		if !isEvent(r) {
			copy(requests, replies[:i])
			c.answered += i
			return i, &ProtocolError{"a reply to another request"}
		}
		n = i
		break
	}
	copy(requests, replies[:n])
	c.answered += n
	return n, nil
}

// fail ends all calls, which get err in an *Unanswered.
func (row *callRow) fail(err error) {
	for c := row.head; c != nil; c = row.head {
		c.err = c.unanswered(err)
		row.pop()
	}
	row.inFlight = 0
}

func (c *call) unanswered(err error) *Unanswered {
	return &Unanswered{c.answered, c.sent - c.answered, c.total - c.sent, err}
}

// lost prepares the row for the next connection. Requests up to the last one in
// flight that is not idempotent get ECONNRESET; the others are unsent again, and so
// are listings, which leave no trace. It returns how many of them are in doubt.
func (row *callRow) lost(keyed bool) uint32 {
	last, at, doubt := 0, 0, uint32(0)
	for c := row.head; c != nil; c = c.next {
		for i := c.answered; i < c.sent; i++ {
			at++
			if !c.detached && !isIdempotent(&c.records[i], keyed) {
				last = at
			}
		}
	}
	at = 0
	for c := row.head; c != nil && c.sent > c.answered; {
		next := c.next
		if c.listing != nil {
			at++
		}
		for c.listing == nil && c.answered < c.sent && at < last {
			if !c.detached {
				c.records[c.answered].Status = -int16(syscall.ECONNRESET)
			}
			c.answered++
			at++
		}
		if c.detached {
			c.answered = c.total
		}
		if c.answered < c.total {
			doubt += uint32(c.sent - c.answered)
			c.sent = c.answered
			if c.listing != nil {
				c.listing.restart()
			}
		}
		if c.answered == c.total {
			row.end(c)
		}
		c = next
	}
	row.inFlight = 0
	row.unsent = row.head
	return doubt
}
