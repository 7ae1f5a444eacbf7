// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	connectTimeout = 3 * time.Second
	answerTimeout  = 10 * time.Second
)

// dial connects to the master. timeout is that of answers, 0 for a subscription, which
// may be silent.
func dial(o *options, timeout time.Duration) (redis.Conn, error) {
	settings := []redis.DialOption{
		redis.DialConnectTimeout(connectTimeout),
		redis.DialReadTimeout(timeout), redis.DialWriteTimeout(answerTimeout),
	}
	u, err := url.Parse(o.redis)
	if err != nil {
		return nil, err
	}
	if u.Scheme == "unix" {
		if password, ok := u.User.Password(); ok {
			settings = append(settings, redis.DialUsername(u.User.Username()),
				redis.DialPassword(password))
		}
		return redis.Dial("unix", u.Path, settings...)
	}
	if len(o.sentinels) > 0 {
		if u.Host, err = masterOf(o); err != nil {
			return nil, err
		}
	}
	return redis.DialURL(u.String(), settings...)
}

// masterOf asks the Sentinels in turn for the master's address.
func masterOf(o *options) (string, error) {
	var last error
	for _, address := range o.sentinels {
		c, err := redis.Dial("tcp", address, redis.DialConnectTimeout(connectTimeout),
			redis.DialReadTimeout(connectTimeout))
		if err != nil {
			last = err
			continue
		}
		host, err := redis.Strings(c.Do("SENTINEL", "get-master-addr-by-name", o.master))
		c.Close()
		if err == nil && len(host) == 2 {
			return net.JoinHostPort(host[0], host[1]), nil
		}
		last = fmt.Errorf("%s does not know the master %q: %v", address, o.master, err)
	}
	return "", fmt.Errorf("no Sentinel answers: %w", last)
}

// checkMaster fails where expired keys are not removed: on a replica.
func checkMaster(c redis.Conn) error {
	role, err := redis.Values(c.Do("ROLE"))
	if err != nil {
		return err
	}
	if name, err := redis.String(role[0], nil); err != nil || name != "master" {
		return fmt.Errorf("the server is a %s, not the master", name)
	}
	return nil
}

// clockAhead returns by how much the server's clock is ahead of this machine's.
func clockAhead(c redis.Conn) (time.Duration, error) {
	before := time.Now()
	parts, err := redis.Int64s(c.Do("TIME"))
	if err != nil {
		return 0, err
	}
	half := time.Since(before) / 2
	return time.Unix(parts[0], parts[1]*1000).Sub(before.Add(half)), nil
}

// configure has the server say what this program and its subscribers need: events by
// name (E), of generic commands (g), and of expired keys (x).
func configure(c redis.Conn, o *options) error {
	const setting = "notify-keyspace-events"

	values, err := redis.Strings(c.Do("CONFIG", "GET", setting))
	if err != nil || len(values) != 2 {
		// A hosted server may forbid CONFIG; it is then set by other means.
		return nil
	}
	has, missing := values[1], ""
	for _, flag := range []string{"E", "g", "x"} {
		isAll := flag != "E" && strings.Contains(has, "A")
		if !isAll && !strings.Contains(has, flag) {
			missing += flag
		}
	}
	if missing == "" {
		return nil
	}
	if !o.configure {
		return fmt.Errorf("%s lacks %q", setting, missing)
	}
	_, err = c.Do("CONFIG", "SET", setting, has+missing)
	return err
}
