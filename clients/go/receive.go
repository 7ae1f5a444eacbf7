// SPDX-License-Identifier: LGPL-2.1-or-later

package expiry

import "context"

// Receive takes expirations, waiting for the first. It returns how many of to it has
// filled in: records with OpExpired, in order of deadline. With Events there are
// others. Several goroutines may receive; each record goes to one of them.
//
// On an acknowledging queue the program calls AckIDs for what it has dealt with. When
// the Queue breaks, records that had arrived come first, then the error.
func (q *Queue) Receive(ctx context.Context, to []Record) (int, error) {
	if !q.inbox.consumes && !q.inbox.observes {
		return 0, &InvalidError{"Receive: open the queue with Consume or Observe"}
	}
	if len(to) == 0 {
		return 0, &InvalidError{"Receive: no room"}
	}
	for {
		n, err := q.takeArrived(to)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-q.arrived:
		case <-q.broken:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// takeArrived takes what is here, without waiting.
func (q *Queue) takeArrived(to []Record) (int, error) {
	q.mu.Lock()
	n := q.inbox.take(to)
	isCreditDue := q.inbox.due > 0
	isMore := q.inbox.len() > 0
	err := q.err
	q.mu.Unlock()
	if isCreditDue {
		q.wake(q.wakeWriter)
	}
	if isMore {
		q.wake(q.arrived)
	}
	if n > 0 {
		err = nil
	}
	return n, err
}
