//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// person talks with grove chat at a terminal.
type person struct {
	*console
	cmd    *exec.Cmd
	screen *screen
	shown  int // bytes of what was seen that are on the screen
	dir    string
}

// startChat starts grove chat with a model that answers each question with one token, in dir. env is added to the
// environment.
func startChat(t *testing.T, columns int, dir string, env []string, flags ...string) *person {
	t.Helper()
	template := filepath.Join(dir, "t.jinja")
	if err := os.WriteFile(template, []byte("{{ messages|map(attribute='content')|join }}"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"chat", "--chat-template", template, "--temp", "0", "-n", "1", "--method", "off"}, flags...)
	return startTerminal(t, columns, dir, env, args...)
}

// startTerminal starts grove at a terminal.
func startTerminal(t *testing.T, columns int, dir string, env []string, args ...string) *person {
	t.Helper()
	term, tty := openTerminal(t, uint16(columns))
	cmd := exec.CommandContext(t.Context(), "grove", args...)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "XDG_STATE_HOME="+dir, "TERM=xterm"), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &person{term, cmd, newScreen(columns, 24), 0, dir}
}

// look brings the screen up to date.
func (p *person) look() {
	p.mu.Lock()
	seen := p.seen.String()
	p.mu.Unlock()
	_, _ = p.screen.Write([]byte(seen[p.shown:]))
	p.shown = len(seen)
}

// awaits waits until the last rows with text are those wanted.
func (p *person) awaits(want ...string) {
	p.t.Helper()
	var got []string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		p.look()
		lines := p.screen.lines()
		if got = lines[max(0, len(lines)-len(want)):]; cmp.Equal(got, want) {
			return
		}
	}
	p.t.Fatalf("the terminal does not show what it should (-want, +got):\n%s", cmp.Diff(want, got))
}

// does types keys and waits for what the terminal shows at its end.
func (p *person) does(keys string, want ...string) {
	p.t.Helper()
	p.types(keys)
	p.awaits(want...)
}

// resize changes the width of the terminal.
func (p *person) resize(columns int) {
	p.t.Helper()
	p.look()
	p.screen.resize(columns)
	if err := unix.IoctlSetWinsize(int(p.keys.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(columns)}); err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGWINCH); err != nil {
		p.t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // nothing tells that the signal has arrived
}

// leaves saves the conversation, ends it, and returns its questions.
func (p *person) leaves() []string {
	p.t.Helper()
	p.types("/save s.json\r")
	p.sees("messages")
	p.sees("s.json")
	p.sees("> ")
	p.types("\x04")
	return p.ends("s.json")
}

// ends waits for the end of the program, which is without error and leaves the terminal as it was, and returns the questions
// that were saved in a file.
func (p *person) ends(file string) (questions []string) {
	p.t.Helper()
	late := time.AfterFunc(20*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	if err := p.cmd.Wait(); err != nil {
		p.t.Error(err)
	}
	p.look()
	if len(p.screen.strange) > 0 {
		p.t.Errorf("the terminal got the sequences %q", p.screen.strange)
	}
	if file == "" {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(p.dir, file))
	if err != nil {
		p.t.Fatal(err)
	}
	var saved struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(b, &saved); err != nil {
		p.t.Fatal(err)
	}
	for _, m := range saved.Messages {
		if m.Role == "user" {
			questions = append(questions, m.Content)
		}
	}
	return questions
}

// TestLineEditor edits lines with characters of all widths: the terminal shows what the line holds, and the message is what
// was typed.
func TestLineEditor(t *testing.T) {
	const family, tone, flag, accent = "👨‍👩‍👧", "👍🏽", "🇩🇪", "e\u0301"
	for _, c := range []struct {
		name    string
		columns int
		steps   [][]string // keys, and the last rows that they bring
		want    string
	}{
		{"wide", 40, [][]string{{"日本語", "> 日本語"}, {"\x1b[D\x7f", "> 日語"}, {"x", "> 日x語"}}, "日x語"},
		{"several runes", 40, [][]string{
			{"a" + family + tone + flag + accent, "> a" + family + tone + flag + accent},
			{"\x7f\x7f", "> a" + family + tone}, {"\x1b[D\x1b[Db", "> ab" + family + tone}, {"\x05\x7f!", "> ab" + family + "!"},
		}, "ab" + family + "!"},
		{"a mark that comes later", 40, [][]string{{"e", "> e"}, {"\u0301", "> " + accent}, {"x", "> " + accent + "x"}}, accent + "x"},
		{"ten columns", 10, [][]string{
			{"abcdefghijkl", "> abcdefgh", "ijkl"}, {"\x01Q", "> Qabcdefg", "hijkl"}, {"\x05\x7f\x7f\x7f\x7f\x7f", "> Qabcdefg"},
		}, "Qabcdefg"},
		{"wide at the margin", 10, [][]string{{"abc日本語", "> abc日本", "語"}, {"\x7f\x7f", "> abc日"}, {"語本", "> abc日語", "本"}}, "abc日語本"},
		{"words", 40, [][]string{{"привет, мир 世界", "> привет, мир 世界"}, {"\x17", "> привет, мир"}, {"\x1bb\x1bbA", "> Aпривет, мир"}}, "Aпривет, мир "},
		{"undo", 40, [][]string{{"one two", "> one two"}, {"\x15", ">"}, {"\x1f", "> one two"}}, "one two"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := startChat(t, c.columns, t.TempDir(), nil)
			p.awaits(">")
			for _, step := range c.steps {
				p.does(step[0], step[1:]...)
			}
			p.does("\r", ">")
			if diff := cmp.Diff([]string{c.want}, p.leaves()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPaste pastes texts: line ends do not end the line, a final one swallows nothing, and keys in a paste are text.
func TestPaste(t *testing.T) {
	const begin, end = "\x1b[200~", "\x1b[201~"
	for _, c := range []struct {
		name  string
		steps [][]string
		want  []string
	}{
		{"without a final line end", [][]string{{begin + "one\rtwo" + end, "> one↵two"}, {"\r", ">"}}, []string{"one\ntwo"}},
		{"with a final line end", [][]string{{begin + "one\rtwo\r" + end, "> one↵two↵"}, {"\r", ">"}, {"three", "> three"}, {"\r", ">"}}, []string{"one\ntwo", "three"}},
		{"a command with a line end", [][]string{{begin + "/system x\n" + end, "> /system x↵"}, {"\r", ">"}, {"a", "> a"}, {"\r", ">"}}, []string{"a"}},
		{"edited", [][]string{{begin + "one\r\ntwo" + end, "> one↵two"}, {"\x01# ", "> # one↵two"}, {"\r", ">"}}, []string{"# one\ntwo"}},
		{"keys and tabs", [][]string{{begin + "a\x03\tb\x1b[A" + end, "> a␃→b␛[A"}, {"\r", ">"}}, []string{"a\x03\tb\x1b[A"}},
		{"a block", [][]string{{begin + "\"\"\"a\n\nb\"\"\"" + end, "> \"\"\"a↵↵b\"\"\""}, {"\r", ">"}}, []string{"a\n\nb"}},
		{"several lines by hand", [][]string{{"a\\\r", "> a\\", "."}, {"b", "> a\\", ". b"}, {"\r", ">"}}, []string{"a\nb"}},
		{"typed ahead", [][]string{{"one\r/undo\rtwo\rthree", "> three"}, {"\r", ">"}}, []string{"two", "three"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := startChat(t, 60, t.TempDir(), nil)
			p.awaits(">")
			for _, step := range c.steps {
				p.does(step[0], step[1:]...)
			}
			if diff := cmp.Diff(c.want, p.leaves()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLineHistory brings back messages of this and earlier runs, by Up and by Ctrl-R, but no secrets.
func TestLineHistory(t *testing.T) {
	dir := t.TempDir()
	p := startChat(t, 60, dir, nil)
	p.awaits(">")
	p.does("first 日本\r", ">")
	p.does("second\\\r", "> second\\", ".")
	p.does("line\r", ">")
	p.does(" secret\r", ">")
	p.does("\"\"\"dropped\r", `> """dropped`, ".")
	p.does("\x03", ". ^C", ">")
	p.does("\x1b[A", "> second↵line")
	p.does("\x03", "> second↵line^C")
	p.ends("")
	p = startChat(t, 60, dir, nil)
	p.awaits(">")
	p.does("\x1b[A\x1b[A", "> first 日本")
	p.does("\x1b[B", "> second↵line")
	p.does("\x1b[B", ">")
	p.does("\x12", ">", "search:")
	p.does("FIR", "> first 日本", "search: FIR")
	p.does("\r", ">")
	p.does("\x12zzz", ">", "not found: zzz")
	p.does("\x07", ">")
	if diff := cmp.Diff([]string{"first 日本"}, p.leaves()); diff != "" {
		t.Error(diff)
	}
	p = startChat(t, 60, dir, nil, "--no-history")
	p.awaits(">")
	p.does("\x1b[Ax", "> x")
	p.does("\r", ">")
	p.does("\x1b[A", "> x") // of this run
	p.does("\x03", "> x^C")
	p.ends("")
	b, err := os.ReadFile(filepath.Join(dir, "grove", "history"))
	if want := "\"first 日本\"\n\"second\\nline\"\n\"first 日本\"\n\"/save s.json\"\n"; err != nil || string(b) != want {
		t.Errorf("the history is %q, %v, want %q", b, err, want)
	}
}

// TestLineHistoryWrong goes on without a history that cannot be used, and says so.
func TestLineHistoryWrong(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(dir string) error
		want string
	}{
		{"damaged", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "history"), []byte("\"good\"\nbad\n"), 0o600)
		}, "1 lines are damaged"},
		{"a directory", func(dir string) error { return os.Mkdir(filepath.Join(dir, "history"), 0o755) }, "it is a directory; a regular file is needed"},
		{"a loop", func(dir string) error { return os.Symlink("history", filepath.Join(dir, "history")) }, "too many levels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "grove"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := c.make(filepath.Join(dir, "grove")); err != nil {
				t.Fatal(err)
			}
			p := startChat(t, 300, dir, nil)
			p.sees("grove: history: ")
			p.sees(c.want)
			p.awaits(">")
			p.does("x", "> x")
			p.does("\r", ">")
			p.does("y", "> y")
			p.does("\r", ">")
			if diff := cmp.Diff([]string{"x", "y"}, p.leaves()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTab completes commands and the files of commands.
func TestTab(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"talk one.json", "talk \x1b[2J.json", "日本.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := startChat(t, 60, dir, nil)
	p.awaits(">")
	p.does("/sy\t", "> /system")
	p.does("\x15/load fo\t", "> /load folder/")
	p.does("\x15/load 日\t", "> /load 日本.json")
	p.does("\x15/load talk o\t", "> /load talk one.json")
	p.does("\x15/load ta\t", "> /load talk")
	p.does("\t", "> /load talk", "talk ␛[2J.json     talk one.json")
	p.does("\x03", "> /load talk")
	p.does("\x15/nothing\t!", "> /nothing!")
	p.does("\x15text ta\t!", "> text ta!")
	p.does("\x15\x04", "> ^D")
	p.ends("")
}

// TestResize goes on with a line after the terminal has become wider and narrower.
func TestResize(t *testing.T) {
	p := startChat(t, 20, t.TempDir(), nil)
	p.awaits(">")
	p.does("abcdef", "> abcdef")
	p.resize(10)
	p.does("ghij", "> abcdefgh", "ij")
	p.resize(40)
	p.does("\r", ">")
	p.does("abcdefghijklmnopqrstuvwxyz", "> abcdefghijklmnopqrstuvwxyz")
	p.does("\r", ">")
	if diff := cmp.Diff([]string{"abcdefghij", "abcdefghijklmnopqrstuvwxyz"}, p.leaves()); diff != "" {
		t.Error(diff)
	}
}
