// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build go1.23

package expiry

import (
	"context"
	"iter"
)

// Due yields expirations until the context is done or the Queue is closed or broken:
// the error is then the last element. After Close it is ErrClosed.
//
//	for due, err := range q.Due(ctx) {
//		if err != nil {
//			return err
//		}
//		...
//	}
func (q *Queue) Due(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		// One at a time: what a loop has not seen stays for the next one.
		var one [1]Record
		for {
			_, err := q.Receive(ctx, one[:])
			if !yield(one[0], err) || err != nil {
				return
			}
		}
	}
}

// All yields every timer of the queue, in no order, as Scan has them.
func (q *Queue) All(ctx context.Context) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		cursor, begun := uint64(0), false
		for !begun || cursor != 0 {
			rows, next, err := q.Scan(ctx, cursor, 512)
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			cursor, begun = next, true
		}
	}
}
