// Package machine tells what the program runs on, and asks it for large pages.
package machine

import (
	"bufio"
	"os"
	"runtime"
	"strings"
)

// Memory returns the bytes that the process may come to use: the machine's memory, or the limit of its
// control group where that is lower. It returns 0 where the system does not say.
func Memory() uint64 { return memory() }

// HugePages asks the system to back b, which nothing has touched yet, with large pages. A step reads all of a
// model's weights, and the tables of its small pages would fill a cache. It does nothing where the system
// knows no such wish.
func HugePages(b []byte) { hugePages(b) }

// CPU names the processor, for keys of measurements that hold for one kind of it only.
func CPU() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOOS + " " + runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOOS + " " + runtime.GOARCH
}
