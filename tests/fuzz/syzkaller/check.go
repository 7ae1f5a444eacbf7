// SPDX-License-Identifier: LGPL-2.1-or-later

// Compile dev_expiry.txt by syzkaller's own compiler, together with all of its
// own descriptions of Linux. Run in a checkout of syzkaller:
//
//	go run /path/to/check.go /path/to/tests/fuzz/syzkaller
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/syzkaller/pkg/ast"
	"github.com/google/syzkaller/pkg/compiler"
	"github.com/google/syzkaller/sys/targets"
)

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "check-syzkaller: "+format+"\n", args...)
	os.Exit(1)
}

func main() {
	// syzkaller has some warnings about its own descriptions.
	complain := func(pos ast.Pos, msg string) {
		if strings.HasPrefix(pos.File, os.Args[1]) {
			fmt.Fprintf(os.Stderr, "%v: %v\n", pos, msg)
		}
	}
	target := targets.Get(targets.Linux, targets.AMD64)
	all := &ast.Description{}
	values := map[string]uint64{}
	for _, dir := range []string{filepath.Join("sys", "linux"), os.Args[1]} {
		parsed := ast.ParseGlob(filepath.Join(dir, "*.txt"), complain)
		constants := compiler.DeserializeConstFile(filepath.Join(dir, "*.const"),
			complain)
		if parsed == nil || constants == nil {
			fail("%v does not parse", dir)
		}
		all.Nodes = append(all.Nodes, parsed.Nodes...)
		for name, value := range constants.Arch(target.Arch) {
			if other, ok := values[name]; ok && other != value {
				fail("%v is %v and %v", name, other, value)
			}
			values[name] = value
		}
	}
	compiled := compiler.Compile(all, values, target, complain)
	if compiled == nil {
		fail("the descriptions do not compile")
	}
	calls := 0
	for _, call := range compiled.Syscalls {
		if strings.Contains(strings.ToLower(call.Name), "expiry") {
			calls++
		}
	}
	for name := range compiled.Unsupported {
		if strings.Contains(strings.ToLower(name), "expiry") {
			fail("%v is not supported: a constant is missing", name)
		}
	}
	fmt.Printf("check-syzkaller: all descriptions compile, %d calls of them on /dev/expiry\n",
		calls)
	if calls == 0 {
		fail("none of them is ours")
	}
}
