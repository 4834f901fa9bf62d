package engine

import "grove/forest"

// prefill is the job that computes what is not computed of a sequence's text, commits it, and leaves the logits
// behind the last token. Pages that the cache has by name are taken over. It may take several steps.
type prefill struct{ s *Sequence }

func (p *prefill) begin() error {
	if err := p.s.settle(); err != nil {
		return err
	}
	if p.s.seq >= 0 {
		p.s.drop() // what drafters or a canvas left behind the text's old end
	}
	return nil
}

func (p *prefill) need() (need, error) {
	n, err := p.s.reuse()
	if err != nil {
		return need{}, err
	}
	if n.prompt == 1 {
		n.rows, n.prompt, n.decodes = 1, 0, true
	}
	return n, nil
}

func (p *prefill) place(st *step) error { return p.s.placeText(st, st.current.rows) }

func (p *prefill) take(st *step) (done bool, err error) { return p.s.takeText(st) }

func (*prefill) simpler() bool { return false }

// reuse takes over the pages that the cache has of the text and returns what is left to compute as rows of a prompt.
func (s *Sequence) reuse() (need, error) {
	if n, lacks := s.lacks(); lacks {
		return n, nil
	}
	at := s.length()
	length := at
	if at < len(s.text)-1 { // the last token is computed, for what follows it
		var err error
		if length, err = s.e.cache.Reuse(s.seq, s.text); err != nil {
			return need{}, err
		}
	}
	if !s.begun {
		s.reused += max(0, length-max(at, s.known))
	}
	s.known = max(s.known, length)
	n, ahead := len(s.text), len(s.text)
	if s.pinned {
		ahead = s.e.Context() // of those that keep their pages, none waits for another
	}
	return need{prompt: n - length, text: s.text, ahead: ahead, near: min(n, length+s.e.chunk)}, nil
}

// placeText adds rows of the text behind the trunk. The last token's row gives logits, and all what drafters want of
// a prompt.
func (s *Sequence) placeText(st *step, rows int) (err error) {
	at := s.length()
	want := forest.Want{}
	if s.drafts != nil {
		want = s.drafts.Wants.Prompt
	}
	s.round.root, err = st.path(rows, func(i int) forest.Row {
		r := forest.Row{ID: s.text[at+i], Want: want, Passing: i < rows-1}
		r.Want.Logits = r.Want.Logits || at+i == len(s.text)-1
		if at+i < s.prefix {
			r.Block = 1
		}
		return r
	})
	return err
}

// takeText commits the rows that placeText added, and reports whether they were the last of the text.
func (s *Sequence) takeText(st *step) (done bool, err error) {
	at, rows := s.length(), s.rows
	if done = at+rows == len(s.text); done {
		copy(s.logits, st.result(rows-1).Logits)
	}
	if s.drafts != nil {
		s.keepPrompt(st, rows)
	}
	if err := s.e.cache.Commit(s.seq, s.round.root); err != nil {
		return true, err
	}
	s.known = max(s.known, at+rows)
	s.begun = s.begun || done
	if s.watch != nil && s.source == nil {
		s.watch(at+rows, len(s.text))
	}
	return done, nil
}
