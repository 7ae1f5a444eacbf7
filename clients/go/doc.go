// SPDX-License-Identifier: LGPL-2.1-or-later

// Package expiry arms timers in the queues of expiryd and receives their
// expirations. It speaks the protocol of the daemon's socket and needs nothing
// but the standard library.
//
// A Queue is one connection. Any number of goroutines may use it at a time:
// requests of several goroutines are sent together, and each goroutine gets its
// own answer. Two goroutines belong to an open Queue, and Close ends both.
//
// Times are nanoseconds on the queue's clock. A deadline that has passed is due at
// once. An expiration and the reply to a request can cross: Cancel that reports
// false means that the timer expired, was cancelled, or never was.
//
// A call that ends before all its answers came returns an *Unanswered. It says how
// many requests were answered, how many were sent and may have been carried out,
// and how many were never sent. A request that the server refused is a *Refused.
package expiry
