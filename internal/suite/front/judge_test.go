package front_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
)

// headOf writes a head of n weights of alternating signs.
func headOf(t *testing.T, n int, weight, bias float32) string {
	t.Helper()
	header := fmt.Sprintf(`{"judge.weight":{"dtype":"F32","shape":[1,%d],"data_offsets":[0,%d]},"judge.bias":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}}`, n, 4*n, 4*n, 4*n+4)
	data := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(weight))
		weight = -weight
	}
	path := filepath.Join(t.TempDir(), "head.safetensors")
	if err := os.WriteFile(path, binary.LittleEndian.AppendUint32(data, math.Float32bits(bias)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestJudge: at threshold 0 the text is that of plain decoding; a head to which nothing is important accepts every draft that is run.
// A head that reads states, between the two, accepts some.
func TestJudge(t *testing.T) {
	plain := open(t, "gopher-target", grove.Options{Parallel: 1})
	r := request(0)
	r.Method, r.MaxTokens, r.Sampling = grove.MethodOff, 60, grove.Sampling{}
	want, _ := generate(t, plain, r)
	r.Method = "draft-chain"
	width := plain.Info().Width
	for _, c := range []struct {
		accept       string
		weight, bias float32
		low, high    float64 // share of accepted drafts
	}{
		{"exact", 0, -9, 0, 0.99}, {"judge:threshold=0", 0, -9, 0, 0.99}, {"judge", 0, -9, 1, 1}, {"judge:threshold=1.1", 5, 0, 1, 1}, {"judge", 0.3, 0, 0.01, 0.999},
	} {
		m := open(t, "gopher-target", grove.Options{Draft: "gopher-nano", Eager: true, Forget: true, Parallel: 1, Judge: headOf(t, width, c.weight, c.bias)})
		r.Accept = c.accept
		got, stats := generate(t, m, r)
		share := float64(stats.Drafting.Accepted) / float64(stats.Drafting.Drafted)
		if share < c.low || share > c.high {
			t.Errorf("%s, bias %v: %.2f of the drafts are accepted", c.accept, c.bias, share)
		}
		if exact := c.low == 0; (cmp.Diff(want, got, sameBits) == "") != exact {
			t.Errorf("%s, bias %v: the text is plain decoding's: %v", c.accept, c.bias, !exact)
		}
		if lossy := c.accept != "exact"; (stats.Grade == grove.Lossy) != lossy {
			t.Errorf("%s: grade %s", c.accept, stats.Grade)
		}
	}
}

// TestJudgeErrors refuses the rule without a head, and heads of other models.
func TestJudgeErrors(t *testing.T) {
	m := open(t, goldenModel, grove.Options{Parallel: 1})
	_, err := m.Generate(t.Context(), grove.Request{Prompt: "x", Accept: "judge"})
	if err == nil || !strings.Contains(err.Error(), "the rule judge needs a head") {
		t.Errorf("without a head: %v", err)
	}
	for path, want := range map[string]string{headOf(t, 3, 1, 1): "the head has 3 weights, and the model's states have", "nothere": "nothere"} {
		if m, err := grove.Open(goldenModel, threaded(grove.Options{Judge: path})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
			_ = m.Close()
		}
	}
}

// TestGopherJudge: the head that was trained for gopher-target lets more drafts pass than the rule of plain decoding does, and not all.
func TestGopherJudge(t *testing.T) {
	m := open(t, "gopher-target", grove.Options{Draft: "gopher-draft", Eager: true, Forget: true, Parallel: 1, Judge: "../../../internal/gopher/testdata/heads/judge.safetensors"})
	r := request(0)
	r.Method, r.MaxTokens, r.Sampling = "draft-chain", 100, grove.Sampling{}
	shares := []float64{}
	for _, r.Accept = range []string{"judge:threshold=0", "judge", "judge:threshold=0.5", "judge:threshold=1.1"} {
		_, stats := generate(t, m, r)
		shares = append(shares, float64(stats.Drafting.Accepted)/float64(stats.Drafting.Drafted))
	}
	if !slices.IsSorted(shares) || shares[0] == shares[2] || shares[2] == shares[3] || shares[3] != 1 {
		t.Errorf("shares of accepted drafts by rising thresholds: %.3f", shares)
	}
}

// TestMissingBeside: a path at which no file is fails before any model is read, and the error names its flag.
func TestMissingBeside(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.gguf")
	for flag, o := range map[string]grove.Options{
		"skip-adapters": {SkipAdapters: missing}, "judge": {Judge: missing}, "guide": {Guides: []string{"gopher-nano", missing}},
		"heads": {Heads: missing}, "draft": {Draft: missing}, "middle": {Draft: "gopher-nano", Middle: missing},
	} {
		t.Run(flag, func(t *testing.T) {
			o.Progress = func(done, all int64) { t.Errorf("%d of %d bytes of a model were read", done, all) }
			m, err := grove.Open(goldenModel, o)
			if err == nil {
				_ = m.Close()
			}
			if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "--"+flag+": ") || !strings.Contains(err.Error(), missing) {
				t.Errorf("%v, want fs.ErrNotExist with --%s and the path", err, flag)
			}
		})
	}
}
