package grove

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"grove/internal/kernel"
	"grove/internal/kernel/matmul"
	"grove/internal/weights/tensor"
)

// fresh lets a test choose kernels as a new process does, and restores afterwards what is in use.
func fresh(t *testing.T) {
	before := kernel.Implementation()
	restore := func() {
		checked.Forget()
		kernel.Use(before)
	}
	restore()
	kernel.Use(kernel.Implementations()[0])
	t.Cleanup(restore)
}

// breakKernels lets the products over Q4_K be wrong by a sign with some implementations.
func breakKernels(t *testing.T, names []string) {
	f, _ := matmul.FormatOf(tensor.Q4_K)
	product := f.MatMul
	t.Cleanup(func() { f.MatMul = product })
	f.MatMul = func(dst []float32, stride int, w []byte, out, k, g0, g1 int, x *kernel.Rows, s *matmul.Scratch) {
		product(dst, stride, w, out, k, g0, g1, x, s)
		if slices.Contains(names, kernel.Implementation()) {
			dst[0] = -dst[0]
		}
	}
}

func openTiny(t *testing.T, log *slog.Logger) {
	m, err := Open("gopher-draft", Options{Threads: 1, Log: log, Forget: true})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
}

// TestFaultyKernels: whatever implementations are wrong, the next one that is right runs, the log says so once, and who names a wrong
// one gets an error.
func TestFaultyKernels(t *testing.T) {
	known := Kernels()
	for n := range known {
		t.Run(known[n], func(t *testing.T) { faultyKernels(t, known[:n], known[n]) })
	}
}

// faultyKernels breaks some implementations, the fastest ones, and expects that right runs.
func faultyKernels(t *testing.T, faulty []string, right string) {
	fresh(t)
	breakKernels(t, faulty)
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
	openTiny(t, log)
	openTiny(t, log)
	b := Version()
	if b.Kernels != right || b.Named {
		t.Errorf("%s runs, want %s", b.Kernels, right)
	}
	if got := strings.Count(lines.String(), "\n"); got != len(faulty) {
		t.Errorf("the log has %d lines:\n%s", got, &lines)
	}
	for i, name := range faulty {
		if want := `kernels=` + name + ` first="Q4_K with 1 row" used=` + right; !strings.Contains(lines.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, &lines)
		}
		if i >= len(b.Checks) || b.Checks[i].Name != name || b.Checks[i].Differs != "Q4_K with 1 row" {
			t.Errorf("the checks are %+v", b.Checks)
		}
		if err := UseKernels(name); err == nil || !strings.Contains(err.Error(), `kernels "`+name+`" differ from portable on this machine, first in Q4_K with 1 row`) {
			t.Errorf("naming %s: %v", name, err)
		}
		if now := kernel.Implementation(); now != right {
			t.Errorf("after %s was refused, %s runs", name, now)
		}
	}
	if err := UseKernels("portable"); err != nil || !Version().Named || Version().Kernels != "portable" {
		t.Errorf("naming portable: %v, %+v", err, Version())
	}
}

// TestChosenKernels: kernels that were chosen before a model is opened stay, and the check runs once however many ask for it.
func TestChosenKernels(t *testing.T) {
	for _, name := range Kernels() {
		fresh(t)
		kernel.Use(name)
		openTiny(t, nil)
		if now := Version().Kernels; now != name {
			t.Errorf("%s was chosen, and %s runs", name, now)
		}
	}
	fresh(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { Version() })
	}
	all.Wait()
	if b := Version(); b.Kernels != Kernels()[0] || b.Kernels != "portable" && len(b.Checks) != 1 {
		t.Errorf("got %+v", b)
	}
}
