// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import (
	"context"
	"errors"
	"math"
	"syscall"
	"time"
)

// ArmOption is a choice for a timer.
type ArmOption struct {
	flags  uint8
	cookie uint64
	every  time.Duration
}

// Cookie comes back with the expiration.
func Cookie(value uint64) ArmOption { return ArmOption{cookie: value} }

// Every arms the timer again at each expiration: whole milliseconds, up to 49 days.
func Every(period time.Duration) ArmOption { return ArmOption{every: period} }

// NewOnly refuses with EEXIST if the id is armed. Keyed queues only.
func NewOnly() ArmOption { return ArmOption{flags: New} }

// NotEarlier never brings the deadline of an armed timer forward.
func NotEarlier() ArmOption { return ArmOption{flags: Later} }

// fill makes a record of what Arm and its like were given.
func (r *Record) fill(options []ArmOption) error {
	for _, o := range options {
		r.Flags |= o.flags
		if o.cookie != 0 {
			r.Cookie = o.cookie
		}
		if o.every == 0 {
			continue
		}
		if o.every < 0 || o.every%time.Millisecond != 0 ||
			o.every/time.Millisecond > math.MaxUint32 {
			return &InvalidError{"Every: whole milliseconds, up to 4294967295"}
		}
		r.PeriodMS = uint32(o.every / time.Millisecond)
	}
	return nil
}

// span returns a duration as a relative deadline. What has passed is due at once.
func span(d time.Duration) uint64 {
	if d < 0 {
		return 0
	}
	return uint64(d)
}

// Arm arms the timer id of a keyed queue, which expires after ttl. An armed id gets
// the new deadline, cookie and period.
func (q *Queue) Arm(ctx context.Context, id uint64, ttl time.Duration,
	options ...ArmOption) error {
	r := Record{Op: OpArm, Flags: Relative, ID: id, Deadline: span(ttl)}
	return q.arm(ctx, &r, options)
}

// ArmAt is Arm with a time of day, for a REALTIME queue.
func (q *Queue) ArmAt(ctx context.Context, id uint64, at time.Time,
	options ...ArmOption) error {
	deadline, err := q.at(at)
	if err != nil {
		return err
	}
	r := Record{Op: OpArm, ID: id, Deadline: deadline}
	return q.arm(ctx, &r, options)
}

// Add arms a timer of a queue that is not keyed, and returns the id that the server
// has chosen.
func (q *Queue) Add(ctx context.Context, ttl time.Duration,
	options ...ArmOption) (uint64, error) {
	r := Record{Op: OpArm, Flags: Relative, Deadline: span(ttl)}
	err := q.arm(ctx, &r, options)
	return r.ID, err
}

// ArmMany arms many timers of a keyed queue in one batch. Of those that the server
// refused the error is Refusals.
func (q *Queue) ArmMany(ctx context.Context, ids []uint64, ttl time.Duration,
	options ...ArmOption) error {
	model := Record{Op: OpArm, Flags: Relative, Deadline: span(ttl)}
	if err := model.fill(options); err != nil {
		return err
	}
	return q.many(ctx, ids, model, 0)
}

// Refresh moves the deadline of an armed timer to ttl from now. It reports false if
// none is armed: the timer expired, was cancelled, or never was.
func (q *Queue) Refresh(ctx context.Context, id uint64, ttl time.Duration,
	options ...ArmOption) (bool, error) {
	r := Record{Op: OpRefresh, Flags: Relative, ID: id, Deadline: span(ttl)}
	return q.find(ctx, &r, options)
}

// RefreshAt is Refresh with a time of day, for a REALTIME queue.
func (q *Queue) RefreshAt(ctx context.Context, id uint64, at time.Time,
	options ...ArmOption) (bool, error) {
	deadline, err := q.at(at)
	if err != nil {
		return false, err
	}
	r := Record{Op: OpRefresh, ID: id, Deadline: deadline}
	return q.find(ctx, &r, options)
}

// Cancel disarms a timer. It reports false if none is armed: its expiration may be on
// its way.
func (q *Queue) Cancel(ctx context.Context, id uint64) (bool, error) {
	return q.find(ctx, &Record{Op: OpCancel, ID: id}, nil)
}

// Query returns an armed timer, and false if none is armed.
func (q *Queue) Query(ctx context.Context, id uint64) (Record, bool, error) {
	r := Record{Op: OpQuery, ID: id}
	ok, err := q.find(ctx, &r, nil)
	return r, ok, err
}

// AckIDs acknowledges expirations of an acknowledging queue. One that is not
// delivered, or was acknowledged before, is no error.
func (q *Queue) AckIDs(ctx context.Context, ids ...uint64) error {
	if len(ids) == 1 {
		_, err := q.find(ctx, &Record{Op: OpAck, ID: ids[0]}, nil)
		return err
	}
	return q.many(ctx, ids, Record{Op: OpAck}, syscall.ENOENT)
}

// Clear cancels and forgets every timer of the queue. It returns how many there were.
func (q *Queue) Clear(ctx context.Context) (uint64, error) {
	r := Record{Op: OpClear}
	err := q.request(ctx, &r)
	return r.Cookie, err
}

func (q *Queue) arm(ctx context.Context, r *Record, options []ArmOption) error {
	if err := r.fill(options); err != nil {
		return err
	}
	return q.request(ctx, r)
}

// find carries out a request for a timer that may not be armed.
func (q *Queue) find(ctx context.Context, r *Record, options []ArmOption) (bool, error) {
	if err := r.fill(options); err != nil {
		return false, err
	}
	if r.PeriodMS != 0 || r.Cookie != 0 {
		return false, &InvalidError{"Cookie and Every are for Arm"}
	}
	err := q.request(ctx, r)
	if errors.Is(err, syscall.ENOENT) {
		return false, nil
	}
	return err == nil, err
}

// many carries out the same for each id, and does not report one reason.
func (q *Queue) many(ctx context.Context, ids []uint64, model Record,
	ignored syscall.Errno) error {
	records := make([]Record, len(ids))
	for i, id := range ids {
		records[i] = model
		records[i].ID = id
	}
	if err := q.Submit(ctx, records); err != nil {
		return err
	}
	for i := range records {
		if records[i].Status == -int16(ignored) {
			records[i].Status = 0
		}
	}
	return Check(records)
}

func (q *Queue) at(t time.Time) (uint64, error) {
	if q.set.clock != Realtime {
		return 0, &InvalidError{"a time of day is for a REALTIME queue"}
	}
	return At(t)
}
