package bench

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grove"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
)

// byteTokenizer returns a tokenizer with a vocabulary of single bytes and some longer tokens.
func byteTokenizer() (*tokenizer.Tokenizer, error) {
	v := tokenizer.Vocab{Model: "llama", BOS: token.None, EOS: 0, EOT: token.None, EOM: token.None, UNK: token.None, SEP: token.None, FIM: tokenizer.NoFIM}
	add := func(text string, ty tokenizer.Type, score float32) {
		v.Tokens, v.Types, v.Scores = append(v.Tokens, text), append(v.Types, int(ty)), append(v.Scores, score)
	}
	add("</s>", tokenizer.Control, 0)
	const digits = "0123456789ABCDEF"
	for b := range 256 {
		add("<0x"+string([]byte{digits[b>>4], digits[b&15]})+">", tokenizer.Byte, 0)
	}
	for i, text := range []string{`{"`, `":`, `a`, `▁1`, `",`} {
		add(text, tokenizer.Normal, float32(-i))
	}
	return tokenizer.New(v)
}

// byteMeter returns a meter for it.
func byteMeter(t testing.TB) *grove.MaskMeter {
	t.Helper()
	k, err := byteTokenizer()
	if err != nil {
		t.Fatal(err)
	}
	m, err := grove.NewMaskMeter(k)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// openVocabulary returns the tokenizer of a file, and a meter for it.
func openVocabulary(t *testing.T, path string) (*tokenizer.Tokenizer, *grove.MaskMeter) {
	t.Helper()
	file, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	k, err := tokenizer.FromGGUF(file)
	if err != nil {
		t.Fatal(err)
	}
	m, err := grove.NewMaskMeter(k)
	if err != nil {
		t.Fatal(err)
	}
	return k, m
}

func TestMasks(t *testing.T) {
	const lines = `{"name":"good","schema":{"type":"object","properties":{"a":{"type":"integer"},"é":{"enum":[1.0,null,"x\ny"]}},"required":["a"],"additionalProperties":false},
		"tests":[{"valid":true,"data":{"a":1}},{"valid":true,"data":{"é":"x\ny","a":-12.0}},{"valid":false,"data":{"b":1}},{"valid":false,"data":{"é":1.0}}]}
{"name":"wrong","schema":{"type":"integer"},"tests":[{"valid":true,"data":"a"},{"valid":false,"data":"a"}]}
{"name":"lax","schema":true,"tests":[{"valid":false,"data":[1]}]}
{"name":"refused","schema":{"type":"nothing"},"tests":[{"valid":true,"data":1}]}`
	text := strings.ReplaceAll(lines, "\n\t\t", "")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(text))
	_ = z.Close()
	for name, file := range map[string]string{"text": text, "gzip": packed.String()} {
		t.Run(name, func(t *testing.T) {
			schemas, err := ReadMaskSchemas(strings.NewReader(file))
			if err != nil {
				t.Fatal(err)
			}
			r, err := Masks(context.Background(), byteMeter(t), schemas, MaskOptions{FreeOrder: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			f := r.Schemas[0]
			if f.ValidAccepted != 2 || f.ValidTotal != 2 || f.InvalidRejected != 2 || f.InvalidTotal != 2 || f.Error != "" || f.Masks.N == 0 || f.FirstMaskUS < f.CompileUS {
				t.Errorf("good: %+v", f)
			}
			if f := r.Schemas[3]; f.Error == "" || f.ValidAccepted != 0 {
				t.Errorf("refused: %+v", f)
			}
			s := r.Summary
			if s.Schemas != 4 || s.Passed != 1 || s.Validation != 1 || s.Invalidation != 1 || s.CompileErrors != 1 || s.Errors != 0 {
				t.Errorf("summary: %+v", s)
			}
			var out, table bytes.Buffer
			if err := r.WriteJSON(&out); err != nil || strings.Count(out.String(), "\n") != 5 {
				t.Errorf("JSON: %v\n%s", err, out.String())
			}
			if err := r.WriteText(&table); err != nil || !strings.Contains(table.String(), "1 of 4 schemas pass (25.0 %)") {
				t.Errorf("text: %v\n%s", err, table.String())
			}
		})
	}
}

// TestSpaced compares with what Python's json.dumps(x, ensure_ascii=False) writes.
func TestSpaced(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":[1,2.50,{"b":null}],"":{},"c":[],"d":[[],[[1],2]]}`: `{"a": [1, 2.50, {"b": null}], "": {}, "c": [], "d": [[], [[1], 2]]}`,
		`"\u00e9\u0001\n\/<&\u007f\ud83d\ude00"`:                  "\"é\\u0001\\n/<&\x7f😀\"",
		` [ true , false ] `:                                      `[true, false]`,
		`{"b":1,"a":2,"b":3}`:                                     `{"b": 1, "a": 2, "b": 3}`,
		`-0.0e10`:                                                 `-0.0e10`,
	} {
		if got, err := spaced([]byte(text)); got != want || err != nil {
			t.Errorf("%s: got %s, want %s; %v", text, got, want, err)
		}
	}
}

// TestMaskBench runs the sample of MaskBench with a published vocabulary: no invalid text is accepted, no valid one is rejected without
// an error, and nearly all schemas pass.
func TestMaskBench(t *testing.T) {
	root := filepath.Join("../../shared")
	f, err := os.Open(filepath.Join(root, "data", "maskbench_sample.jsonl.gz"))
	if err != nil {
		if _, missing := os.Stat(root); missing == nil && os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("needs ../shared/data/maskbench_sample.jsonl.gz: not there")
	}
	defer f.Close()
	schemas, err := ReadMaskSchemas(f)
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("GROVE_LONG") == "" {
		kept := schemas[:0]
		for i := 7; i < len(schemas); i += 25 {
			kept = append(kept, schemas[i])
		}
		schemas = kept
	}
	_, m := openVocabulary(t, filepath.Join(root, "golden", "tokenizers", "ggml-vocab-llama-spm.gguf"))
	r, err := Masks(context.Background(), m, schemas, MaskOptions{FreeOrder: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Summary
	if s.Validation != 0 || s.Invalidation != 0 || s.Passed < s.Schemas*98/100 {
		var text bytes.Buffer
		_ = r.WriteText(&text)
		t.Errorf("%+v\n%s", s, text.String())
	}
	t.Logf("%+v", s)
}

// FuzzMaskSchemas reads hostile files of schemas: those that are taken have a schema, and their texts are JSON.
func FuzzMaskSchemas(f *testing.F) {
	f.Add([]byte(`{"name":"a","schema":{},"tests":[{"valid":true,"data":{"a":[1,"\u00e9",null]}}]}`))
	f.Add([]byte("{\"schema\":true,\"tests\":[{}]}\n\n{\"schema\":1}"))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Add([]byte(`{"schema":{},"tests":[{"data":"\ud800"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		schemas, err := ReadMaskSchemas(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, s := range schemas {
			if len(s.Schema) == 0 {
				t.Fatalf("%q: no schema", text)
			}
			for _, x := range s.Tests {
				if out, err := spaced(x.Data); err == nil && len(x.Data) > 0 && !json.Valid([]byte(out)) {
					t.Fatalf("%q: %q is not JSON", x.Data, out)
				}
			}
		}
	})
}
