package constrain

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// list returns all paths of a graph, hop by hop: the slow way.
func list(triples []PathTriple, entities []string, hops int, closing string) (all []string) {
	var walk func(text, at string, left int)
	walk = func(text, at string, left int) {
		for _, t := range triples {
			if t.Head == at && left > 0 {
				longer := text + PathArrow + t.Relation + PathArrow + t.Tail
				all = append(all, longer+closing)
				walk(longer, t.Tail, left-1)
			}
		}
	}
	for _, e := range entities {
		walk(e, e, hops)
	}
	return all
}

var family = []PathTriple{
	{"Ann", "child", "Bob"}, {"Ann", "child", "Bob Lee"}, {"Bob", "works at", "Mill"}, {"Bob Lee", "works at", "Mill"}, {"Mill", "in", "Ann"},
}

// TestGraph holds the machine of a graph of five edges to the list of its paths: each is a path of the graph, and none
// is missing.
func TestGraph(t *testing.T) {
	for hops := 1; hops <= 4; hops++ {
		g, err := PathNewGraph(family, []string{"Ann", "Mill", "nobody"}, hops, "</PATH>")
		if err != nil {
			t.Fatal(err)
		}
		want := list(family, []string{"Ann", "Mill"}, hops, "</PATH>")
		if got := pathLanguage(g, 200); !equalSets(got, want) {
			t.Errorf("%d hops: paths\n%s\nwant\n%s", hops, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// pathLanguage returns all texts of a machine of at most long bytes, and fails where a state leads nowhere.
func pathLanguage(m PathMachine, long int) (all []string) {
	var walk func(text []byte, state int)
	walk = func(text []byte, state int) {
		ends := m.Final(state)
		if ends {
			all = append(all, string(text))
		}
		for b := range 256 {
			if next, alive := m.Step(state, byte(b)); alive && len(text) < long {
				ends = true
				walk(append(slices.Clip(text), byte(b)), next)
			}
		}
		if !ends && len(text) < long {
			panic(fmt.Sprintf("paths: nothing follows %q", text))
		}
	}
	walk(nil, PathStart)
	return all
}

func equalSets(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

// TestGraphRandom has names that begin alike, and that look like parts of the arrow and of the marker.
func TestGraphRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	names := []string{"a", "a ", "a -", "ab", "<", "a<", "->", " ", "-"}
	for range 300 {
		var triples []PathTriple
		for range 1 + rng.IntN(6) {
			pick := func() string { return names[rng.IntN(len(names))] }
			triples = append(triples, PathTriple{pick(), pick(), pick()})
		}
		closing := []string{"", "</", "<<"}[rng.IntN(3)]
		entities := names[:1+rng.IntN(len(names))]
		hops := 1 + rng.IntN(2)
		want := list(triples, entities, hops, closing)
		g, err := PathNewGraph(triples, entities, hops, closing)
		if len(want) == 0 && errors.Is(err, ErrPathEmpty) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := pathLanguage(g, 60); !equalSets(got, want) {
			t.Fatalf("%v from %q, %d hops: paths %q, want %q", triples, entities, hops, got, want)
		}
	}
}

// TestMarked walks free text with paths between markers.
func TestMarked(t *testing.T) {
	g, err := PathNewGraph(family, []string{"Ann"}, 2, "</PATH>")
	if err != nil {
		t.Fatal(err)
	}
	m, err := PathNewMarked("<PATH>", g)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{ // to what may be read, and "end" where the text may end there
		"":                                  "end",
		"free <PA text":                     "end",
		"x<PATH>":                           "",
		"x<PATH>Ann -> child -> Bob":        "",
		"<<PATH>Ann -> child -> Bob</PATH>": "end",
		"<PATH>Ann -> child -> Bob Lee</PATH> so <PATH>Ann -> child -> Bob -> works at -> Mill</PATH>!": "end",
		"<PATH>Bob":                  "dead",
		"<PATH>Ann -> child -> Mill": "dead",
		"<PATH>Ann</PATH>":           "dead",
		"<PATH>Ann -> child -> Bob -> works at -> Mill -> in": "dead",
		"a\xff": "dead",
	} {
		got := ""
		if state, alive := run(m, text); !alive {
			got = "dead"
		} else if m.Final(state) {
			got = "end"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if _, err := PathNewMarked("", g); err == nil {
		t.Error("an empty marker is taken")
	}
	if _, err := PathNewMarked("<", &PathSubstring{newSuffixes(nil)}); err == nil {
		t.Error("an inner machine that takes the empty text is taken")
	}
}

func TestGraphRefused(t *testing.T) {
	long := strings.Repeat("a", PathMaxName+1)
	for name, tt := range map[string]struct {
		triple PathTriple
		entity string
		hops   int
	}{
		"no edge":         {PathTriple{"a", "r", "b"}, "b", 1},
		"no hop":          {PathTriple{"a", "r", "b"}, "a", 0},
		"many hops":       {PathTriple{"a", "r", "b"}, "a", PathMaxHops + 1},
		"an empty name":   {PathTriple{"a", "", "b"}, "a", 1},
		"an arrow":        {PathTriple{"a", "r -> s", "b"}, "a", 1},
		"the marker":      {PathTriple{"a", "r", "b</PATH>"}, "a", 1},
		"a long name":     {PathTriple{"a", "r", long}, "a", 1},
		"a byte, no text": {PathTriple{"a", "r", "\xff"}, "a", 1},
	} {
		if _, err := PathNewGraph([]PathTriple{tt.triple}, []string{tt.entity}, tt.hops, "</PATH>"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
