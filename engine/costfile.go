package engine

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"grove/compute"
	"grove/internal/atomicfile"
	"grove/internal/kernel"
	"grove/internal/machine"
)

// CostPath names the file in the user's cache directory that keeps the cost of this engine's steps: by
// the model's weights, the processor, the threads, the kernels and the cache type.
func (e *Engine) CostPath() (string, error) {
	return cachePath("cost", e.model.Info().Identity, machine.CPU(), e.threads, kernel.Implementation(), compute.NumericsVersion, e.cache.Config().Type)
}

// cachePath names a file in the user's cache directory by its kind and by what its content depends on, of which the
// first is a model's identity.
func cachePath(kind string, identity any, rest ...any) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("engine: no cache directory: %w", err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%x\n", identity)
	for _, v := range rest {
		fmt.Fprintf(h, "%v\n", v)
	}
	return filepath.Join(dir, "grove", fmt.Sprintf("%s-%x.json", kind, h.Sum(nil)[:12])), nil
}

// writeCache writes a file of the cache; readers find the old one or all of the new.
func writeCache(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	err := atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	return nil
}

// readCache returns a file of the cache, nil where there is none or it is larger than limit.
func readCache(path string, limit int64) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil || int64(len(text)) > limit {
		return nil
	}
	return text
}

// SaveCost writes the cost as it stands now, corrections and all, to [Engine.CostPath]; readers find the old
// file or all of the new.
func (e *Engine) SaveCost() (path string, err error) {
	path, err = e.CostPath()
	if err != nil {
		return "", err
	}
	e.costs.Lock()
	text, err := json.MarshalIndent(e.costs.cost, "", "\t")
	e.costs.Unlock()
	if err != nil {
		return "", fmt.Errorf("engine: %w", err)
	}
	return path, writeCache(path, text)
}

// loadCost takes over what an earlier run stored. A file that is missing or makes no sense counts as none:
// the cost is a measurement, and can be made again.
func (e *Engine) loadCost() {
	path, err := e.CostPath()
	if err != nil {
		return
	}
	c := new(Cost)
	if json.Unmarshal(readCache(path, 1<<16), c) == nil && c.valid() {
		e.setCost(c)
	}
}

// valid reports whether a cost that was read can be computed with.
func (c *Cost) valid() bool {
	if len(c.Rows) == 0 || len(c.Correction) != len(c.Rows) || !(Curve{c.Rows, c.Layers}).valid() ||
		!c.Depth.valid() || !c.Head.valid() || !sane(c.Expert) {
		return false
	}
	for _, v := range c.Correction {
		if !sane(v) || v == 0 {
			return false
		}
	}
	return true
}

func (c Curve) valid() bool {
	if len(c.X) != len(c.Y) {
		return false
	}
	for i := range c.X {
		if c.X[i] < 1 || i > 0 && c.X[i] <= c.X[i-1] || !sane(c.Y[i]) {
			return false
		}
	}
	return true
}

func sane(v float64) bool { return v >= 0 && v <= math.MaxFloat32 }
