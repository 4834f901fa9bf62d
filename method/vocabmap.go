package method

import (
	"fmt"

	"grove/internal/compute"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// Mapping says how the tokens of a draft model become those of its target.
type Mapping int

// The ways. All are exact: drafts are verified as tokens of the target.
const (
	SameVocabulary Mapping = iota // ids are the same
	SharedTokens                  // those that spell the same bytes (token-level intersection, TLI)
	ThroughText                   // the drafted text is encoded anew (universal assisted generation, UAG)
)

// sharedEnough is the share of the larger vocabulary that both have from which on a draft model need not speak
// through text. Below it the target's text looks strange to the draft model when it is fed token by token, and much of
// what it would say is masked.
const sharedEnough = 0.5

// VocabMap relates the tokens of a draft model to those of its target. It does not change and is safe for
// concurrent use. A nil map says that the vocabularies are the same.
type VocabMap struct {
	target, draft *tokenizer.Tokenizer
	way           Mapping
	share         float64    // of the larger vocabulary's tokens
	toDraft       []token.ID // by the target's id; None: it has no partner. nil where the vocabularies are the same
}

// NewVocabMap relates two vocabularies. Ids that are padding on one side do not make vocabularies differ. It returns
// an error where they share no token and one of the tokenizers does not give back a text that it was given.
func NewVocabMap(target, draft *tokenizer.Tokenizer) (*VocabMap, error) {
	m := &VocabMap{target: target, draft: draft, share: 1}
	if SameTokens(target, draft) {
		return m, nil
	}
	m.way = SharedTokens
	m.match()
	if m.share >= sharedEnough {
		return m, nil
	}
	var err error
	switch {
	case !faithful(target):
		err = fmt.Errorf("the target's tokenizer does not reproduce a text")
	case !faithful(draft):
		err = fmt.Errorf("the draft model's tokenizer does not reproduce a text")
	default:
		m.way = ThroughText
		return m, nil
	}
	if m.share == 0 {
		return nil, fmt.Errorf("their vocabularies share no tokens, and %w", err)
	}
	return m, nil
}

// SameTokens reports whether ids that both know are the same tokens. Ids that are padding on one side do not make vocabularies differ.
func SameTokens(a, b *tokenizer.Tokenizer) bool {
	for id := range token.ID(min(a.Size(), b.Size())) {
		if a.Text(id) != b.Text(id) {
			return false
		}
	}
	return true
}

// probeText has what tokenizers that change texts stumble over: capitals, spaces in a row, line ends.
const probeText = "The quick (Brown) fox:\n\tjumps  over 12 dogs.\n"

// faithful reports whether a tokenizer gives back the text that it is given.
func faithful(t *tokenizer.Tokenizer) bool {
	ids, err := t.Encode(nil, probeText, tokenizer.Options{Plain: true})
	if err != nil {
		return false
	}
	text, err := t.Decode(ids, false)
	return err == nil && text == probeText
}

// spelling is what a token stands for. A byte and a letter are told apart: SentencePiece has both for the
// same byte.
type spelling struct {
	bytes string         // none: it stands for nothing
	kind  tokenizer.Type // Normal, Byte or Control
}

// spellings returns what each token of a vocabulary stands for, and how many stand for something.
func spellings(t *tokenizer.Tokenizer) (all []spelling, n int) {
	all = make([]spelling, t.Size())
	var buf []byte
	for id := range all {
		kind := t.Type(token.ID(id))
		switch kind {
		case tokenizer.Unknown, tokenizer.Unused:
			continue
		case tokenizer.Undefined, tokenizer.UserDefined:
			kind = tokenizer.Normal
		}
		buf, _ = t.AppendPiece(buf[:0], token.ID(id), true) // every id below Size has one
		if len(buf) > 0 {
			all[id] = spelling{string(buf), kind}
			n++
		}
	}
	return all, n
}

// match finds the pairs of tokens that stand for the same: first those of the same kind, then a byte on one side
// and a text of one byte on the other. Of tokens with the same spelling the first has the partner.
func (m *VocabMap) match() {
	ofTarget, nTarget := spellings(m.target)
	ofDraft, nDraft := spellings(m.draft)
	m.toDraft = make([]token.ID, len(ofTarget))
	for i := range m.toDraft {
		m.toDraft[i] = token.None
	}
	taken, pairs := make([]bool, len(ofDraft)), 0
	join := func(t, d token.ID) {
		if t != token.None && d != token.None && m.toDraft[t] == token.None && !taken[d] {
			m.toDraft[t], taken[d] = d, true
			pairs++
		}
	}
	join(m.target.BOS(), m.draft.BOS()) // whatever they are called
	join(m.target.EOS(), m.draft.EOS())
	index := make(map[spelling]token.ID, nDraft)
	for d := len(ofDraft) - 1; d >= 0; d-- {
		index[ofDraft[d]] = token.ID(d)
	}
	delete(index, spelling{})
	for t, s := range ofTarget {
		if d, ok := index[s]; ok {
			join(token.ID(t), d)
		}
	}
	swap := map[tokenizer.Type]tokenizer.Type{tokenizer.Normal: tokenizer.Byte, tokenizer.Byte: tokenizer.Normal}
	for t, s := range ofTarget {
		if d, ok := index[spelling{s.bytes, swap[s.kind]}]; ok {
			join(token.ID(t), d)
		}
	}
	m.share = float64(pairs) / float64(max(1, nTarget, nDraft))
}

// Mapping returns how tokens are related.
func (m *VocabMap) Mapping() Mapping {
	if m == nil {
		return SameVocabulary
	}
	return m.way
}

// String says how tokens are related, for users.
func (m *VocabMap) String() string {
	switch m.Mapping() {
	case SharedTokens:
		return fmt.Sprintf("shared %.0f %% of tokens", 100*m.share)
	case ThroughText:
		return fmt.Sprintf("through text (shared %.0f %% of tokens)", 100*m.share)
	}
	return "same vocabulary"
}

// Tokenizers returns those of the target and of the draft model; nil for a nil map.
func (m *VocabMap) Tokenizers() (target, draft *tokenizer.Tokenizer) {
	if m == nil {
		return nil, nil
	}
	return m.target, m.draft
}

// ToDraft returns the draft model's token that stands for the same as the target's, [token.None] where there is none.
func (m *VocabMap) ToDraft(id token.ID) token.ID {
	switch {
	case m == nil:
		return id
	case m.toDraft == nil && int(id) < m.draft.Size():
		return id
	case int(id) < len(m.toDraft):
		return m.toDraft[id]
	}
	return token.None
}

// Append appends the draft model's tokens of a text of the target to dst. Tokens without partners are encoded anew,
// neighbours together. Where begins is set the text begins here, with the token that the draft model expects there. What
// the draft model cannot write is left out.
func (m *VocabMap) Append(dst []token.ID, ids []token.ID, begins bool) []token.ID {
	if m == nil {
		return append(dst, ids...)
	}
	if begins && m.toDraft != nil {
		if lead := m.Lead(); lead != token.None && (len(ids) == 0 || m.ToDraft(ids[0]) != lead) {
			dst = append(dst, lead)
		}
	}
	var strange []byte // what tokens without partners spell
	for _, id := range ids {
		d := m.ToDraft(id)
		if d == token.None {
			if id != m.target.BOS() && !m.target.IsEOG(id) { // an id that no tokenizer knows spells nothing
				strange, _ = m.target.AppendPiece(strange, id, m.target.Type(id) == tokenizer.Control)
			}
			continue
		}
		dst = append(m.encode(dst, strange), d)
		strange = strange[:0]
	}
	return m.encode(dst, strange)
}

// encode appends the draft model's tokens of a stretch of text, as far as it has some.
func (m *VocabMap) encode(dst []token.ID, text []byte) []token.ID {
	if len(text) == 0 {
		return dst
	}
	dst, _ = m.draft.Encode(dst, string(text), tokenizer.Options{Plain: true, Inside: true})
	return dst
}

// Lead returns the token that the draft model's vocabulary puts before a text, [token.None] where it puts none.
func (m *VocabMap) Lead() token.ID {
	ids, err := m.draft.Encode(nil, "", tokenizer.Options{Special: true})
	if err != nil || len(ids) == 0 || ids[0] != m.draft.BOS() {
		return token.None
	}
	return ids[0]
}

// Spread writes the draft model's logits to the places of the target's tokens in dst, which is as long as the target's
// vocabulary; tokens without partners are [compute.Masked].
func (m *VocabMap) Spread(dst, logits []float32) {
	for id := range dst {
		dst[id] = compute.Masked
		if d := m.ToDraft(token.ID(id)); d != token.None && int(d) < len(logits) {
			dst[id] = logits[d]
		}
	}
}
