//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove/gopher"
	"grove/internal/hftest"
	"grove/model/synthetic"
	"grove/weights/gguf"
	"grove/weights/tensor"
)

const manual = "../../docs/cli.md"

// instead lists the examples of docs/cli.md that the test does not run as they are: what it runs, "" for nothing, and why. What begins
// with [serve] starts a server, which must listen and end by an interrupt.
var instead = map[string]struct{ run, why string }{
	"grove serve -m model.gguf":                                                                            {"[serve] -m model.gguf", "a server does not end"},
	"grove serve model.gguf --host 0.0.0.0 --port 11434":                                                   {"[serve] model.gguf --host 127.0.0.1", "a server does not end"},
	"grove serve -m assistant=qwen3.gguf -m coder=starcoder2.gguf --on-demand --idle 10m":                  {"[serve] -m assistant=qwen3.gguf -m coder=starcoder2.gguf --on-demand --idle 10m", "a server does not end"},
	"grove quantize model.gguf small.gguf Q4_K_M":                                                          {"grove quantize model-f32.gguf small.gguf Q4_K_M", "the stand-in of model.gguf is quantized"},
	"grove perplexity -m model.gguf -f wiki.test.raw":                                                      {"grove perplexity -m model.gguf -f wiki.test.raw --chunks 1", "time"},
	"grove perplexity -m model-q4.gguf -f wiki.test.raw --kl model-f16.gguf":                               {"grove perplexity -m model-q4.gguf -f wiki.test.raw --kl model-f16.gguf --chunks 1", "time"},
	"grove perplexity -m model.gguf -f wiki.test.raw --cache-type q8_0 --base-cache-type f32":              {"grove perplexity -m model.gguf -f wiki.test.raw --cache-type q8_0 --base-cache-type f32 --chunks 1", "time"},
	"grove verify -m model.gguf":                                                                           {"grove verify -m model.gguf --methods sam -n 2", "time"},
	"grove verify -m model.gguf --draft small.gguf --methods draft,draft-rsd,auto --prompts prompts.jsonl": {"grove verify -m model.gguf --draft small.gguf --methods draft,draft-rsd,auto --prompts prompts.jsonl -n 2 --draws 60", "time"},
	"grove datastore -m model.gguf -o code.store main.go server.go":                                        {"grove datastore -m model.gguf -o code.store wiki.test.raw", "the stand-in has one text"},
	`grove run -m model.gguf --datastore code.store --method rest,sam "func main() {"`:                     {`grove datastore -m model.gguf -o code.store wiki.test.raw && grove run -m model.gguf --datastore code.store --method rest,sam -n 4 "func main() {"`, "each example has a directory of its own"},
	"grove bench speed -m model.gguf":                                                                      {"grove bench speed -m model.gguf -p 1 -n 2 -r 1", "time"},
	"grove bench speed -m model.gguf -p 1,8 -n 0 -d 4000 --json":                                           {"grove bench speed -m model.gguf -p 1,8 -n 0 -d 40 --json -r 1", "the stand-in has a context of 256"},
	"grove bench kernels":                             {"", "it takes a minute; bench.txtar has what it prints"},
	"grove bench kernels --type Q8_0,Q4_K --rows 1,8": {"grove bench kernels --type Q8_0,Q4_K --rows 1,8 -r 1", "time"},
	"grove bench scaling -m model.gguf":               {"grove bench scaling -m model.gguf -p 1 -r 1", "time"},
	"grove bench scaling -m model.gguf --simulate -p 1,64 --at 1,2,8,32 --bandwidth 200":                             {"grove bench scaling -m model.gguf --simulate -p 1,64 --at 1,2,8,32 --bandwidth 200 -r 1", "time"},
	"grove bench scaling --shape 0.5b --type Q8_0 --simulate --json":                                                 {"grove bench scaling --shape tiny --type Q8_0 --simulate --json -p 1 -r 1 --at 2", "0.5b has 500 MB"},
	"grove bench load -m model.gguf":                                                                                 {"grove bench load -m model.gguf -r 1", "time"},
	"grove bench sharing -m model.gguf":                                                                              {"grove bench sharing -m model.gguf -n 1 -r 1", "time"},
	"grove bench make --shape 0.5b --type Q8_0 half.gguf":                                                            {"grove bench make --shape tiny --type Q8_0 half.gguf", "0.5b has 500 MB"},
	"grove bench methods -m model.gguf --workload tasks.jsonl --methods auto,sam,recycle":                            {"grove bench methods -m model.gguf --workload tasks.jsonl --methods auto,sam,recycle -n 4", "time"},
	"grove bench methods -m model.gguf --draft small.gguf --workload spec_bench.jsonl --methods draft+sam --limit 5": {"grove bench methods -m model.gguf --draft small.gguf --workload spec_bench.jsonl --methods draft+sam --limit 5 -n 4", "time"},
	"grove bench methods --workload go.jsonl --methods all --replay --cost 0.5b-q8_0.json":                           {"grove tune -m model.gguf --json > 0.5b-q8_0.json && grove bench methods --workload go.jsonl --methods all --replay --cost 0.5b-q8_0.json", "the cost is measured here"},
	"grove bench masks -m model.gguf schemas.jsonl.gz":                                                               {"grove bench masks -m model.gguf schemas.jsonl", "the file is read with or without compression"},
	"grove bench masks -m vocabulary.gguf --against llama.cpp --package DIR schemas.jsonl.gz":                        {"", "it needs Node and a package; the tests of bench have a stand-in of both"},
	"grove bench workload go.jsonl":                                                                                  {"", "it needs the sources of the Go distribution; verify.txtar runs it on one file"},
	"grove bench serve --url http://127.0.0.1:8080 --concurrency 8 --requests 200":                                   {"grove bench serve --url $SERVER --concurrency 8 --requests 4 -n 2 --prompt-tokens 32", "time"},
	"grove bench vocab -m model.gguf small.gguf --workload tasks.jsonl":                                              {"grove bench vocab -m model.gguf small.gguf --workload tasks.jsonl -n 8", "time"},
	"grove bench vocab -m model.gguf small.gguf --workload tasks.jsonl --cost-models large.gguf,middle.gguf":         {"grove bench vocab -m model.gguf small.gguf --workload tasks.jsonl --cost-models model.gguf,small.gguf -n 8", "time, and the stand-ins of two models more"},
	"grove bench serve --url http://127.0.0.1:8080 --rate 2.5 --api chat --prompts tasks.jsonl --save figures.json":  {"grove bench serve --url $SERVER --rate 50 --api chat --prompts tasks.jsonl --save figures.json --requests 2 -n 2", "time"},
	"grove bench serve --url http://127.0.0.1:8080 --prompt-tokens 512 -n 128 --ignore-eos":                          {"grove bench serve --url $SERVER --prompt-tokens 64 -n 2 --requests 2 --ignore-eos", "time, and a context of 256"},
	"grove health --addr 10.0.0.5:8080":                                                                              {"grove health --addr ${SERVER#http://}", "another machine"},
	"grove ps --url http://10.0.0.5:8080 --json":                                                                     {"grove ps --url $SERVER --json", "another machine"},
	"source <(grove completion bash)":                                                                                {"grove completion bash > script", "not every sh has it"},
	"source <(grove completion zsh)":                                                                                 {"grove completion zsh > script", "not every sh has it"},
	"grove completion fish > ~/.config/fish/completions/grove.fish":                                                  {"grove completion fish > script", "the directory is fish's"},
}

// networked are the beginnings of examples that need a registry. pull.txtar runs such commands with a local one.
var networked = []string{"grove pull ", "grove show llama", "grove rm "}

// example is a line of the manual that is indented, without its comment.
var example = regexp.MustCompile(`^    (\S.*?)(\s{2,}# .*)?$`)

// examples returns the indented lines of the manual outside of the list of commands and of fenced blocks.
func examples(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	fenced, listed := false, false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case strings.HasPrefix(line, "<!-- "):
			listed = line == "<!-- commands -->"
		}
		if m := example.FindStringSubmatch(line); m != nil && !fenced && !listed {
			lines = append(lines, m[1])
		}
	}
	return lines
}

// standIns writes the files that the examples name.
func standIns(t *testing.T, dir string) {
	t.Helper()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{
		"prompt.txt": "func main() {", "questions.txt": "hello\n", "text.txt": "some text", "documents.txt": "some text\n", "answer.txt": "yes\n", "person.json": `{"properties":{"age":{"maximum":120,"type":"integer"}},"required":["age"],"additionalProperties":false}`,
		"person.txt":    "{\"age\": 40}\n",
		"wiki.test.raw": strings.Repeat("func add(a, b int) int {\n\treturn a + b\n}\n\n", 60),
		"tasks.jsonl":   `{"prompt":"func main() {","prediction":"}"}` + "\n" + `{"prompt":"if err != nil {"}` + "\n", "prompts.jsonl": `{"prompt":"func main() {"}` + "\n",
		"spec_bench.jsonl": `{"question_id":1,"category":"go","turns":["func main() {"]}` + "\n",
		"schemas.jsonl":    `{"name":"a","schema":{"type":"boolean"},"tests":[{"valid":true,"data":true},{"valid":false,"data":1}]}` + "\n",
		"go.jsonl":         `{"prompt":"func main() {","output":"func main() {}"}` + "\n",
	} {
		if err := os.WriteFile(path(name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, craft := range map[string]string{
		"model.gguf": "talker", "Qwen3-0.6B.gguf": "talker", "model-f16.gguf": "talker", "model-q4.gguf": "talker", "model-f32.gguf": "good", "qwen3.gguf": "good",
		"starcoder2.gguf": "good", "bert.gguf": "encoder", "reranker.gguf": "ranker",
	} {
		if err := craftFile(craft, path(name)); err != nil {
			t.Fatal(err)
		}
	}
	base, err := gguf.Open(path("model.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	metadata, tensors, err := synthetic.Adapter(base, 1, 4, tensor.F16, func(name string) bool { return strings.Contains(name, "attn_") && strings.HasPrefix(name, "blk.") }, nil)
	if err == nil {
		err = gguf.WriteFile(path("style.gguf"), metadata, tensors)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(goldens + "/llama-tied.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := hftest.From(f)
	for _, err := range []error{err, os.Mkdir(path("Llama-3.2-1B"), 0o755), h.Write(path("Llama-3.2-1B")), os.WriteFile(path("small.gguf"), gopher.Named("gopher-draft"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestExamples runs the examples of docs/cli.md, on stand-ins of the files that they name.
func TestExamples(t *testing.T) {
	standins := t.TempDir()
	standIns(t, standins)
	server := startServer(t, "-m", "gopher-target="+filepath.Join(standins, "model.gguf"))
	server.ready(t)
	all := examples(t)
	if len(all) < 50 {
		t.Fatalf("%s has %d examples", manual, len(all))
	}
	for _, command := range all {
		other, isOther := instead[command]
		needsNetwork := slices.ContainsFunc(networked, func(begin string) bool { return strings.HasPrefix(command, begin) })
		switch {
		case needsNetwork || isOther && other.run == "":
			continue
		case isOther:
			command = other.run
		case !strings.HasPrefix(command, "grove ") && !strings.HasPrefix(command, "echo "):
			t.Errorf("%s has the line %q, which is no command that the test knows", manual, command)
			continue
		}
		t.Run(command, func(t *testing.T) {
			if args, isServer := strings.CutPrefix(command, "[serve] "); isServer {
				t.Chdir(standins)
				if code := startServer(t, strings.Fields(args)...).stop(t, syscall.SIGINT); code != 0 {
					t.Errorf("exit code %d", code)
				}
				return
			}
			runExample(t, standins, command, server.url)
		})
	}
	for command := range instead {
		if !slices.Contains(all, command) {
			t.Errorf("%s has no example %q; take it off the list", manual, command)
		}
	}
}

// runExample runs a line of a shell in a directory with links to the stand-ins. The output of what is piped to jq must be JSON.
func runExample(t *testing.T, standins, command, server string) {
	t.Helper()
	dir := t.TempDir()
	names, err := os.ReadDir(standins)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		if err := os.Symlink(filepath.Join(standins, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	command, _, isJSON := strings.Cut(command, " | jq ")
	if out := writes(command); out != "" { // it would be written through the link
		if err := os.Remove(filepath.Join(dir, out)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GROVE_MODELS="+dir, "GROVE_N=4", "GROVE_SEED=1", "SERVER="+server, "GROVE_ADDR="+strings.TrimPrefix(server, "http://"))
	cmd.Stdin = strings.NewReader("hello\n")
	var out, notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &notes
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.Bytes(), notes.Bytes())
	}
	if strings.Contains(notes.String(), "has no effect") {
		t.Errorf("a flag has no effect: %s", notes.Bytes())
	}
	for d := json.NewDecoder(&out); isJSON && d.More(); {
		var v any
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
	}
}

// writes returns the file that an example writes and that has a stand-in, "" for none.
func writes(command string) string {
	if words := strings.Fields(command); len(words) > 3 && (words[1] == "quantize" || words[1] == "convert") {
		return "small.gguf"
	}
	return ""
}

// jsonExamples are the commands of the blocks of JSON in docs/cli.md, in their order.
var jsonExamples = [][]string{{"run", "--json", "--temp", "0", "--seed", "5", "-n", "2", "x"}}

// measured are members of the objects whose values differ between runs and machines.
var measured = []string{"prompt_tokens_per_second", "first_token_ms", "generated_tokens_per_second", "memory_bytes", "steps", "drafted_tokens", "accepted_tokens"}

// TestExamplesJSON: the blocks of JSON in docs/cli.md are what the commands write, but for figures that are measured.
func TestExamplesJSON(t *testing.T) {
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)\n```json\n(.*?)```\n").FindAllSubmatch(text, -1)
	if len(blocks) != len(jsonExamples) {
		t.Fatalf("%s has %d blocks of JSON, want %d", manual, len(blocks), len(jsonExamples))
	}
	for i, block := range blocks {
		args := jsonExamples[i]
		if command := "`grove " + strings.Join(args, " ") + "`"; !bytes.Contains(text, []byte(command)) {
			t.Errorf("%s does not name the command %s of its JSON", manual, command)
		}
		out, err := exec.Command("grove", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		want, got := plain(t, out, ""), plain(t, block[1], "")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("the JSON of grove %s (-the program, +the document):\n%s", strings.Join(args, " "), d)
		}
	}
}

// plain returns a value of JSON as lines of paths and values, in their order; measured values as their kinds.
func plain(t *testing.T, text []byte, path string) (lines []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	var walk func(path string)
	walk = func(path string) {
		token, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		delim, ok := token.(json.Delim)
		if !ok {
			if slices.Contains(measured, path[strings.LastIndex(path, ".")+1:]) {
				token = fmt.Sprintf("%T", token)
			}
			lines = append(lines, fmt.Sprintf("%s = %v", path, token))
			return
		}
		for i := 0; d.More(); i++ {
			inner := fmt.Sprintf("%s[%d]", path, i)
			if delim == '{' {
				key, err := d.Token()
				if err != nil {
					t.Fatal(err)
				}
				inner = fmt.Sprintf("%s.%v", path, key)
			}
			walk(inner)
		}
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
	}
	walk(path)
	return lines
}
