package mmap

import (
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestReleaseAround holds that no page of a file counts as memory once a byte of every 2 MiB that were read is released:
// the pages that the system maps around a byte count too.
func TestReleaseAround(t *testing.T) {
	m, path, _ := sample(t, 5<<20)
	defer m.Close()
	if n := residentBytes(t, path); n != 0 {
		t.Fatalf("%d bytes are in memory before any is read", n)
	}
	var sum byte
	for at := 0; at < len(m.Data()); at += os.Getpagesize() {
		sum += m.Data()[at]
	}
	if n := residentBytes(t, path); n != len(m.Data()) {
		t.Fatalf("%d bytes are in memory behind reading all (sum %d), want %d", n, sum, len(m.Data()))
	}
	for at := 100; at < len(m.Data()); at += mapped {
		m.Release(m.Data()[at : at+64])
	}
	if n := residentBytes(t, path); n != 0 {
		t.Errorf("%d bytes are in memory behind releasing some of each 2 MiB, want 0", n)
	}
}

// residentBytes returns how much of the mapping of a file counts as memory of this process.
func residentBytes(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("the system does not say what is in memory:", err)
	}
	found := regexp.MustCompile(regexp.QuoteMeta(path) + `\n(?:\w+: .*\n)*?Rss: +(\d+) kB`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s is not mapped", path)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}
