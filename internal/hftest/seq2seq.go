package hftest

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"grove/internal/weights/gguf"
	"grove/internal/weights/tensor"
)

// T5Name returns how folders name a tensor of T5.
func T5Name(name string, gated bool) string {
	if name == "output.weight" {
		return "lm_head.weight"
	}
	last, up := "1", "wi"
	if strings.HasPrefix(name, "dec.") {
		last = "2"
	}
	if gated {
		up = "wi_1"
	}
	return strings.NewReplacer("LAST", last, "UP", up).Replace(t5Names.Replace(name))
}

var t5Names = strings.NewReplacer("token_embd", "shared", "enc.", "encoder.", "dec.", "decoder.", "blk.", "block.", "output_norm", "final_layer_norm",
	"cross_attn_norm", "layer.1.layer_norm", "cross_attn_", "layer.1.EncDecAttention.", "attn_norm", "layer.0.layer_norm",
	"attn_rel_b", "layer.0.SelfAttention.relative_attention_bias", "attn_", "layer.0.SelfAttention.",
	"ffn_norm", "layer.LAST.layer_norm", "ffn_gate", "layer.LAST.DenseReluDense.wi_0", "ffn_up", "layer.LAST.DenseReluDense.UP", "ffn_down", "layer.LAST.DenseReluDense.wo")

// FromT5 takes a T5 of float tensors apart, without its vocabulary.
func FromT5(f *gguf.File) *Folder {
	m := source{f: f, arch: "t5"}
	start, _, _ := f.Uint("t5.decoder_start_token_id")
	out := &Folder{Tensors: map[string]tensor.View{}, Config: map[string]any{
		"architectures": []string{"T5ForConditionalGeneration"}, "num_layers": m.count("block_count"), "d_model": m.count("embedding_length"), "d_ff": m.count("feed_forward_length"),
		"num_heads": m.count("attention.head_count"), "d_kv": m.count("attention.key_length"), "n_positions": m.count("context_length"),
		"relative_attention_num_buckets": m.count("attention.relative_buckets_count"), "layer_norm_epsilon": m.float("attention.layer_norm_rms_epsilon"),
		"feed_forward_proj": "gated-gelu", "decoder_start_token_id": start, "tie_word_embeddings": false,
	}}
	for _, t := range f.Tensors {
		name := T5Name(t.Name, true)
		t.Name = ""
		out.Tensors[name] = t
	}
	return out
}

func addedToken(id int, text string) map[string]any {
	return map[string]any{"id": id, "content": text, "special": true, "normalized": false, "lstrip": false, "rstrip": false, "single_word": false}
}

// Unigram gives the folder T5's tokenizer: padding, the end of a text and the unknown token, pieces with their scores, and sentinels, of which
// <extra_id_0> is the last; rules are of characters that are replaced.
func (h *Folder) Unigram(pieces []string, scores []float64, sentinels int, rules map[string]string) {
	vocab := [][]any{{"<pad>", 0.0}, {"</s>", 0.0}, {"<unk>", 0.0}}
	tokens := []any{addedToken(0, "<pad>"), addedToken(1, "</s>"), addedToken(2, "<unk>")}
	for i, text := range pieces {
		vocab = append(vocab, []any{text, scores[i]})
	}
	for i := range sentinels {
		text := fmt.Sprintf("<extra_id_%d>", sentinels-1-i)
		tokens, vocab = append(tokens, addedToken(len(vocab), text)), append(vocab, []any{text, 0.0})
	}
	space := map[string]any{"type": "Metaspace", "replacement": "▁", "add_prefix_space": true}
	h.Tokenizer = map[string]any{
		"version": "1.0", "added_tokens": tokens, "decoder": space,
		"normalizer":    map[string]any{"type": "Precompiled", "precompiled_charsmap": Charsmap(rules)},
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": []any{map[string]any{"type": "WhitespaceSplit"}, space}},
		"post_processor": map[string]any{
			"type": "TemplateProcessing", "special_tokens": map[string]any{"</s>": map[string]any{"id": "</s>", "ids": []int{1}, "tokens": []string{"</s>"}}},
			"single": []any{map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}, map[string]any{"SpecialToken": map[string]any{"id": "</s>", "type_id": 0}}},
		},
		"model": map[string]any{"type": "Unigram", "unk_id": 2, "vocab": vocab},
	}
	h.Names = map[string]any{"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "extra_ids": sentinels, "tokenizer_class": "T5Tokenizer"}
	h.Config["eos_token_id"] = 1
}

// RoBERTa gives the folder CodeT5+'s tokenizer: padding, the ends of a text, the unknown token and the mask, the bytes, what the merges of
// words make, from left to right, and sentinels as [Folder.Unigram] has them. A word is written in GPT-2's alphabet of bytes, where Ġ is a space.
func (h *Folder) RoBERTa(words []string, sentinels int) {
	names := []string{"<pad>", "<s>", "</s>", "<unk>", "<mask>"}
	vocab, merges, tokens := map[string]int{}, []string{}, []any{}
	for i, text := range names {
		vocab[text], tokens = i, append(tokens, addedToken(i, text))
	}
	extra := rune(256)
	for r := range rune(256) {
		if r < 33 || r > 126 && r < 161 || r == 173 { // not printable
			r, extra = extra, extra+1
		}
		vocab[string(r)] = len(vocab)
	}
	for _, word := range words {
		letters := []rune(word)
		for i := 1; i < len(letters); i++ {
			made := string(letters[:i+1])
			if _, ok := vocab[made]; !ok {
				vocab[made], merges = len(vocab), append(merges, string(letters[:i])+" "+string(letters[i:i+1]))
			}
		}
	}
	for i := range sentinels {
		tokens = append(tokens, addedToken(len(vocab)+i, fmt.Sprintf("<extra_id_%d>", sentinels-1-i)))
	}
	bytes := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}
	h.Tokenizer = map[string]any{
		"version": "1.0", "added_tokens": tokens, "normalizer": nil, "pre_tokenizer": bytes, "decoder": bytes,
		"post_processor": map[string]any{"type": "RobertaProcessing", "sep": []any{"</s>", 2}, "cls": []any{"<s>", 1}, "trim_offsets": true, "add_prefix_space": false},
		"model":          map[string]any{"type": "BPE", "dropout": nil, "unk_token": nil, "fuse_unk": false, "vocab": vocab, "merges": merges},
	}
	h.Names = map[string]any{"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "sep_token": "</s>", "cls_token": "<s>", "mask_token": "<mask>"}
	h.Config["bos_token_id"], h.Config["eos_token_id"] = 1, 2
}

// Charsmap makes SentencePiece's map of characters of rules: a double array, then the replacements. Each node of the trie is at the next
// place where its children fit.
func Charsmap(rules map[string]string) []byte {
	var replacements []byte
	at := map[string]uint32{}
	prefixes := map[string][]byte{}
	for from, to := range rules {
		at[from] = uint32(len(replacements))
		replacements = append(append(replacements, to...), 0)
		for i := range len(from) {
			if p := from[:i]; !slices.Contains(prefixes[p], from[i]) {
				prefixes[p] = append(prefixes[p], from[i])
			}
		}
	}
	units := make([]uint32, 1<<14)
	used, bases := map[uint32]bool{0: true}, map[uint32]bool{}
	var place func(prefix string, pos uint32)
	place = func(prefix string, pos uint32) {
		children := prefixes[prefix]
		value, leaf := at[prefix]
		base := uint32(0x100)
		for ; ; base++ {
			free := !bases[base] && (!leaf || !used[base])
			for _, c := range children {
				free = free && !used[base^uint32(c)]
			}
			if free {
				break
			}
		}
		bases[base] = true
		units[pos] |= (base ^ pos) << 10
		if leaf {
			units[pos] |= 1 << 8
			units[base], used[base] = value|1<<31, true
		}
		for _, c := range children {
			used[base^uint32(c)] = true
			units[base^uint32(c)] = uint32(c)
		}
		for _, c := range children {
			place(prefix+string([]byte{c}), base^uint32(c))
		}
	}
	place("", 0)
	b := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		b = binary.LittleEndian.AppendUint32(b, u)
	}
	return append(b, replacements...)
}
