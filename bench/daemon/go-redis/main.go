// SPDX-License-Identifier: LGPL-2.1-or-later

// Driver of make bench-clients: go-redis, by orders on standard input: "redis batch",
// which is pipelines of 512 ZADD, ZADD, ZREM in turn, or "redis tasks", which is 100
// goroutines with a ZADD each. Prints the processor time and the time of an operation, as
// JSON.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	batchSize = 512
	batches   = 20
	tasks     = 100
	rounds    = 60
)

func main() {
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: os.Args[2]})
	for orders := bufio.NewScanner(os.Stdin); orders.Scan(); {
		var style, op string
		fmt.Sscan(orders.Text(), &style, &op)
		ops, run := 3*batches*batchSize, batch
		if op == "tasks" {
			ops, run = tasks*rounds, together
		}
		cpu, begun := processorTime(), time.Now()
		if err := run(context.Background(), client); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("{\"ns\": %.1f, \"took\": %.1f, \"p50\": 0}\n",
			float64(processorTime()-cpu)/float64(ops),
			float64(time.Since(begun))/float64(ops))
	}
}

func member(id int) redis.Z {
	due := time.Now().Add(time.Hour)
	return redis.Z{Score: float64(due.UnixNano()) / 1e9, Member: strconv.Itoa(id)}
}

func batch(ctx context.Context, client *redis.Client) error {
	for at := 0; at < batches; at++ {
		for _, op := range []string{"ZADD", "ZADD", "ZREM"} {
			pipeline := client.Pipeline()
			for id := at * batchSize; id < (at+1)*batchSize; id++ {
				if op == "ZADD" {
					pipeline.ZAdd(ctx, "due", member(id))
				} else {
					pipeline.ZRem(ctx, "due", strconv.Itoa(id))
				}
			}
			if _, err := pipeline.Exec(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

func together(ctx context.Context, client *redis.Client) error {
	done := make(chan error, tasks)
	for id := 0; id < tasks; id++ {
		go func(id int) {
			var err error
			for i := 0; i < rounds && err == nil; i++ {
				err = client.ZAdd(ctx, "due", member(id)).Err()
			}
			done <- err
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

func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
