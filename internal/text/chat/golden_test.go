package chat_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/jinja"
)

// goldens are the prompts that jinja2 makes of templates and conversations, in the environment of Hugging Face's transformers.
// testdata/golden.py makes them. The templates are our own, in the turn formats of the families that they are named for.
type goldens struct {
	Conversations map[string]map[string]json.RawMessage
	Renders       []struct{ Template, Case, Want, Raised, Error string }
}

// TestGolden compares the prompts of every family's template with those of jinja2. GROVE_TEMPLATES names a further folder of
// this form (golden.json, templates/*.jinja).
func TestGolden(t *testing.T) {
	folders := []string{"testdata"}
	if f := os.Getenv("GROVE_TEMPLATES"); f != "" {
		folders = append(folders, f)
	}
	for _, folder := range folders {
		data, err := os.ReadFile(filepath.Join(folder, "golden.json"))
		if err != nil {
			t.Fatal(err)
		}
		var g goldens
		if err := json.Unmarshal(data, &g); err != nil {
			t.Fatal(err)
		}
		for _, r := range g.Renders {
			t.Run(r.Template+"/"+r.Case, func(t *testing.T) {
				got, err := renderGolden(t, folder, r.Template, g.Conversations[r.Case])
				var raised *jinja.RaisedError
				var bad *jinja.Error
				switch {
				case r.Raised != "":
					if !errors.As(err, &raised) || raised.Msg != r.Raised {
						t.Errorf("got %q and %v, want the exception %q", got, err, r.Raised)
					}
				case r.Error != "":
					if !errors.As(err, &bad) || errors.Is(err, jinja.ErrLimit) {
						t.Errorf("got %q and %v, want an error like %s", got, err, r.Error)
					}
				case err != nil:
					t.Error(err)
				default:
					if diff := cmp.Diff(r.Want, got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
			})
		}
	}
}

func renderGolden(t *testing.T, folder, name string, conversation map[string]json.RawMessage) (string, error) {
	source, err := os.ReadFile(filepath.Join(folder, "templates", name+".jinja"))
	if errors.Is(err, os.ErrNotExist) {
		source, err = os.ReadFile(filepath.Join("builtin", name+".jinja"))
	}
	if err != nil {
		t.Fatal(err)
	}
	tmpl, err := jinja.Parse(string(source))
	if err != nil {
		return "", err
	}
	given := map[string]json.RawMessage{
		"bos_token": json.RawMessage(`"<s>"`), "eos_token": json.RawMessage(`"</s>"`), "add_generation_prompt": json.RawMessage("true"),
		"tools": json.RawMessage("null"), "documents": json.RawMessage("null"),
	}
	maps.Copy(given, conversation)
	vars := map[string]jinja.Value{}
	for k, v := range given {
		if vars[k], err = jinja.FromJSON(-1, v); err != nil {
			t.Fatal(err)
		}
	}
	out, err := tmpl.Render(vars, jinja.Options{Now: time.Date(2025, 3, 7, 4, 5, 9, 0, time.UTC)})
	return out.String(), err
}
