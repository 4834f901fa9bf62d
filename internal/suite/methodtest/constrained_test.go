package methodtest

import (
	"errors"
	"fmt"
	"strings"

	"grove/constrain"
	"grove/internal/engine"
	"grove/internal/sample"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/method"
)

// rule is the language of constrained texts: some of the letters that the models like, in tokens of one or two, and between them one
// of two marks, of which all but the first byte is forced. No token has a Z, so that texts do not end.
const rule = `([a-j]{3,7}(-X->|=Y=>))*Z`

// stages returns the stages of a text that is held to a constraint.
func (s *subject) stages() []sample.Stage {
	if s.held == nil {
		return nil
	}
	return s.held.Stages(nil)
}

// constrained draws under a constraint, plainly and with drafts, alone, in forks and beside others, and expects the same, or the
// distribution of the constrained model. Forced text must be drafted where the rule takes any draft.
func constrained(s *subject) error {
	held := *s
	t, err := spelled()
	if err != nil {
		return err
	}
	v, err := constrain.NewVocabulary(t, vocabulary, sample.Thinking{})
	if err == nil {
		held.held, err = constrain.Compile(constrain.Spec{Regex: rule}, v, constrain.Limits{})
	}
	if err != nil {
		return err
	}
	for i, p := range s.samplings() {
		for _, how := range []drafts{eager, planned} {
			if how == planned && i > 0 && !long {
				continue // drafts that pay are verified as all are; the long run plans with each
			}
			if err := held.compare("constrained", engine.Config{}, p, how, []move{{s.prompt(), 60}}); err != nil {
				return err
			}
		}
	}
	if _, st, err := held.tell(engine.Config{}, sample.Params{Temperature: 2, Seed: 1}, eager, []move{{s.prompt(), 60}}); err != nil || st.Accepted == 0 {
		return errors.Join(err, fmt.Errorf("%d drafts of a constrained text are accepted", st.Accepted))
	}
	if s.info.Grade == method.Exact {
		if err := interleaved(&held); err != nil {
			return err
		}
	}
	if err := forks(&held); err != nil {
		return err
	}
	return distribution(&held)
}

// spelled returns the suite's vocabulary with texts: capitals, the letters of the period that prompts end with, pairs of these, signs.
func spelled() (*tokenizer.Tokenizer, error) {
	texts := strings.Split("ABCDEFGHIJKLMNOPQRSTUabcdefghij", "")
	texts = append(texts, "ab", "bc", "cd", "de", "ef", "fg", "gh", "hi", "ij", "ja", "-", "=", ">", "X", "Y", "-X", "=Y", "->", "=>")
	for len(texts) < vocabulary {
		texts = append(texts, string(rune('k'+len(texts)-50)))
	}
	v := tokenizer.Vocab{
		Model: "llama", BOS: token.None, EOS: 0, EOT: token.None, EOM: token.None, UNK: token.None, SEP: token.None, FIM: tokenizer.NoFIM,
		Tokens: texts, Scores: make([]float32, vocabulary),
	}
	return tokenizer.New(v)
}
