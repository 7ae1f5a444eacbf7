// SPDX-License-Identifier: LGPL-2.1-or-later

// Driver of make bench-clients: the Go client by orders on standard input, "blocking
// single", "blocking batch", "blocking tasks" or "blocking consume". Prints the processor time and the time of an operation,
// as JSON. The operations are those of bench/daemon/client-python.py.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"syscall"
	"time"

	expiry "expiry.example/clients/go"
)

const (
	batchSize = 512
	batches   = 600
	singles   = 9000
	consumed  = 200000
	credit    = 4096
	tasks     = 100
	rounds    = 60
	ttl       = time.Hour
)

var models = [3]expiry.Record{
	{Op: expiry.OpArm, Flags: expiry.Relative, Deadline: uint64(ttl)},
	{Op: expiry.OpRefresh, Flags: expiry.Relative, Deadline: uint64(ttl)},
	{Op: expiry.OpCancel},
}

func main() {
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		var style, op string
		fmt.Sscan(orders.Text(), &style, &op)
		if err := measure(os.Args[1], op); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func measure(path, op string) error {
	ctx := context.Background()
	options := []expiry.Option{expiry.Socket(path), expiry.Keyed()}
	if op == "consume" {
		options = append(options, expiry.Consume(), expiry.Credit(credit))
	}
	q, err := expiry.Open(ctx, "bench-go-"+op, options...)
	if err != nil {
		return err
	}
	defer q.Close()
	if op == "consume" {
		if err := prepare(ctx, q); err != nil {
			return err
		}
	}
	ops, times := singles, []int64(nil)
	cpu, begun := processorTime(), time.Now()
	switch op {
	case "single":
		times, err = single(ctx, q)
	case "tasks":
		ops = tasks * rounds
		err = together(ctx, q)
	case "consume":
		ops = consumed
		err = consume(ctx, q)
	default:
		ops = batches * batchSize
		err = batch(ctx, q)
	}
	took := time.Since(begun)
	cpu = processorTime() - cpu
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	p50 := int64(0)
	if len(times) > 0 {
		p50 = times[len(times)/2]
	}
	fmt.Printf("{\"ns\": %.1f, \"took\": %.1f, \"p50\": %d}\n",
		float64(cpu)/float64(ops), float64(took)/float64(ops), p50)
	return err
}

func single(ctx context.Context, q *expiry.Queue) ([]int64, error) {
	times := make([]int64, 0, singles)
	for id := uint64(1); id <= singles/3; id++ {
		for i := range models {
			var err error
			begun := time.Now()
			switch models[i].Op {
			case expiry.OpArm:
				err = q.Arm(ctx, id, ttl)
			case expiry.OpRefresh:
				_, err = q.Refresh(ctx, id, ttl)
			default:
				_, err = q.Cancel(ctx, id)
			}
			if err != nil {
				return nil, err
			}
			times = append(times, int64(time.Since(begun)))
		}
	}
	return times, nil
}

func batch(ctx context.Context, q *expiry.Queue) error {
	records := make([]expiry.Record, batchSize)
	for first := uint64(1); first < batches/3*batchSize; first += batchSize {
		for _, model := range models {
			for i := range records {
				records[i] = model
				records[i].ID = first + uint64(i)
			}
			if err := q.Submit(ctx, records); err != nil {
				return err
			}
			if err := expiry.Check(records); err != nil {
				return err
			}
		}
	}
	return nil
}

// together has goroutines with an operation each in flight.
func together(ctx context.Context, q *expiry.Queue) error {
	done := make(chan error, tasks)
	for id := uint64(1); id <= tasks; id++ {
		go func(id uint64) {
			for i := 0; i < rounds; i++ {
				if err := q.Arm(ctx, id, ttl); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}(id)
	}
	var first error
	for i := 0; i < tasks; i++ {
		if err := <-done; err != nil && first == nil {
			first = err
		}
	}
	return first
}

func prepare(ctx context.Context, q *expiry.Queue) error {
	records := make([]expiry.Record, consumed)
	for i := range records {
		records[i] = expiry.Record{Op: expiry.OpArm, Flags: expiry.Relative,
			ID: uint64(i) + 1}
	}
	if err := q.Submit(ctx, records); err != nil {
		return err
	}
	return expiry.Check(records)
}

func consume(ctx context.Context, q *expiry.Queue) error {
	records := make([]expiry.Record, batchSize)
	for left := consumed; left > 0; {
		n, err := q.Receive(ctx, records)
		if err != nil {
			return err
		}
		left -= n
	}
	return nil
}

func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
