//go:build unix

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
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

	"grove/internal/gopher"
	"grove/internal/hftest"
	"grove/internal/model/synthetic"
	"grove/internal/suite/scripts"
	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

const manual = "../../docs/cli.md"

// instead lists the commands of the documents that the test does not run as they are: what it runs, "" for nothing, and why.
var instead = map[string]struct{ run, why string }{
	"grove quantize model.gguf small.gguf Q4_K_M":                                                                                                   {"grove quantize model-f32.gguf small.gguf Q4_K_M", "the stand-in of model.gguf is quantized"},
	"grove perplexity -m model.gguf -f wiki.test.raw":                                                                                               {"grove perplexity -m model.gguf -f wiki.test.raw --chunks 1", "time"},
	"grove perplexity -m model-q4.gguf -f wiki.test.raw --kl model-f16.gguf":                                                                        {"grove perplexity -m model-q4.gguf -f wiki.test.raw --kl model-f16.gguf --chunks 1", "time"},
	"grove verify -m model.gguf --draft small.gguf --methods draft,draft-rsd,auto --prompts prompts.jsonl":                                          {"grove verify -m model.gguf --draft small.gguf --methods draft,draft-rsd,auto --prompts prompts.jsonl -n 2 --draws 20", "time"},
	"grove bench speed -m model.gguf -p 1,8 -n 0 -d 4000 --json":                                                                                    {"grove bench speed -m model.gguf -p 1,8 -n 0 -d 40 --json -r 1", "the stand-in has a context of 256"},
	"grove bench kernels --type Q8_0,Q4_K --rows 1,8":                                                                                               {"", "time; bench.txtar runs it on less"},
	"grove bench scaling -m model.gguf --simulate -p 1,64 --at 1,2,8,32 --bandwidth 200":                                                            {"", "time; bench.txtar runs it on less"},
	"grove bench load -m model.gguf":                                                                                                                {"grove bench load -m model.gguf -r 1", "time"},
	"grove bench sharing -m model.gguf":                                                                                                             {"grove bench sharing -m model.gguf -n 1 -r 1", "time"},
	"grove bench make --shape 0.5b --type Q8_0 half.gguf":                                                                                           {"grove bench make --shape tiny --type Q8_0 half.gguf", "0.5b has 500 MB"},
	"grove bench methods -m model.gguf --workload tasks.jsonl --methods auto,sam,recycle":                                                           {"grove bench methods -m model.gguf --workload tasks.jsonl --methods auto,sam,recycle -n 4", "time"},
	"grove bench methods --workload go.jsonl --methods all --replay --cost 0.5b-q8_0.json":                                                          {"grove tune -m model.gguf --json > 0.5b-q8_0.json && grove bench methods --workload go.jsonl --methods all --replay --cost 0.5b-q8_0.json", "the cost is measured here"},
	"grove bench masks -m model.gguf schemas.jsonl.gz":                                                                                              {"grove bench masks -m model.gguf schemas.jsonl", "the file is read with or without compression"},
	"grove bench serve --url http://127.0.0.1:8080 --concurrency 8 --requests 200":                                                                  {"grove bench serve --url $SERVER --concurrency 8 --requests 4 -n 2 --prompt-tokens 32", "time"},
	"grove bench diffusion -m llada.gguf --policies threshold:p=0.9 --policies factor --canvas-caches none --canvas-caches dual --plot quality.svg": {"grove bench diffusion -m llada.gguf --tasks tasks.jsonl --limit 1 -n 4 --block 4 --policies threshold:p=0.9 --policies factor --canvas-caches none --canvas-caches dual --plot quality.svg", "time, and the sources of the Go distribution"},
	"grove bench layers -m model.gguf -f text.txt":                                                                                                  {"grove bench layers -m model.gguf -f wiki.test.raw -c 16 --chunks 2", "time"},
	"grove bench vocab -m model.gguf small.gguf --workload tasks.jsonl":                                                                             {"grove bench vocab -m model.gguf small.gguf --workload tasks.jsonl -n 8", "time"},
	"grove bench serve --url http://127.0.0.1:8080 --rate 2.5 --api chat --prompts tasks.jsonl --save figures.json":                                 {"grove bench serve --url $SERVER --rate 50 --api chat --prompts tasks.jsonl --save figures.json --requests 2 -n 2", "time"},
	"grove health --addr 10.0.0.5:8080":                                                                                                             {"grove health --addr ${SERVER#http://}", "another machine"},
	"grove ps --url http://10.0.0.5:8080 --json":                                                                                                    {"grove ps --url $SERVER --json", "another machine"},
	"grove rm llama3.2:3b":                                                             {"", "pull.txtar removes models"},
	"grove bench speed half.gguf":                                                      {"grove bench speed half.gguf -p 1 -n 2 -r 1", "time"},
	"grove run model.gguf --heads heads.gguf \"...\"":                                  {"grove run -m gopher-target --heads internal/gopher/testdata/drafters/gopher-target-eagle -n 4 \"...\"", "the stand-in has no heads"},
	"grove verify model.gguf":                                                          {"grove verify model.gguf --methods sam -n 2", "time"},
	"grove perplexity -m model.gguf -f wiki.test.raw --units 0.9":                      {"grove perplexity -m model.gguf -f wiki.test.raw --units 0.9 --chunks 1", "time"},
	`grove run -m model.gguf --regex "(yes|no)" --ahead model.hmm.gguf -n 16 "Is it?"`: {"", "it needs a file of lab hmm; the script hmm.txtar of the laboratory runs it"},
	`echo '{"name": "Ann", "age": 130}' | grove check --schema person.json`:            {`echo '{"name": "Ann", "age": 130}' | grove check --schema person.json; test $? = 1`, "the text is not legal"},
	"grove bench methods --replay --cost bench/costs/0.5b-q8_0.json --workload go.jsonl --datastore go.store --methods all": {"grove bench methods --replay --cost bench/costs/0.5b-q8_0.json --workload go.jsonl --datastore go.store --methods all -n 4", "time"},
}

// marks are the words in brackets that begin the comments of commands which no test of this package runs, and what such a command needs.
var marks = map[string]string{
	"network":  "a registry, or another machine",
	"docker":   "Docker",
	"cluster":  "a cluster of Kubernetes",
	"root":     "rights of the administrator",
	"shell":    "a certain shell",
	"balancer": "HAProxy or Caddy",
	"release":  "a checkout without changes; the tests of lab/release make one",
	"lab":      "the laboratory's module, which go -C lab test ./... tests",
}

// A command is an indented line of a document.
type command struct {
	page, text string
	mark       string // of marks; "": it runs
}

// example is an indented line of a document, with its mark and its comment.
var example = regexp.MustCompile(`^    (\S.*?)(?:\s{2,}# (?:\[(\w+)\])?.*)?$`)

// examples returns the indented lines of a document outside of the list of commands and of fenced blocks. Lines that end in a backslash go on.
func examples(t *testing.T, page string) (all []command) {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	fenced, listed := false, false
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", "")) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case strings.HasPrefix(line, "<!-- "):
			listed = line == "<!-- commands -->"
		}
		if m := example.FindStringSubmatch(line); m != nil && !fenced && !listed {
			all = append(all, command{page, strings.TrimPrefix(strings.ReplaceAll(m[1], "./grove", "grove"), "go run ./cmd/"), m[2]})
		}
	}
	return all
}

// guides returns the documents whose commands are tested.
func guides(t *testing.T) (pages []string) {
	t.Helper()
	for _, pattern := range []string{"README.md", "internal/gopher/README.md", "docs/*.md", "docs/methods/*.md"} {
		names, err := filepath.Glob("../../" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(pattern, err)
		}
		for _, name := range names {
			pages = append(pages, strings.TrimPrefix(filepath.ToSlash(name), "../../"))
		}
	}
	return pages
}

// standIns writes the files that the examples name.
func standIns(t *testing.T, dir string) {
	t.Helper()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{
		"prompt.txt": "func main() {", "questions.txt": "hello\n", "text.txt": "some text", "documents.txt": "some text\n", "questions.jsonl": `{"prompt":"func main","choices":["() {","x"],"answer":0}`, "answer.txt": "yes\n", "person.json": `{"properties":{"age":{"maximum":120,"type":"integer"}},"required":["age"],"additionalProperties":false}`,
		"person.txt":    "{\"age\": 40}\n",
		"wiki.test.raw": strings.Repeat("func add(a, b int) int {\n\treturn a + b\n}\n\n", 60),
		"unseen.txt":    strings.Repeat("func add(a, b int) int {\n\treturn a + b\n}\n\n", 40) + strings.Repeat("func go range if chan import var ( ) 7 for 9 { } defer x\n", 30),
		"tasks.jsonl":   `{"prompt":"func main() {","prediction":"}"}` + "\n" + `{"prompt":"if err != nil {"}` + "\n", "prompts.jsonl": `{"prompt":"func main() {"}` + "\n",
		"spec_bench.jsonl": `{"question_id":1,"category":"go","turns":["func main() {"]}` + "\n",
		"schemas.jsonl":    `{"name":"a","schema":{"type":"boolean"},"tests":[{"valid":true,"data":true},{"valid":false,"data":1}]}` + "\n",
		"main.go":          "package main\n\nfunc main() {\n}\n", "server.go": "package main\n\nfunc serve() {\n}\n", "old.go": "package main\n", "text": `{"age": 40}`,
		"requests.jsonl": `{"custom_id":"one","method":"POST","url":"/v1/completions","body":{"prompt":"func main() {","max_tokens":4}}` + "\n",
		"ids.bin":        "\x01\x00\x02\x00", "keys.txt": "ann:sk-2f6c0b\n", "go.jsonl": `{"prompt":"func main() {","output":"func main() {}"}` + "\n",
	} {
		if err := os.WriteFile(path(name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, craft := range map[string]string{
		"model.gguf": "talker", "large.gguf": "talker", "half.gguf": "talker", "Qwen3-0.6B.gguf": "talker", "model-f16.gguf": "talker", "model-q4.gguf": "talker", "model-f32.gguf": "good", "qwen3.gguf": "good",
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
	for _, folder := range []string{"internal", "bench"} { // examples name files of the checkout
		from, err := filepath.Abs("../../" + folder)
		if err == nil {
			err = os.Symlink(from, path(folder))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"texts.store", "go.store", "code.store"} {
		if out, err := exec.Command("grove", "datastore", "-m", path("model.gguf"), "-o", path(name), path("wiki.test.raw")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	inOllama(t, path("ollama"), "llama3.2", "3b", path("model.gguf"))
	f, err := gguf.Open(goldens + "/llama-tied.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := hftest.From(f)
	shape := hftest.SmallHead
	shape.Vocab = 320 // of the stand-in of Llama-3.2-1B
	for name, layout := range map[string]string{"EAGLE3-Llama-3.2-1B": "eagle3", "medusa-Llama-3.2-1B": "medusa"} {
		err = errors.Join(err, os.Mkdir(path(name), 0o755), hftest.NewHead(layout, shape).Write(path(name)))
	}
	for file, arch := range map[string]string{"llada.gguf": "llada", "sdar.gguf": "sdar", "diffusiongemma.gguf": "diffusion-gemma"} {
		metadata, tensors, wrong := synthetic.Spec{Arch: arch, Vocabulary: true, Vocab: 300, Context: 512}.Parts()
		var canvas bytes.Buffer
		err = errors.Join(err, wrong, gguf.Write(&canvas, metadata, tensors), os.WriteFile(path(file), canvas.Bytes(), 0o644))
	}
	for _, err := range []error{err, os.Mkdir(path("Llama-3.2-1B"), 0o755), h.Write(path("Llama-3.2-1B")), os.WriteFile(path("small.gguf"), gopher.Named("gopher-draft"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// inOllama makes a directory as ollama's, with a model.
func inOllama(t *testing.T, dir, name, tag, file string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(content))
	manifest := fmt.Sprintf(`{"schemaVersion": 2, "layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": %q, "size": %d}]}`, digest, len(content))
	for name, content := range map[string][]byte{
		"blobs/" + strings.Replace(digest, ":", "-", 1):            content,
		"manifests/registry.ollama.ai/library/" + name + "/" + tag: []byte(manifest),
	} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestExamples runs the commands of the documents, on stand-ins of the files that they name, each command once. It counts those that it does
// not run, by the reason; a command that it does not know fails.
func TestExamples(t *testing.T) {
	standins := t.TempDir()
	standIns(t, standins)
	server := startServer(t, "-m", "gopher-target="+filepath.Join(standins, "model.gguf"), "--parallel", "8", "--idle", "1h")
	server.ready(t)
	index, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var pages int
	counts, known := map[string]int{}, map[string]bool{}
	for _, page := range guides(t) {
		all := examples(t, page)
		if len(all) > 0 {
			pages++
		}
		for _, c := range all {
			if known[c.text] {
				continue
			}
			known[c.text] = true
			counts[tryCommand(t, standins, c, server.url)]++
		}
	}
	for text := range instead {
		if !known[text] {
			t.Errorf("no document has the command %q; take it off the list", text)
		}
	}
	for mark, needs := range marks {
		if counts["["+mark+"]"] == 0 {
			t.Errorf("no command has the mark [%s]; take it off the list", mark)
		}
		if want := fmt.Sprintf("| `[%s]` | %s |", mark, needs); !strings.Contains(string(index), want) {
			t.Errorf("docs/README.md does not say %q", want)
		}
	}
	t.Logf("%d commands of %d pages: %v", len(known), pages, counts)
}

// longAnswer matches a flag that asks for more tokens than a test of the command needs.
var longAnswer = regexp.MustCompile(` (-n|--block) \d\d+\b`)

// goCommand matches commands of go, with the variables that they are given.
var goCommand = regexp.MustCompile(`^([A-Z_]+=\S* )*go `)

// tryCommand runs a command as its kind asks and returns what was done with it.
func tryCommand(t *testing.T, standins string, c command, server string) string {
	t.Helper()
	other, isOther := instead[c.text]
	program, rest, _ := strings.Cut(c.text, " ")
	switch {
	case c.mark != "":
		if marks[c.mark] == "" {
			t.Errorf("%s: %s: the mark [%s] is unknown", c.page, c.text, c.mark)
		}
		return "[" + c.mark + "]"
	case isOther && other.run == "":
		return "left out"
	case goCommand.MatchString(c.text):
		return "checked" // by TestGoCommands
	case strings.HasPrefix(c.text, "grove serve"):
		t.Run(c.text, func(t *testing.T) {
			t.Parallel()
			args := regexp.MustCompile(` --(host|port) \S+`).ReplaceAllString(strings.TrimPrefix(rest, "serve"), "")
			if code := startServerIn(t, standins, strings.Fields(args)...).stop(t, syscall.SIGINT); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
		return "served"
	case isOther:
		c.text = other.run
	case program == "grove":
		c.text = longAnswer.ReplaceAllString(c.text, " $1 8")
	case program == "curl":
		c.text = regexp.MustCompile(`(http://)?(localhost|127\.0\.0\.1):8080`).ReplaceAllString(c.text, server) + " --silent --show-error --fail-with-body"
	case program != "grove" && program != "echo":
		t.Errorf("%s has the line %q, which is no command that the test knows", c.page, c.text)
		return "unknown"
	}
	t.Run(c.text, func(t *testing.T) {
		if !strings.HasPrefix(c.text, "grove stop") { // which is refused where others use the model
			t.Parallel()
		}
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
		runExample(t, standins, c.text, server)
	})
	return "run"
}

// runExample runs a line of a shell in a directory with links to the stand-ins that it names. The output of what is piped to jq must be JSON.
func runExample(t *testing.T, standins, command, server string) {
	t.Helper()
	dir := t.TempDir()
	names, err := os.ReadDir(standins)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		if !strings.Contains(command, strings.TrimSuffix(e.Name(), ".gguf")) {
			continue
		}
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
	env := append(os.Environ(), "GROVE_MODELS="+dir, "OLLAMA_MODELS="+filepath.Join(standins, "ollama"), "GROVE_N=4", "GROVE_SEED=1", "SERVER="+server, "GROVE_ADDR="+strings.TrimPrefix(server, "http://"))
	var out, notes bytes.Buffer
	if words := plainWords(command); len(words) > 0 && words[0] == "grove" {
		r, err := scripts.Run(ctx, scripts.Command{Args: words[1:], Env: env, Dir: dir, Stdin: []byte("hello\n")})
		if err != nil || r.Code != 0 {
			t.Fatalf("%v, exit code %d\n%s%s", err, r.Code, r.Stdout, r.Stderr)
		}
		out.Write(r.Stdout)
		notes.Write(r.Stderr)
	} else {
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Dir, cmd.Env, cmd.Stdin = dir, env, strings.NewReader("hello\n")
		cmd.Stdout, cmd.Stderr = &out, &notes
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s%s", err, out.Bytes(), notes.Bytes())
		}
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

// plainWord matches a word of a shell that is the word itself, or quoted.
var plainWord = regexp.MustCompile(`^ *(?:([\w./:,=+%@-]+)|"([^"$` + "`" + `\\]*)"|'([^']*)')(?: |$)`)

// plainWords returns the words of a command as a shell does; nil: it needs a shell.
func plainWords(command string) (words []string) {
	for command = strings.TrimRight(command, " "); command != ""; {
		m := plainWord.FindStringSubmatch(command)
		if m == nil {
			return nil
		}
		words, command = append(words, m[1]+m[2]+m[3]), command[len(m[0]):]
	}
	return words
}

// written finds the file that an example writes.
var written = regexp.MustCompile(`(?: -o | --out | --save | > |^grove quantize \S+ |^grove (?:convert|bench make) .* )([\w.-]+)`)

// writes returns the file that an example writes, "" for none.
func writes(command string) string {
	if m := written.FindStringSubmatch(command); m != nil {
		return m[1]
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
