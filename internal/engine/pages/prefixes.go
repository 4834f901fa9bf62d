// Package pages keeps the pages of texts in a folder, in which this engine and others, also those of other machines, find them by what
// they hold. A text that another engine has computed is read and not computed again. Pages are written behind the answers, by one goroutine
// that holds no page of the cache: a text whose pages the cache needs meanwhile is not written, and no other has to wait.
package pages

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"grove/internal/engine/step"
	"grove/internal/kv"
	"grove/internal/text/token"
)

// Config says where pages are kept. The zero value keeps none.
type Config struct {
	Dir   string       // "": none are kept
	Bytes int64        // of all files, about: those that were used longest ago are removed; 0: any number
	Log   *slog.Logger // is told of files that cannot be used or written; nil: nobody
}

const (
	// mostTexts is how many texts may wait to be written; further ones are not.
	mostTexts = 64
	// closeTime is how long Close writes the texts that wait.
	closeTime = 5 * time.Second
	// mostSaid is how many messages are told apart, to write each once.
	mostSaid = 1000
)

// text is a text whose pages are to be written.
type text struct {
	salt    string
	adapted kv.Adapted
	ids     []token.ID
}

// Store is the folder as an engine uses it. It is safe for concurrent use; a nil Store keeps nothing.
type Store struct {
	maker   *step.Maker
	log     *slog.Logger
	folder  folder
	files   atomic.Pointer[kv.Files] // nil: the model's identity is not known yet, and nothing is read
	texts   chan text
	closing chan struct{}
	done    chan struct{}
	end     sync.Once
	until   atomic.Int64 // the time, in nanoseconds, at which nothing is written any more; 0: that is open

	mu   sync.Mutex
	said map[string]bool
}

// Open makes a store for an engine; nil where the configuration names no folder, or a model reads sources, which files have no room for.
func Open(m *step.Maker, c Config) *Store {
	if c.Dir == "" || m.Cache.Crosses() {
		return nil
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{
		maker: m, log: c.Log, folder: folder{dir: c.Dir, most: c.Bytes}, said: map[string]bool{},
		texts: make(chan text, mostTexts), closing: make(chan struct{}), done: make(chan struct{}),
	}
	go s.run()
	return s
}

// Offer gives the store a text that has ended: pages of it that the cache still has are written later. It waits for nothing. Where too many
// texts wait already, this one is left out.
func (s *Store) Offer(t *step.Terms, ids []token.ID) {
	if s == nil || t.Private || len(ids) < kv.PageTokens || s.until.Load() != 0 {
		return
	}
	select {
	case s.texts <- text{t.Salt, t.Adapted(), slices.Clone(ids)}:
		s.note(func(l *step.Prefixes) { l.Queued++ })
	default:
		s.note(func(l *step.Prefixes) { l.Dropped++ })
	}
}

// Close writes the texts that were offered, for five seconds at most. The cache is not used afterwards.
func (s *Store) Close() {
	if s == nil {
		return
	}
	s.end.Do(func() {
		s.until.Store(time.Now().Add(closeTime).UnixNano())
		close(s.closing)
	})
	if s.files.Load() != nil { // else nothing was begun, and the model's file may have to be closed before its identity is given up
		<-s.done
	}
}

// run writes the texts that are offered, once the identity of the model is known.
func (s *Store) run() {
	defer close(s.done)
	files, err := s.maker.Cache.Files()
	if err != nil {
		return
	}
	s.files.Store(files)
	if s.until.Load() != 0 {
		return // Close may have seen no files, and does not wait then
	}
	s.note(func(l *step.Prefixes) { l.Open = 1 })
	for {
		select {
		case t := <-s.texts:
			s.write(files.Text(t.salt, t.adapted, t.ids))
			continue
		case <-s.closing:
		}
		select {
		case t := <-s.texts: // of those offered before
			s.write(files.Text(t.salt, t.adapted, t.ids))
		default:
			return
		}
	}
}

// same reports whether the weights that steps read are those that the names of pages stand for: else pages are neither written nor read, and the log says so.
func (s *Store) same() bool {
	_, err := s.maker.Model.Info().Identity()
	if err != nil {
		s.note(func(l *step.Prefixes) { l.Failed++ })
		s.say("identity", "pages are neither read from the folder of prefixes nor written to it until the model is opened again", err)
	}
	return err == nil
}

// late reports whether the time to write has ended.
func (s *Store) late() bool {
	until := s.until.Load()
	return until != 0 && time.Now().UnixNano() > until
}

// note changes the figures.
func (s *Store) note(change func(*step.Prefixes)) {
	s.maker.Load.Note(func(l *step.Load) { change(&l.Prefixes) })
}

// say writes a line to the log, once for a subject.
func (s *Store) say(about, message string, err error) {
	s.mu.Lock()
	known := s.said[about] || len(s.said) >= mostSaid
	s.said[about] = true
	s.mu.Unlock()
	if !known {
		s.log.Warn(message, "error", err)
	}
}

// refuse counts a file that cannot be used, and removes it where it is a damaged file of a page, so that it is written anew.
func (s *Store) refuse(path string, err error) {
	s.note(func(l *step.Prefixes) { l.Refused++ })
	s.say(path, "a file of a page cannot be used", err)
	if errors.Is(err, errDamaged) {
		s.folder.remove(path)
	}
}
