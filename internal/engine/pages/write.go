package pages

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"grove/internal/engine/step"
	"grove/internal/fileio"
	"grove/internal/kv"
)

// copyBytes is how many bytes of pages are copied at a time, while no step is made: a page at least.
const copyBytes = 1 << 20

// write writes the pages of a text that the cache has and the folder has not.
func (s *Store) write(t *kv.Text) {
	defer s.note(func(l *step.Prefixes) { l.Queued-- })
	if !s.same() {
		return
	}
	w := writer{s: s, text: t, now: time.Now()}
	for p := range t.Pages() {
		size := fileBytes(t.Bytes(p))
		if w.bytes += size; s.late() || s.folder.most > 0 && w.bytes > s.folder.part() {
			break // what is behind would displace what was written
		}
		path := s.folder.path(t.Name(p))
		used, ok, err := s.folder.stat(path, size)
		if err != nil {
			s.refuse(path, err)
		}
		if ok {
			s.folder.touch(path, p.Index, used)
			continue
		}
		if !w.add(p) {
			return
		}
	}
	w.flush()
}

// writer writes the pages of one text, some at a time.
type writer struct {
	s     *Store
	text  *kv.Text
	now   time.Time
	bytes int64 // of the files of the text so far
	lacks []kv.Page
	size  int    // bytes of the pages that are lacking
	room  []byte // for their copies
}

// add adds a page that is lacking, and reports false where nothing behind it is of use or can be written.
func (w *writer) add(p kv.Page) bool {
	n := w.text.Bytes(p)
	w.lacks, w.size = append(w.lacks, p), w.size+n
	return w.size < copyBytes || w.flush()
}

// flush writes the pages that are lacking, as far as the cache has them.
func (w *writer) flush() bool {
	w.room = slices.Grow(w.room[:0], w.size)[:w.size]
	have, more := w.copy()
	if len(have) > 0 && !w.s.same() { // asked once they are computed and copied
		return false
	}
	at := 0
	for _, p := range have {
		n := w.text.Bytes(p)
		if err := w.file(p, w.room[at:at+n]); err != nil {
			w.s.note(func(l *step.Prefixes) { l.Failed++ })
			w.s.say("write", "the pages of a text cannot be written to the folder of prefixes", err)
			return false
		}
		at += n
	}
	w.lacks, w.size = w.lacks[:0], 0
	return more
}

// copy copies the lacking pages that the cache has, and returns these. It ends with the first one without which those behind it are of no use.
func (w *writer) copy() (have []kv.Page, more bool) {
	w.s.maker.Lock()
	defer w.s.maker.Unlock()
	at := 0
	for _, p := range w.lacks {
		n := w.text.Bytes(p)
		if w.text.Copy(p, w.room[at:at+n]) {
			have, at = append(have, p), at+n
		} else if w.text.Keeps(p) {
			return have, false
		}
	}
	return have, true
}

// file writes the file of a page. Where another server has written it meanwhile, that is as good.
func (w *writer) file(p kv.Page, page []byte) error {
	f := &w.s.folder
	size, name := fileBytes(len(page)), w.text.Name(p)
	if n := f.room(size); n > 0 {
		w.s.note(func(l *step.Prefixes) { l.Removed += n })
	}
	path := f.path(name)
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	write := func() error {
		return fileio.WriteAtomic(path, func(to io.Writer) error { return writePage(to, name, page) })
	}
	err := write()
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) { // others use the disk, too
		n := f.shrink()
		w.s.note(func(l *step.Prefixes) { l.Removed += n })
		if n > 0 {
			err = write()
		}
	}
	if err != nil {
		if _, ok, _ := f.stat(path, size); !ok {
			return fmt.Errorf("%s: %w", f.dir, err)
		}
	}
	f.stamp(path, p.Index, w.now)
	f.bytes += size
	w.s.note(func(l *step.Prefixes) { l.Written++ })
	return nil
}
