package chat

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"grove/internal/near"
	"grove/internal/regular"
	"grove/text/token"
	"grove/text/tokenizer"
	"grove/weights/gguf"
)

// ErrNone reports a model that has no template and whose vocabulary shows no known family.
var ErrNone = errors.New("chat: the model has no chat template (tokenizer.chat_template), and its vocabulary shows none that is known; name one by --chat-template NAME|FILE: " + strings.Join(Builtin(), ", ") + ", or a Jinja file")

// key is the metadata key of the template. Those of further templates have a dot and a name behind it.
const key = "tokenizer.chat_template"

// Templates are the templates that fit a model. They are safe for concurrent use once [Templates.Choose] has returned.
type Templates struct {
	own    map[string]parsed // templates of the file; the default one has the name ""
	chosen *Template         // nil: none is chosen
	tokens Tokens
	model  *tokenizer.Tokenizer
}

type parsed struct {
	t   *Template
	err error
}

// FromGGUF reads the templates of a file. A fault of a template is the error of its use. Errors: metadata of the wrong type.
func FromGGUF(f *gguf.File, t *tokenizer.Tokenizer) (*Templates, error) {
	tokens, err := readTokens(f, t)
	if err != nil {
		return nil, err
	}
	ts := &Templates{own: map[string]parsed{}, tokens: tokens, model: t}
	for _, kv := range f.Metadata {
		name, ok := strings.CutPrefix(kv.Key, key)
		if !ok || name != "" && name[0] != '.' {
			continue
		}
		source, _, err := f.String(kv.Key)
		if err != nil {
			return nil, fmt.Errorf("chat: %w", err)
		}
		own, err := New(kv.Key, source, tokens)
		ts.own[strings.TrimPrefix(name, ".")] = parsed{own, err}
	}
	return ts, nil
}

// Choose sets the template of all conversations: a name that [Templates.Get] knows, or the path of a Jinja file. Errors: those of [New].
func (ts *Templates) Choose(name string) (err error) {
	if slices.Contains(ts.Names(), name) || slices.Contains(Builtin(), name) {
		ts.chosen, err = ts.Get(name)
		return err
	}
	source, err := regular.ReadText(name, 1<<20) // as much as a template may have
	if known := append(ts.Names(), Builtin()...); err != nil {
		return fmt.Errorf("chat: template %q is none of %s, and no file that can be read: %w%s", name, strings.Join(known, ", "), err, near.Hint(name, known))
	}
	ts.chosen, err = ts.New(name, string(source))
	return err
}

// For returns the template of a conversation: the chosen one; else the file's, which is its template tool_use if there are tools;
// else that of the family that the vocabulary shows. Errors: [ErrNone], and those of [New].
func (ts *Templates) For(o Options) (*Template, error) {
	if ts.chosen != nil {
		return ts.chosen, nil
	}
	names := []string{"", "default"}
	if len(o.Tools) > 0 {
		names = []string{"tool_use", "", "default"}
	}
	for _, name := range names {
		if p, ok := ts.own[name]; ok {
			return p.t, p.err
		}
	}
	family := familyOf(func(text string) bool {
		id, ok := ts.model.ID(text)
		return ok && special(ts.model, id)
	})
	if family == "" {
		return nil, ErrNone
	}
	return NewBuiltin(family, ts.tokens)
}

// Get returns a template by its name: a further one of the file, or one of [Builtin].
func (ts *Templates) Get(name string) (*Template, error) {
	if p, ok := ts.own[name]; ok && name != "" {
		return p.t, p.err
	}
	return NewBuiltin(name, ts.tokens)
}

// New reads a template for the model.
func (ts *Templates) New(name, source string) (*Template, error) { return New(name, source, ts.tokens) }

// Names returns the names of the file's further templates, sorted.
func (ts *Templates) Names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(ts.own)), func(name string) bool { return name == "" })
}

func special(t *tokenizer.Tokenizer, id token.ID) bool {
	return t.Type(id) == tokenizer.Control || t.Type(id) == tokenizer.UserDefined
}

// readTokens returns the texts of the special tokens that templates print.
func readTokens(f *gguf.File, t *tokenizer.Tokenizer) (Tokens, error) {
	tokens := Tokens{BOS: t.Text(t.BOS()), EOS: t.Text(t.EOS())}
	for key, text := range map[string]*string{
		"tokenizer.ggml.unknown_token_id": &tokens.UNK, "tokenizer.ggml.padding_token_id": &tokens.PAD,
	} {
		id, ok, err := f.Uint(key)
		if err != nil {
			return tokens, fmt.Errorf("chat: %w", err)
		}
		if ok && id < t.Size() {
			*text = t.Text(token.ID(id))
		}
	}
	return tokens, nil
}

// Encode returns the tokens of a prompt. It adds the begin token where the model's file asks for one and the template has
// not printed it. Errors: those of [tokenizer.Tokenizer.Encode].
func (p Prompt) Encode(t *tokenizer.Tokenizer) ([]token.ID, error) {
	literal := make([]tokenizer.Span, len(p.Inputs))
	for i, s := range p.Inputs {
		literal[i] = tokenizer.Span(s)
	}
	ids, err := t.Encode(nil, p.Text, tokenizer.Options{Literal: literal})
	if err != nil {
		return nil, err
	}
	frame, err := t.Encode(nil, "", tokenizer.Options{Special: true})
	if err != nil {
		return nil, err
	}
	if bos := t.BOS(); len(frame) > 0 && frame[0] == bos && (len(ids) == 0 || ids[0] != bos) {
		ids = slices.Insert(ids, 0, bos)
	}
	return ids, nil
}
