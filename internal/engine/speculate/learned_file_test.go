package speculate

import (
	"os"
	"path/filepath"
	"testing"

	"grove/method"
)

// FuzzRead reads hostile files of what methods have learned: rates that are taken over are shares.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"lookup":{"rates":[{"c":0,"h":1,"t":2},{"c":-1,"h":1,"t":2}],"state":"AAAA"}}`))
	f.Add([]byte(`{"sam":{"rates":[{"c":3,"h":-1,"t":1e30}]},"":{"rates":null}}`))
	f.Add([]byte(`[]`))
	path := filepath.Join(f.TempDir(), "learned.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		for name, l := range read(path) {
			rates := method.NewRates(1)
			rates.Restore(0, l.Rates)
			for _, r := range rates.Known(0) {
				if !(r.Accepted >= 0 && r.Accepted <= r.Tried && r.Tried < 1e6) {
					t.Errorf("%q: %+v", name, r)
				}
			}
		}
	})
}
