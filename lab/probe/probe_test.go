package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
	"grove/internal/weights/safetensors"
	"grove/internal/weights/tensor"
	"grove/lab/distill/states"
)

// TestKeys: atoms are bipolar and almost orthogonal, and unbinding the bundle of several pairs gives each concept back.
func TestKeys(t *testing.T) {
	labels := []map[string]string{{"country": "France", "capital": "Paris", "river": "Seine"}, {"country": "Japan", "capital": "Tokyo"}, {"country": "Peru", "capital": "Lima"}}
	b := newCodebook(2048, labels)
	france, japan := b.atom("concept", "France"), b.atom("concept", "Japan")
	for _, x := range france {
		if x != 1 && x != -1 {
			t.Fatalf("a key has the number %v", x)
		}
	}
	if c := cosine(france, japan); math.Abs(c) > 0.1 {
		t.Errorf("two keys have a cosine of %v", c)
	}
	for _, l := range labels {
		key := b.encode(l)
		for role, concept := range l {
			n := b.unbind(key, role)
			if want := 1 / math.Sqrt(float64(len(l))); n.concept != concept || math.Abs(n.cosine-want) > 0.1 {
				t.Errorf("%v: %s is %+v, want %s with a cosine near %.2f", l, role, n, concept, want)
			}
		}
	}
}

// TestSolve: a factor and its solution give the system back.
func TestSolve(t *testing.T) {
	a := [][]float64{{4, 2, 1}, {2, 5, 3}, {1, 3, 6}}
	l := [][]float64{{4}, {2, 5}, {1, 3, 6}}
	for i := range l {
		l[i] = append(l[i], make([]float64, 2-i)...)
	}
	x := []float64{7, -8, 9}
	if err := factor(l); err != nil {
		t.Fatal(err)
	}
	solve(l, x)
	for i, want := range []float64{7, -8, 9} {
		if got := dot(a[i], x); math.Abs(got-want) > 1e-12 {
			t.Errorf("row %d gives %v, want %v", i, got, want)
		}
	}
	if factor([][]float64{{1, 0}, {1, 1}}) == nil {
		t.Error("a system with two equal rows is solved")
	}
}

// made makes states that are a random linear image of concepts, with noise, and their labels.
func made(r *rand.Rand, n, width int, noise float64) (xs [][]float64, labels []map[string]string) {
	images := map[string][]float64{}
	for range n {
		l, x := map[string]string{}, make([]float64, width)
		for role, concepts := range map[string]int{"color": 6, "form": 4, "size": 3} {
			l[role] = fmt.Sprintf("%s %d", role, r.IntN(concepts))
		}
		for _, role := range []string{"color", "form", "size"} {
			image := images[l[role]]
			if image == nil {
				image = make([]float64, width)
				for j := range image {
					image[j] = r.NormFloat64()
				}
				images[l[role]] = image
			}
			for j, v := range image {
				x[j] += v
			}
		}
		for j := range x {
			x[j] += noise * r.NormFloat64()
		}
		xs, labels = append(xs, x), append(labels, l)
	}
	return xs, labels
}

// TestRecovers: a probe finds concepts that are in states, and none where labels have nothing to do with the states.
func TestRecovers(t *testing.T) {
	xs, labels := made(rand.New(rand.NewPCG(1, 2)), 400, 64, 0.5)
	score := func(labels []map[string]string) (right, of, most int) {
		s := split{states: xs[:300], labels: labels[:300], testStates: xs[300:], testLabels: labels[300:]}
		p, err := fit(s.states, s.labels, fitOptions{dims: 1024, ridge: 0.1})
		if err != nil {
			t.Fatal(err)
		}
		for _, role := range p.book.roles() {
			r, o, m := s.score(p, role)
			right, of, most = right+r, of+o, most+m
		}
		return right, of, most
	}
	if right, of, most := score(labels); of != 300 || right < 290 || most > 150 {
		t.Errorf("%d of %d concepts are right, and the commonest are for %d", right, of, most)
	}
	_, others := made(rand.New(rand.NewPCG(3, 4)), 400, 64, 0.5)
	if right, of, _ := score(others); right > of/2 {
		t.Errorf("labels of other states: %d of %d are right", right, of)
	}
}

// statesFile writes the states of gopher-target for the texts of writeTexts.
func statesFile(t *testing.T, dir, path string) {
	t.Helper()
	m, err := grove.OpenBytes(gopher.Model(), grove.Options{Forget: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o := states.Options{States: grove.StatesOptions{Layers: []int{2}}, Type: tensor.F32, Texts: func(do func(name, text string) error) error {
		names, err := filepath.Glob(filepath.Join(dir, "*.txt"))
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err == nil {
				err = do(name, string(text))
			}
			if err != nil {
				return err
			}
		}
		return err
	}}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := states.Write(t.Context(), m, o, f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRun makes texts, their states in gopher-target, and names the concepts in them.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	do := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		if err := run(args, &out); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		return out.String()
	}
	do("texts", dir)
	path, labels := filepath.Join(dir, "states.safetensors"), filepath.Join(dir, "labels.jsonl")
	statesFile(t, dir, path)
	out := do("test", "-dims", "512", path, labels)
	if !strings.HasPrefix(out, "240 texts to train with, 60 to test with, states of 256 numbers, keys of 512\n") {
		t.Error(out)
	}
	for _, m := range regexp.MustCompile(`(?m)^(\w+): (\d+) of 60 right`).FindAllStringSubmatch(out, -1) {
		var right int
		if fmt.Sscan(m[2], &right); right < 55 {
			t.Errorf("%s: %d of 60", m[1], right)
		}
	}
	first := strings.SplitN(do("name", "-dims", "512", path, labels, path), "\n", 2)[0]
	if !strings.HasPrefix(first, "text 0: function Read (0.") || !strings.Contains(first, ", parameter string (0.") || !strings.Contains(first, ", result string (0.") {
		t.Error(first)
	}
}

// TestRefused: what cannot be is refused by name.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	two := write("two.jsonl", "{\"a\": \"x\"}\n{\"a\": \"y\"}\n")
	states := filepath.Join(dir, "s.safetensors")
	tensors := []safetensors.Tensor{{Name: "starts", Type: "I64", Shape: []int{3}}, {Name: "final", Type: "F32", Shape: []int{4, 1}}}
	file := func(starts, values string) string {
		to, err := os.Create(states)
		if err != nil {
			t.Fatal(err)
		}
		w, err := safetensors.NewWriter(to, nil, tensors...)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Append(0, []byte(starts)), w.Append(1, []byte(values)), w.Close(), to.Close()); err != nil {
			t.Fatal(err)
		}
		return states
	}
	int64s := func(n ...byte) (s string) {
		for _, b := range n {
			s += string([]byte{b, 0, 0, 0, 0, 0, 0, 0})
		}
		return s
	}
	floats := strings.Repeat("\x00\x00\x80\x3f", 4)
	for _, c := range []struct {
		name, want string
		args       func() []string
	}{
		{"nothing", "no command is given", func() []string { return nil }},
		{"unknown", "none of these", func() []string { return []string{"guess"} }},
		{"labels", "line 2: ", func() []string { return []string{"test", states, write("bad.jsonl", "{}\nx\n")} }},
		{"labels of other texts", "has states of 2 texts and ", func() []string {
			return []string{"test", file(int64s(0, 2, 4), floats), write("one.jsonl", "{}\n")}
		}},
		{"no text to test with", "none is left to test with", func() []string { return []string{"test", file(int64s(0, 2, 4), floats), two} }},
		{"an empty text", "text 0 begins at token 2 and ends at 2", func() []string { return []string{"test", file(int64s(2, 2, 4), floats), two} }},
		{"tokens that are not there", "it must be [9, width]", func() []string { return []string{"test", file(int64s(0, 2, 9), floats), two} }},
		{"no number", "value 3 is NaN", func() []string {
			return []string{"test", file(int64s(0, 2, 4), floats[:12]+"\x00\x00\xc0\x7f"), two}
		}},
		{"dims", "-dims is 0", func() []string {
			return []string{"name", "-dims", "0", file(int64s(0, 2, 4), floats), two, states}
		}},
	} {
		if err := run(c.args(), new(strings.Builder)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}
