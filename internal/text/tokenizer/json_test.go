package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/token"
	"grove/internal/weights/gguf"
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
	v := vocabOf(t, f)
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

// vocabOf reads the vocabulary of a file.
func vocabOf(t testing.TB, f *gguf.File) Vocab {
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
	return v
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// mergesOf lists the merges of a SentencePiece vocabulary as transformers does: all pairs of tokens that spell a token, in the
// order of its score.
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

// golden calls check with every golden text and its ids.
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

// TestGoldenJSON: the golden vocabularies, written as a tokenizer.json, give the golden ids, and so does GGUF metadata made from
// the tokenizer.json.
func TestGoldenJSON(t *testing.T) {
	for _, name := range []string{"gpt-2", "starcoder", "falcon", "deepseek-coder", "llama-spm"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "starcoder" && name != "llama-spm" {
				t.Skip("two kinds are enough")
			}
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

// smallJSON is a byte-level tokenizer.json: the bytes, a few merges, and added tokens.
func smallJSON() object {
	vocab := map[string]int{}
	v := smallBPE()
	for i, text := range v.Tokens[:len(v.Tokens)-6] {
		vocab[text] = i
	}
	return object{
		"added_tokens": []any{added(268, "<s>", "special"), added(269, "</s>", "special"), added(270, "<tool>")},
		"normalizer":   nil, "pre_tokenizer": byteLevelPart(true), "post_processor": nil, "decoder": object{"type": "ByteLevel"},
		"model": object{"type": "BPE", "vocab": vocab, "merges": v.Merges},
	}
}

// added is an added token with flags.
func added(id int, text string, flags ...string) object {
	o := object{"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false}
	for _, f := range flags {
		o[f] = true
	}
	return o
}

// spaceJSON is a SentencePiece tokenizer.json with merges.
func spaceJSON() object {
	vocab := map[string]int{"<unk>": 0, "<s>": 1}
	for _, text := range []string{"▁", "a", "b", "é", "▁a", "ab", "▁ab", "<0xC3>", "<0xA9>", "<0xE4>", "<0xB8>", "<0xAD>"} {
		vocab[text] = len(vocab)
	}
	return object{
		"added_tokens": []any{added(0, "<unk>", "special"), added(1, "<s>", "special")},
		"normalizer": sequence("normalizers", object{"type": "Prepend", "prepend": "▁"},
			object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"}),
		"pre_tokenizer": nil, "decoder": nil,
		"model": object{
			"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": vocab,
			"merges": [][]string{{"▁", "a"}, {"a", "b"}, {"▁", "ab"}, {"▁a", "b"}},
		},
	}
}

// unigramJSON is a unigram tokenizer.json.
func unigramJSON() object {
	return object{
		"added_tokens": []any{added(0, "<unk>", "special"), added(1, "</s>", "special"), added(6, "<x>", "normalized")}, "normalizer": nil,
		"pre_tokenizer": object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
		"decoder":       object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
		"model": object{"type": "Unigram", "unk_id": 0, "vocab": [][]any{
			{"<unk>", 0.0}, {"</s>", 0.0}, {"▁", -2.5}, {"a", -3.0}, {"▁a", -3.5}, {"ab", -4.0}}},
	}
}

// wordJSON is a WordPiece tokenizer.json.
func wordJSON() object {
	return object{
		"added_tokens":  []any{added(0, "[UNK]", "special"), added(1, "[CLS]", "special"), added(2, "[SEP]", "special")},
		"normalizer":    object{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": nil, "lowercase": true},
		"pre_tokenizer": object{"type": "BertPreTokenizer"}, "decoder": object{"type": "WordPiece", "prefix": "##", "cleanup": true},
		"post_processor": object{"type": "BertProcessing", "sep": []any{"[SEP]", 2}, "cls": []any{"[CLS]", 1}},
		"model": object{
			"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 5,
			"vocab": map[string]int{"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "un": 3, "##a": 4, "a": 5, "##aa": 6, ",": 7, "##": 8},
		},
	}
}

func TestParseJSON(t *testing.T) {
	model := func(key string, value any) func(object) {
		return func(o object) { o["model"].(object)[key] = value }
	}
	set := func(key string, value any) func(object) { return func(o object) { o[key] = value } }
	add := func(tokens ...any) func(object) {
		return func(o object) { o["added_tokens"] = append(o["added_tokens"].([]any), tokens...) }
	}
	template := set("post_processor", sequence("processors", byteLevelPart(true), object{
		"type": "TemplateProcessing",
		"single": []any{
			object{"SpecialToken": object{"id": "<s>"}}, object{"Sequence": object{"id": "A"}}, object{"SpecialToken": object{"id": "</s>"}},
		},
		"special_tokens": object{"<s>": object{"ids": []int{268}}, "</s>": object{"ids": []int{269}}},
	}))
	for _, c := range []struct {
		name   string
		file   func() object
		edit   func(object)
		config string
		text   string
		o      Options
		want   string
	}{
		{"merges", smallJSON, nil, "", "hello the12", Options{Special: true}, "hello Ġthe 12"},
		{"pairs", smallJSON, model("merges", [][]string{{"h", "e"}, {"l", "l"}}), "", "hell", Options{}, "he ll"},
		{"special", smallJSON, nil, "", "he</s>he<tool>", Options{}, "he </s> he <tool>"},
		{"plain", smallJSON, nil, "", "</s><tool>", Options{Plain: true}, "< / s > <tool>"},
		{"template", smallJSON, template, "", "he", Options{Special: true}, "<s> he </s>"},
		{"configuration before template", smallJSON, template, `{"bos_token": "<s>", "add_bos_token": false}`, "he", Options{Special: true}, "he </s>"},
		{"configuration", smallJSON, nil, `{"bos_token": {"content": "<s>"}, "eos_token": "</s>", "add_bos_token": true, "add_eos_token": true}`, "he", Options{Special: true}, "<s> he </s>"},
		{"leftmost first", smallJSON, add(added(271, "ll<"), added(272, "<tool><s>")), "", "hell<tool><s>", Options{}, "he ll< t o o l > <s>"},
		{"the longest", smallJSON, add(added(271, "<tool><s>")), "", "<tool><s>", Options{}, "<tool><s>"},
		{"lstrip and rstrip", smallJSON, add(added(271, "[l]", "lstrip"), added(272, "[r]", "rstrip")), "", "1 \n[l] 1 [r] \n1", Options{}, "1 [l] Ġ 1 Ġ [r] 1"},
		{"single word", smallJSON, add(added(271, "ell", "single_word")), "", "ell hell ell.", Options{}, "ell Ġ hell Ġ ell ."},
		{"whole words", smallJSON, func(o object) { model("ignore_merges", true)(o); model("merges", []string{})(o) }, "", "hello hello", Options{}, "hello Ġ h e l l o"},
		{"prefix space", smallJSON, set("pre_tokenizer", object{"type": "ByteLevel", "add_prefix_space": true, "use_regex": true}), "", "the", Options{}, "Ġthe"},
		{"NFC", smallJSON, set("normalizer", object{"type": "NFC"}), "", "e\u0301", Options{}, "Ã ©"},
		{"no normalizer", smallJSON, nil, "", "e\u0301", Options{}, "e Ì ģ"},
		{"lower case", smallJSON, set("normalizer", sequence("normalizers", object{"type": "Lowercase"}, object{"type": "Strip"})), "", " HELLO ", Options{}, "hello"},
		{"normalized token", smallJSON, func(o object) {
			set("normalizer", object{"type": "Lowercase"})(o)
			add(added(271, "[X]", "normalized"), added(272, "[Y]"))(o)
		}, "", "[X][x][Y][y]", Options{}, "[X] [X] [Y] [ y ]"},
		{"normalized token in a literal stretch", smallJSON, func(o object) {
			set("normalizer", object{"type": "Lowercase"})(o)
			add(added(271, "[X]", "normalized", "special"), added(272, "[Y]", "normalized"))(o)
		}, "", "[X][X][x][Y]</s>", Options{Literal: []Span{{3, 16}}}, "[X] [ x ] [ x ] [Y] < / s >"},
		{"digits", smallJSON, set("pre_tokenizer", sequence("pretokenizers", object{"type": "Digits", "individual_digits": true}, byteLevelPart(true))), "", "12", Options{}, "1 2"},
		{"split by text", smallJSON, set("pre_tokenizer", sequence("pretokenizers",
			object{"type": "Split", "pattern": object{"String": "l"}, "behavior": "MergedWithPrevious", "invert": false}, byteLevelPart(false))), "", "hello", Options{}, "he l l o"},
		{"matches only", smallJSON, set("pre_tokenizer", sequence("pretokenizers",
			object{"type": "Split", "pattern": object{"Regex": `\w+`}, "behavior": "Removed", "invert": true}, byteLevelPart(false))), "", "he ll", Options{}, "he ll"},
		{"white space left out", smallJSON, set("pre_tokenizer", sequence("pretokenizers", object{"type": "Whitespace"}, byteLevelPart(false))), "", " he,ll ", Options{}, "he , ll"},
		{"holes", smallJSON, add(added(300, "<far>")), "", "<far>[PAD290]", Options{}, "<far> [ P A D 2 9 0 ]"},

		{"spaces", spaceJSON, nil, "", "ab ab a", Options{}, "▁ab ▁ab ▁a"},
		{"by rank", spaceJSON, nil, "", "bab", Options{}, "▁ b ab"},
		{"bytes", spaceJSON, nil, "", "é中", Options{}, "▁ é <0xE4> <0xB8> <0xAD>"},
		{"unknown ones are one", spaceJSON, nil, "", "axyz a", Options{}, "▁a <unk> ▁a"},
		{"unknown one by one", spaceJSON, model("fuse_unk", false), "", "xy", Options{}, "▁ <unk> <unk>"},
		{"prefix after special", spaceJSON, nil, "", "a<s>a", Options{}, "▁a <s> ▁a"},
		{"first only", spaceJSON, func(o object) {
			o["normalizer"] = nil
			o["pre_tokenizer"] = object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": false}
		}, "", "a<s>a a", Options{}, "▁a <s> a ▁a"},
		{"never", spaceJSON, func(o object) {
			o["normalizer"] = object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"}
			o["pre_tokenizer"] = object{"type": "Split", "pattern": object{"String": " "}, "behavior": "MergedWithPrevious", "invert": false}
		}, "", "a a", Options{}, "a ▁a"},

		{"unigram", unigramJSON, nil, "", "a  ab", Options{}, "▁a ▁ ▁ ab"},
		{"unigram, one space", unigramJSON, set("normalizer", object{"type": "Replace", "pattern": object{"Regex": " {2,}"}, "content": "▁"}), "", "a  ab", Options{}, "▁a ▁ ab"},
		{"unigram, words", unigramJSON, set("pre_tokenizer", sequence("pretokenizers", object{"type": "WhitespaceSplit"},
			object{"type": "Metaspace", "replacement": "▁", "add_prefix_space": true})), "", " a\n\n ab", Options{}, "▁a ▁ ab"},
		{"unigram, added token", unigramJSON, nil, "", "a<x>a", Options{}, "▁a <x> ▁a"},
		{"unigram, unknown", unigramJSON, nil, "", "zz a", Options{}, "▁ <unk> ▁a"},

		{"words", wordJSON, nil, "", "UNAA, á", Options{Special: true}, "[CLS] ▁un aa ▁, ▁a [SEP]"},
		{"a long word", wordJSON, nil, "", "unaaa unaaaa", Options{}, "▁un aa a [UNK]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := c.file()
			if c.edit != nil {
				c.edit(doc)
			}
			k, err := ParseJSON(marshal(t, doc), []byte(c.config))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time from memory
				ids, err := k.Encode(nil, c.text, c.o)
				if diff := cmp.Diff(c.want, k.texts(ids)); diff != "" || err != nil {
					t.Errorf("error %v, -want +got\n%s", err, diff)
				}
			}
		})
	}
}

func TestParseJSONRefuses(t *testing.T) {
	model := func(key string, value any) func(object) {
		return func(o object) { o["model"].(object)[key] = value }
	}
	set := func(key string, value any) func(object) { return func(o object) { o[key] = value } }
	add := func(tokens ...any) func(object) {
		return func(o object) { o["added_tokens"] = append(o["added_tokens"].([]any), tokens...) }
	}
	pre := func(parts ...any) func(object) { return set("pre_tokenizer", sequence("pretokenizers", parts...)) }
	for _, c := range []struct {
		name string
		file func() object
		edit func(object)
		want string
	}{
		{"model", smallJSON, model("type", "WordLevel"), `model "WordLevel" is not supported; known: BPE, Unigram, WordPiece`},
		{"dropout", smallJSON, model("dropout", 0.1), "model BPE with dropout 0.1 is not supported"},
		{"end of word", smallJSON, model("end_of_word_suffix", "</w>"), "model BPE with continuing_subword_prefix or end_of_word_suffix is not supported"},
		{"negative id", smallJSON, model("vocab", map[string]int{"a": -1}), `model.vocab: token "a" has id -1`},
		{"huge id", smallJSON, model("vocab", map[string]int{"a": 1 << 40}), `model.vocab: token "a" has id 1099511627776`},
		{"far id", smallJSON, model("vocab", map[string]int{"a": 1 << 23}), "ids up to 8388608 for 1 tokens"},
		{"id twice", smallJSON, model("vocab", map[string]int{"a": 1, "b": 1}), `model.vocab: tokens "a" and "b" have id 1`},
		{"empty", smallJSON, func(o object) { model("vocab", object{})(o); model("merges", []string{})(o); o["added_tokens"] = nil }, "the vocabulary is empty"},
		{"merge of no tokens", smallJSON, model("merges", []string{"q q"}), `model.merges: 0 needs "qq", which is not a token`},
		{"merge of three", smallJSON, model("merges", []string{"a a a"}), `model.merges: 0 is ["a" "a" "a"], not two pieces without a space`},
		{"merge of one", smallJSON, model("merges", [][]string{{"a"}}), `model.merges: 0 is ["a"], not two pieces without a space`},
		{"unknown token", spaceJSON, model("unk_token", "<what>"), `model.unk_token "<what>" is not a token`},
		{"unknown id", unigramJSON, model("unk_id", 6000), "model.unk_id is 6000, outside the vocabulary of 7"},
		{"unigram without unknown", unigramJSON, model("unk_id", nil), "a unigram vocabulary needs an unknown token"},
		{"piece without a score", unigramJSON, model("vocab", [][]any{{"a"}}), "model.vocab: item 0 is not a text and a score"},
		{"infinite score", unigramJSON, model("vocab", [][]any{{"<unk>", 0}, {"</s>", -1e300}}), "model.vocab: the score of token 1 is -1e+300"},
		{"added twice", smallJSON, add(added(268, "<t>")), `added_tokens: tokens "<s>" and "<t>" have id 268`},
		{"added elsewhere", smallJSON, add(added(299, "<s>")), `added_tokens: token "<s>" has ids 268 and 299`},
		{"added far", smallJSON, add(added(1<<22, "<t>")), "added_tokens: ids up to 4194304 for 4 tokens"},
		{"added negative", smallJSON, add(added(-5, "<t>")), `added_tokens: token "<t>" has id -5`},
		{"added empty", smallJSON, add(added(271, "")), "added_tokens: token 271 has no text"},

		{"normalizer", smallJSON, set("normalizer", object{"type": "Nmt"}), `normalizer "Nmt" is not supported`},
		{"replace", smallJSON, set("normalizer", object{"type": "Replace", "pattern": object{"Regex": "a+"}, "content": "b"}), `normalizer Replace of expression "a+" is not supported`},
		{"map of characters", unigramJSON, set("normalizer", object{"type": "Precompiled", "precompiled_charsmap": "AAAA"}), "normalizer tokenizer: a map of characters of 3 bytes names 0 for its double array"},
		{"no base64", unigramJSON, set("normalizer", object{"type": "Precompiled", "precompiled_charsmap": "?"}), "normalizer Precompiled: illegal base64 data at input byte 0"},
		{"pre-tokenizer", smallJSON, pre(object{"type": "UnicodeScripts"}, byteLevelPart(true)), `pre-tokenizer "UnicodeScripts" is not supported`},
		{"after bytes", smallJSON, pre(byteLevelPart(true), object{"type": "Digits"}), "pre-tokenizer Digits after ByteLevel is not supported"},
		{"prefix after digits", smallJSON, pre(object{"type": "Digits"}, object{"type": "ByteLevel"}), "pre-tokenizer ByteLevel with add_prefix_space after Digits is not supported"},
		{"behavior", smallJSON, pre(object{"type": "Split", "pattern": object{"Regex": "a"}, "behavior": "Eaten"}, byteLevelPart(true)), `pre-tokenizer Split: behavior "Eaten" is not supported`},
		{"dialect", smallJSON, pre(splitPart("[a&&[b]]"), byteLevelPart(true)), `pre-tokenizer Split: expression "[a&&[b]]": a set within a set is not supported`},
		{"no pattern", smallJSON, pre(object{"type": "Split", "behavior": "Isolated"}, byteLevelPart(true)), "pre-tokenizer Split has no pattern"},
		{"digits before spaces", unigramJSON, pre(object{"type": "Digits"}, object{"type": "Metaspace", "replacement": "▁"}), `pre-tokenizer "Digits" with model Unigram is not supported`},
		{"replacement", unigramJSON, set("pre_tokenizer", object{"type": "Metaspace", "replacement": "_"}), `pre-tokenizer Metaspace with replacement "_" is not supported`},
		{"scheme", unigramJSON, set("pre_tokenizer", object{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "last"}), `pre-tokenizer Metaspace with prepend_scheme "last" is not supported`},
		{"decoder", smallJSON, set("decoder", object{"type": "CTC"}), `decoder "CTC" with model BPE is not supported`},
		{"post-processor", smallJSON, set("post_processor", object{"type": "Magic"}), `post-processor "Magic" is not supported`},
		{"template without text", smallJSON, set("post_processor", object{"type": "TemplateProcessing"}), `post-processor TemplateProcessing without the text in "single" is not supported`},
		{"template with text twice", smallJSON, set("post_processor", object{"type": "TemplateProcessing", "single": []any{
			object{"Sequence": object{"id": "A"}}, object{"Sequence": object{"id": "A"}}}}),
			`post-processor TemplateProcessing with a part of "single" that is neither the text, once, nor a special token is not supported`},
		{"template with unknown ids", smallJSON, set("post_processor", object{"type": "TemplateProcessing",
			"single": []any{object{"SpecialToken": object{"id": "x"}}}, "special_tokens": object{"x": object{"ids": []int{5000}}}}),
			`post-processor has id 5000 for "x", outside the vocabulary of 271`},
		{"around words", wordJSON, set("post_processor", object{"type": "BertProcessing", "cls": []any{1, "[CLS]"}, "sep": []any{"[SEP]", 2}}),
			`post-processor BertProcessing has "[1,\"[CLS]\"]", not a text and an id`},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := c.file()
			c.edit(doc)
			_, err := ParseJSON(marshal(t, doc), nil)
			if err == nil {
				t.Fatal("accepted")
			}
			got := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "tokenizer: "), "tokenizer.json: ")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
	for _, doc := range []string{"", "null", "[]", "{", `{"model": 1}`, `{"model": {"type": "BPE", "vocab": [], "merges": 3}}`, `{"added_tokens": {}}`,
		`{"pre_tokenizer": "ByteLevel"}`, strings.Repeat(`{"normalizer":`, 1<<14), strings.Repeat("[", 1<<20)} {
		if _, err := ParseJSON([]byte(doc), nil); err == nil || !strings.HasPrefix(err.Error(), "tokenizer: ") || len(err.Error()) > 300 {
			t.Errorf("%.40q: %v", doc, err)
		}
	}
	if _, err := ParseJSON(marshal(t, smallJSON()), []byte(`{"bos_token": 3}`)); err == nil {
		t.Error("a configuration of the wrong type is accepted")
	}
}

// TestMetadataFromJSON: metadata gives the ids of the tokenizer.json; settings that it cannot hold are refused.
func TestMetadataFromJSON(t *testing.T) {
	o200k := `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|` +
		`\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	model := func(key string, value any) func(object) {
		return func(o object) { o["model"].(object)[key] = value }
	}
	for _, c := range []struct {
		name string
		file func() object
		edit func(object)
		want string // an error
	}{
		{"byte-level", smallJSON, nil, ""},
		{"gpt-4o", smallJSON, func(o object) {
			o["pre_tokenizer"] = sequence("pretokenizers", splitPart(o200k), byteLevelPart(false))
			model("ignore_merges", true)(o)
		}, ""},
		{"ignore_merges counts", smallJSON, func(o object) {
			o["pre_tokenizer"] = sequence("pretokenizers", splitPart(o200k), byteLevelPart(false))
			model("ignore_merges", true)(o)
			model("merges", []string{"h e"})(o)
		}, "ignore_merges counts for token "},
		{"unknown expression", smallJSON, func(o object) {
			o["pre_tokenizer"] = sequence("pretokenizers", splitPart(`\w+`), byteLevelPart(false))
		}, ""},
		{"possessive and intersected", smallJSON, func(o object) {
			o["pre_tokenizer"] = sequence("pretokenizers", splitPart(`[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|[\s&&[^\n]]+(?!\S)|\s+`), byteLevelPart(false))
		}, ""},
		{"lower case", smallJSON, func(o object) { o["normalizer"] = object{"type": "Lowercase"} }, ""},
		{"prefix space", smallJSON, func(o object) { o["pre_tokenizer"] = object{"type": "ByteLevel"} }, ""},
		{"spaces", spaceJSON, model("fuse_unk", false), ""},
		{"merges apart", spaceJSON, model("merges", [][]string{{"▁", "ab"}, {"a", "b"}, {"▁a", "b"}, {"▁", "a"}}), `the merges that make "▁ab" do not follow each other`},
		{"merges that lack", spaceJSON, model("merges", [][]string{{"a", "b"}, {"▁", "a"}, {"▁a", "b"}}), `tokens "▁" and "ab" make a token and are not a merge`},
		{"unigram", unigramJSON, nil, ""},
		{"unigram, one space", unigramJSON, func(o object) {
			o["normalizer"] = object{"type": "Replace", "pattern": object{"Regex": " {2,}"}, "content": "▁"}
		}, ""},
		{"words", wordJSON, nil, ""},
		{"words by white space", wordJSON, func(o object) { o["pre_tokenizer"] = object{"type": "WhitespaceSplit"} }, "WordPiece without BertNormalizer and BertPreTokenizer is not supported"},
	} {
		t.Run(c.name, func(t *testing.T) {
			doc := c.file()
			if c.edit != nil {
				c.edit(doc)
			}
			b := marshal(t, doc)
			kvs, err := MetadataFromJSON(b, nil, 400)
			if c.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), "tokenizer: as GGUF metadata: "+c.want) {
					t.Fatalf("error %v, want %s", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			k, err := ParseJSON(b, nil)
			if err != nil {
				t.Fatal(err)
			}
			again, err := FromGGUF(file(t, kvs...))
			if err != nil {
				t.Fatal(err)
			}
			if again.Size() != 400 {
				t.Errorf("%d tokens", again.Size())
			}
			for _, text := range []string{"", "hello the12 he", "ab ab  bab", "a", "una, é中x", "<s>a</s>", "HelloWorld's 1234\n\n x", "[UNK] a"} {
				want, err := k.Encode(nil, text, Options{Special: true})
				got, errGot := again.Encode(nil, text, Options{Special: true})
				if diff := cmp.Diff(k.texts(want), again.texts(got)); diff != "" || err != nil || errGot != nil {
					t.Errorf("%q: errors %v, %v, -json +metadata\n%s", text, err, errGot, diff)
				}
			}
		})
	}
	if _, err := MetadataFromJSON(marshal(t, smallJSON()), nil, 100); err == nil {
		t.Error("a model of fewer tokens is accepted")
	}
	if _, err := MetadataFromJSON(marshal(t, smallJSON()), nil, 1<<30); err == nil {
		t.Error("a model of too many tokens is accepted")
	}
}

// FuzzParseJSON: no tokenizer.json makes reading or using it panic, and memory is bounded by its size.
func FuzzParseJSON(f *testing.F) {
	for _, doc := range []object{spaceJSON(), unigramJSON(), wordJSON()} {
		f.Add(marshal(f, doc), []byte(`{"bos_token": "<s>", "add_bos_token": true}`), "ab é a<s>[CLS]")
	}
	small := smallJSON()
	small["model"].(object)["vocab"] = map[string]int{"a": 0, "b": 1, "ab": 2}
	small["model"].(object)["merges"] = []string{"a b"}
	small["added_tokens"] = []any{added(3, "<s>", "special", "normalized", "lstrip")}
	f.Add(marshal(f, small), []byte(`{}`), "abab <s>")
	f.Fuzz(func(t *testing.T, doc, config []byte, text string) {
		if len(text) > 1<<10 {
			return
		}
		k, err := ParseJSON(doc, config)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "tokenizer: ") {
				t.Fatalf("%q", err)
			}
			return
		}
		if k.Size() > 4*len(doc)+1<<13 {
			t.Fatalf("%d tokens of %d bytes", k.Size(), len(doc))
		}
		ids, err := k.Encode(nil, text, Options{Special: true})
		if err == nil {
			_, err = k.Decode(ids, true)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "tokenizer: ") {
			t.Fatalf("%q", err)
		}
		_, _ = MetadataFromJSON(doc, config, 0)
	})
}
