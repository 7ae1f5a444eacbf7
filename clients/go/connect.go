// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// handshakeTime is how long a server may be silent in the handshake of each
// connection but the first, which Open's context limits.
const handshakeTime = 10 * time.Second

// restoreBatch is how many restored timers are sent at a time.
const restoreBatch = 512

// life is what a Queue knows of its queue from one connection to the next, so that
// it notices when another one has taken its place.
type life struct {
	attached uint64 // previous attach, on CLOCK_BOOTTIME
	arms     uint64 // least number of timers that the queue has counted
	number   uint64 // of a durable queue, else 0
	isKnown  bool
	isEmpty  bool // and is to be restored
}

// greeting is what a handshake yields.
type greeting struct {
	timers    uint64
	window    uint32
	isDurable bool
	commitMS  uint32
	steps     []Record // of the clock
}

// connect opens a connection and attaches to the queue. It returns when everything
// is restored. A context that is done ends it.
// A server that is silent for longer than limit, which may be 0 for ever, does, too.
func (q *Queue) connect(ctx context.Context, limit time.Duration) (*stream, *greeting, error) {
	var dialer net.Dialer

	conn, err := dialer.DialContext(ctx, "unix", q.set.socket)
	if err != nil {
		return nil, nil, err
	}
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-ctx.Done():
			conn.SetDeadline(time.Unix(1, 0))
		case <-stop:
		}
	}()
	s := newStream(conn)
	s.before = func() error {
		if limit > 0 {
			conn.SetDeadline(time.Now().Add(limit))
		}
		// What ends the context from here on sets the deadline later.
		return ctx.Err()
	}
	greeted, err := q.handshake(ctx, s)
	close(stop)
	<-stopped
	s.before = nil
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		conn.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, nil, err
	}
	return s, greeted, nil
}

// handshake sends HELLO, checks that the queue is the one of before, and restores.
func (q *Queue) handshake(ctx context.Context, s *stream) (*greeting, error) {
	request := q.set.hello()
	if q.life.isKnown {
		request = append(request, Record{Op: OpStat})
	}
	// A server above its limits answers and does not read.
	_, writeErr := s.conn.Write(wire(request))
	greeted, err := q.takeHello(s)
	if err != nil {
		return nil, err
	}
	if writeErr != nil {
		return nil, lostConnection(writeErr)
	}
	if q.life.isKnown {
		err = q.checkQueue(s, greeted)
		var lost *Lost
		if errors.As(err, &lost) && q.set.restore != nil {
			q.life.isEmpty = true
			err = nil
		}
		if err != nil {
			return nil, err
		}
	} else {
		// Each was armed once. A periodic one may count twice: it is armed
		// and not acknowledged.
		q.life = life{attached: clockNow(Boottime), arms: greeted.timers / 2,
			isKnown: true}
		if greeted.isDurable && q.set.reconnect {
			q.life.number, err = greeted.number(s)
			if err != nil {
				return nil, err
			}
		}
	}
	q.life.isEmpty = q.life.isEmpty || greeted.timers == 0
	if q.life.isEmpty && q.set.restore != nil {
		if err := q.restoreAll(ctx, s, greeted); err != nil {
			return nil, err
		}
	}
	q.life.isEmpty = false
	return greeted, nil
}

func (q *Queue) takeHello(s *stream) (*greeting, error) {
	records, err := s.next()
	if err != nil {
		return nil, err
	}
	r := records[0]
	s.skip(1)
	if r.Op != OpHello || r.Status > 0 {
		return nil, &ProtocolError{"the answer to HELLO is none: not expiryd"}
	}
	errno := syscall.Errno(-r.Status)
	if errno == syscall.ENOENT && q.life.isKnown {
		return nil, &Lost{"it was dropped"}
	}
	if errno == syscall.EPROTO {
		return nil, &ProtocolError{"the server found HELLO malformed"}
	}
	if errno != 0 {
		return nil, &Refused{Op: OpHello, Errno: errno}
	}
	window := uint32(r.Cookie)
	if window == 0 {
		return nil, &ProtocolError{"HELLO without a window"}
	}
	g := &greeting{timers: r.ID, window: q.set.window,
		isDurable: r.Flags&helloDurable != 0}
	if q.set.has(helloDurable) && !g.isDurable {
		return nil, &ProtocolError{"the server does not say that the queue is durable"}
	}
	if window < g.window {
		g.window = window
	}
	if g.isDurable {
		g.commitMS = uint32(r.Cookie >> 32)
	}
	return g, nil
}

// await takes the replies to a call that was sent and stands alone.
func (g *greeting) await(s *stream, c *call) error {
	c.sent = c.total
	row := callRow{head: c, tail: c, inFlight: uint32(c.total)}
	for row.head != nil {
		records, err := s.next()
		if err != nil {
			return err
		}
		n, err := row.answer(records)
		if err != nil {
			return err
		}
		if n < len(records) && row.head != nil {
			if records[n].Op != OpClockSet {
				return &ProtocolError{"an expiration without credit"}
			}
			g.steps = append(g.steps[:0], records[n])
			n++
		}
		s.skip(n)
	}
	<-c.done
	return nil
}

// takeStat takes the reply to STAT.
func (g *greeting) takeStat(s *stream) (stat QueueStat, server ServerStat, err error) {
	c := getCall()
	defer c.put()
	c.one[0] = Record{Op: OpStat}
	c.records, c.total = c.one[:], 1
	c.listing = &listing{op: OpStat, max: 1}
	if err = g.await(s, c); err != nil {
		return
	}
	if c.listing.errno != 0 {
		err = &Refused{Op: OpStat, Errno: c.listing.errno}
		return
	}
	stat, server = decodeStat(c.listing.units)
	return
}

// number asks for the number of a durable queue, which no other one ever has.
func (g *greeting) number(s *stream) (uint64, error) {
	if _, err := s.conn.Write(wire([]Record{{Op: OpStat}})); err != nil {
		return 0, lostConnection(err)
	}
	_, server, err := g.takeStat(s)
	if err == nil && server.Durable == 0 {
		err = &ProtocolError{"a durable queue without a number"}
	}
	return server.Durable, err
}

// checkQueue takes the reply to STAT. A durable queue has its number. With the embedded
// engine another one is at most as old as its daemon. With the kernel's, it has counted
// at least as many timers, unless other clients made up the difference.
func (q *Queue) checkQueue(s *stream, g *greeting) error {
	stat, server, err := g.takeStat(s)
	if err != nil {
		return err
	}
	now := clockNow(Boottime)
	before := q.life
	q.life = life{now, stat.Arms, server.Durable, true, before.isEmpty}
	if server.Durable != before.number {
		return &Lost{"another one has its name, or it is durable no more"}
	}
	if server.Durable != 0 {
		return nil
	}
	if server.Engine == engineEmbedded && server.UptimeNS < now-before.attached {
		return &Lost{"the daemon was started anew"}
	}
	if stat.Arms < before.arms {
		return &Lost{"another one has its name"}
	}
	return nil
}

// restoreAll arms what the program's function yields.
func (q *Queue) restoreAll(ctx context.Context, s *stream, g *greeting) error {
	var failed error

	size := restoreBatch
	if int(g.window) < size {
		size = int(g.window)
	}
	batch := make([]Record, 0, size)
	flush := func() bool {
		if len(batch) > 0 {
			failed = q.restoreSome(ctx, s, g, batch)
		}
		batch = batch[:0]
		return failed == nil
	}
	err := q.set.restore(ctx, func(id, deadline, cookie uint64) bool {
		if failed == nil {
			batch = append(batch, Record{Op: OpArm, ID: id, Deadline: deadline,
				Cookie: cookie})
		}
		return failed == nil && (len(batch) < cap(batch) || flush())
	})
	if failed == nil && err == nil {
		flush()
	}
	if failed != nil {
		return failed
	}
	return err
}

// restoreSome arms timers. A server that is held up refuses some with EBUSY and does
// nothing: these are sent again after pauses. It fails with another refusal, or when the
// server has armed none for refusedTime.
func (q *Queue) restoreSome(ctx context.Context, s *stream, g *greeting, batch []Record) error {
	var since time.Time
	var pause time.Duration

	for {
		replies := append([]Record(nil), batch...)
		if err := q.exchange(s, g, replies); err != nil {
			return err
		}
		refused := Check(replies)
		if refused == nil {
			return nil
		}
		busy := batch[:0]
		for i := range replies {
			if syscall.Errno(-replies[i].Status) == syscall.EBUSY {
				busy = append(busy, batch[i])
			}
		}
		if len(busy) < len(refused.(Refusals)) {
			return refused
		}
		if len(busy) < len(batch) || since.IsZero() {
			since, pause = time.Now(), 0
		} else if time.Since(since) >= refusedTime {
			return refused
		}
		pause = nextPause(pause)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		batch = busy
	}
}

// exchange replaces requests of restore by their replies.
func (q *Queue) exchange(s *stream, g *greeting, records []Record) error {
	c := getCall()
	defer c.put()
	c.records, c.total = records, len(records)
	if _, err := s.conn.Write(wire(records)); err != nil {
		return lostConnection(err)
	}
	if err := g.await(s, c); err != nil {
		return err
	}
	for i := range records {
		if records[i].Status == 0 {
			q.life.arms++
		}
	}
	return nil
}
