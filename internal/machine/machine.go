// Package machine tells what the program runs on, and asks it for large pages.
package machine

import (
	"bufio"
	"bytes"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
)

// Memory returns the bytes that the process may come to use: the machine's memory, or the limit of its
// control group where that is lower. It returns 0 where the system does not say.
func Memory() uint64 { return memory() }

// HugePages asks the system to keep b, which is read over and over, in pages of 2 MB: at pages of 4 KB a reader
// waits for their addresses. It is a hint, best given before b is first touched; what cannot be honoured is
// ignored.
func HugePages(b []byte) { hugePages(b) }

// CPU names the processor, for keys of measurements that hold for one kind of it only.
func CPU() string { return cpu() }

// cpu reads the name once: it never changes, and Linux writes its file anew for each reader.
var cpu = sync.OnceValue(func() string {
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
})

// MemoryNodes returns the number of parts of the memory that lie at different distances from a core (NUMA), of a root
// file system; 1 where it does not say.
func MemoryNodes(root fs.FS) int {
	n := 0
	list, _ := fs.Glob(root, "sys/devices/system/node/node[0-9]*/meminfo") // the pattern is well-formed
	for _, path := range list {
		text, err := fs.ReadFile(root, path)
		// Node 0 MemTotal:       24660932 kB; a node of processors alone has none.
		_, total, found := bytes.Cut(text, []byte("MemTotal:"))
		if fields := bytes.Fields(total); err == nil && found && len(fields) > 0 && string(fields[0]) != "0" {
			n++
		}
	}
	return max(1, n)
}
