package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"grove/internal/fileio"
	"grove/internal/options"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
	"grove/internal/weights/ollama"
)

// ErrNone reports a model that has no template and whose vocabulary shows no known family.
var ErrNone error = blame(-1, "the model has no chat template (tokenizer.chat_template), and its vocabulary shows none that is known; name one by --chat-template NAME|FILE: %s, or a Jinja file", strings.Join(Builtin(), ", "))

// key is the metadata key of the template. Those of further templates have a dot and a name behind it.
const key = "tokenizer.chat_template"

// Templates are the templates that fit a model. They are safe for concurrent use once [Templates.Choose] has returned.
type Templates struct {
	own    map[string]parsed // of the file, or of a family, or chosen; the default one has the name ""
	tokens Tokens
	system string    // the message of conversations without one; "": none
	begins []Message // with which conversations begin
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
	ts := &Templates{own: map[string]parsed{}, tokens: tokens}
	if err := ts.readDefaults(f); err != nil {
		return nil, err
	}
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
	noMark := func(text string) bool {
		id, ok := t.ID(text)
		return !ok || t.Type(id) != tokenizer.Control && t.Type(id) != tokenizer.UserDefined
	}
	for _, f := range families { // of which the first is taken
		if _, err := ts.For(Options{}); errors.Is(err, ErrNone) && f.marks != nil && !slices.ContainsFunc(f.marks, noMark) {
			own, err := NewBuiltin(f.name, tokens)
			ts.own[""] = parsed{own, err}
		}
	}
	return ts, nil
}

// readDefaults reads the messages that a file gives conversations.
func (ts *Templates) readDefaults(f *gguf.File) (err error) {
	if ts.system, _, err = f.String(ollama.KeySystem); err != nil {
		return fmt.Errorf("chat: %w", err)
	}
	list, ok, err := f.String(ollama.KeyMessages)
	if err != nil || !ok {
		return err
	}
	if err := json.Unmarshal([]byte(list), &ts.begins); err != nil {
		return fmt.Errorf("chat: %s: %w", ollama.KeyMessages, err)
	}
	return nil
}

// WithDefaults returns a conversation with the messages that the model's file gives it: a system message where it has none, and behind
// the system message those with which conversations begin. Added is their number, from index at on.
func (ts *Templates) WithDefaults(messages []Message) (all []Message, at, added int) {
	return Begin(messages, ts.system, ts.begins)
}

// Begin returns a conversation with a system message where it has none and system is not "", and behind the system message those that it begins with. Added is
// their number, from index at on.
func Begin(messages []Message, system string, begins []Message) (all []Message, at, added int) {
	var more []Message
	if len(messages) > 0 && isSystem(messages[0].Role) {
		at = 1
	} else if system != "" {
		more = []Message{{Role: "system", Content: system}}
	}
	more = append(more, begins...)
	return slices.Insert(slices.Clone(messages), at, more...), at, len(more)
}

// Choose sets the template of all conversations: a name of one of the file or of [Builtin], or the path of a Jinja file. Errors: those of [New].
func (ts *Templates) Choose(name string) error {
	chosen, ok := ts.own[name]
	switch {
	case ok && name != "":
	case slices.Contains(Builtin(), name):
		chosen.t, chosen.err = NewBuiltin(name, ts.tokens)
	default:
		source, err := fileio.ReadText(name, 1<<20) // as much as a template may have
		if err != nil {
			own := slices.DeleteFunc(slices.Sorted(maps.Keys(ts.own)), func(name string) bool { return name == "" })
			known := append(own, Builtin()...)
			return fmt.Errorf("chat: template %q is none of %s, and no file that can be read: %w%s", name, strings.Join(known, ", "), err, options.NearHint(name, known))
		}
		chosen.t, chosen.err = ts.New(name, string(source))
	}
	ts.own = map[string]parsed{"": chosen}
	return chosen.err
}

// For returns the template of a conversation: the chosen one; else the file's, which is its template tool_use if there are tools;
// else that of the family that the vocabulary shows. Errors: [ErrNone], and those of [New].
func (ts *Templates) For(o Options) (*Template, error) {
	names := []string{"", "default"}
	if len(o.Tools) > 0 {
		names = []string{"tool_use", "", "default"}
	}
	for _, name := range names {
		if p, ok := ts.own[name]; ok {
			return p.t, p.err
		}
	}
	return nil, ErrNone
}

// New reads a template for the model.
func (ts *Templates) New(name, source string) (*Template, error) { return New(name, source, ts.tokens) }

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
// not printed it. check, where it is not nil, is called now and then with the number of tokens so far; its error ends the work.
// Errors: that, and those of [tokenizer.Tokenizer.Encode].
func (p Prompt) Encode(t *tokenizer.Tokenizer, check func(n int) error) (ids []token.ID, err error) {
	literal := make([]tokenizer.Span, len(p.Inputs))
	for i, s := range p.Inputs {
		literal[i] = tokenizer.Span(s)
	}
	_, err = t.Encode(nil, p.Text, tokenizer.Options{Literal: literal, Part: func(part []token.ID) error {
		if ids = append(ids, part...); check != nil {
			return check(len(ids))
		}
		return nil
	}})
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
