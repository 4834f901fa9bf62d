package calls_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove/internal/text/answer"
	"grove/internal/text/calls"
	"grove/internal/text/chat"
)

// match returns the ends of the texts of a grammar that begin at an offset.
func match(g calls.Grammar, text string, at int) (ends []int) {
	add := func(more ...int) {
		for _, e := range more {
			if !slices.Contains(ends, e) {
				ends = append(ends, e)
			}
		}
	}
	switch g.Kind {
	case calls.Literal, calls.Marker:
		if strings.HasPrefix(text[at:], g.Text) {
			add(at + len(g.Text))
		}
	case calls.Space, calls.Chars, calls.Free:
		for e := at; e <= len(text); e++ {
			part := text[at:e]
			switch {
			case g.Kind == calls.Space && (strings.Trim(part, " \t\r\n") != "" || len(part) > g.Max):
				return ends
			case g.Kind == calls.Chars && (strings.Trim(part, g.Text) != "" || len(part) > g.Max):
				return ends
			case g.Kind == calls.Free && slices.ContainsFunc(g.Without, func(x string) bool { return strings.Contains(part, x) }):
				return ends
			}
			if g.Kind != calls.Chars || len(part) >= g.Min {
				add(e)
			}
		}
	case calls.JSON:
		d := json.NewDecoder(bytes.NewReader([]byte(text[at:])))
		var v any
		var s schema
		if json.Unmarshal(g.Schema, &s) == nil && d.Decode(&v) == nil && check(&s, v) == "" {
			add(at + int(d.InputOffset()))
		}
	case calls.Seq:
		ends = []int{at}
		for _, p := range g.Of {
			var next []int
			for _, e := range ends {
				next = append(next, match(p, text, e)...)
			}
			slices.Sort(next)
			ends = slices.Compact(next)
		}
	case calls.Alt:
		for _, p := range g.Of {
			add(match(p, text, at)...)
		}
	case calls.Repeat:
		all := []int{at}
		for n := 0; len(all) > 0; n++ {
			if n >= g.Min {
				add(all...)
			}
			if n == g.Max || n > len(text) {
				break
			}
			var next []int
			for _, e := range all {
				for _, to := range match(g.Of[0], text, e) {
					if to > e {
						next = append(next, to)
					}
				}
			}
			slices.Sort(next)
			all = slices.Compact(next)
		}
	}
	return ends
}

const published = "../../../../shared/data/templates"

// TestPublished: the calls that published templates write are texts of the grammars of their families, but for white space.
func TestPublished(t *testing.T) {
	if _, err := os.Stat(published); err != nil {
		if _, err := os.Stat("../../../../shared"); err == nil && os.Getenv("CI") != "" {
			t.Fatalf("%s is missing", published)
		}
		t.Skipf("needs %s: not there", published)
	}
	files, err := filepath.Glob(filepath.Join(published, "*.jinja"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d templates, %v; want 40 or more", len(files), err)
	}
	matched := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jinja")
		t.Run(name, func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tmpl, err := chat.New(name, string(source), chat.Tokens{BOS: "<s>", EOS: "</s>"})
			if err != nil {
				t.Fatal(err)
			}
			all, tools := functions()
			s := calls.StyleOf(string(source), none)
			text := rendered(tmpl, tools[:1])
			if text == "" {
				t.Skipf("it shows no calls; its style is that of %s", s.Family)
			}
			g, err := s.Answer(answer.FormatOf(string(source), none), calls.Options{Functions: all, Least: 1, Tail: ""})
			if err != nil {
				t.Fatal(err)
			}
			ok := false
			for at := range text { // the prompt, thoughts and ends of turns are around
				ok = ok || len(match(g, text, at)) > 0
			}
			matched++
			if !ok {
				t.Errorf("%s: %q is no text of the grammar", s.Family, text)
			}
		})
	}
	if !t.Failed() && matched < 25 {
		t.Errorf("the calls of %d templates match", matched)
	}
}

// rendered returns what a template writes for a call behind the question; "": it shows none.
func rendered(tmpl *chat.Template, tools []json.RawMessage) string {
	call := chat.ToolCall{ID: "call12345", Type: "function"}
	call.Function.Name, call.Function.Arguments = "look", json.RawMessage(`{"at":"Bern <x> \"y\"","n":2}`)
	all, err := tmpl.Render([]chat.Message{{Role: "user", Content: "Weather?"}, {Role: "assistant", ToolCalls: []chat.ToolCall{call}}}, chat.Options{Tools: tools, NoAnswer: true})
	if err != nil {
		return ""
	}
	_, text, _ := strings.Cut(all.Text, "Weather?")
	if !strings.Contains(text, "look") {
		return ""
	}
	return text
}
