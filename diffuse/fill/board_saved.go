package fill

import (
	"context"
	"slices"

	"grove/internal/engine/pages"
	"grove/internal/text/token"
)

// saved is the file that a board begins with.
type saved struct {
	path     string // "": none
	restored bool
}

// SetSession names a file that [Board.Save] wrote, which may hold keys of the text's beginning; one that is not there holds nothing. It is called before the first pass. Errors of the
// file are those of the first pass, or of [Board.Read].
func (b *Board) SetSession(path string) { b.saved.path = path }

// Restored reports whether keys of the text were read from a file.
func (b *Board) Restored() bool { return b.saved.restored }

// session returns a beginning of the text with a file.
func (b *Board) session(ids []token.ID, path string) *pages.Session {
	return &pages.Session{Maker: b.steps, Trunk: &b.trunk, Text: ids, Known: ids, Path: path}
}

// restore reads what the file holds of a text, of which nothing is kept, and returns how many tokens are kept then. Errors: those of [pages.Session.Restore].
func (b *Board) restore(ctx context.Context, ids []token.ID) (kept int, err error) {
	if b.saved.path == "" {
		return 0, nil
	}
	kept, b.saved.restored, err = b.session(ids, b.saved.path).Restore(ctx, b.vocabulary())
	return kept, err
}

// Save writes the text as far as its keys are kept, and these in full pages, to a file: all of it or nothing. Only boards whose keys serve later texts have a session: those of
// [diffuse.Settings.Lasts], and of canvases of random tokens. Errors: [engine.ErrSession].
func (b *Board) Save(path string) error {
	ids := slices.Clip(b.read.ids) // before canvases of random tokens
	for _, p := range b.kept {
		ids = append(ids, p.id)
	}
	return b.session(ids, path).Save()
}
