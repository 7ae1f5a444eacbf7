// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"time"
	"unsafe"
)

// Record is a request, its reply, or an expiration, as the socket carries it.
type Record struct {
	Op       uint8
	Flags    uint8
	Status   int16  // in: 0; out: 0 or a negative errno
	PeriodMS uint32 // 0 = once; of an expiration: Count
	ID       uint64
	Deadline uint64 // nanoseconds on the queue's clock
	Cookie   uint64 // the program's own
}

// RecordSize is the size of a record on the socket, in bytes.
const RecordSize = 32

// A compile-time check that Record has no padding.
var _ [RecordSize]byte = [unsafe.Sizeof(Record{})]byte{}

// Requests about timers, and records for consumers.
const (
	OpArm      = 1
	OpRefresh  = 2
	OpCancel   = 3
	OpAck      = 4
	OpQuery    = 5
	OpClear    = 6
	OpExpired  = 16
	OpClockSet = 17
	OpHello    = 64
	OpCredit   = 65
	OpScan     = 66
	OpStat     = 67
	OpDrop     = 68
	OpQueues   = 69
	OpMissed   = 70
)

// Flags of a record.
const (
	Relative    = 1  // Arm, Refresh: the deadline counts from now
	Redelivered = 2  // out: this expiration was delivered before
	New         = 4  // Arm, keyed: refuse if armed
	Later       = 8  // Arm, Refresh: never bring the deadline forward
	Late        = 16 // out, durable queues: the deadline passed before the server started
)

// Never is the deadline that never comes.
const Never = ^uint64(0)

// Redelivered reports whether an expiration was delivered before.
func (r *Record) Redelivered() bool { return r.Flags&Redelivered != 0 }

// Late reports whether the deadline passed before the server started. Only expirations
// of durable queues can be.
func (r *Record) Late() bool { return r.Flags&Late != 0 }

// Time returns the deadline of a record of a REALTIME queue. Never is the zero
// Time.
func (r *Record) Time() time.Time {
	if r.Deadline == Never {
		return time.Time{}
	}
	return time.Unix(int64(r.Deadline/1e9), int64(r.Deadline%1e9))
}

// Count returns how many times of a periodic timer an expiration stands for: 1, or
// more if it came late; 0 if the timer has no period. It is in the place of Period.
func (r *Record) Count() uint32 {
	return r.PeriodMS
}

// Period returns the time between expirations of a periodic timer, else 0. An
// expiration has a Count instead.
func (r *Record) Period() time.Duration {
	return time.Duration(r.PeriodMS) * time.Millisecond
}

// At returns a time as a deadline of a REALTIME queue. A time before 1970 is 0: due
// at once. A time after 2554, which the protocol cannot express, is an error.
func At(t time.Time) (uint64, error) {
	const last = (1<<64 - 1) / 1_000_000_000

	s := t.Unix()
	if s < 0 {
		return 0, nil
	}
	if s >= last {
		return 0, &InvalidError{"a time after the year 2554"}
	}
	return uint64(s)*1e9 + uint64(t.Nanosecond()), nil
}

// wire returns the bytes of records as the socket carries them: in the machine's
// own byte order, which is the protocol's.
func wire(records []Record) []byte {
	if len(records) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&records[0])),
		len(records)*RecordSize)
}

// isEvent reports whether a record of the server is not a reply. A reply to a
// request with such an op is refused, so its status is not 0.
func isEvent(r *Record) bool {
	return r.Status == 0 &&
		(r.Op == OpExpired || r.Op == OpClockSet || r.Op == OpMissed)
}

// isReply reports whether r can be the reply to a request. Only ARM on a plain queue,
// whose id is 0, gets another id.
func isReply(r, request *Record) bool {
	return r.Op == request.Op && r.Status <= 0 &&
		(r.ID == request.ID || r.Op == OpArm && request.ID == 0)
}

// isIdempotent reports whether a request may be sent again when nobody knows
// whether it was carried out.
func isIdempotent(r *Record, keyed bool) bool {
	switch r.Op {
	case OpArm:
		// A plain queue would give a second id, and New would find its
		// own first timer.
		return keyed && r.Flags&New == 0
	case OpRefresh, OpCancel, OpAck, OpQuery, OpScan, OpStat, OpQueues, OpDrop:
		return true
	}
	return false
}

// makeAbsolute has the relative deadlines count from begun.
func makeAbsolute(records []Record, begun uint64) {
	for i := range records {
		r := &records[i]
		if r.Flags&Relative == 0 || r.Op != OpArm && r.Op != OpRefresh {
			continue
		}
		r.Flags &^= Relative
		r.Deadline += begun
		if r.Deadline < begun {
			r.Deadline = Never
		}
	}
}
