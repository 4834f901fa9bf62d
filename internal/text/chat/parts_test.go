package chat_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/chat"
)

// TestPublishedParts gives published templates a question of two parts. Where jinja2 renders them, the prompt is the same; where it
// fails or prints the list as it is, the prompt is that of the two texts with a line end between.
func TestPublishedParts(t *testing.T) {
	needPublished(t)
	f, err := os.Open(filepath.Join(published, "renders.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, n := bufio.NewScanner(f), 0
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var r struct{ Template, Case, Text, Error string }
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Case != "parts" || r.Template == "fireworks-ai-llama-3-firefunction-v2" { // it needs its variables
			continue
		}
		source, err := os.ReadFile(filepath.Join(published, r.Template+".jinja"))
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := chat.New(r.Template, string(source), chat.Tokens{BOS: "<BOS>", EOS: "<EOS>"})
		if err != nil {
			t.Fatal(err)
		}
		render := func(m chat.Message) string {
			o := chat.Options{Now: time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)}
			if strings.HasPrefix(r.Template, "NousResearch") {
				o.Tools = []json.RawMessage{json.RawMessage(weather)}
			}
			p, err := tmpl.Render([]chat.Message{m}, o)
			if err != nil {
				t.Error(err)
			}
			return p.Text
		}
		got := render(chat.Message{Role: "user", Content: "First.\nSecond.", Parts: []string{"First.", "Second."}})
		want := r.Text
		isList := want != "" && !strings.Contains(want, `'type'`) && !strings.Contains(want, `"type"`) && strings.Contains(want, "First.")
		if n++; !isList {
			want = render(user("First.\nSecond."))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: list %v (-want +got):\n%s", r.Template, isList, diff)
		}
	}
	if err := lines.Err(); err != nil || n != 42 {
		t.Errorf("%d templates, %v; want 42", n, err)
	}
}
