package layers

import (
	"strings"
	"testing"

	"grove/forest"
)

func TestSpelling(t *testing.T) {
	for s, want := range map[string]string{"3": "3", "3-5+8": "3-5+8", "8+3+5+4": "3-5+8", "0-127": "0-127", "007": "7", "2-2": "2", "1+3+5": "1+3+5"} {
		set, err := Parse(s)
		if err != nil || Format(set) != want {
			t.Errorf("%s: %s, %v", s, Format(set), err)
		}
		if again, err := Parse(Format(set)); err != nil || again != set {
			t.Errorf("%s: %v, %v", s, again, err)
		}
	}
	for _, s := range []string{"", "+", "3-", "-3", "5-3", "128", "0-128", "3+3", "3-5+4", "x", "3,5", "99999999999999999999"} {
		if set, err := Parse(s); err == nil || !strings.HasPrefix(err.Error(), "layers: ") || set != (forest.Layers{}) {
			t.Errorf("%q: %v, %v", s, set, err)
		}
	}
	if got := Format(forest.Layers{}); got != "" {
		t.Errorf("no layers: %q", got)
	}
}

func TestRecord(t *testing.T) {
	for _, spelled := range []string{"", "3", "0-11", "1+3-5"} {
		set := forest.Layers{}
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
	for _, bad := range []string{"", "12", "13:3", "12:12", "12:x", ":3", "012:3", "12:3\x00"} {
		if got, err := ParseRecord([]byte(bad), 12); err == nil || got != (forest.Layers{}) {
			t.Errorf("%q: %v, %v", bad, got, err)
		}
	}
}

// FuzzSet reads hostile records of sets: one that is taken over gives itself again.
func FuzzSet(f *testing.F) {
	f.Add([]byte("12:3-5+8"))
	f.Add([]byte("12:"))
	f.Add([]byte("12:5-3+3"))
	f.Fuzz(func(t *testing.T, b []byte) {
		set, err := ParseRecord(b, 12)
		if err != nil {
			return
		}
		if again, err := ParseRecord(Record(12, set), 12); err != nil || again != set || set.Minus(forest.LayerRange(0, 12)).Len() > 0 {
			t.Errorf("%q: %v, then %v, %v", b, set, again, err)
		}
	})
}
