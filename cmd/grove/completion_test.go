package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"grove/internal/command/completion"
)

// TestComplete: words of the program, and names of models, by place.
func TestComplete(t *testing.T) {
	parser, err := kong.New(&commands{}, program.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"llama-3.2:1b", "org/qwen3"}
	for _, c := range []struct {
		line  string   // the words, with spaces between
		want  []string // the candidates, unless some
		some  bool     // want is some of them
		files bool
	}{
		{line: "ru", want: []string{"run"}},
		{line: "", want: []string{"run", "serve", "bench", "completion"}, some: true},
		{line: "comple", want: []string{"completion"}}, // complete is for scripts
		{line: "bench k", want: []string{"kernels"}},
		{line: "run --temp", want: []string{"--temp"}},
		{line: "run --seed 5 --see", want: nil},
		{line: "run --seed 5 --sto", want: []string{"--stop"}},
		{line: "run --stop a --sto", want: []string{"--stop"}}, // may be given several times
		{line: "run --sampling-order ", want: []string{"llama.cpp", "openai"}},
		{line: "run --sampling-order=o", want: []string{"--sampling-order=openai"}},
		{line: "run --cache-type q", want: []string{"q8_0"}},
		{line: "run --accept ty", want: []string{"typical"}},
		{line: "run --method guided,of", want: []string{"guided,off"}},
		{line: "serve --metrics grove,vl", want: []string{"grove,vllm"}},
		{line: "serve --log-level ", want: []string{"debug", "info", "warn", "error"}},
		{line: "run ll", want: []string{"llama-3.2:1b"}, files: true},
		{line: "run llama-3.2:1b "}, // a text
		{line: "quantize -- ", files: true},
		{line: "run -m ", want: names, files: true},
		{line: "run --model=org", want: []string{"--model=org/qwen3"}, files: true},
		{line: "run --model org/qwen3 --draft ll", want: []string{"llama-3.2:1b"}, files: true},
		{line: "serve -m assistant=or", want: []string{"assistant=org/qwen3"}, files: true},
		{line: "inspect l", want: []string{"llama-3.2:1b"}, files: true},
		{line: "quantize in.gguf out.gguf Q8", want: []string{"Q8_0"}},
		{line: "quantize ", files: true},
		{line: "serve --api-key-file ", files: true},
		{line: "completion z", want: []string{"zsh"}},
		{line: "run -- --te"},    // a prompt
		{line: "run --temp "},    // a number
		{line: "run --nosuch=x"}, // no flag
		{line: "nosuch ru"},      // no command
		{line: "run \x00\xff --sam", want: []string{"--sampling-order"}}, // bytes of no text
	} {
		got := completion.Complete(parser.Model, strings.Split(c.line, " "), func() []string { return names })
		var words []string
		for _, g := range got.Candidates {
			if words = append(words, g.Word); strings.HasPrefix(g.Word, "--") && !strings.Contains(g.Word, "=") && g.Help == "" {
				t.Errorf("%q: %s has no meaning", c.line, g.Word)
			}
		}
		if c.some {
			words = slices.DeleteFunc(words, func(w string) bool { return !slices.Contains(c.want, w) })
			slices.SortFunc(words, func(a, b string) int { return slices.Index(c.want, a) - slices.Index(c.want, b) })
		}
		if diff := cmp.Diff(c.want, words); diff != "" || got.Files != c.files {
			t.Errorf("%q: files %v\n%s", c.line, got.Files, diff)
		}
	}
}

// TestCompleteHostile: a file whose name means something to a shell is not offered.
func TestCompleteHostile(t *testing.T) {
	var out strings.Builder
	a := completion.Answer{Files: true}
	for _, word := range []string{"good:1b", "$(rm x)", "a;b", "a b", "a\nb", "`x`", "a\tb", "~x", "a*", "a'b", "über-8b"} {
		a.Candidates = append(a.Candidates, completion.Candidate{Word: word})
	}
	if err := a.Write(&out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("good:1b\t\nüber-8b\t\n:files\n", out.String()); diff != "" {
		t.Error(diff)
	}
}

// shellCases are lines with the cursor at their ends, and what each shell makes of them. Files are beside them: note.txt and notes.
var shellCases = []struct {
	line string
	bash []string // the words as bash cuts the line, without the program's name
	want []string // whole words
	tail []string // what bash puts in place of its last word; nil: want
}{
	{"grove ru", []string{"ru"}, []string{"run"}, nil},
	{"grove run --te", []string{"run", "--te"}, []string{"--temp"}, nil},
	{"grove run --sampling-order ", []string{"run", "--sampling-order", ""}, []string{"llama.cpp", "openai"}, nil},
	{"grove run --sampling-order=o", []string{"run", "--sampling-order", "=", "o"}, []string{"--sampling-order=openai"}, []string{"openai"}},
	{"grove run --sampling-order=", []string{"run", "--sampling-order", "="}, []string{"--sampling-order=llama.cpp", "--sampling-order=openai"}, []string{"llama.cpp", "openai"}},
	{"grove run -m local:la", []string{"run", "-m", "local", ":", "la"}, []string{"local:latest"}, []string{"latest"}},
	{"grove run a: --te", []string{"run", "a", ":", "--te"}, []string{"--temp"}, nil},
	{"grove serve --api-key-file not", []string{"serve", "--api-key-file", "not"}, []string{"note.txt", "notes"}, nil},
	{"grove serve --api-key-file=not", []string{"serve", "--api-key-file", "=", "not"}, []string{"--api-key-file=note.txt", "--api-key-file=notes"}, []string{"note.txt", "notes"}},
	{"grove nosuch ", []string{"nosuch", ""}, nil, nil},
}

// inShell runs a script in a shell, in a directory with the files of shellCases and a model local:latest, and returns its lines sorted.
func inShell(t *testing.T, command ...string) []string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"note.txt", "notes"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(command[0], command[1:]...)
	c.Dir = dir
	c.Env = append(os.Environ(), "OLLAMA_MODELS="+ollamaModel(t))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return lines
}

// ollamaModel makes a store of ollama with a model local:latest, and returns its directory.
func ollamaModel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const hash = "1111111111111111111111111111111111111111111111111111111111111111"
	for name, text := range map[string]string{
		"blobs/sha256-" + hash:                              "GGUF",
		"manifests/registry.ollama.ai/library/local/latest": `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:` + hash + `","size":4}]}`,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func shellFor(t *testing.T, name string) (program, script string) {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	text, err := completion.Script(name)
	if err != nil {
		t.Fatal(err)
	}
	return program, text
}

// quoted returns words as one list of a shell's words.
func quoted(words []string) string { return "'" + strings.Join(words, "' '") + "'" }

func TestCompletionBash(t *testing.T) {
	shell, script := shellFor(t, "bash")
	for _, c := range shellCases {
		got := inShell(t, shell, "--norc", "-c", script+`
COMP_LINE="$1" COMP_POINT=${#1} COMP_WORDS=(grove `+quoted(c.bash)+`); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_grove; for word in "${COMPREPLY[@]}"; do echo "$word"; done`, "test", c.line)
		want := c.tail
		if want == nil {
			want = c.want
		}
		if diff := cmp.Diff(slices.Compact(slices.Clone(want)), slices.DeleteFunc(got, func(s string) bool { return s == "" })); diff != "" && len(want)+len(got) > 0 {
			t.Errorf("%q: %s", c.line, diff)
		}
	}
}

func TestCompletionFish(t *testing.T) {
	shell, script := shellFor(t, "fish")
	for _, c := range shellCases {
		got := inShell(t, shell, "--no-config", "-c", script+"\ncomplete -C $argv[1]", c.line)
		for i, line := range got {
			got[i], _, _ = strings.Cut(line, "\t")
		}
		if diff := cmp.Diff(c.want, got); diff != "" && len(c.want)+len(got) > 0 {
			t.Errorf("%q: %s", c.line, diff)
		}
	}
}

// TestCompletionZsh runs the script with a stand-in for the functions of zsh's completion, which work at a terminal alone.
func TestCompletionZsh(t *testing.T) {
	shell, script := shellFor(t, "zsh")
	const stand = `
compdef() { }
compset() { IPREFIX="${PREFIX%%=*}=" PREFIX="${PREFIX#*=}" }
_describe() { local c x=$'\1'; for c in "${(@P)@[-1]}"; do c="${c//\\:/$x}"; c="${c%%:*}"; print -r -- "${c//$x/:}"; done }
_files() { local f; for f in ${PREFIX}*(N); do print -r -- "$IPREFIX$f"; done }
`
	for _, c := range shellCases {
		words := strings.Split(c.line, " ")
		got := inShell(t, shell, "-f", "-c", stand+script+`
words=(`+quoted(words)+`) CURRENT=${#words} PREFIX="${words[-1]}" IPREFIX=
_grove`)
		if diff := cmp.Diff(c.want, got); diff != "" && len(c.want)+len(got) > 0 {
			t.Errorf("%q: %s", c.line, diff)
		}
	}
}

// TestCompletionScripts: what every script must have, where its shell is not installed too.
func TestCompletionScripts(t *testing.T) {
	for _, name := range []string{"bash", "zsh", "fish"} {
		out, err := exec.Command("grove", "completion", name).Output()
		script, scriptErr := completion.Script(name)
		if err != nil || scriptErr != nil || string(out) != script {
			t.Errorf("grove completion %s: %v, %v", name, err, scriptErr)
		}
		if !regexp.MustCompile(`program"? complete `).MatchString(script) || !strings.Contains(script, ":files") || !strings.HasSuffix(script, "\n") {
			t.Errorf("the script of %s does not ask the program", name)
		}
	}
	for _, name := range []string{"powershell", "", "../bash"} {
		if _, err := completion.Script(name); err == nil {
			t.Errorf("the shell %q is known", name)
		}
	}
	if out, err := exec.Command("grove", "completion", "tcsh").CombinedOutput(); err == nil || !strings.Contains(string(out), `must be one of "bash","zsh","fish"`) {
		t.Errorf("grove completion tcsh: %v, %s", err, out)
	}
}

// FuzzComplete completes hostile lines: there is an answer for any words, and candidates are no lines of their own.
func FuzzComplete(f *testing.F) {
	parser, err := kong.New(&commands{}, program.Options()...)
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range []string{"run --temp", "serve -m a=b", "bench k", "run --model=\x00\xff", "-- --", "complete ", "run --stop a --sto"} {
		f.Add(line)
	}
	names := func() []string { return []string{"llama-3.2:1b", "evil\n--name"} }
	f.Fuzz(func(t *testing.T, line string) {
		for _, c := range completion.Complete(parser.Model, strings.Split(line, " "), names).Candidates {
			if !strings.ContainsRune(line, '\n') && !strings.Contains(c.Word, "evil") && strings.ContainsRune(c.Word+c.Help, '\n') {
				t.Errorf("%q: the candidate %q", line, c)
			}
		}
	})
}
