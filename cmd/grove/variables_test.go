package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/suite/scripts"
)

// badValues are values that each variable refuses, whatever the command.
var badValues = map[string]string{
	"GROVE_ACCEPT": "klingon", "GROVE_ADDR": "nowhere", "GROVE_ALLOW_HOST": "a/b", "GROVE_ALLOW_ORIGIN": "::", "GROVE_API_KEY_FILE": "none.txt", "GROVE_CACHE_TYPE": "q9", "GROVE_MAX_PREFIX_BYTES": "much", "GROVE_PREFIX_DIR": "none",
	"GROVE_CHAT_TEMPLATE": "none.jinja", "GROVE_DATASTORE": "none.store", "GROVE_DRAFT": "none.gguf", "GROVE_HOST": "a/b", "GROVE_LOG_FORMAT": "xml", "GROVE_LOG_LEVEL": "loud", "GROVE_MEMORY_LIMIT": "much", "GROVE_MAX_SESSIONS": "many", "GROVE_MAX_SESSION_BYTES": "much",
	"GROVE_METHOD": "klingon", "GROVE_OTLP_TRACES_ENDPOINT": "ftp://box", "GROVE_METRICS": "klingon", "GROVE_MODEL": "none.gguf", "GROVE_POOLING": "most", "GROVE_PORT": "web", "GROVE_SAMPLING_ORDER": "none",
	"GROVE_SEARCH": "klingon", "GROVE_SESSION_DIR": "none", "GROVE_STATE_DIR": "text.txt", "GROVE_URL": "ftp://box", "GROVE_THREADS": "1e3",
}

// anyValue lists the variables that take every value, and why.
var anyValue = map[string]string{
	"GROVE_API_KEY": "a key is any text", "GROVE_PREDICT": "a text", "GROVE_STOP": "a text", "GROVE_SUFFIX": "a text", "GROVE_SYSTEM": "a text",
	"GROVE_VERIFIER_KEY": "a key is any text", "GROVE_VERIFIER_MODEL": "a name is any text",
	"GROVE_DRY_SEQUENCE_BREAKER": "a text", "GROVE_SESSION": "a file that need not exist; the code of a place that cannot be written is 73",
}

// argumentsOf are the arguments that commands need.
var argumentsOf = map[string]string{
	"inspect": "gopher-nano", "merge": "gopher nothing --out out.gguf", "convert": "nothing out.gguf", "quantize": "nothing out.gguf F16", "logits": "--tokens 1 --out out.f32", "stop": "x", "run": "x", "chat": "x", "embed": "x", "rerank": "x y", "score": "x --continuation y",
	"bench methods": "--workload tasks.jsonl", "bench masks": "schemas.jsonl", "bench make": "--shape tiny --type F16 out.gguf", "bench workload": "out.jsonl", "perplexity": "-f text.txt", "verify": "--methods sam",
	"bench layers": "-f text.txt", "bench diffusion": "--tasks tasks.jsonl", "plan": "--shape 8b --machine m.json", "bench vocab": "x.gguf --workload tasks.jsonl",
	"bench speed": "-p 1 -r 1", "pull": "x", "rm": "nothing", "completion": "bash", "datastore": "-o out.store text.txt", "man": "out", "batch": "requests.jsonl out.jsonl",
}

// leaves calls do for each command and each of its flags with a variable.
func leaves(t *testing.T, do func(command string, flag *kong.Flag, variable string)) {
	t.Helper()
	parser, err := kong.New(&commands{}, program.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(true) {
		command := leaf.Name
		if leaf.Parent != parser.Model.Node {
			command = leaf.Parent.Name + " " + command
		}
		for _, f := range leaf.Flags {
			if variable := f.Tag.Get("var"); variable != "" {
				do(command, f, variable)
			}
		}
	}
}

// badValue returns a value that a flag refuses.
func badValue(f *kong.Flag, variable string) string {
	if bad := badValues[variable]; bad != "" {
		return bad
	}
	return "klingon" // no number, no bool, no time
}

// TestVariablesRefused: every variable that has a bad value ends every command that has its flag with exit code 78 and its name.
func TestVariablesRefused(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"text.txt": strings.Repeat("some text ", 20), "tasks.jsonl": `{"prompt":"x"}`, "schemas.jsonl": `{"schema":true}`, "requests.jsonl": "{}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tried := map[string]bool{}
	leaves(t, func(command string, f *kong.Flag, variable string) {
		tried[variable] = true
		if anyValue[variable] != "" {
			return
		}
		words := strings.Fields(command + " " + argumentsOf[command])
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a command that takes the value may serve for ever
		defer cancel()
		r, err := scripts.Run(ctx, scripts.Command{Args: words, Dir: dir, Env: append(os.Environ(), variable+"="+badValue(f, variable), "GROVE_OFFLINE=1")})
		if err != nil {
			t.Fatalf("%s=%s grove %s: %v", variable, badValue(f, variable), strings.Join(words, " "), err)
		}
		last := strings.TrimRight(string(r.Stderr), "\n")
		last = last[strings.LastIndex(last, "\n")+1:]
		if r.Code != exit.CodeVariable || !strings.HasPrefix(last, "grove: "+variable+": ") && !strings.Contains(last, " or "+variable+": ") {
			t.Errorf("%s=%s grove %s: exit code %d, %s", variable, badValue(f, variable), strings.Join(words, " "), r.Code, last)
		}
	})
	for variable := range badValues {
		if !tried[variable] {
			t.Errorf("%s is no variable of a flag; take it off the list", variable)
		}
	}
}

// TestVariablesTaken: every flag takes the value of its variable as it takes one of the command line, which comes first.
func TestVariablesTaken(t *testing.T) {
	parser, err := kong.New(&commands{}, program.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	parse := func(words ...string) (*kong.Context, error) { return flags.ParseArguments(parser, words) } // which begins with every flag as it was
	find := func(line *kong.Context, name string) (string, bool) {
		for _, p := range line.Path {
			if p.Flag != nil && p.Flag.Name == name {
				return fmt.Sprint(p.Flag.Target.Interface()), p.Resolved
			}
		}
		return "", false
	}
	leaves(t, func(command string, f *kong.Flag, variable string) {
		words := strings.Fields(command + " " + argumentsOf[command])
		good, value := "", goodValue(f)
		if _, given := anyValue[variable]; given {
			value = "text"
		}
		line, err := parse(append(words, "--"+f.Name+map[bool]string{false: "=" + value}[f.IsBool()])...)
		if err != nil {
			t.Errorf("grove %s --%s=%s: %v", command, f.Name, value, err)
			return
		}
		good, _ = find(line, f.Name)
		t.Setenv(variable, value)
		defer os.Unsetenv(variable)
		if line, err = parse(words...); err != nil {
			t.Errorf("%s=%s grove %s: %v", variable, value, command, err)
			return
		}
		if got, resolved := find(line, f.Name); !f.IsBool() && f.Target.Kind().String() != "ptr" && got != good || !resolved {
			t.Errorf("%s=%s grove %s gives %s, want %s", variable, value, command, got, good)
		}
	})
}

// goodValue returns a value that a flag takes.
func goodValue(f *kong.Flag) string {
	switch f.Tag.Get("var") {
	case "GROVE_ACCEPT":
		return "typical"
	case "GROVE_ADDR":
		return "127.0.0.1:9"
	case "GROVE_BLOCKS":
		return "adaptive"
	case "GROVE_CACHE_TYPE":
		return "q8_0"
	case "GROVE_CANVAS_CACHE":
		return "dual"
	case "GROVE_EARLY":
		return "prophet"
	case "GROVE_METHOD":
		return "sam"
	case "GROVE_METRICS":
		return "vllm"
	case "GROVE_POLICY":
		return "factor"
	case "GROVE_POOLING":
		return "mean"
	case "GROVE_SAMPLING_ORDER":
		return "openai"
	case "GROVE_REASONING":
		return "off"
	case "GROVE_LOG_FORMAT":
		return "json"
	case "GROVE_LOG_LEVEL":
		return "debug"
	case "GROVE_TOP_P", "GROVE_MIN_P", "GROVE_TYPICAL", "GROVE_XTC_PROBABILITY", "GROVE_XTC_THRESHOLD":
		return "0.5"
	case "GROVE_DRAIN", "GROVE_IDLE", "GROVE_VERIFIER_WAIT":
		return "7s"
	case "GROVE_URL":
		return "http://127.0.0.1:9"
	case "GROVE_MIROSTAT":
		return "1"
	}
	switch {
	case f.IsBool():
		return "1"
	case f.Enum != "":
		return f.Enum[strings.LastIndex(f.Enum, ",")+1:]
	}
	return "7"
}
