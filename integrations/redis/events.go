// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"context"
	"strings"

	"github.com/gomodule/redigo/redis"
)

// gone are the events after which a key may have no time any more, or is not there.
// After the others it may have one, or another one.
var gone = map[string]bool{"del": true, "evicted": true, "persist": true,
	"rename_from": true, "move_from": true}
var given = []string{"expire", "rename_to", "copy_to", "restore", "move_to"}

// subscribe returns when all events from now on will arrive.
func subscribe(c redis.Conn) (redis.PubSubConn, error) {
	subscription := redis.PubSubConn{Conn: c}
	channels := []interface{}{}
	for _, name := range given {
		channels = append(channels, "__keyevent@*__:"+name)
	}
	for name := range gone {
		channels = append(channels, "__keyevent@*__:"+name)
	}
	if err := subscription.PSubscribe(channels...); err != nil {
		return subscription, err
	}
	for range channels {
		if err, isError := subscription.Receive().(error); isError {
			return subscription, err
		}
	}
	return subscription, nil
}

// listen passes on the events of the session's database.
func (s *session) listen(ctx context.Context, subscription redis.PubSubConn) error {
	database := "__keyevent@" + databaseOf(s.o.redis) + "__:"
	for {
		switch message := subscription.Receive().(type) {
		case error:
			return message
		case redis.Message:
			if !strings.HasPrefix(message.Channel, database) {
				continue
			}
			key := string(message.Data)
			if !s.serves(key) {
				continue
			}
			s.m.events.Add(1)
			select {
			case s.events <- event{key, gone[message.Channel[len(database):]]}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// serves reports whether a key has one of the prefixes.
func (s *session) serves(key string) bool {
	for _, prefix := range s.o.prefixes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return len(s.o.prefixes) == 0
}

// patterns returns the prefixes as SCAN takes them.
func (s *session) patterns() []string {
	quote := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
	var patterns []string
	for _, prefix := range s.o.prefixes {
		patterns = append(patterns, quote.Replace(prefix)+"*")
	}
	if patterns == nil {
		patterns = []string{"*"}
	}
	return patterns
}
