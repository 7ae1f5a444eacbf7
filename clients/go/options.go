// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// Clock is one of the machine's clocks.
type Clock uint32

// The clocks of queues.
const (
	Realtime  Clock = 0
	Monotonic Clock = 1
	Boottime  Clock = 7
)

const (
	nameMax       = 24
	defaultCredit = 1024
	creditMax     = 1 << 20
	windowMax     = 1 << 16

	helloConsume  = 0x01
	helloAck      = 0x02
	helloDurable  = 0x04
	helloKeyed    = 0x08
	helloExisting = 0x10
	helloObserve  = 0x40
)

// RestoreFunc yields the id, deadline and cookie of each timer that should be armed,
// from where the truth is. The deadline is in nanoseconds on the queue's clock, see
// At. It returns when yield reports false, whose error the Queue has itself.
type RestoreFunc func(ctx context.Context,
	yield func(id, deadline, cookie uint64) bool) error

type settings struct {
	name      string
	socket    string
	flags     uint8
	clock     Clock
	credit    uint32
	window    uint32
	reconnect bool
	events    bool
	restore   RestoreFunc
}

func (s *settings) has(flag uint8) bool { return s.flags&flag != 0 }

// Option is a choice for Open.
type Option func(*settings)

// Socket names the daemon's socket instead of DefaultSocket().
func Socket(path string) Option { return func(s *settings) { s.socket = path } }

// Consume has this Queue take the expirations. A queue has one consumer.
func Consume() Option { return func(s *settings) { s.flags |= helloConsume } }

// Ack is a queue that keeps an expired timer until it is acknowledged: at least
// once. It is part of the queue's mode.
func Ack() Option { return func(s *settings) { s.flags |= helloAck } }

// Keyed is a queue whose clients choose the ids. It is part of the queue's mode.
func Keyed() Option { return func(s *settings) { s.flags |= helloKeyed } }

// Durable is a queue that outlives the server and the machine. It needs a name, Keyed
// and Ack.
func Durable() Option { return func(s *settings) { s.flags |= helloDurable } }

// Existing attaches to a queue that exists, and makes none. Without a name the Queue
// can only list queues and read counters.
func Existing() Option { return func(s *settings) { s.flags |= helloExisting } }

// Observe gets copies of what the queue's consumer gets, and may only look. It
// implies Events.
func Observe() Option {
	return func(s *settings) {
		s.flags |= helloObserve
		s.events = true
	}
}

// OnClock sets the queue's clock, for its whole life. Realtime if not given.
func OnClock(clock Clock) Option { return func(s *settings) { s.clock = clock } }

// Credit limits the expirations that the server may send before the program takes
// them: 32 bytes each, 1024 if not given.
func Credit(nr uint32) Option { return func(s *settings) { s.credit = nr } }

// Window limits the requests in flight. Without it the server's own limit holds.
func Window(nr uint32) Option { return func(s *settings) { s.window = nr } }

// Events has Receive also report OpClockSet, a step of the clock, and OpMissed, the
// number of copies that an observer did not take in time.
func Events() Option { return func(s *settings) { s.events = true } }

// Reconnect replaces a broken connection by one to the same queue, and the program
// sees a pause. The queue must have a name and, to consume, acknowledge.
//
// Unanswered requests are sent again, in order. Not idempotent are Add, NewOnly and
// Clear: they end with ECONNRESET, as do unanswered requests before them. Cancel and
// AckIDs that were carried out report that the timer is gone. A queue that was lost
// ends the Queue with a *Lost, unless Restore is given.
func Reconnect() Option { return func(s *settings) { s.reconnect = true } }

// Restore arms what f yields when the queue is empty at Open, and, with Reconnect,
// when the queue was lost. Consumers get no expiration before. The queue must be
// keyed, so that arming twice does no harm. f must not use the Queue.
func Restore(f RestoreFunc) Option { return func(s *settings) { s.restore = f } }

// DefaultSocket returns $EXPIRY_SOCKET, or /run/expiryd/socket if that exists or the
// user is root, or the socket of the user's own daemon.
func DefaultSocket() string {
	const system = "/run/expiryd/socket"

	if path := os.Getenv("EXPIRY_SOCKET"); path != "" {
		return path
	}
	if _, err := os.Lstat(system); err == nil || os.Geteuid() == 0 {
		return system
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "expiry", "socket")
	}
	return system
}

// complete fills in defaults and checks what the server cannot.
func (s *settings) complete() error {
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" +
		"abcdefghijklmnopqrstuvwxyz0123456789._-"

	isOutside := func(c rune) bool { return !strings.ContainsRune(characters, c) }
	if s.socket == "" {
		s.socket = DefaultSocket()
	}
	if s.credit == 0 {
		s.credit = defaultCredit
	}
	if s.window == 0 || s.window > windowMax {
		s.window = windowMax
	}
	consuming := s.has(helloConsume)
	switch {
	case len(s.name) > nameMax || strings.IndexFunc(s.name, isOutside) >= 0:
		return &InvalidError{"a name is up to 24 characters of A-Z a-z 0-9 . _ -"}
	case s.credit > creditMax:
		return &InvalidError{"Credit: at most 1048576"}
	case s.has(helloDurable) && (s.name == "" || !s.has(helloAck) || !s.has(helloKeyed)):
		return &InvalidError{"Durable: the queue needs a name, Keyed and Ack"}
	case s.reconnect && s.name == "":
		return &InvalidError{"Reconnect: the queue needs a name"}
	case s.reconnect && consuming && !s.has(helloAck):
		return &InvalidError{"Reconnect: a consumer's queue must be opened with Ack"}
	case s.restore != nil && !s.has(helloKeyed):
		return &InvalidError{"Restore: the queue must be opened with Keyed"}
	case s.restore != nil && s.has(helloObserve|helloExisting):
		return &InvalidError{"Restore: not with Observe or Existing"}
	case s.has(helloObserve) && consuming:
		return &InvalidError{"Observe: not with Consume"}
	}
	return nil
}

// hello returns the first record of a connection.
func (s *settings) hello() []Record {
	records := []Record{{Op: OpHello, Flags: s.flags, Status: 1,
		PeriodMS: uint32(s.clock)}}
	copy(wire(records)[8:], s.name)
	return records
}
