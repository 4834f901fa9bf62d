//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"grove"
	"grove/internal/command/terminal"
	"grove/internal/gopher"
	"grove/internal/weights/gguf"
)

// console is a person's side of a terminal.
type console struct {
	t    *testing.T
	keys *os.File
	mu   sync.Mutex
	seen strings.Builder
	at   int // of seen, read so far
}

// openTerminal returns a terminal of some columns, and the side that a program gets.
func openTerminal(t *testing.T, columns uint16) (*console, *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals: %v", err)
	}
	t.Cleanup(func() { keys.Close() })
	n, err := unix.IoctlGetUint32(int(keys.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals: %v", err)
	}
	t.Cleanup(func() { tty.Close() })
	term := &console{t: t, keys: keys}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := keys.Read(b)
			if err != nil {
				return // the program has ended
			}
			term.mu.Lock()
			term.seen.Write(b[:n])
			term.mu.Unlock()
		}
	}()
	return term, tty
}

func (c *console) types(keys string) {
	c.t.Helper()
	if _, err := c.keys.WriteString(keys); err != nil {
		c.t.Fatal(err)
	}
}

// sees waits for a text and returns what came before it.
func (c *console) sees(text string) string {
	c.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		c.mu.Lock()
		rest := c.seen.String()[c.at:]
		c.mu.Unlock()
		if before, _, ok := strings.Cut(rest, text); ok {
			c.at += len(before) + len(text)
			return before
		}
		if time.Now().After(end) {
			c.t.Fatalf("waiting for %q, the terminal shows %q", text, rest)
		}
	}
}

// TestChatTerminal talks on a terminal: Ctrl-C ends an answer, whose lines fit the terminal, and at the prompt the
// program.
func TestChatTerminal(t *testing.T) {
	model, template := filepath.Join(t.TempDir(), "m.gguf"), filepath.Join(t.TempDir(), "t.jinja")
	if err := craftFile("long-context", model); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(template, []byte("{{ messages|map(attribute='content')|join }}"), 0o644); err != nil {
		t.Fatal(err)
	}
	const columns = 30
	term, tty := openTerminal(t, columns)
	cmd := exec.CommandContext(t.Context(), "grove", "chat", "-m", model, "-c", "100000", "--chat-template", template, "--temp", "0", "--method", "off")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	term.sees("commands\r\n")
	term.sees("> ")
	term.types("hello\r")
	term.sees("hello\r\n")
	for range 3 {
		if line := term.sees("\r\n"); len([]rune(line)) > columns {
			t.Errorf("a line is %q", line)
		}
	}
	term.types("\x03")
	term.sees("grove: stopped\r\n")
	term.sees("> ")
	term.types("/stats\r")
	term.sees("grove: prompt 4 tokens,")
	term.sees("> ")
	term.types("/nothing\r")
	term.sees("grove: there is no command /nothing; /help lists the commands\r\n")
	term.sees("> ")
	term.types("\x03")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestRunTerminal continues texts on a terminal: words are not cut at the margin, and nothing in a text controls the terminal.
func TestRunTerminal(t *testing.T) {
	for _, c := range []struct {
		name, prompt string
		columns      int
		want         []string
	}{
		{"words", "some words that are longer than the terminal", 20, []string{"some words that are", "longer than the"}},
		{"wide", "日本語のテキスト ", 10, []string{"日本語のテ", "キスト"}},
		{"sequences", "a\x1b[2J\u009b31m\x1b]0;x\x07 b", 40, []string{"a␛[2J\ufffd31m␛]0;x␇ b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startTerminal(t, c.columns, t.TempDir(), nil, "run", "--temp", "0", "-n", "1", "-m", "gopher-nano", "-p", c.prompt)
			p.sees("finish: ")
			p.ends("")
			for i, line := range p.screen.lines()[:len(c.want)] {
				if !strings.HasPrefix(line, c.want[i]) {
					t.Errorf("line %d is %q, want %q", i, line, c.want[i])
				}
			}
		})
	}
}

// TestDecodeTerminal: the text of tokens controls no terminal, and is as it is for a program.
func TestDecodeTerminal(t *testing.T) {
	tokenize := func(in string, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "grove", append([]string{"tokenize", "-m", "gopher-nano"}, args...)...)
		cmd.Stdin = strings.NewReader(in)
		return cmd
	}
	const text = "a\x1b]0;x\a b"
	ids, err := tokenize(text).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tokenize(string(ids), "--decode").Output(); err != nil || string(got) != text {
		t.Errorf("a program gets %q, %v", got, err)
	}
	term, tty := openTerminal(t, 80)
	cmd := tokenize(string(ids), "--decode")
	cmd.Stdout = tty
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	term.sees("a␛]0;x␇ b")
}

// TestChatShown shows answers at a terminal: what -n cuts is said, and thoughts are apart, dimmed, or counted; without colours
// nothing is styled.
func TestChatShown(t *testing.T) {
	dir := t.TempDir()
	thinking := filepath.Join(dir, "thinking.jinja")
	if err := os.WriteFile(thinking, []byte("{# </think> #}{{ messages|map(attribute='content')|join }}<think>"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, sees string
		env, flags []string
		notSeen    string
	}{
		{"cut", "grove: the answer was cut after 1 tokens; -n sets how many, and -n 0 none\r\n", nil, nil, ""},
		{"thoughts", "\x1b[2m── thoughts\r\n\x1b[0m\x1b[2m", nil, []string{"--chat-template", thinking, "-n", "3"}, ""},
		{"hidden thoughts", " tokens of thoughts\r\n", nil, []string{"--chat-template", thinking, "-n", "3", "--hide-thinking"}, "\x1b[2m"},
		{"no colours", "── thoughts\r\n", []string{"NO_COLOR=1"}, []string{"--chat-template", thinking, "-n", "3"}, "\x1b[2m"},
		{"a dumb terminal", "── thoughts\r\n", []string{"TERM=dumb"}, []string{"--chat-template", thinking, "-n", "3"}, "\x1b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startChat(t, 80, dir, c.env, c.flags...)
			p.awaits(">")
			p.types("func\r")
			p.sees(c.sees)
			p.sees("> ")
			p.types("/bye\r")
			p.sees("/bye")
			p.ends("")
			if c.notSeen != "" && strings.Contains(p.seen.String(), c.notSeen) {
				t.Errorf("the terminal got %q", p.seen.String())
			}
		})
	}
}

// TestRunConverses: 'grove run MODEL' at a terminal holds a conversation where the model can; with another model it reads a text.
func TestRunConverses(t *testing.T) {
	dir := t.TempDir()
	f, err := gguf.Parse(gopher.Model())
	if err != nil {
		t.Fatal(err)
	}
	template := gguf.KV{Key: "tokenizer.chat_template", Value: gguf.Of("{{ messages|map(attribute='content')|join }}")}
	if err := gguf.WriteFile(filepath.Join(dir, "talks.gguf"), append(slices.Clone(f.Metadata), template), f.Tensors); err != nil {
		t.Fatal(err)
	}
	p := startTerminal(t, 80, dir, nil, "run", "talks.gguf", "-n", "1", "--temp", "0")
	p.sees("holding a conversation, as 'grove chat talks.gguf' does")
	p.awaits(">")
	p.types("func\r")
	p.sees("the answer was cut after 1 tokens")
	p.types("/bye\r")
	p.ends("")
	p = startTerminal(t, 80, dir, nil, "run", "gopher-nano")
	p.sees("run continues a text")
	p.types("a\r\x04")
	p.sees("finish:")
	p.ends("")
}

// TestBar shows a bar for a job that takes long, whose steps may be long too, and leaves an empty line; for a short job, on a
// narrow or dumb terminal and elsewhere it shows nothing.
func TestBar(t *testing.T) {
	stderr := os.Stderr
	defer func() { os.Stderr = stderr }()
	for _, c := range []struct {
		name    string
		columns int
		term    string
		wait    time.Duration
		want    string // of the line after the wait; "": nothing was written
	}{
		{"long", 100, "xterm", 1200 * time.Millisecond, "MB/s) [1s:"},
		{"narrow", 40, "xterm", 1200 * time.Millisecond, "job  30% |"},
		{"too narrow", 20, "xterm", 700 * time.Millisecond, ""},
		{"dumb", 100, "dumb", 700 * time.Millisecond, ""},
		{"short", 100, "xterm", 10 * time.Millisecond, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("TERM", c.term)
			term, tty := openTerminal(t, uint16(c.columns))
			p := &person{console: term, screen: newScreen(c.columns, 24)}
			os.Stderr = tty
			bar := terminal.Bytes("job")
			bar.ShowBytes(0, 10e6)
			bar.ShowBytes(3e6, 10e6)
			time.Sleep(c.wait)
			if c.want != "" {
				bar.ShowBytes(3e6, 10e6)
				term.sees(c.want)
			}
			bar.Note("a note")
			term.sees("a note\r\n")
			bar.ShowBytes(10e6, 10e6)
			if _, err := tty.WriteString("end\n"); err != nil {
				t.Fatal(err)
			}
			term.sees("end\r\n")
			p.look()
			if lines := p.screen.lines(); len(lines) != 2 || lines[0] != "a note" || lines[1] != "end" || len(p.screen.strange) > 0 {
				t.Errorf("the screen is %q, with the sequences %q", lines, p.screen.strange)
			}
			if c.want == "" && term.seen.String() != "a note\r\nend\r\n" {
				t.Errorf("the terminal got %q", term.seen.String())
			}
		})
	}
}

// TestStatus shows how far a search is in one line, once it has taken long, and leaves none; on a dumb terminal it shows nothing.
func TestStatus(t *testing.T) {
	stderr := os.Stderr
	defer func() { os.Stderr = stderr }()
	for _, c := range []struct {
		columns int
		term    string
		want    string
	}{{60, "xterm", "searching: 4 samples, 12 tokens, 3 branchings"}, {20, "xterm", "searching: 4 sample"}, {60, "dumb", ""}} {
		t.Setenv("TERM", c.term)
		term, tty := openTerminal(t, uint16(c.columns))
		p := &person{console: term, screen: newScreen(c.columns, 24)}
		os.Stderr = tty
		line, far := new(terminal.Status), grove.SearchProgress{Samples: 4, Tokens: 12, Branchings: 3}
		line.Show(far)
		time.Sleep(600 * time.Millisecond)
		if line.Show(far); c.want != "" {
			term.sees(c.want)
		}
		line.End()
		line.Show(far)
		if _, err := tty.WriteString("end\n"); err != nil {
			t.Fatal(err)
		}
		term.sees("end\r\n")
		p.look()
		if lines := p.screen.lines(); len(lines) != 1 || lines[0] != "end" || len(p.screen.strange) > 0 || c.want == "" && term.seen.String() != "end\r\n" {
			t.Errorf("%d columns, %s: the screen is %q, the terminal got %q", c.columns, c.term, lines, term.seen.String())
		}
	}
}
