package layers

import (
	"strings"
	"testing"

	"grove/internal/forest"
)

func TestSpelling(t *testing.T) {
	for s, want := range map[string]string{"3": "3", "3-5+8": "3-5+8", "8+3+5+4": "3-5+8", "0-127": "0-127", "007": "7", "2-2": "2", "1+3+5": "1+3+5",
		"a3": "a3", "f3-5": "f3-5", "a3+f3": "3", "f2+a4-6+1": "1+a4-6+f2", "a0-127+f0-127": "0-127", "a1-3+f2-4": "2-3+a1+f4", "f007": "f7"} {
		set, err := Parse(s)
		if err != nil || Format(set) != want {
			t.Errorf("%s: %s, %v", s, Format(set), err)
		}
		if again, err := Parse(Format(set)); err != nil || again != set {
			t.Errorf("%s: %v, %v", s, again, err)
		}
	}
	for _, s := range []string{"", "+", "3-", "-3", "5-3", "128", "0-128", "3+3", "3-5+4", "x", "3,5", "99999999999999999999", "a", "f-3", "b3", "af3", "3a", "3+a3", "f3+2-4", "a3+a3"} {
		if set, err := Parse(s); err == nil || !strings.HasPrefix(err.Error(), "layers: ") || set != (Set{}) {
			t.Errorf("%q: %v, %v", s, set, err)
		}
	}
	if got := Format(Set{}); got != "" {
		t.Errorf("no layers: %q", got)
	}
}

// TestApply: a row passes over whole layers by one field and over parts by others, and what a set saves counts by weights.
func TestApply(t *testing.T) {
	set, err := Parse("2+a4-6+f7")
	if err != nil {
		t.Fatal(err)
	}
	r := forest.Row{Skip: forest.LayerRange(0, 9)}
	set.Apply(&r)
	if r.Skip != forest.LayerRange(2, 3) || r.SkipAttention != forest.LayerRange(4, 7) || r.SkipFeedForward != forest.LayerRange(7, 8) {
		t.Errorf("%+v", r)
	}
	if got := set.Layers(0.25); got != 1+3*0.25+0.75 {
		t.Errorf("%v layers", got)
	}
	if got := Whole(forest.LayerRange(1, 4)).Layers(0.3); got != 3 {
		t.Errorf("%v of 3 whole layers", got)
	}
}

func TestRecord(t *testing.T) {
	for _, spelled := range []string{"", "3", "0-11", "1+3-5", "1+a2-3+f5"} {
		set := Set{}
		if spelled != "" {
			var err error
			if set, err = Parse(spelled); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := ParseRecord(Record(12, set), 12); err != nil || got != set {
			t.Errorf("%q: %v, %v", spelled, got, err)
		}
	}
	for _, bad := range []string{"", "12", "13:3", "12:12", "12:x", ":3", "012:3", "12:3\x00", "12:a12", "12:f3+3"} {
		if got, err := ParseRecord([]byte(bad), 12); err == nil || got != (Set{}) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

// FuzzSet reads hostile records of sets: one that is taken over gives itself again.
func FuzzSet(f *testing.F) {
	f.Add([]byte("12:3-5+8"))
	f.Add([]byte("12:"))
	f.Add([]byte("12:5-3+3"))
	f.Add([]byte("12:a5+f3-4"))
	f.Fuzz(func(t *testing.T, b []byte) {
		set, err := ParseRecord(b, 12)
		if err != nil {
			return
		}
		if again, err := ParseRecord(Record(12, set), 12); err != nil || again != set || set.Within(0, 12) != set {
			t.Errorf("%q: %v, then %v, %v", b, set, again, err)
		}
	})
}
