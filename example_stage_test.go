package grove_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"strings"

	"grove"
	"grove/internal/gopher"
	"grove/internal/text/token"
)

// words is a stage that lets a text consist of words of a list alone. Its state is a node of a tree of tokens, 0 between words.
type words struct {
	next   [][]edge // by node
	kept   []float32
	forced []token.ID
}

// edge is a token that may follow, and the node behind it.
type edge struct {
	id token.ID
	to grove.StageState
}

// newWords makes the stage of a list of words as a model's tokens spell them. No word begins with another one's tokens.
func newWords(m *grove.Model, list ...string) (*words, error) {
	w := &words{next: make([][]edge, 1)}
	for _, word := range list {
		ids, err := m.Tokenize(word, false, true)
		if err != nil {
			return nil, err
		}
		at := grove.StageState(0)
		for i, id := range ids {
			to, ok := w.follow(at, id)
			if !ok {
				if i < len(ids)-1 { // the last token leads back to the beginning
					to = grove.StageState(len(w.next))
					w.next = append(w.next, nil)
				}
				w.next[at] = append(w.next[at], edge{id, to})
			}
			at = to
		}
	}
	return w, nil
}

// follow returns the node behind a token.
func (w *words) follow(s grove.StageState, id token.ID) (to grove.StageState, ok bool) {
	for _, e := range w.next[s] {
		if e.id == id {
			return e.to, true
		}
	}
	return 0, false
}

// Start implements [grove.Stage].
func (w *words) Start([]token.ID) grove.StageState { return 0 }

// Next implements [grove.Stage].
func (w *words) Next(s grove.StageState, id token.ID) grove.StageState {
	to, _ := w.follow(s, id)
	return to
}

// Apply implements [grove.Stage]: it forbids every token that follows no edge.
func (w *words) Apply(s grove.StageState, logits []float32) {
	w.kept = w.kept[:0]
	for _, e := range w.next[s] {
		w.kept = append(w.kept, logits[e.id])
	}
	for id := range logits {
		logits[id] = float32(math.Inf(-1))
	}
	for i, e := range w.next[s] {
		logits[e.id] = w.kept[i]
	}
}

// Allows implements [grove.LegalStage].
func (w *words) Allows(s grove.StageState, id token.ID) bool {
	_, ok := w.follow(s, id)
	return ok
}

// Forced implements [grove.LegalStage]: the rest of the word, where the tokens so far leave one word.
func (w *words) Forced(s grove.StageState) []token.ID {
	w.forced = w.forced[:0]
	for s != 0 && len(w.next[s]) == 1 {
		w.forced = append(w.forced, w.next[s][0].id)
		s = w.next[s][0].to
	}
	return w.forced
}

// A stage that allows the words of a list: the text is the same with drafts and without.
func ExampleModel_NewSequence() {
	m, err := grove.OpenBytes(gopher.Model(), grove.Options{Eager: true, Forget: true}) // every draft is run, whatever it costs
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	ctx, seed := context.Background(), uint64(7)
	r := grove.Request{Prompt: "The states of a connection:", Sampling: grove.Sampling{Temperature: 1.5}, Seed: &seed}
	var texts [2]string
	var stats grove.SpecStats
	for i, method := range []string{grove.MethodOff, "lookup"} {
		w, err := newWords(m, " closing", " connecting", " established", " listening")
		if err != nil {
			log.Fatal(err)
		}
		r.Method = method
		s, err := m.NewSequence(ctx, r, w)
		if err != nil {
			log.Fatal(err)
		}
		var ids []token.ID
		for state := grove.StageState(0); len(ids) < 20 || state != 0; {
			d, err := s.Next(ctx)
			if err != nil {
				log.Fatal(err)
			}
			ids = append(ids, d.ID)
			state = w.Next(state, d.ID)
		}
		if texts[i], err = m.Detokenize(ids); err != nil {
			log.Fatal(err)
		}
		stats = s.SpecStats()
		if err := s.Close(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(strings.TrimSpace(texts[0]))
	fmt.Println("the same with drafts:", texts[0] == texts[1])
	fmt.Println("fewer steps than tokens:", stats.Rounds < stats.Tokens)
	// Output:
	// listening listening connecting connecting listening listening listening
	// the same with drafts: true
	// fewer steps than tokens: true
}
