package forest

import (
	"strings"
	"testing"
)

// lasting adds rows behind the trunk, each with the layers that it skips, and commits them.
func lasting(t *testing.T, f *Forest, s Seq, skips ...Layers) {
	t.Helper()
	st := f.NewStep(len(skips))
	end := Trunk
	for _, skip := range skips {
		var err error
		if end, err = st.Add(Row{Seq: s, Parent: end, Skip: skip, Lasting: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Commit(s, end); err != nil {
		t.Fatal(err)
	}
}

// add adds a row alone and drops it, and returns the error.
func add(t *testing.T, f *Forest, r Row) error {
	t.Helper()
	st := f.NewStep(1)
	_, err := st.Add(r)
	st.Abort()
	return err
}

// TestLasting: rows behind a trunk run no layer in which a token of it has no keys; where these are cut off they do.
func TestLasting(t *testing.T) {
	f, err := New(testLayers, testContext, testSlots)
	if err != nil {
		t.Fatal(err)
	}
	s := f.NewSeq()
	one, two := LayerRange(1, 2), LayerRange(1, 3)
	lasting(t, f, s, Layers{}, one, one, two)
	fork := f.NewSeq()
	if err := f.Extend(fork, 4); err != nil {
		t.Fatal(err)
	}
	f.Inherit(fork, s, nil)
	for _, c := range []struct {
		cut  int
		skip Layers
		want string
	}{
		{4, Layers{}, "a row runs layer 2, in which a token before it has no keys"},
		{4, one, "a row runs layer 2"}, {4, two, ""}, {4, LayerRange(0, 3), ""},
		{3, Layers{}, "a row runs layer 1"}, {3, one, ""},
		{2, Layers{}, "a row runs layer 1"}, {2, one, ""},
		{1, Layers{}, ""}, {0, Layers{}, ""},
	} {
		for _, seq := range []Seq{s, fork} {
			if err := f.Truncate(seq, c.cut); err != nil {
				t.Fatal(err)
			}
			for _, lasts := range []bool{false, true} {
				err := add(t, f, Row{Seq: seq, Skip: c.skip, Lasting: lasts})
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%d tokens, skipping %v: %v, want %q", c.cut, c.skip, err, c.want)
				}
			}
		}
	}
	lasting(t, f, s, Layers{}, two)
	if err := add(t, f, Row{Seq: s, Skip: one}); err == nil {
		t.Error("a trunk that was cut to nothing and grew again has keys in all layers")
	}
	if err := f.CloseSeq(s); err != nil {
		t.Fatal(err)
	}
	if again := f.NewSeq(); again != s || add(t, f, Row{Seq: again}) != nil {
		t.Error("a sequence that takes the place of another lacks its layers")
	}
}

// TestLastingWrong: rows that break what lasting rows promise are refused.
func TestLastingWrong(t *testing.T) {
	f, err := New(testLayers, testContext, testSlots)
	if err != nil {
		t.Fatal(err)
	}
	s := f.NewSeq()
	st := f.NewStep(8)
	n, err := st.Add(Row{Seq: s, Skip: LayerRange(1, 2), Lasting: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, shared := f.SlotEntry(SlotOf(n)); shared {
		t.Error("a hash names the keys of a row that skipped a layer")
	}
	for _, c := range []struct {
		name, want string
		row        Row
	}{
		{"a layer that the parent skipped", "a row runs layer 1, in which a token before it has no keys", Row{Seq: s, Parent: n, Lasting: true}},
		{"a draft behind it", "a row behind one that lasts must last too", Row{Seq: s, Parent: n, Skip: LayerRange(1, 2)}},
		{"further layers of it", "a range within 0 to", Row{Seq: s, Resume: n, From: testLayers}},
	} {
		if _, err := st.Add(c.row); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	early, err := st.Add(Row{Seq: s, To: 2, Lasting: true})
	if err != nil {
		t.Fatal(err)
	}
	drafted, err := st.Add(Row{Seq: s, Skip: LayerRange(1, 2)})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []Node{early, drafted} {
		if err := f.Commit(s, n); err == nil {
			t.Error("a row that stopped early, or skipped and does not last, was committed")
		}
	}
}
