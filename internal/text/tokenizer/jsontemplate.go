package tokenizer

import (
	"encoding/json"
	"fmt"

	"grove/internal/text/token"
)

// template reads the tokens around a text. add_bos_token and add_eos_token of the configuration override the post-processor, as
// in transformers.
func (d *document) template() error {
	for _, p := range d.file.PostProcessor.Flat() {
		var err error
		switch p.Type {
		case "ByteLevel": // concerns offsets
		case "TemplateProcessing":
			err = d.single(p)
		case "BertProcessing", "RobertaProcessing":
			err = d.pair(p)
		default:
			err = fmt.Errorf("%.40q is not supported", p.Type)
		}
		if err != nil {
			return fmt.Errorf("post-processor %w", err)
		}
	}
	v, p := &d.vocab, &d.pipe
	if v.BOS == token.None && len(p.begin) == 1 {
		v.BOS = p.begin[0]
	}
	override := func(add *bool, id token.ID, now *[]token.ID) {
		if add == nil || id == token.None {
			return
		}
		if *now = nil; *add {
			*now = []token.ID{id}
		}
	}
	override(d.config.AddBOS, v.BOS, &p.begin)
	override(d.config.AddEOS, v.EOS, &p.end)
	return nil
}

// single reads the template for one text.
func (d *document) single(p *SchemaPart) error {
	seen := false
	for _, piece := range p.Single {
		switch {
		case piece.Sequence != nil && piece.Sequence.ID == "A" && !seen:
			seen = true
		case piece.SpecialToken != nil:
			ids, err := d.around(p.Special[piece.SpecialToken.ID].IDs, piece.SpecialToken.ID)
			if err != nil {
				return err
			}
			if seen {
				d.pipe.end = append(d.pipe.end, ids...)
			} else {
				d.pipe.begin = append(d.pipe.begin, ids...)
			}
		default:
			return fmt.Errorf("TemplateProcessing with a part of \"single\" that is neither the text, once, nor a special token is not supported")
		}
	}
	if !seen {
		return fmt.Errorf("TemplateProcessing without the text in \"single\" is not supported")
	}
	return nil
}

// around checks the ids of tokens around a text.
func (d *document) around(ids []int, name string) ([]token.ID, error) {
	if len(ids) == 0 {
		return nil, fmt.Errorf("TemplateProcessing names no ids for %.40q", name)
	}
	out := make([]token.ID, len(ids))
	for i, id := range ids {
		if id < 0 || id >= len(d.vocab.Tokens) {
			return nil, fmt.Errorf("has id %d for %.40q, outside the vocabulary of %d", id, name, len(d.vocab.Tokens))
		}
		out[i] = token.ID(id)
	}
	return out, nil
}

// pair reads the two tokens around a text of BERT and RoBERTa, each a text and an id.
func (d *document) pair(p *SchemaPart) error {
	read := func(raw json.RawMessage) ([]token.ID, error) {
		var text string
		var id int
		pair := []any{&text, &id}
		if err := json.Unmarshal(raw, &pair); err != nil || len(pair) != 2 {
			return nil, fmt.Errorf("%s has %.40q, not a text and an id", p.Type, raw)
		}
		return d.around([]int{id}, text)
	}
	var err error
	if d.pipe.begin, err = read(p.CLS); err != nil {
		return err
	}
	d.pipe.end, err = read(p.SEP)
	return err
}
