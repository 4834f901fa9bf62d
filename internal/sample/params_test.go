package sample

import (
	"strings"
	"testing"
)

func TestStageNames(t *testing.T) {
	for name, want := range map[string]string{"typical_p": "typ_p", "typ_p": "typ_p", "temp": "temperature", "temperature": "temperature", "dry": "dry"} {
		if got, known := TruncateFirst.Stage(name); got != want || !known {
			t.Errorf("%s: %q, known %v; want %q", name, got, known, want)
		}
	}
	for _, name := range []string{"", "Temp", "tfs_z", "top_k "} {
		if got, known := TruncateFirst.Stage(name); got != name || known {
			t.Errorf("%q: %q, known %v; want it unchanged and not known", name, got, known)
		}
	}
}

func TestOrderWith(t *testing.T) {
	tests := []struct {
		name   string
		stages string
		from   Order
		want   Order
		ok     bool
	}{
		{"none, from the first order", "", TruncateFirst, TruncateFirst, true},
		{"none, from the second", "", TemperFirst, TemperFirst, true},
		{"both orders have it", "top_k top_p", TemperFirst, TemperFirst, true},
		{"only the other has it", "temperature top_k", TruncateFirst, TemperFirst, true},
		{"only the other has it, from the second", "top_k temperature", TemperFirst, TruncateFirst, true},
		{"all of the first", strings.Join(TruncateFirst.Stages(), " "), TemperFirst, TruncateFirst, true},
		{"all of the second", strings.Join(TemperFirst.Stages(), " "), TruncateFirst, TemperFirst, true},
		{"neither has it", "top_p top_k temperature", TruncateFirst, TruncateFirst, false},
		{"twice", "top_k top_k", TemperFirst, TemperFirst, false},
		{"a name that is not known", "top_k tfs_z", TruncateFirst, TruncateFirst, false},
	}
	for _, tt := range tests {
		if got, ok := tt.from.With(strings.Fields(tt.stages)); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}
