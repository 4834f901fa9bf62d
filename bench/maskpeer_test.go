package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grove/internal/text/token"
)

// fakeNode names the variable that makes this test program a peer, or a converter, that behaves as its value says.
const fakeNode = "GROVE_TEST_FAKE_NODE"

func TestMain(m *testing.M) {
	switch how := os.Getenv(fakeNode); {
	case how == "":
		os.Exit(m.Run())
	case len(os.Args) < 2:
		os.Exit(fakeConvert(how))
	default:
		os.Exit(fakePeer(how))
	}
}

func fakeConvert(how string) int {
	switch how {
	case "converter fails":
		fmt.Fprintln(os.Stderr, "no such\x1b[31m type")
		return 1
	case "converter hangs":
		time.Sleep(time.Minute)
	case "converter floods":
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<16)); err != nil {
				return 0
			}
		}
	}
	fmt.Println(`root ::= "x"`)
	return 0
}

// fakePeer accepts every text but those of one token.
func fakePeer(how string) int {
	if how == "no package" {
		fmt.Fprintln(os.Stderr, "Cannot find package", strings.Repeat("x", 1<<20))
		return 1
	}
	fmt.Println(`{"package":"9.9.9","release":"b1"}`)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	for in.Scan() {
		var job struct {
			Schema  json.RawMessage
			Grammar *string
			Texts   [][]int
			Size    int
			Limit   int `json:"limit_ms"`
		}
		if err := json.Unmarshal(in.Bytes(), &job); err != nil || (job.Schema == nil) == (job.Grammar == nil) || job.Size == 0 || job.Limit == 0 {
			fmt.Println("a job that is wrong:", err)
			continue
		}
		if how != "good" && !strings.HasPrefix(how, "converter") && strings.Contains(string(job.Schema), `"nothing"`) {
			if code := misbehave(how); code >= 0 {
				return code
			}
			continue
		}
		r := peerResult{Compile: 100, Vocabulary: 5000, Accepted: []bool{}}
		for _, ids := range job.Texts {
			r.Accepted = append(r.Accepted, len(ids) > 1)
			for range ids {
				r.Steps = append(r.Steps, 2)
			}
		}
		line, _ := json.Marshal(r)
		fmt.Println(string(line))
	}
	return 0
}

// misbehave does it, and returns how the process ends; below 0: it goes on.
func misbehave(how string) int {
	switch how {
	case "dies":
		fmt.Fprintln(os.Stderr, "GGML_ASSERT")
		return 3
	case "hangs":
		time.Sleep(time.Minute)
	case "floods":
		for {
			if _, err := os.Stdout.Write(bytes.Repeat([]byte("["), 1<<16)); err != nil {
				return 0
			}
		}
	case "babbles":
		fmt.Println("good morning")
	case "lies":
		fmt.Println(`{"compile_us":1,"accepted":[true,true,true,true,true,true,true]}`)
	case "refuses":
		fmt.Printf("{\"error\":%q}\n", strings.Repeat("no", 1000))
	case "gives up":
		fmt.Println(`{"compile_us":7,"steps_us":[1,2],"accepted":[],"error":"out of time"}`)
	}
	return -1
}

const peerLines = `{"name":"one","schema":{"type":"object"},"tests":[{"valid":true,"data":{"a":1}},{"valid":false,"data":1}]}
{"name":"bad","schema":{"type":"nothing"},"tests":[{"valid":true,"data":[1]}]}
{"name":"lax","schema":{"type":"integer"},"tests":[{"valid":true,"data":12},{"valid":false,"data":"a"}]}
{"name":"strict","schema":{"type":"integer"},"tests":[{"valid":true,"data":1}]}`

// againstPeer measures with a fake peer, and returns the report and its JSON.
func againstPeer(t *testing.T, how string, o MaskPeerOptions) (*MaskReport, string, error) {
	t.Helper()
	t.Setenv(fakeNode, how)
	k, err := byteTokenizer()
	if err != nil {
		t.Fatal(err)
	}
	o.Tokenizer, o.Node = k, os.Args[0]
	p, err := OpenMaskPeer(context.Background(), o)
	if err != nil {
		return nil, "", err
	}
	defer p.Close()
	schemas, err := ReadMaskSchemas(strings.NewReader(peerLines))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Masks(context.Background(), byteMeter(t), schemas, MaskOptions{FreeOrder: true, Peer: p}, nil)
	if err != nil {
		return nil, "", err
	}
	var out bytes.Buffer
	if err := r.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	return r, out.String(), nil
}

func TestMaskPeer(t *testing.T) {
	r, out, err := againstPeer(t, "good", MaskPeerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := MaskCounts{Schemas: 4, Passed: 2, Invalidation: 1, Validation: 1}
	if r.Peer.MaskCounts != want || r.Peer.Package != "node-llama-cpp 9.9.9" || r.Peer.Release != "b1" || r.Peer.Converter != "of node-llama-cpp" {
		t.Errorf("%+v", r.Peer)
	}
	if f := r.Schemas[0].Peer; f.CompileUS != 100 || f.VocabularyUS != 5000 || f.Tests.P50 != 2 || f.ValidAccepted != 1 || f.InvalidRejected != 1 {
		t.Errorf("%+v", f)
	}
	if r.Peer.Compile.N != 4 || r.Peer.Tests.N == 0 || r.Peer.Vocabulary.Mean != 5000 || r.Summary.Schemas != 4 {
		t.Errorf("%+v, %+v", r.Peer, r.Summary)
	}
	for _, part := range []string{`"peer":{"compile_us":100,"token_tests":{"n":`, `"vocabulary_tests_us":5000`, `"peer":{"engine":"llama.cpp"`, `"converter":"of node-llama-cpp","schemas":4,"passed":2`} {
		if !strings.Contains(out, part) {
			t.Errorf("no %s in\n%s", part, out)
		}
	}
	var table bytes.Buffer
	if err := r.WriteText(&table); err != nil || !strings.Contains(table.String(), "llama.cpp: 2 of 4 schemas pass (50.0 %)") || !strings.Contains(table.String(), "whole vocabulary") {
		t.Errorf("%v\n%s", err, table.String())
	}
}

// TestMaskPeerFails has peers that do what they should not with one schema: the others are measured as ever.
func TestMaskPeerFails(t *testing.T) {
	for _, c := range []struct {
		how, err string
		refused  bool
	}{
		{"dies", `the process has ended; it says "GGML_ASSERT"`, false},
		{"hangs", "no answer within", false},
		{"floods", "an answer of more than", false},
		{"babbles", `an answer that is not understood: "good morning`, false},
		{"lies", "an answer of 7 texts, of 1", false},
		{"refuses", strings.Repeat("no", 200), true},
		{"gives up", "out of time", false},
	} {
		t.Run(c.how, func(t *testing.T) {
			o := MaskPeerOptions{Limit: time.Second}
			if c.how == "hangs" {
				o.grace = 100 * time.Millisecond
				o.Limit = 300 * time.Millisecond
			}
			r, _, err := againstPeer(t, c.how, o)
			if err != nil {
				t.Fatal(err)
			}
			want := MaskCounts{Schemas: 4, Passed: 1, Invalidation: 1, Validation: 1, Errors: 1}
			if c.refused {
				want.Errors, want.CompileErrors = 0, 1
			}
			if f := r.Schemas[1].Peer; !strings.Contains(f.Error, c.err) || len(f.Error) > 3*maxPeerText || f.ValidAccepted != 0 {
				t.Errorf("%+v", f)
			}
			if r.Peer.MaskCounts != want {
				t.Errorf("%+v", r.Peer.MaskCounts)
			}
		})
	}
}

func TestMaskPeerConverter(t *testing.T) {
	for how, want := range map[string]string{
		"converter works":  "",
		"converter fails":  `exit status 1; it says "no such\x1b[31m type"`,
		"converter hangs":  "no grammar within",
		"converter floods": "a grammar of more than",
	} {
		t.Run(how, func(t *testing.T) {
			limit := 20 * time.Second
			if how == "converter hangs" {
				limit = 50 * time.Millisecond
			}
			r, _, err := againstPeer(t, how, MaskPeerOptions{Converter: os.Args[0], Limit: limit})
			if err != nil {
				t.Fatal(err)
			}
			if got := r.Schemas[0].Peer.Error; !strings.Contains(got, want) || (got == "") != (want == "") {
				t.Errorf("got %q, want %q", got, want)
			}
			if refused := r.Peer.CompileErrors; (refused == 4) != (want != "") || r.Peer.Converter != os.Args[0] {
				t.Errorf("%+v", r.Peer)
			}
		})
	}
}

func TestMaskPeerMissing(t *testing.T) {
	if _, _, err := againstPeer(t, "no package", MaskPeerOptions{}); err == nil || !strings.Contains(err.Error(), `it says "Cannot find package xxx`) || len(err.Error()) > 1000 {
		t.Errorf("a package that does not load: %v", err)
	}
	if _, err := OpenMaskPeer(context.Background(), MaskPeerOptions{Node: "no-such-node"}); err == nil || !strings.Contains(err.Error(), "install Node") {
		t.Errorf("no Node: %v", err)
	}
	dir := t.TempDir()
	if _, err := FindMaskPeer([]string{"", dir}); err == nil || !strings.Contains(err.Error(), "npm install") {
		t.Errorf("no package: %v", err)
	}
	fakePackage(t, dir)
	want := filepath.Join(dir, "node_modules", "node-llama-cpp")
	for _, from := range []string{dir, filepath.Join(dir, "node_modules")} {
		if got, err := FindMaskPeer([]string{t.TempDir(), from}); err != nil || got != want {
			t.Errorf("from %s: %q, %v", from, got, err)
		}
	}
	t.Setenv(fakeNode, "good")
	ctx, cancel := context.WithCancel(context.Background())
	k, err := byteTokenizer()
	if err != nil {
		t.Fatal(err)
	}
	p, err := OpenMaskPeer(ctx, MaskPeerOptions{Node: os.Args[0], Tokenizer: k})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	cancel()
	if _, _, err := p.measure(MaskSchema{Schema: json.RawMessage(`{}`)}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("at a signal: %v", err)
	}
}

// fakePackage writes a package with the calls that the script needs. Its grammar is the schema's "text"; a token is a byte, 0 the end.
func fakePackage(t *testing.T, dir string) {
	t.Helper()
	const script = `
class Sampler {
	static canBeNextTokenForGrammarEvaluationState(s, id) { return id === 0 ? s.left === "" : s.left.charCodeAt(0) === id; }
	static acceptGrammarEvaluationStateToken(s, id) { s.left = s.left.slice(1); }
}
export const LlamaLogLevel = { disabled: "disabled" };
export class LlamaGrammarEvaluationState {
	constructor(o) { this._state = { left: o instanceof LlamaGrammarEvaluationState ? o._state.left : o.grammar.text }; }
	clone() { return new LlamaGrammarEvaluationState(this); }
}
export async function getLlama() {
	return {
		_bindings: { AddonSampler: Sampler },
		loadModel: async () => ({ tokens: { eos: 0 } }),
		createGrammarForJsonSchema: async (schema) => {
			if (schema.text === undefined) throw new Error("no text");
			return { text: schema.text + "\n\n\n\n", grammar: 'root ::= ' + schema.text + ' "\\n\\n\\n\\n" [\\n]*\nrule ::= "a"' };
		},
		createGrammar: async ({ grammar }) => ({ text: grammar.split("\n")[0].slice(9) }),
	};
}`
	root := filepath.Join(dir, "node_modules", "node-llama-cpp")
	for name, text := range map[string]string{
		"dist/index.js":             script,
		"package.json":              `{"name":"node-llama-cpp","version":"0.0.1","type":"module"}`,
		"llama/llama.cpp.info.json": `{"tag":"b7"}`,
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMaskPeerScript runs the script in Node with a fake package.
func TestMaskPeerScript(t *testing.T) {
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("needs Node: not there")
	}
	dir := t.TempDir()
	fakePackage(t, dir)
	found, err := FindMaskPeer([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	k, err := byteTokenizer()
	if err != nil {
		t.Fatal(err)
	}
	p, err := OpenMaskPeer(context.Background(), MaskPeerOptions{Package: found, Vocabulary: "v.gguf", Tokenizer: k})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	read := func(job peerJob) (r peerResult) {
		t.Helper()
		job.Size, job.Limit = 300, 5000
		if err := p.ask(job, &r, 10*time.Second, maxPeerResult); err != nil {
			t.Fatal(err)
		}
		return r
	}
	texts := [][]token.ID{{'a', 'b'}, {'a'}, {'a', 'b', 'c'}, {'x'}}
	grammar := `root ::= ab`
	for name, job := range map[string]peerJob{"schema": {Schema: json.RawMessage(`{"text":"ab"}`)}, "grammar": {Grammar: &grammar}} {
		job.Texts = texts
		r := read(job)
		if fmt.Sprint(r.Accepted) != "[true false false false]" || len(r.Steps) != 7 || r.Compile <= 0 || r.Vocabulary <= 0 || r.Error != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := read(peerJob{Schema: json.RawMessage(`{}`), Texts: texts}); r.Error != "no text" || r.Compile != 0 {
		t.Errorf("refused: %+v", r)
	}
	if s := p.report; s.Package != "node-llama-cpp 0.0.1" || s.Release != "b7" {
		t.Errorf("%+v", s)
	}
}

// TestMaskPeerReal runs llama.cpp where the package is: in a folder of NODE_PATH.
func TestMaskPeerReal(t *testing.T) {
	found, err := FindMaskPeer(filepath.SplitList(os.Getenv("NODE_PATH")))
	if err != nil {
		t.Skip("needs the package node-llama-cpp in a folder of NODE_PATH: not there")
	}
	vocabulary := filepath.Join("../../shared/golden/tokenizers", "ggml-vocab-llama-spm.gguf")
	if _, err := os.Stat(vocabulary); err != nil {
		t.Skip("needs ../shared/golden/tokenizers/ggml-vocab-llama-spm.gguf: not there")
	}
	k, m := openVocabulary(t, vocabulary)
	p, err := OpenMaskPeer(context.Background(), MaskPeerOptions{Package: found, Vocabulary: vocabulary, Tokenizer: k})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	schemas, err := ReadMaskSchemas(strings.NewReader(`{"schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},"tests":[{"valid":true,"data":{"a":12}},{"valid":false,"data":{"b":1}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Masks(context.Background(), m, schemas, MaskOptions{FreeOrder: true, Peer: p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Peer.Passed != 1 || r.Summary.Passed != 1 || r.Peer.Vocabulary.N != 1 {
		t.Errorf("%+v", r.Peer)
	}
}
