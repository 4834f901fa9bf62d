//go:build unix

package par

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// reader reads a byte of a page of mapped memory for each item, and sums them.
type reader struct {
	data []byte
	sums [4]int
}

func (r *reader) Do(worker, item int) { r.sums[worker] += int(r.data[item*os.Getpagesize()]) }

// TestFaultReachesTheCaller maps a file that then shrinks: every thread may meet the fault, and all of
// them must hand it to the caller of Run as a panic that tells the address.
func TestFaultReachesTheCaller(t *testing.T) {
	const pages = 64
	size := os.Getpagesize()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, pages*size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := unix.Mmap(int(f.Fd()), 0, pages*size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(data)
	p := New(4)
	defer p.Close()
	r := &reader{data: data}
	p.Run(pages, r)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		fault := func() (value any) {
			defer func() { value = recover() }()
			p.Run(pages, workersOnly{r})
			return nil
		}()
		if _, ok := fault.(interface{ Addr() uintptr }); !ok {
			t.Fatalf("Run panicked with %v, want a fault with its address", fault)
		}
	}
}

// workersOnly leaves the reading to the workers: it is their faults that would end the process.
type workersOnly struct{ *reader }

func (w workersOnly) Do(worker, item int) {
	if worker == 0 {
		time.Sleep(spin)
		return
	}
	w.reader.Do(worker, item)
}
