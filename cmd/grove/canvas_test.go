//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/suite/scripts"
)

// TestCanvasTerminal: a diffusion model's canvas shows at a terminal while it fills, behind the text so far, and leaves nothing: the screen ends as it does without. A program, and a terminal
// that moves no cursor, get none.
func TestCanvasTerminal(t *testing.T) {
	template := filepath.Join(t.TempDir(), "t.jinja")
	if err := os.WriteFile(template, []byte("{{ messages|map(attribute='content')|join }}"), 0o644); err != nil {
		t.Fatal(err)
	}
	steps := "20"
	if scripts.Long {
		steps = "60"
	}
	const prompt = "func (f *File) Close() error {\n\tif f == nil {\n"
	run := []string{"run", "-m", "gopher-diffusion", "-n", steps, "--temp", "0", "-t", "1", "--policy", "static", "-p", prompt}
	chat := []string{"chat", "-m", "gopher-diffusion", "-n", steps, "--temp", "0", "-t", "1", "--policy", "threshold:p=0.3", "--chat-template", template, prompt}
	for _, c := range []struct {
		name    string
		args    []string
		columns int
		env     []string
		shows   bool
	}{
		{"run", run, 80, nil, true},
		{"narrow", run, 11, nil, true},
		{"blocks", append(slices.Clone(run), "--block", "12"), 40, nil, true},
		{"long", append(slices.Clone(run), "-n", "150", "--policy", "threshold:p=0.1"), 12, nil, true}, // more rows than the screen has
		{"off", append(slices.Clone(run), "--no-canvas"), 80, nil, false},
		{"no colours", run, 80, []string{"NO_COLOR=1"}, false},
		{"dumb", run, 80, []string{"TERM=dumb"}, false},
		{"JSON", append(slices.Clone(run), "--json"), 80, nil, false},
		{"chat", chat, 40, nil, true},
		{"chat without Markdown", append(slices.Clone(chat), "--no-markdown"), 25, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			show := func(args ...string) (text string, screen []string) {
				p := startTerminal(t, c.columns, t.TempDir(), append([]string{"GROVE_NO_HISTORY=1"}, c.env...), args...)
				text = p.sees("grove: prompt")
				if p.look(); len(p.screen.strange) > 0 {
					t.Errorf("the terminal does not know %q", p.screen.strange)
				}
				lines := p.screen.lines()
				p.ends("")
				at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "grove: pro") })
				return text, lines[:max(0, at)]
			}
			text, screen := show(c.args...)
			if shows := strings.Contains(text, "░"); shows != c.shows {
				t.Errorf("masks are shown: %v; want %v, in %q", shows, c.shows, text)
			}
			if c.shows && !strings.Contains(text, "\x1b[J\x1b[2m") {
				t.Errorf("nothing is drawn in place: %q", text)
			}
			if c.name == "off" { // the same command
				return
			}
			_, want := show(append(slices.Clone(c.args), "--no-canvas")...)
			if diff := cmp.Diff(want, screen); diff != "" || len(want) == 0 && !slices.Contains(c.args, "--json") {
				t.Errorf("the screen ends in another way (-without, +with a canvas):\n%s", diff)
			}
		})
	}
}
