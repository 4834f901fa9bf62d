package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/gguf"
	"grove/token"
)

type object = map[string]any

// byteLevelParts are the pre-tokenizers of published byte-level models.
var byteLevelParts = map[string][]any{
	"gpt-2":          {byteLevelPart(true)},
	"starcoder":      {object{"type": "Digits", "individual_digits": true}, byteLevelPart(true)},
	"deepseek-coder": {splitPart("[\r\n]"), splitPart(`\s?\p{L}+`), splitPart(`\s?\p{P}+`), splitPart("[一-龥ࠀ-一가-\uD7FF]+"), object{"type": "Digits", "individual_digits": true}, byteLevelPart(false)},
	"falcon": {
		object{"type": "Punctuation", "behavior": "Contiguous"}, byteLevelPart(true), object{"type": "Digits", "individual_digits": false},
		splitPart("[0-9][0-9][0-9]"),
	},
	"llama-bpe": {splitPart(`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`), byteLevelPart(false)},
}

func byteLevelPart(regex bool) object {
	return object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex}
}

func splitPart(expr string) object {
	return object{"type": "Split", "pattern": object{"Regex": expr}, "behavior": "Isolated", "invert": false}
}

func sequence(key string, parts ...any) object { return object{"type": "Sequence", key: parts} }

// asJSON writes a GGUF vocabulary as a tokenizer.json and its configuration.
func asJSON(t testing.TB, f *gguf.File, edit func(file object)) (file, config []byte) {
	t.Helper()
	r := reader{f: f}
	v := Vocab{
		Model: read(&r, f.String, "tokenizer.ggml.model", ""), Pre: read(&r, f.String, "tokenizer.ggml.pre", ""),
		Tokens: read(&r, f.Strings, "tokenizer.ggml.tokens", nil), Types: read(&r, f.Ints, "tokenizer.ggml.token_type", nil),
		Merges: read(&r, f.Strings, "tokenizer.ggml.merges", nil), Scores: read(&r, f.Floats, "tokenizer.ggml.scores", nil),
	}
	r.ids(&v)
	r.flags(&v)
	if r.err != nil {
		t.Fatal(r.err)
	}
	vocab := map[string]int{}
	var added []any
	for i, text := range v.Tokens {
		if ty := Type(v.Types[i]); ty.special() {
			added = append(added, object{"id": i, "content": text, "special": ty != UserDefined, "normalized": false, "lstrip": false, "rstrip": false, "single_word": false})
		} else {
			vocab[text] = i
		}
	}
	model := object{"type": "BPE", "dropout": nil, "unk_token": nil, "fuse_unk": false, "byte_fallback": false, "vocab": vocab, "merges": v.Merges}
	out := object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil, "model": model,
		"pre_tokenizer": sequence("pretokenizers", byteLevelParts[v.Pre]...), "decoder": object{"type": "ByteLevel"},
	}
	if v.Model == "llama" {
		model["merges"], model["byte_fallback"], model["fuse_unk"], model["unk_token"] = mergesOf(v), true, true, v.Tokens[v.UNK]
		vocab[v.Tokens[v.UNK]] = int(v.UNK)
		out["pre_tokenizer"] = nil
		out["normalizer"] = sequence("normalizers", object{"type": "Prepend", "prepend": space},
			object{"type": "Replace", "pattern": object{"String": " "}, "content": space})
		out["decoder"] = sequence("decoders", object{"type": "Replace", "pattern": object{"String": space}, "content": " "},
			object{"type": "ByteFallback"}, object{"type": "Fuse"}, object{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	}
	if v.AddBOS {
		out["post_processor"] = object{
			"type":           "TemplateProcessing",
			"single":         []any{object{"SpecialToken": object{"id": "B", "type_id": 0}}, object{"Sequence": object{"id": "A", "type_id": 0}}},
			"special_tokens": object{"B": object{"id": "B", "ids": []int{int(v.BOS)}, "tokens": []string{v.Tokens[v.BOS]}}},
		}
	}
	names := object{}
	for key, id := range map[string]token.ID{"bos_token": v.BOS, "eos_token": v.EOS} {
		if id != token.None {
			names[key] = object{"content": v.Tokens[id], "lstrip": false}
		}
	}
	if edit != nil {
		edit(out)
	}
	return marshal(t, out), marshal(t, names)
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mergesOf lists the merges of a SentencePiece vocabulary as transformers does: all pairs of tokens that
// spell a token, by the score of that.
func mergesOf(v Vocab) (merges []string) {
	ids := map[string]int{}
	var made []int
	for i, text := range v.Tokens {
		if v.Types[i] == int(Normal) {
			ids[text] = i
			made = append(made, i)
		}
	}
	slices.SortStableFunc(made, func(a, b int) int { return int(v.Scores[b]) - int(v.Scores[a]) })
	for _, id := range made {
		text := v.Tokens[id]
		type split struct {
			left, right string
			rank        int
		}
		var ways []split
		for i := range text {
			if l, ok := ids[text[:i]]; ok && i > 0 {
				if _, ok := ids[text[i:]]; ok {
					ways = append(ways, split{text[:i], text[i:], l})
				}
			}
		}
		slices.SortFunc(ways, func(a, b split) int { return a.rank - b.rank })
		for _, w := range ways {
			merges = append(merges, w.left+" "+w.right)
		}
	}
	return merges
}

// golden calls check with every golden text and the ids it has.
func golden(t *testing.T, path string, check func(text, ids string)) {
	t.Helper()
	in, err := os.ReadFile(path + ".inp")
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(path + ".out")
	if err != nil {
		t.Fatal(err)
	}
	texts := strings.Split(string(in), "\n__ggml_vocab_test__\n")
	lines := strings.Split(string(out), "\n")
	if len(texts) != len(lines) || len(texts) < 40 {
		t.Fatalf("%d texts, %d lines of ids", len(texts), len(lines))
	}
	for i, text := range texts {
		check(text, strings.TrimSpace(lines[i]))
	}
}

// TestGoldenJSON: the golden vocabularies written as a tokenizer.json give the golden ids, and so does the
// GGUF metadata made from that.
func TestGoldenJSON(t *testing.T) {
	for _, name := range []string{"gpt-2", "starcoder", "falcon", "deepseek-coder", "llama-spm"} {
		t.Run(name, func(t *testing.T) {
			path := shared(t, "golden/tokenizers/ggml-vocab-"+name+".gguf")
			f, err := gguf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			doc, config := asJSON(t, f, nil)
			k, err := ParseJSON(doc, config)
			if err != nil {
				t.Fatal(err)
			}
			kvs, err := MetadataFromJSON(doc, config, k.Size()+7)
			if err != nil {
				t.Fatal(err)
			}
			again, err := FromGGUF(file(t, kvs...))
			if err != nil {
				t.Fatal(err)
			}
			if again.Size() != k.Size()+7 || again.BOS() != k.BOS() || again.EOS() != k.EOS() {
				t.Errorf("size %d, begin %d, end %d; of the tokenizer.json %d, %d, %d", again.Size(), again.BOS(), again.EOS(), k.Size(), k.BOS(), k.EOS())
			}
			golden(t, path, func(text, want string) {
				for what, k := range map[string]*Tokenizer{"tokenizer.json": k, "metadata": again} {
					ids, err := k.Encode(nil, text, Options{})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, strings.Trim(fmt.Sprint(ids), "[]")); diff != "" {
						t.Errorf("%s: %q: -want +got\n%s", what, text, diff)
					}
					if back, err := k.Decode(ids, true); err != nil || back != text {
						t.Errorf("%s: %q decodes to %q, %v", what, text, back, err)
					}
				}
				all, err := k.Encode(nil, text, Options{Special: true})
				more, errAgain := again.Encode(nil, text, Options{Special: true})
				if err != nil || errAgain != nil || !slices.Equal(all, more) {
					t.Errorf("%q with special tokens: %v, %v; by the metadata %v, %v", text, all, err, more, errAgain)
				}
			})
		})
	}
}
