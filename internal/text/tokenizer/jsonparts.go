package tokenizer

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer/pretoken"
)

func isTrue(b *bool, otherwise bool) bool {
	if b == nil {
		return otherwise
	}
	return *b
}

// parts reads the normalizers and pre-tokenizers.
func (d *document) parts() error {
	for _, p := range d.file.Normalizer.Flat() {
		n, err := d.normalizer(p)
		if err != nil {
			return fmt.Errorf("normalizer %w", err)
		}
		d.pipe.normalize = append(d.pipe.normalize, n)
	}
	read := map[string]func() error{"gpt2": d.byteLevelStages, "llama": d.spaceStages, "t5": d.spaceStages, "bert": d.wordStages}
	if err := read[d.vocab.Model](); err != nil {
		return fmt.Errorf("pre-tokenizer %w", err)
	}
	if err := d.decoder(); err != nil {
		return err
	}
	d.addedSpecials()
	return nil
}

func (d *document) normalizer(p *SchemaPart) (normalizer, error) {
	switch p.Type {
	case "NFC", "NFD", "NFKC", "NFKD":
		form := map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}[p.Type]
		return always(form.String), nil
	case "Lowercase":
		return always(pretoken.Lowercase), nil
	case "StripAccents":
		return always(pretoken.StripAccents), nil
	case "Strip":
		return always(func(text string) string {
			if isTrue(p.StripLeft, true) {
				text = strings.TrimLeftFunc(text, unicode.IsSpace)
			}
			if isTrue(p.StripRight, true) {
				text = strings.TrimRightFunc(text, unicode.IsSpace)
			}
			return text
		}), nil
	case "Prepend":
		return always(func(text string) string {
			if text == "" {
				return text
			}
			return p.Prepend + text
		}), nil
	case "Replace":
		return replace(p)
	case "BertNormalizer":
		lower := isTrue(p.Lowercase, true)
		return always(pretoken.Bert{
			Clean: isTrue(p.CleanText, true), Ideographs: isTrue(p.Ideographs, true),
			Accents: isTrue(p.StripAccents, lower), Lower: lower,
		}.Normalize), nil
	case "Precompiled":
		b, err := base64.StdEncoding.DecodeString(p.CharsText)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Type, err)
		}
		p.Charsmap = b
		m, err := pretoken.NewCharsmap(b)
		return always(m.Normalize), err
	}
	return nil, fmt.Errorf("%.40q is not supported", p.Type)
}

func always(f func(string) string) normalizer {
	return func(text string, _ bool) string { return f(text) }
}

// manySpaces is the expression that merges spaces in vocabularies made from SentencePiece models.
const manySpaces = " {2,}"

func replace(p *SchemaPart) (normalizer, error) {
	if s := p.Pattern.String; s != nil && *s != "" {
		return always(func(text string) string { return strings.ReplaceAll(text, *s, p.Content) }), nil
	}
	if p.Pattern.Regex == nil {
		return nil, fmt.Errorf("%s has no pattern", p.Type)
	}
	if *p.Pattern.Regex == manySpaces {
		return always(func(text string) string { return pretoken.ReplaceSpaces(text, p.Content) }), nil
	}
	return nil, fmt.Errorf("%s of expression %.80q is not supported", p.Type, *p.Pattern.Regex)
}

// byteLevelStages reads the pre-tokenizers of a byte-level model.
func (d *document) byteLevelStages() error {
	parts := d.file.PreTokenizer.Flat()
	var names []string
	for i, p := range parts {
		if p.Type != "ByteLevel" {
			st, name, err := stage(p)
			if err != nil {
				return err
			}
			d.pipe.stages, names = append(d.pipe.stages, st), append(names, name)
			continue
		}
		if isTrue(p.AddPrefixSpace, true) {
			if i > 0 {
				return fmt.Errorf("%s with add_prefix_space after %s is not supported", p.Type, parts[i-1].Type)
			}
			d.pipe.spaced = func(text string, _ bool) string { return pretoken.SpaceBefore(text) }
		}
		if isTrue(p.UseRegex, true) {
			d.pipe.stages, names = append(d.pipe.stages, pretoken.Stage{Cut: pretoken.CutGPT2}), append(names, "gpt2")
		}
		if rest := parts[i+1:]; len(rest) > 0 {
			return d.afterBytes(rest, names)
		}
	}
	if !slices.Contains(names, "") {
		d.pipe.cuts = strings.Join(names, " ")
	}
	if d.pipe.stages == nil {
		d.pipe.stages = []pretoken.Stage{}
	}
	return nil
}

// afterBytes reads the pre-tokenizers that see text in the byte alphabet: those of Falcon. llama.cpp's patterns of Falcon leave
// some of them out, with the same ids.
func (d *document) afterBytes(rest []*SchemaPart, names []string) error {
	for _, p := range rest {
		_, name, err := stage(p)
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	falcon, _ := pretoken.Find("falcon")
	if strings.Join(names, " ") != strings.Replace(falcon.Cuts, " gpt2 ", ` gpt2 \p{N}+ `, 1) {
		return fmt.Errorf("%s after ByteLevel is not supported", rest[0].Type)
	}
	d.pipe.stages, d.pipe.cuts = falcon.Stages(), falcon.Cuts
	return nil
}

// stage returns the stage of a pre-tokenizer, and the name of its cutter if it has one.
func stage(p *SchemaPart) (st pretoken.Stage, name string, err error) {
	switch p.Type {
	case "Digits":
		name = `\p{N}+`
		if p.Individual {
			name = `\p{N}`
		}
	case "Punctuation":
		if name = "[\\p{P}$+<=>^~|`]"; p.Behavior == "Contiguous" {
			name += "+"
		} else if p.Behavior != "" && p.Behavior != "Isolated" {
			return st, "", fmt.Errorf("%s with behavior %.40q is not supported", p.Type, p.Behavior)
		}
	case "BertPreTokenizer":
		return pretoken.Stage{Cut: pretoken.CutBert}, "", nil
	case "WhitespaceSplit":
		return pretoken.Stage{Cut: pretoken.CutFields}, "", nil
	case "Whitespace":
		re, err := pretoken.Compile(`\w+|[^\w\s]+`, "Removed", true)
		return pretoken.Stage{Re: re}, "", err
	case "Split":
		return splitStage(p)
	default:
		return st, "", fmt.Errorf("%.40q is not supported", p.Type)
	}
	return pretoken.Stage{Cut: pretoken.Named(name)}, name, nil
}

// splitStage returns the stage of a Split. If its expression is known and matches everywhere, there is no text between matches,
// so a behavior that removes it changes nothing.
func splitStage(p *SchemaPart) (st pretoken.Stage, name string, err error) {
	var expr string
	switch {
	case p.Pattern.Regex != nil:
		expr = *p.Pattern.Regex
		name, everywhere := pretoken.Published(expr)
		if name != "" && (p.Behavior == "Isolated" || everywhere && p.Behavior == "Removed" && p.Invert) {
			return pretoken.Stage{Cut: pretoken.Named(name)}, name, nil
		}
	case p.Pattern.String != nil && *p.Pattern.String != "":
		expr = regexp.QuoteMeta(*p.Pattern.String)
	default:
		return st, "", fmt.Errorf("%s has no pattern", p.Type)
	}
	re, err := pretoken.Compile(expr, p.Behavior, p.Invert)
	if err != nil {
		return st, "", fmt.Errorf("%s: %w", p.Type, err)
	}
	return pretoken.Stage{Re: re}, "", nil
}

// spaceStages reads the pre-tokenizers of a SentencePiece model.
func (d *document) spaceStages() error {
	p := &d.pipe
	p.spaced = func(text string, _ bool) string { return strings.ReplaceAll(text, space, " ") }
	parts := d.file.PreTokenizer.Flat()
	fields := len(parts) == 2 && parts[0].Type == "WhitespaceSplit" && parts[1].Type == "Metaspace"
	if fields {
		parts = parts[1:]
	}
	for _, q := range parts {
		if q.Type == "Split" && q.Pattern.String != nil && *q.Pattern.String == " " && d.writesSpaces() {
			continue // there are none
		}
		if q.Type != "Metaspace" || len(parts) > 1 {
			return fmt.Errorf("%.40q with model %s is not supported", q.Type, d.file.Model.Type)
		}
		if q.Replacement != space {
			return fmt.Errorf("%s with replacement %.40q is not supported", q.Type, q.Replacement)
		}
		scheme := q.Scheme()
		if fields && scheme != "always" {
			return fmt.Errorf("%s with prepend_scheme %.40q after WhitespaceSplit is not supported", q.Type, scheme)
		}
		strips := map[string]strip{"always": stripEach, "first": stripFirst, "never": stripNever}
		var ok bool
		if p.strip, ok = strips[scheme]; !ok {
			return fmt.Errorf("%s with prepend_scheme %.40q is not supported", q.Type, scheme)
		}
		if isTrue(q.Split, true) {
			p.stages = []pretoken.Stage{{Cut: pretoken.CutBeforeSpaces}}
		}
		p.spaced = func(text string, first bool) string {
			if fields {
				return pretoken.SpaceFields(text)
			}
			if text = strings.ReplaceAll(text, space, " "); scheme == "always" || scheme == "first" && first {
				text = pretoken.SpaceBefore(text)
			}
			return text
		}
	}
	if slices.ContainsFunc(d.file.Normalizer.Flat(), func(q *SchemaPart) bool { return q.Type == "Prepend" && q.Prepend == space }) {
		p.strip = stripEach
	}
	return nil
}

// writesSpaces reports whether the normalizers replace every space of a text.
func (d *document) writesSpaces() bool {
	parts := d.file.Normalizer.Flat()
	if len(parts) == 0 {
		return false
	}
	p := parts[len(parts)-1]
	return p.Type == "Replace" && p.Pattern.String != nil && *p.Pattern.String == " " && p.Content == space
}

// wordStages reads the pre-tokenizers of a WordPiece model and writes its tokens as in GGUF files: a token that begins a word has
// U+2581 before it, a token within a word has no prefix.
func (d *document) wordStages() error {
	for _, p := range d.file.PreTokenizer.Flat() {
		st, _, err := stage(p)
		if err != nil {
			return err
		}
		d.pipe.stages = append(d.pipe.stages, st)
	}
	if d.pipe.stages == nil {
		d.pipe.stages = []pretoken.Stage{}
	}
	d.pipe.strip = stripEach
	prefix := "##"
	if p := d.file.Model.Prefix; p != nil {
		prefix = *p
	}
	for i, text := range d.vocab.Tokens {
		if d.vocab.Types[i] != int(Normal) || strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") && len(text) > 2 {
			continue
		}
		rest, ok := strings.CutPrefix(text, prefix)
		if prefix == "" || !ok || rest == "" {
			rest = space + text
		}
		d.vocab.Tokens[i] = rest
	}
	return nil
}

// addedSpecials makes the tables that match added tokens, in raw or, if a token asks for it, in normalised text.
func (d *document) addedSpecials() {
	var outer, inner, controls []special
	for _, a := range d.file.AddedTokens {
		sp := special{text: a.Content, id: token.ID(a.ID), plain: !a.Special, lstrip: a.LStrip, rstrip: a.RStrip, word: a.SingleWord}
		if !a.Normalized {
			outer = append(outer, sp)
			continue
		}
		if a.Special {
			controls = append(controls, sp)
		}
		for _, n := range d.pipe.normalize {
			sp.text = n(sp.text, false)
		}
		if sp.text != "" {
			inner = append(inner, sp)
		}
	}
	if len(d.pipe.normalize) == 0 && d.pipe.spaced == nil && len(outer) == 0 {
		outer, inner, controls = inner, nil, nil
	}
	d.pipe.specials, d.pipe.inner = indexSpecials(dedupe(outer)), indexSpecials(dedupe(inner))
	d.pipe.controls = indexSpecials(dedupe(controls))
	d.pipe.specials.leftmost, d.pipe.inner.leftmost, d.pipe.controls.leftmost = true, true, true
}

// dedupe keeps the last of the special tokens with the same text.
func dedupe(all []special) []special {
	last := map[string]int{}
	for i, sp := range all {
		last[sp.text] = i
	}
	var out []special
	for i, sp := range all {
		if last[sp.text] == i {
			out = append(out, sp)
		}
	}
	return out
}

// decoder refuses decoders other than that of the model's pieces. Decoding must treat each token by itself, except for the first
// space.
func (d *document) decoder() error {
	known := map[string][]string{
		"gpt2":  {"ByteLevel"},
		"llama": {"Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"},
		"t5":    {"Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"},
		"bert":  {"WordPiece"},
	}[d.vocab.Model]
	for _, p := range d.file.Decoder.Flat() {
		if !slices.Contains(known, p.Type) {
			return fmt.Errorf("decoder %.40q with model %s is not supported", p.Type, d.file.Model.Type)
		}
	}
	return nil
}
