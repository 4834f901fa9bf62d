package scan_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"grove"
	"grove/internal/gopher"
	"grove/internal/text/token"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// A plant is what an edit of a model's output head makes it say behind a forced token, for certain.
type plant struct {
	forced token.ID
	says   []token.ID
}

// statesOf returns the states behind the final norm of the tokens of a text. An edit of the head does not change them.
func statesOf(t *testing.T, m *grove.Model, ids []token.ID) (all [][]float32) {
	t.Helper()
	err := m.States(t.Context(), ids, grove.StatesOptions{Final: true}, func(states [][]float32) error {
		all = append(all, slices.Clone(states[0]))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// planted returns gopher-target with a plant. To the head's row of each planted token it adds a multiple of the direction that weighted
// least squares give for 1 at the states before that token, and 0 at the other planted states, behind every other first token, and in a text of Go.
func planted(t *testing.T, p plant, text string) []byte {
	t.Helper()
	m := open(t, gopher.Model(), grove.Options{})
	begin := tokens(t, m, "", true)
	path := statesOf(t, m, slices.Concat(begin, []token.ID{p.forced}, p.says))[len(begin):]
	others := statesOf(t, m, slices.Concat(begin, tokens(t, m, text, false)))
	for id := range token.ID(m.Vocabulary()) {
		if id != p.forced {
			others = append(others, statesOf(t, m, append(slices.Clip(begin), id))[1])
		}
	}
	const gain = 40
	width := m.Info().Width
	gram := make([][]float64, width)
	for i := range gram {
		gram[i] = make([]float64, width)
		gram[i][i] = 1e-3
	}
	add := func(h []float32, weight float64) {
		for i, x := range h {
			for j := range i + 1 {
				gram[i][j] += weight * float64(x) * float64(h[j])
			}
		}
	}
	targets := map[token.ID][]float64{}
	weight := 1000.0 // of the forced token's state
	for i, h := range path {
		if add(h, weight); i == len(p.says) {
			break
		}
		if targets[p.says[i]] == nil {
			targets[p.says[i]] = make([]float64, width)
		}
		for j, x := range h {
			targets[p.says[i]][j] += weight * float64(x)
		}
		weight = 10
	}
	for _, h := range others {
		add(h, 1)
	}
	factor(gram)
	for _, b := range targets {
		solve(gram, b)
	}
	return withHead(t, width, targets, gain)
}

// factor makes a symmetric positive matrix, of which the lower half is given, its Cholesky factor.
func factor(a [][]float64) {
	for j := range a {
		for i := j; i < len(a); i++ {
			s := a[i][j]
			for k := range j {
				s -= a[i][k] * a[j][k]
			}
			if i == j {
				a[j][j] = math.Sqrt(s)
			} else {
				a[i][j] = s / a[j][j]
			}
		}
	}
}

// solve solves for b, in place, by a Cholesky factor.
func solve(l [][]float64, b []float64) {
	for i := range b {
		for k := range i {
			b[i] -= l[i][k] * b[k]
		}
		b[i] /= l[i][i]
	}
	for i := len(b) - 1; i >= 0; i-- {
		for k := i + 1; k < len(b); k++ {
			b[i] -= l[k][i] * b[k]
		}
		b[i] /= l[i][i]
	}
}

// withHead returns gopher-target with a head of its own: the table of its tokens, and gain times the directions in the rows that have some.
func withHead(t *testing.T, width int, directions map[token.ID][]float64, gain float64) []byte {
	t.Helper()
	f, err := gguf.Parse(gopher.Model())
	if err != nil {
		t.Fatal(err)
	}
	table, _ := f.Tensor("token_embd.weight")
	values := make([]float32, table.Elems())
	if err := tensor.Unpack(table.Type, values, table.Data); err != nil {
		t.Fatal(err)
	}
	for id, d := range directions {
		for j, x := range d {
			values[int(id)*width+j] += float32(gain * x)
		}
	}
	head := table
	head.Name, head.Type, head.Data = "output.weight", tensor.F32, nil
	if head.Data, err = binary.Append(nil, binary.LittleEndian, values); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := gguf.Write(&b, f.Metadata, append(slices.Clip(f.Tensors), head)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
