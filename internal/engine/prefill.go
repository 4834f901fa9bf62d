package engine

import (
	"grove/internal/engine/step"
	"grove/internal/forest"
)

// prefill is the job that computes what is not computed of a sequence's text, commits it, and leaves the logits
// behind the last token. Pages that the cache has by name are taken over. It may take several steps.
type prefill struct{ s *Sequence }

// Need implements [step.Job].
func (p *prefill) Need() (step.Need, error) {
	if err := p.s.settle(); err != nil {
		return step.Need{}, err
	}
	p.s.trunk.Drop() // what drafters or a canvas left behind the text's old end
	n, err := p.s.reuse()
	if n.Prompt == 1 {
		n.Rows, n.Prompt, n.Decodes = 1, 0, true
	}
	return n, err
}

// Place implements [step.Job].
func (p *prefill) Place(st *step.Step) error { return p.s.placeText(st, st.Rows()) }

// Take implements [step.Job].
func (p *prefill) Take(st *step.Step) (done bool, err error) { return p.s.takeText(st) }

// reuse takes over the pages that the cache has of the text and returns what is left to compute as rows of a prompt.
func (s *Sequence) reuse() (step.Need, error) {
	if n, lacks := s.lacks(); lacks {
		return n, nil
	}
	if err := s.reanchor(); err != nil {
		return step.Need{}, err
	}
	at := s.trunk.Len()
	length := at
	if at < len(s.text)-1 && s.stated == nil { // the last token is computed, for what follows it
		var err error
		if length, err = s.e.steps.Cache.Reuse(s.trunk.Seq, s.given()); err != nil {
			return step.Need{}, err
		}
	}
	if !s.trunk.Begun {
		s.reused += max(0, length-max(at, s.known))
	}
	s.known = max(s.known, length)
	n := len(s.text)
	return step.Need{Prompt: n - length, Text: s.given(), PageTokens: s.pageTokens(), WindowTokens: min(n, length+s.e.steps.Chunk)}, nil
}

// pageTokens returns for how many tokens the sequence reserves pages: of those that keep their pages, none waits for another.
func (s *Sequence) pageTokens() int {
	if s.trunk.Pinned {
		return s.e.Context()
	}
	return len(s.text)
}

// placeText adds rows of the text behind the trunk. The last token's row gives logits, and all what drafters want of
// a prompt.
func (s *Sequence) placeText(st *step.Step, rows int) (err error) {
	at, from := s.trunk.Len(), len(s.text)
	if s.drafts != nil {
		from = s.wantsFrom()
	}
	s.round.root, err = st.Path(rows, func(i int) forest.Row {
		r := forest.Row{ID: s.text[at+i], Transient: i < rows-1}
		if at+i >= from {
			r.Want = s.drafts.Wants.Prompt
		}
		r.Want.Logits = r.Want.Logits || at+i == len(s.text)-1
		if at+i < s.prefix {
			r.Block = 1
		}
		r.Want.State = r.Want.State || s.stated != nil
		s.shallow(&r, at+i)
		return r
	})
	return err
}

// takeText commits the rows that placeText added, and reports whether they were the last of the text.
func (s *Sequence) takeText(st *step.Step) (done bool, err error) {
	at, rows := s.trunk.Len(), s.trunk.Rows
	if done = at+rows == len(s.text); done {
		copy(s.logits, st.Result(rows-1).Logits)
	}
	if s.drafts != nil {
		s.keepPrompt(st, at, rows)
	}
	for i := 0; i < rows && s.stated != nil; i++ {
		s.stated(at+i, st.Result(i).State)
	}
	if err := s.e.steps.Cache.Commit(s.trunk.Seq, s.round.root); err != nil {
		return true, err
	}
	s.known = max(s.known, at+rows)
	s.trunk.Begun = s.trunk.Begun || done
	if s.watch != nil && s.trunk.Source == nil {
		s.watch(at+rows, len(s.text))
	}
	return done, nil
}
