package flags

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove"
)

func TestBytes(t *testing.T) {
	for _, c := range []struct {
		text string
		want Bytes // 0: refused
	}{
		{"1", 1}, {" 12 KiB ", 12 << 10}, {"3MiB", 3 << 20}, {"6GiB", 6 << 30}, {"16777215TiB", 16777215 << 40},
		{"0", 0}, {"", 0}, {"-1", 0}, {"6GB", 0}, {"GiB", 0}, {"1.5GiB", 0}, {"16777216TiB", 0}, {"18446744073709551616", 0},
	} {
		t.Run(c.text, func(t *testing.T) {
			var n Bytes
			if err := n.UnmarshalText([]byte(c.text)); n != c.want || (err == nil) != (c.want > 0) {
				t.Errorf("got %d, %v, want %d", n, err, c.want)
			}
		})
	}
}

func TestMethods(t *testing.T) {
	if f := (Methods{"sam, lookup+recycle,off"}); !slices.Equal(f.List(), []string{"sam", "lookup,recycle", "off"}) || f.LeftOut() != nil {
		t.Errorf("named methods are %q", f.List())
	}
	if f := (Methods{"layerskip:exit=1+depth=4+sam,draft-verify:skip=1+3-4+depth=2, sam+del:depth=3"}); !slices.Equal(f.List(), []string{"layerskip:exit=1+depth=4,sam", "draft-verify:skip=1+3-4+depth=2", "sam,del:depth=3"}) {
		t.Errorf("options of methods are split into %q", f.List())
	}
	all := Methods{allMethods}
	if got := all.List(); !slices.Contains(got, "draft") || !slices.Contains(got, grove.MethodAuto) || slices.Contains(got, grove.MethodOff) || all.LeftOut() == nil {
		t.Errorf("all methods are %q", got)
	}
	for list, ok := range map[methodList]bool{"all": true, "auto": true, "sam,lookup+recycle": true, "sam+nothing": false, "": true, "sam,all": false} {
		if err := list.Valid(); (err == nil) != ok {
			t.Errorf("%q: %v", list, err)
		}
	}
}

func TestSeed(t *testing.T) {
	seven := uint64(7)
	if d := cmp.Diff([]uint64{3, 7}, []uint64{Seed{}.Or(3), Seed{&seven}.Or(3)}); d != "" {
		t.Errorf("seeds (-want +got):\n%s", d)
	}
}

// FuzzBytes reads hostile numbers of bytes, of the command line and of variables.
func FuzzBytes(f *testing.F) {
	for _, text := range []string{"6GiB", "1", "0", "-1KiB", "18446744073709551615", "18446744073709551615KiB", " 3 MiB ", "KiB", "1e3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var n Bytes
		if err := n.UnmarshalText([]byte(text)); err == nil && n == 0 {
			t.Errorf("%q is no bytes", text)
		}
	})
}
