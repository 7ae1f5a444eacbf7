// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"container/heap"
	"log"
	"syscall"
	"time"
)

const (
	retryMin = 500 * time.Millisecond
	retryMax = time.Minute
)

// refused are the keys whose timers expiryd refused, as a limit is reached. Redis is asked
// about each when it is due, by the bridge's own clock. Their timers are armed as soon as
// expiryd takes them, the next due first, after pauses that grow. There are at most as
// many as there are names.
type refused struct {
	m       *metrics
	heap    byDeadline
	places  map[uint64]*refusal
	timer   *time.Timer
	pause   time.Duration
	retryAt time.Time
}

// refusal is one of these keys. when: as its timer would have it.
type refusal struct {
	id    uint64
	when  time.Time
	index int
}

func newRefused(m *metrics) *refused {
	r := &refused{m: m, places: make(map[uint64]*refusal), timer: time.NewTimer(retryMax)}
	r.timer.Stop()
	return r
}

// isLater reports whether expiryd may take later what it refuses now. Otherwise the queue
// is of no use.
func isLater(errno syscall.Errno) bool {
	return errno == syscall.ENOSPC || errno == syscall.EDQUOT || errno == syscall.ENOMEM ||
		errno == syscall.EBUSY
}

// add takes a key, again if its time has changed.
func (r *refused) add(id uint64, when time.Time, errno syscall.Errno) {
	if len(r.heap) == 0 && r.pause == 0 {
		log.Printf("expiryd refuses timers: %v; their keys are looked after here", errno)
	}
	if r.pause == 0 {
		r.pause = retryMin
		r.retryAt = time.Now().Add(r.pause)
	}
	r.m.refusals.Add(1)
	if old, ok := r.places[id]; ok {
		old.when = when
		heap.Fix(&r.heap, old.index)
		return
	}
	added := &refusal{id: id, when: when}
	r.places[id] = added
	heap.Push(&r.heap, added)
}

// remove forgets a key that is armed now, or has no time.
func (r *refused) remove(id uint64) {
	if old, ok := r.places[id]; ok {
		heap.Remove(&r.heap, old.index)
		delete(r.places, id)
	}
}

// take removes and returns keys of which Redis is to be asked: those that are due, as many
// as @most; else, when it is time to try again, the next ones. isDue: they are due.
func (r *refused) take(most int, now time.Time) (ids []uint64, isDue bool) {
	isDue = len(r.heap) > 0 && !r.heap[0].when.After(now)
	if !isDue && now.Before(r.retryAt) {
		return nil, false
	}
	for len(ids) < most && len(r.heap) > 0 && (!isDue || !r.heap[0].when.After(now)) {
		ids = append(ids, r.heap[0].id)
		r.remove(r.heap[0].id)
	}
	return ids, isDue
}

// tried notes whether timers were taken when they were tried again.
func (r *refused) tried(wasRefused bool) {
	if !wasRefused {
		r.pause = retryMin
		r.retryAt = time.Time{}
		return
	}
	if r.pause *= 2; r.pause > retryMax {
		r.pause = retryMax
	}
	r.retryAt = time.Now().Add(r.pause)
}

// wait returns a channel that is ready when take() has something, and sets the gauge.
func (r *refused) wait() <-chan time.Time {
	r.m.refused.Store(int64(len(r.heap)))
	if len(r.heap) == 0 {
		if r.pause != 0 {
			log.Print("expiryd takes timers again")
		}
		r.pause = 0
		return nil
	}
	next := r.heap[0].when
	if r.retryAt.Before(next) {
		next = r.retryAt
	}
	if !r.timer.Stop() {
		select {
		case <-r.timer.C:
		default:
		}
	}
	r.timer.Reset(time.Until(next))
	return r.timer.C
}

// byDeadline is a heap of refusals, the next due first.
type byDeadline []*refusal

func (h byDeadline) Len() int           { return len(h) }
func (h byDeadline) Less(i, j int) bool { return h[i].when.Before(h[j].when) }
func (h byDeadline) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *byDeadline) Push(x interface{}) {
	r := x.(*refusal)
	r.index = len(*h)
	*h = append(*h, r)
}

func (h *byDeadline) Pop() interface{} {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
