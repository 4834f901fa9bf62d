package jinja_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/jinja"
)

// now is the time in the goldens.
var now = time.Date(2025, 3, 7, 4, 5, 9, 0, time.UTC)

func vars(t *testing.T, data []byte) map[string]jinja.Value {
	v, err := jinja.FromJSON(-1, data)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]jinja.Value{}
	keys, values := v.(*jinja.Map).Entries()
	for i, k := range keys {
		out[k.(jinja.Text).String()] = values[i]
	}
	return out
}

// TestLanguage compares the results of single expressions and statements with those of jinja2 (chat/testdata/golden.py).
func TestLanguage(t *testing.T) {
	data, err := os.ReadFile("testdata/language.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Vars  json.RawMessage
		Cases []struct{ Source, Want, Raised, Error string }
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	given := vars(t, golden.Vars)
	for _, c := range golden.Cases {
		name, _, _ := strings.Cut(strings.ReplaceAll(c.Source, " ", ""), "\n")
		t.Run(name, func(t *testing.T) {
			tmpl, err := jinja.Parse(c.Source)
			var got *jinja.Output
			if err == nil {
				got, err = tmpl.Render(given, jinja.Options{Now: now})
			}
			var raised *jinja.RaisedError
			var bad *jinja.Error
			switch {
			case c.Raised != "":
				if !errors.As(err, &raised) || raised.Msg != c.Raised {
					t.Errorf("%q gives %v, want the exception %q", c.Source, err, c.Raised)
				}
			case c.Error != "":
				if !errors.As(err, &bad) || errors.Is(err, jinja.ErrLimit) {
					t.Errorf("%q gives %q and %v, want an error like %s", c.Source, got, err, c.Error)
				}
			case err != nil:
				t.Errorf("%q: %v", c.Source, err)
			default:
				if diff := cmp.Diff(c.Want, got.String()); diff != "" {
					t.Errorf("%q (-want +got):\n%s", c.Source, diff)
				}
			}
		})
	}
}
