// SPDX-License-Identifier: LGPL-2.1-or-later

//go:build go1.23

package expiry

import (
	"errors"
	"testing"
	"time"
)

func TestIterationLosesNothingAndEndsAtClose(t *testing.T) {
	ctx := soon(t)
	q := startDaemon(t).open("", Consume(), Keyed())
	if err := q.ArmMany(ctx, []uint64{1, 2, 3, 4}, 0); err != nil {
		t.Fatal(err)
	}
	sum := uint64(0)
	for sum < 10 {
		for due, err := range q.Due(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			sum += due.ID
			break
		}
	}
	if err := q.ArmMany(ctx, []uint64{5, 6}, time.Hour); err != nil {
		t.Fatal(err)
	}
	nr := 0
	for _, err := range q.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		nr++
	}
	if nr != 2 {
		t.Errorf("%d timers are listed", nr)
	}
	time.AfterFunc(10*time.Millisecond, func() { q.Close() })
	for _, err := range q.Due(ctx) {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	}
}
