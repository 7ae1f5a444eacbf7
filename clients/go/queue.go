// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Pauses between attempts to connect, or to restore.
const (
	pauseFirst = 10 * time.Millisecond
	pauseMax   = time.Second
)

// refusedTime is for how long a server may refuse. A test shortens it.
var refusedTime = 5 * time.Second

// Queue is a connection to a queue of expiryd. All its methods may be called by any
// goroutine at any time.
type Queue struct {
	set  settings
	life life // the goroutine that connects owns it

	ctx    context.Context // done when Close begins
	cancel context.CancelFunc
	ended  sync.WaitGroup
	broken chan struct{} // closed when err is set

	wakeWriter chan struct{}
	arrived    chan struct{}

	mu         sync.Mutex
	row        callRow
	inbox      inbox
	window     uint32
	doubt      uint32   // requests that are sent again before credit is given
	conn       net.Conn // nil while there is none
	writeErr   error
	err        error // why nothing more can be asked
	timers     uint64
	isDurable  bool
	commitMS   uint32
	reconnects uint32
}

// Info is what was opened.
type Info struct {
	Timers     uint64 // in the queue when it was opened
	Window     uint32 // most requests in flight
	Reconnects uint32 // connections made since
	Unanswered int    // requests without an answer, sent or not
	Durable    bool   // the queue outlives the server and the machine
	CommitMS   uint32 // of a durable queue: between flushes; 0: before each answer
}

// Open attaches to a queue, which is made if it is not there. Without a name the
// queue ends with its connection. It blocks until the server has answered and, with
// Restore, has all timers, or until the context is done.
func Open(ctx context.Context, name string, options ...Option) (*Queue, error) {
	q := &Queue{
		set:        settings{name: name},
		broken:     make(chan struct{}),
		wakeWriter: make(chan struct{}, 1),
		arrived:    make(chan struct{}, 1),
	}
	for _, option := range options {
		option(&q.set)
	}
	if err := q.set.complete(); err != nil {
		return nil, err
	}
	q.inbox.init(&q.set)
	q.ctx, q.cancel = context.WithCancel(context.Background())
	s, g, err := q.connect(ctx, 0)
	if err != nil {
		q.cancel()
		return nil, err
	}
	q.timers, q.isDurable, q.commitMS = g.timers, g.isDurable, g.commitMS
	q.ended.Add(1)
	go q.run(s, g)
	return q, nil
}

// Close ends the connection and its goroutines. Calls that wait return an
// *Unanswered with ErrClosed. An anonymous queue and its timers are gone. On an
// acknowledging queue, what was delivered and not acknowledged comes again.
func (q *Queue) Close() error {
	q.fail(ErrClosed)
	q.cancel()
	q.ended.Wait()
	return nil
}

// Info returns what was opened.
func (q *Queue) Info() Info {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Info{q.timers, q.window, q.reconnects, q.row.unanswered(), q.isDurable,
		q.commitMS}
}

// Err returns why the Queue cannot be used any more, nil if it can.
func (q *Queue) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// Now returns the time on the queue's clock, in nanoseconds.
func (q *Queue) Now() uint64 { return clockNow(q.set.clock) }

func (q *Queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	q.err = err
	q.row.fail(err)
	close(q.broken)
	if q.conn != nil {
		// Ends reads and writes; serve closes it.
		q.conn.SetDeadline(time.Unix(1, 0))
	}
}

// run reads from one connection after the other, until the last one is over.
func (q *Queue) run(s *stream, g *greeting) {
	defer q.ended.Done()
	for s != nil {
		err := q.serve(s, g)
		if q.ctx.Err() == nil && q.set.reconnect && isServerGone(err) {
			s, g, err = q.reconnect()
		} else {
			s = nil
		}
		if s == nil {
			q.fail(err)
		}
	}
}

// serve has a connection read and written until it breaks. It returns why.
func (q *Queue) serve(s *stream, g *greeting) error {
	q.mu.Lock()
	if q.err != nil {
		q.mu.Unlock()
		s.conn.Close()
		return ErrClosed
	}
	q.conn = s.conn
	q.window = g.window
	q.commitMS = g.commitMS
	q.writeErr = nil
	q.inbox.topUp()
	for i := range g.steps {
		if q.inbox.consumes {
			q.inbox.add(&g.steps[i])
		}
	}
	q.mu.Unlock()
	q.wake(q.wakeWriter)
	q.wake(q.arrived)

	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Add(1)
	go func() {
		defer writer.Done()
		q.write(s.conn, stop)
	}()
	err := q.read(s)
	close(stop)
	s.conn.Close()
	writer.Wait()

	q.mu.Lock()
	defer q.mu.Unlock()
	q.conn = nil
	if q.writeErr != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		err = lostConnection(q.writeErr)
	}
	return err
}

// write sends what is gathered, and stops the reader when it ends.
func (q *Queue) write(conn net.Conn, stop chan struct{}) {
	buf := make([]Record, streamRecords)
	for {
		n := q.gather(buf)
		if n == 0 {
			select {
			case <-q.wakeWriter:
				continue
			case <-stop:
				return
			}
		}
		if _, err := conn.Write(wire(buf[:n])); err != nil {
			q.mu.Lock()
			q.writeErr = err
			q.mu.Unlock()
			// What the server has sent is still there to be read.
			conn.SetReadDeadline(time.Now().Add(time.Second))
			return
		}
	}
}

// gather fills buf with requests, and with credit behind those in doubt.
func (q *Queue) gather(buf []Record) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.row.gather(buf[:len(buf)-1], q.window, q.reconnects)
	// Calls that were given up meanwhile are not sent again.
	if q.doubt > uint32(n) && q.row.unsent != nil {
		q.doubt -= uint32(n)
		return n
	}
	q.doubt = 0
	if nr := q.inbox.takeDue(); nr > 0 {
		buf[n] = Record{Op: OpCredit, PeriodMS: nr}
		n++
	}
	return n
}

// read sorts what the server sends, until the connection breaks.
func (q *Queue) read(s *stream) error {
	for {
		records, err := s.next()
		if err != nil {
			return err
		}
		if err := q.sort(records); err != nil {
			return err
		}
		s.skip(len(records))
	}
}

func (q *Queue) sort(records []Record) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.row.unsent != nil && q.row.inFlight >= q.window
	held := q.inbox.len()
	for len(records) > 0 {
		if isEvent(&records[0]) && !q.row.isInListing() {
			if err := q.inbox.add(&records[0]); err != nil {
				return err
			}
			records = records[1:]
			continue
		}
		n, err := q.row.answer(records)
		if err != nil {
			return err
		}
		records = records[n:]
	}
	if before && q.row.inFlight < q.window {
		q.wake(q.wakeWriter)
	}
	if q.inbox.len() != held {
		q.wake(q.arrived)
	}
	return nil
}

// wake leaves a message for a goroutine that waits, or will.
func (q *Queue) wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// reconnect makes the next connection. Without success it returns why there is none.
func (q *Queue) reconnect() (*stream, *greeting, error) {
	var refused time.Time
	var pause time.Duration

	q.mu.Lock()
	q.inbox.lost()
	q.doubt = q.row.lost(q.set.has(helloKeyed))
	q.life.arms += q.row.arms
	q.row.arms = 0
	q.mu.Unlock()
	for {
		s, g, err := q.connect(q.ctx, handshakeTime)
		if err == nil {
			q.mu.Lock()
			q.reconnects++
			q.mu.Unlock()
			return s, g, nil
		}
		if q.ctx.Err() != nil {
			return nil, nil, ErrClosed
		}
		if errors.Is(err, syscall.EPROTO) || errors.Is(err, syscall.ESTALE) {
			return nil, nil, err
		}
		if isServerGone(err) {
			refused = time.Time{}
		} else if refused.IsZero() {
			refused = time.Now()
		} else if time.Since(refused) >= refusedTime {
			return nil, nil, err
		}
		if sleep(q.ctx, pause) != nil {
			return nil, nil, ErrClosed
		}
		pause = nextPause(pause)
	}
}

// nextPause returns the pause after the next attempt; the first one is 0.
func nextPause(pause time.Duration) time.Duration {
	if pause *= 2; pause == 0 {
		return pauseFirst
	} else if pause > pauseMax {
		return pauseMax
	}
	return pause
}

// sleep waits. A context that is done ends it, and is the error.
func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
