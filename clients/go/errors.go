// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// ErrClosed is the error of a Queue that Close has ended.
var ErrClosed = errors.New("expiry: the queue is closed")

// Refused is a request that the server did not carry out, or a HELLO that it
// refused. errors.Is(err, syscall.EDQUOT) asks for the reason. With ECONNRESET
// the connection broke first: the request may have been carried out.
type Refused struct {
	Op    uint8
	ID    uint64
	Index int // in the batch
	Errno syscall.Errno
}

func (e *Refused) Error() string {
	text := explain(e.Op, e.Errno)
	if e.Op == OpHello {
		return "expiry: refused: " + text
	}
	return fmt.Sprintf("expiry: request %d for id %d refused: %s", e.Op, e.ID, text)
}

func (e *Refused) Unwrap() error { return e.Errno }

// Refusals are those of a batch, in the order of their requests.
type Refusals []*Refused

func (e Refusals) Error() string {
	return fmt.Sprintf("%d requests refused, the first: %v", len(e), e[0])
}

// Is reports whether any request was refused for the reason.
func (e Refusals) Is(reason error) bool {
	for _, one := range e {
		if errors.Is(one, reason) {
			return true
		}
	}
	return false
}

// Check returns the refusals of a batch that Submit has answered, nil if there is
// none.
func Check(records []Record) error {
	var refused Refusals

	for i := range records {
		if r := &records[i]; r.Status != 0 {
			refused = append(refused, &Refused{r.Op, r.ID, i,
				syscall.Errno(-r.Status)})
		}
	}
	if refused == nil {
		return nil
	}
	return refused
}

// Unanswered is the error of a call that ended before all its answers came: its
// context was done, the connection broke, or the Queue was closed.
type Unanswered struct {
	Answered int   // from the first on; the records have their statuses
	InDoubt  int   // the next ones: sent, and perhaps carried out
	NotSent  int   // the rest: certainly not carried out
	Err      error // why
}

func (e *Unanswered) Error() string {
	return fmt.Sprintf("expiry: %d requests answered, %d in doubt, %d not sent: %v",
		e.Answered, e.InDoubt, e.NotSent, e.Err)
}

func (e *Unanswered) Unwrap() error { return e.Err }

// ProtocolError is a server that does not speak the protocol. No more is read from
// it, and errors.Is(err, syscall.EPROTO) is true.
type ProtocolError struct{ Text string }

func (e *ProtocolError) Error() string { return "expiry: protocol: " + e.Text }
func (e *ProtocolError) Unwrap() error { return syscall.EPROTO }

// InvalidError is an argument that cannot be sent. Nothing was sent, and
// errors.Is(err, syscall.EINVAL) is true.
type InvalidError struct{ Text string }

func (e *InvalidError) Error() string { return "expiry: " + e.Text }
func (e *InvalidError) Unwrap() error { return syscall.EINVAL }

// Lost is a queue that is not the one of before: its timers are gone.
// errors.Is(err, syscall.ESTALE) is true.
type Lost struct{ Text string }

func (e *Lost) Error() string { return "expiry: the queue was lost: " + e.Text }
func (e *Lost) Unwrap() error { return syscall.ESTALE }

// lostConnection translates what read and write report at the end of a
// connection.
func lostConnection(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = syscall.ECONNRESET
	}
	return fmt.Errorf("expiry: the connection broke: %w", err)
}

// isServerGone reports whether no server is running, as in a restart, or takes
// connections: its backlog is full (EAGAIN). What a server answered is not such an error.
func isServerGone(err error) bool {
	var refused *Refused

	if errors.As(err, &refused) {
		return false
	}
	for _, gone := range []error{syscall.ECONNREFUSED, syscall.ECONNRESET,
		syscall.ENOENT, syscall.EPIPE, syscall.EAGAIN, os.ErrDeadlineExceeded} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}

type reason struct {
	op    uint8
	errno syscall.Errno
}

var reasons = map[reason]string{
	{OpHello, syscall.EINVAL}: "the queue exists with another clock or mode or is not " +
		"durable, or its name is not of A-Z a-z 0-9 . _ -",
	{OpHello, syscall.EACCES}: "the queue belongs to another user, or this user may not " +
		"consume or observe it",
	{OpHello, syscall.EBUSY}: "the queue has a consumer already, or as many observers as " +
		"it may, or the daemon has no room for one more connection",
	{OpHello, syscall.ENOENT}: "no such queue exists",
	{OpHello, syscall.EDQUOT}: "the user has as many queues or connections as allowed",
	{OpHello, syscall.ENOSPC}: "the daemon has as many queues as allowed, or its journal is " +
		"full",
	{OpHello, syscall.EOPNOTSUPP}:      "the daemon has no journal for a durable queue",
	{OpHello, syscall.EPROTONOSUPPORT}: "the daemon speaks another version of the protocol",
	{OpArm, syscall.EINVAL}: "flags or id are wrong for this queue: a keyed one needs an " +
		"id that is not 0, a plain one chooses it",
	{OpArm, syscall.EEXIST}:     "the id is armed already",
	{OpArm, syscall.ENOSPC}:     "the queue is full, or the disk of the daemon's journal",
	{OpRefresh, syscall.ENOSPC}: "the disk of the daemon's journal is full",
	{0, syscall.EIO}:            "the engine or the journal failed: the daemon's log says why",
	{OpArm, syscall.EDQUOT}:     "the user has as many timers as allowed",
	{OpAck, syscall.ENOENT}:     "not delivered, or acknowledged before",
	{OpAck, syscall.EINVAL}:     "the queue does not acknowledge",
	{OpScan, syscall.ECANCELED}: "the list was not continued for long, or the daemon was " +
		"started anew: begin anew",
	{0, syscall.ENOENT}:     "no such timer is armed: it expired, was cancelled, or never was",
	{0, syscall.EBUSY}:      "the daemon was held up and did nothing: send it again",
	{0, syscall.EACCES}:     "this user, or an observer, may not do that",
	{0, syscall.ECONNRESET}: "the connection broke before the answer: it may have been carried out",
}

// explain returns a phrase for an errno of the server.
func explain(op uint8, errno syscall.Errno) string {
	text, ok := reasons[reason{op, errno}]
	if !ok {
		text, ok = reasons[reason{0, errno}]
	}
	if !ok {
		return errno.Error()
	}
	return text + ": " + errno.Error()
}
