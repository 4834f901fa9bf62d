package pages

import (
	"context"
	"errors"

	"grove/internal/engine/step"
	"grove/internal/kv"
	"grove/internal/text/token"
)

// mostTries is how often a text is searched again whose files were lost or damaged when they were read.
const mostTries = 3

// Restore reads the pages of a text that the folder has and the cache has not into an empty trunk, and returns how many tokens the trunk has then:
// fewer than the text. Files that are lost or damaged are as if they had never been there. Errors: ctx's and the trunk's.
func (s *Store) Restore(ctx context.Context, t *step.Trunk, ids []token.ID) (known int, err error) {
	if s == nil || t.Terms.Private {
		return 0, nil
	}
	files, most := s.files.Load(), (len(ids)-1)/kv.PageTokens
	if files == nil || most < 1 || !s.same() {
		return 0, nil
	}
	text := files.Text(t.Terms.Salt, t.Terms.Adapted(), ids)
	for range mostTries {
		n := s.find(text, most)
		if n == 0 {
			return known, nil
		}
		var whole bool
		if known, whole, err = s.take(ctx, t, text, ids, n); whole || err != nil {
			return known, err
		}
	}
	return known, nil
}

// find returns how many of the first pages of a text, most at most, a sequence can have by cache and folder; 0: the cache has as many.
func (s *Store) find(text *kv.Text, most int) int {
	s.maker.Lock()
	have := text.Cached(most)
	s.maker.Unlock()
	known := map[kv.Page]bool{}
	n := text.Longest(have, most, func(p kv.Page) bool {
		ok, asked := known[p]
		if !asked {
			ok = s.has(text, p)
			known[p] = ok
		}
		return ok
	})
	if n == have {
		return 0
	}
	return n
}

// has reports whether the folder has the file of a page.
func (s *Store) has(text *kv.Text, p kv.Page) bool {
	path := s.folder.path(text.Name(p))
	used, ok, err := s.folder.stat(path, fileBytes(text.Bytes(p)))
	if err != nil {
		s.refuse(path, err)
	}
	if ok {
		s.folder.touch(path, p.Index, used)
	}
	return ok
}

// take gives the trunk the first n pages of a text, of which those that the cache lacks are read, and returns the tokens that the trunk has
// then. whole is false where a file could not be read: the trunk has what the cache has.
func (s *Store) take(ctx context.Context, t *step.Trunk, text *kv.Text, ids []token.ID, n int) (known int, whole bool, err error) {
	m, pinned := s.maker, t.Pinned
	var have int
	taken := false
	err = t.Do(ctx, &Claim{Trunk: t, Wants: func() (step.Need, error) {
		at, err := m.Cache.Reuse(t.Seq, ids)
		if have, taken = at/kv.PageTokens, false; err != nil || have >= n {
			return step.Need{}, err
		}
		return step.Need{TakePages: func() error {
			err := text.Take(t.Seq, n)
			taken = err == nil
			return err
		}}, nil
	}})
	if errors.Is(err, kv.ErrFull) {
		return 0, true, nil // the text is computed as if there were no folder
	}
	if err != nil {
		return 0, false, err
	}
	if taken {
		err = s.read(ctx, text)
	}
	m.Lock()
	defer m.Unlock()
	defer m.Notify()
	t.Pinned = pinned
	if taken && err == nil {
		if err = text.Adopt(t.Seq); err == nil {
			s.note(func(l *step.Prefixes) { l.Found++; l.Tokens += (n - have) * kv.PageTokens })
		}
	}
	if err != nil {
		err = errors.Join(ctx.Err(), m.Cache.Truncate(t.Seq, have*kv.PageTokens))
		return have * kv.PageTokens, false, err
	}
	return t.Len(), true, nil
}

// read reads the pages that were taken. It returns an error, of which the log has been told, where one cannot be read.
func (s *Store) read(ctx context.Context, text *kv.Text) error {
	for p, page := range text.Taken() {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := s.folder.path(text.Name(p))
		err := readPage(path, text.Name(p), page)
		switch {
		case err == nil:
			s.note(func(l *step.Prefixes) { l.Read++ })
		case absent(err): // it was removed a moment ago
			return err
		default:
			s.refuse(path, err)
			return err
		}
	}
	return nil
}
