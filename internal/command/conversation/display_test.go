package conversation

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/command/terminal"
	"grove/internal/text/answer"
	"grove/internal/text/chat"
)

// TestDisplay shows thoughts apart from the answer, at a terminal and elsewhere, and keeps both.
func TestDisplay(t *testing.T) {
	thought := func(text string) grove.TokenParts { return read(answer.Reasoning, text) }
	content := func(text string) grove.TokenParts { return read(answer.Content, text) }
	mixed := []grove.TokenParts{thought("\nhm,"), thought(" so\n"), content("\n\n"), content("Yes"), content("\n")}
	for _, c := range []struct {
		name         string
		person, hide bool
		reads        []grove.TokenParts
		out, notes   string
	}{
		{"an answer", true, false, []grove.TokenParts{content("a"), content("b")}, "ab\n", ""},
		{"nothing", true, false, nil, "\n", ""},
		{"thoughts", true, false, mixed, "── thoughts\nhm, so\n\n──\nYes\n\n", ""},
		{"thoughts alone", true, false, mixed[:2], "── thoughts\nhm, so\n\n", ""},
		{"thoughts twice", true, false, []grove.TokenParts{thought("a"), content("b"), thought("c"), content("d")}, "── thoughts\na\n──\nb\n── thoughts\nc\n──\nd\n", ""},
		{"hidden", true, true, mixed, "Yes\n\n", "\rgrove: 7 tokens of thoughts\n"},
		{"hidden alone", true, true, mixed[:2], "", "\rgrove: 7 tokens of thoughts\n"},
		{"elsewhere", false, false, mixed, "\nhm, so\n\n\nYes\n\n", ""},
		{"hidden elsewhere", false, true, mixed, "Yes\n\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, notes strings.Builder
			d := &display{
				Show: Show{HideThinking: c.hide}, person: c.person, out: &out, notes: &notes, counted: func() int { return 7 },
				answer: terminal.NewWrapper(&out), thoughts: terminal.NewWrapper(&out),
			}
			want := grove.Message{Role: "assistant"}
			for _, r := range c.reads {
				if err := d.show(r); err != nil {
					t.Fatal(err)
				}
				if r.Parts[0].Kind == answer.Reasoning {
					want.Reasoning += r.Text
				} else {
					want.Content += r.Text
				}
			}
			if err := d.end(); err != nil {
				t.Fatal(err)
			}
			if out.String() != c.out || notes.String() != c.notes {
				t.Errorf("got %q and %q, want %q and %q", out.String(), notes.String(), c.out, c.notes)
			}
			if got := d.message(); got.Content != want.Content || got.Reasoning != want.Reasoning {
				t.Errorf("the message is %+v, want %+v", got, want)
			}
		})
	}
}

// read returns a token with one part.
func read(kind answer.Kind, text string) grove.TokenParts {
	return grove.TokenParts{Token: grove.Token{Text: text}, Parts: []answer.Part{{Kind: kind, Text: text}}}
}

// FuzzLoad reads hostile files of conversations: the present one stays where a file is refused, and roles are known ones.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}]}`))
	f.Add([]byte(`{"messages":[{"role":"root","content":"a"}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{"}}]}]}`))
	f.Add([]byte(`[1`))
	path := filepath.Join(f.TempDir(), "conversation.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c := &Conversation{System: "before", messages: []grove.Message{{Role: "user", Content: "before"}}}
		if err := c.load(path); err != nil {
			if c.System != "before" || len(c.messages) != 1 || c.messages[0].Content != "before" {
				t.Errorf("%q is refused and changes the conversation", data)
			}
			return
		}
		for _, m := range c.messages {
			if !slices.Contains(chat.Roles, m.Role) {
				t.Errorf("%q: the role %q", data, m.Role)
			}
		}
	})
}
