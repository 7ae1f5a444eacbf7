// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"context"
	"log"
	"sync"
	"time"

	expiry "expiry.example/clients/go"
	"github.com/gomodule/redigo/redis"
)

const (
	batchMax  = 512         // keys that Redis is asked about at a time
	scanMax   = 2048        // keys of a pass, for which no one waits
	heartbeat = time.Second // between two looks at the server's role and clock
)

// session lasts as long as its connections. What it knows ends with it: the queue is
// anonymous, and the next session reads all keys again.
type session struct {
	o       *options
	m       *metrics
	queue   *expiry.Queue
	events  chan event    // what Redis said of keys
	due     chan []uint64 // ids of timers that have expired
	scanned chan []string // keys that a pass over all of them found
	failed  chan error    // the first error of any goroutine ends the session
	conns   []redis.Conn
}

// event is a key that Redis named. isGone: it may have lost its time or itself.
type event struct {
	key    string
	isGone bool
}

// runSession serves until something breaks, or the context is done.
func runSession(ctx context.Context, o *options, m *metrics) error {
	ctx, cancel := context.WithCancel(ctx)
	s := &session{o: o, m: m, events: make(chan event, 4*batchMax),
		due: make(chan []uint64), scanned: make(chan []string), failed: make(chan error, 5)}
	var group sync.WaitGroup
	defer group.Wait()
	defer s.close()
	defer cancel()

	asks, err := s.connect(answerTimeout)
	if err != nil {
		return err
	}
	if err := checkMaster(asks); err != nil {
		return err
	}
	if err := configure(asks, o); err != nil {
		return err
	}
	scans, err := s.connect(answerTimeout)
	if err != nil {
		return err
	}
	listens, err := s.connect(0)
	if err != nil {
		return err
	}
	s.queue, err = expiry.Open(ctx, "", expiry.Socket(o.socket), expiry.Keyed(),
		expiry.Consume(), expiry.Credit(4*batchMax))
	if err != nil {
		return err
	}
	// Keys that get a time from here on are reported; the pass finds those before.
	subscription, err := subscribe(listens)
	if err != nil {
		return err
	}
	a := newAsker(s, asks)
	if err := a.compareClocks(); err != nil {
		return err
	}
	start := func(run func(context.Context) error) {
		group.Add(1)
		go func() {
			defer group.Done()
			s.failed <- run(ctx)
		}()
	}
	start(func(ctx context.Context) error { return s.listen(ctx, subscription) })
	start(s.receive)
	start(func(ctx context.Context) error { return s.scan(ctx, scans) })
	notify("READY=1")
	m.sessions.Add(1)
	return a.run(ctx)
}

func (s *session) connect(timeout time.Duration) (redis.Conn, error) {
	c, err := dial(s.o, timeout)
	if err == nil {
		s.conns = append(s.conns, c)
	}
	return c, err
}

// close has all goroutines' calls fail.
func (s *session) close() {
	for _, c := range s.conns {
		c.Close()
	}
	if s.queue != nil {
		s.queue.Close()
	}
	s.m.keys.Store(0)
	s.m.refused.Store(0)
}

// receive passes on the ids of expired timers.
func (s *session) receive(ctx context.Context) error {
	records := make([]expiry.Record, batchMax)
	for {
		n, err := s.queue.Receive(ctx, records)
		if err != nil {
			return err
		}
		ids := make([]uint64, n)
		for i := range ids {
			ids[i] = records[i].ID
		}
		select {
		case s.due <- ids:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// scan goes over all keys: at once when the session begins, then slowly. The slow passes
// find what no event told, such as keys of a database that was exchanged by SWAPDB.
func (s *session) scan(ctx context.Context, c redis.Conn) error {
	began := time.Now()
	total, err := s.pass(ctx, c, 0)
	if err != nil {
		return err
	}
	s.m.passes.Add(1)
	log.Printf("%d keys read in %.1f s, %d of them with a time", total,
		time.Since(began).Seconds(), s.m.keys.Load())
	for {
		var pause time.Duration
		if s.o.sweep == 0 {
			<-ctx.Done()
			return ctx.Err()
		}
		size, err := redis.Int64(c.Do("DBSIZE"))
		if err != nil {
			return err
		}
		pause = s.o.sweep / time.Duration(size/scanMax+1)
		if _, err := s.pass(ctx, c, pause); err != nil {
			return err
		}
		s.m.passes.Add(1)
	}
}

// pass reads all keys once, with pauses between parts of them.
func (s *session) pass(ctx context.Context, c redis.Conn, pause time.Duration) (int, error) {
	total := 0
	patterns := s.patterns()
	for _, pattern := range patterns {
		for cursor := "0"; ; {
			if pause > 0 {
				select {
				case <-time.After(pause / time.Duration(len(patterns))):
				case <-ctx.Done():
					return total, ctx.Err()
				}
			}
			parts, err := redis.Values(c.Do("SCAN", cursor, "MATCH", pattern,
				"COUNT", scanMax))
			if err != nil {
				return total, err
			}
			keys, err := redis.Strings(parts[1], nil)
			if err != nil {
				return total, err
			}
			if cursor, err = redis.String(parts[0], nil); err != nil {
				return total, err
			}
			total += len(keys)
			if len(keys) > 0 {
				select {
				case s.scanned <- keys:
				case <-ctx.Done():
					return total, ctx.Err()
				}
			}
			if cursor == "0" {
				break
			}
		}
	}
	return total, nil
}
