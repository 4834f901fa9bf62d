package verify

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/text/token"
)

// TestJudge accepts by hand-made scores: the head of the toy scores a draft by its token alone, 0.18, 0.38, 0.62 and 0.82.
func TestJudge(t *testing.T) {
	head := &Head{Weight: []float32{1, 0}, Bias: -1.5, Threshold: 0.5}
	nearly(t, "importance of token 0", head.Importance([]float32{0, 9}), 0.18242552)
	chain := []draft{{Root, 1, 0}, {0, 0, 0}, {1, 2, 0}, {2, 0, 0}}
	for _, c := range []struct {
		name   string
		rule   string
		drafts []draft
		lost   int // drafts from this one on are not run; 0: all are
		want   []token.ID
	}{
		{"up to the first that is important", "judge", chain, 0, []token.ID{1, 0}},
		{"a lower threshold", "judge:threshold=0.2", chain, 0, nil},
		{"none", "judge:threshold=0", chain, 0, nil},
		{"all", "judge:threshold=1.1", chain, 0, []token.ID{1, 0, 2, 0}},
		{"all that were run", "judge:threshold=1.1", chain, 2, []token.ID{1, 0}},
		{"the least important of siblings", "judge:threshold=1.1", []draft{{Root, 2, 0}, {Root, 1, 0}}, 0, []token.ID{1}},
		{"the least important of siblings, the first", "judge:threshold=1.1", []draft{{Root, 1, 0}, {Root, 2, 0}}, 0, []token.ID{1}},
		{"the target's own token, however important", "judge:threshold=0", []draft{{Root, 3, 0}, {Root, 1, 0}}, 0, []token.ID{3}},
	} {
		y := newToy(steady(0.1, 0.1, 0.1, 0.7), nil, c.drafts)
		y.greedy = true
		if c.lost > 0 {
			y.lost = func(_ *toy, node int) bool { return node >= c.lost }
		}
		r := y.run(t, WithHead(rule(t, c.rule), head).New(), nil)
		if r.err != nil || !slices.Equal(r.accepted, c.want) || r.next != 3 {
			t.Errorf("%s: %+v, want %v accepted and token 3", c.name, r, c.want)
		}
	}
	y := newToy(steady(0.5, 0.5), nil, []draft{{Root, 1, 0}})
	y.greedy = true
	want := "verify: judge: draft 0: its state has 2 values, and the head 3 weights"
	if r := y.run(t, WithHead(Judge, &Head{Weight: make([]float32, 3)}).New(), nil); fmt.Sprint(r.err) != want {
		t.Errorf("%v, want %s", r.err, want)
	}
	for _, options := range []string{"", "threshold", "threshold=-1", "threshold=NaN", "beta=1"} {
		if _, err := Find("judge:" + options); err == nil || !strings.Contains(err.Error(), "use threshold=X") {
			t.Errorf("option %q: %v", options, err)
		}
	}
}

// headFile writes a safetensors file of F32 rows.
func headFile(t *testing.T, header string, values ...float32) string {
	t.Helper()
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	data = append(data, header...)
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	path := filepath.Join(t.TempDir(), "head.safetensors")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadHead(t *testing.T) {
	row := func(name string, shape, from, to int) string {
		return fmt.Sprintf(`%q:{"dtype":"F32","shape":[1,%d],"data_offsets":[%d,%d]}`, name, shape, 4*from, 4*to)
	}
	weight, bias := row("judge.weight", 2, 0, 2), row("judge.bias", 1, 2, 3)
	h, err := ReadHead(headFile(t, "{"+weight+","+bias+"}", 1, -2, 3), 2)
	if err != nil || !slices.Equal(h.Weight, []float32{1, -2}) || h.Bias != 3 || h.Threshold != 0.5 {
		t.Fatalf("%+v, %v", h, err)
	}
	h, err = ReadHead(headFile(t, "{"+weight+","+bias+","+row("judge.threshold", 1, 3, 4)+"}", 1, -2, 3, 0.25), 2)
	if err != nil || h.Threshold != 0.25 {
		t.Fatalf("%+v, %v", h, err)
	}
	for name, path := range map[string]string{
		"the head has 1 weights, and the model's states have 2 values": headFile(t, "{"+row("judge.weight", 1, 0, 1)+","+row("judge.bias", 1, 1, 2)+"}", 1, 2),
		"a head has the tensors": headFile(t, "{"+row("judge.weight", 3, 0, 3)+"}", 1, 2, 3),
		"and no other":           headFile(t, "{"+weight+","+bias+","+row("other", 1, 3, 4)+"}", 1, 2, 3, 4),
		"must be a row":          headFile(t, `{"judge.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}`, 1, 2, 3, 4),
		"has type F16":           headFile(t, `{"judge.weight":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}`, 1),
		"value 1 is NaN":         headFile(t, "{"+weight+","+bias+"}", 1, float32(math.NaN()), 3),
		"judge.threshold is -1":  headFile(t, "{"+weight+","+bias+","+row("judge.threshold", 1, 3, 4)+"}", 1, 2, 3, -1),
		"safetensors":            headFile(t, "{"),
		"nothere":                "nothere.safetensors",
	} {
		if h, err := ReadHead(path, 2); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v, %v, want an error with %q", h, err, name)
		}
	}
}
