package machine

import (
	"runtime"
	"testing"
	"testing/fstest"
	"time"
)

func TestMachine(t *testing.T) {
	if CPU() == "" {
		t.Error("the processor has no name")
	}
	if n := Memory(); runtime.GOOS == "linux" && n < 16<<20 {
		t.Errorf("the machine has %d bytes of memory", n)
	}
}

func TestUsage(t *testing.T) {
	if PeakMemory() < 1<<20 {
		t.Errorf("the process has had at most %d bytes", PeakMemory())
	}
	if runtime.GOOS == "windows" {
		t.Skip("the processors' time is not known on Windows")
	}
	before := CPUTime()
	for end := time.Now().Add(20 * time.Millisecond); time.Now().Before(end); {
	}
	if spent := CPUTime() - before; spent <= 0 || spent > 20*time.Second {
		t.Errorf("20 ms of work took %v of processors", spent)
	}
}

// TestHugePages gives the hint for memory of all sizes; it must not change what is there.
func TestHugePages(t *testing.T) {
	for _, n := range []int{0, 1, 4 << 10, 2 << 20, 5<<20 + 3} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i % 251)
		}
		HugePages(b)
		HugePages(b[n/3:])
		for i := range b {
			if b[i] != byte(i%251) {
				t.Fatalf("%d bytes: byte %d has changed", n, i)
			}
		}
	}
}

func TestMemoryNodes(t *testing.T) {
	node := func(kB string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("\nNode 0 MemTotal:       " + kB + " kB\nNode 0 MemFree:   7 kB\n")}
	}
	tests := []struct {
		name string
		root fstest.MapFS
		want int
	}{
		{"the system does not say", fstest.MapFS{}, 1},
		{"one", fstest.MapFS{"sys/devices/system/node/node0/meminfo": node("24660932")}, 1},
		{"two sockets", fstest.MapFS{"sys/devices/system/node/node0/meminfo": node("1000"), "sys/devices/system/node/node1/meminfo": node("2000"),
			"sys/devices/system/node/online": node("9")}, 2},
		{"a node without memory", fstest.MapFS{"sys/devices/system/node/node0/meminfo": node("1000"), "sys/devices/system/node/node12/meminfo": node("0"),
			"sys/devices/system/node/node2/meminfo": node("5")}, 2},
		{"nonsense", fstest.MapFS{"sys/devices/system/node/node0/meminfo": &fstest.MapFile{Data: []byte("MemTotal:")}}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := MemoryNodes(tt.root); got != tt.want {
				t.Errorf("%d nodes, want %d", got, tt.want)
			}
		})
	}
}
