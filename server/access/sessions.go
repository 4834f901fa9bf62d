package access

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"grove"
	"grove/server/wire"
)

// Sessions is the folder of the files of sessions. Where the server has keys, those of each are in a folder of their own, whose name no
// session has. It is safe for concurrent use.
type Sessions struct {
	Dir   string // "": requests may name no session
	Most  int    // sessions of a key; 0: any number
	Bytes int64  // of all files; 0: any number
}

const maxSession = 100 // bytes of the name of a session

// sessionName matches the names of sessions, each the name of a file in the folder of sessions.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// path returns the file of a caller's session.
func (s Sessions) path(c *Caller, name string) (string, error) {
	switch {
	case s.Dir == "":
		return "", wire.Unsupported("session", "the server keeps none (grove serve --session-dir)")
	case len(name) > maxSession, !sessionName.MatchString(name), !filepath.IsLocal(name), strings.Contains(name, ".tmp-"):
		return "", wire.Refuse("session", "session: %q is no name for one: up to %d letters, digits, '_', '-' and '.', which does not begin it; nor is %q in it",
			wire.Clip(name), maxSession, ".tmp-")
	}
	return filepath.Join(s.Dir, c.Folder(), name), nil
}

// Keep returns the file of a caller's session that is to be read and written. It makes the caller's folder. It refuses a name that is
// that of no regular file, such as a link to elsewhere, and a session beside which others are as many, or as large, as the server keeps.
// Answers under way may pass these bounds by what they add. Errors: a [*wire.Error], the file system's.
func (s Sessions) Keep(c *Caller, name string) (path string, err error) {
	if path, err = s.path(c, name); err != nil {
		return "", err
	}
	if c.Folder() != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", err
		}
	}
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		e := wire.ErrorOf(grove.ErrSession)
		e.Message += ": what has its name is no regular file"
		return "", e
	}
	full := func(format string, args ...any) error {
		return &wire.Error{
			Status: http.StatusInsufficientStorage, Type: wire.TypeInvalid, Param: "session", Code: "sessions_full",
			Message: "session: " + fmt.Sprintf(format, args...) + "; DELETE /sessions/NAME makes room",
		}
	}
	if n := len(sessionsIn(filepath.Dir(path))); err != nil && s.Most > 0 && n >= s.Most {
		return "", full("there are %d, and the server keeps at most %d (--max-sessions)", n, s.Most)
	}
	if n := s.others(path); s.Bytes > 0 && n >= s.Bytes {
		return "", full("all others have %d bytes, and the server keeps at most %d (--max-session-bytes)", n, s.Bytes)
	}
	return path, nil
}

// others returns the bytes of all files but one. What cannot be read is not counted.
func (s Sessions) others(but string) (n int64) {
	_ = filepath.WalkDir(s.Dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || at == but || !e.Type().IsRegular() {
			return nil
		}
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}

// sessionsIn returns the sessions of a folder by name.
func sessionsIn(folder string) []fs.DirEntry {
	entries, _ := os.ReadDir(folder) // a caller without sessions may have no folder
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return !e.Type().IsRegular() || !sessionName.MatchString(e.Name()) || strings.Contains(e.Name(), ".tmp-")
	})
}

// Session is a session in a list.
type Session struct {
	Name  string    `json:"name"`
	Bytes int64     `json:"bytes"`
	Saved time.Time `json:"saved"`
}

// List returns the caller's sessions by name.
func (s Sessions) List(c *Caller) ([]Session, error) {
	path, err := s.path(c, "x")
	if err != nil {
		return nil, err
	}
	all := []Session{}
	for _, e := range sessionsIn(filepath.Dir(path)) {
		if info, err := e.Info(); err == nil { // else it was deleted meanwhile
			all = append(all, Session{e.Name(), info.Size(), info.ModTime().UTC()})
		}
	}
	return all, nil
}

// Delete deletes a session of the caller.
func (s Sessions) Delete(c *Caller, name string) error {
	path, err := s.path(c, name)
	if err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err == nil && info.Mode().IsRegular() {
		err = os.Remove(path)
	} else {
		err = fs.ErrNotExist
	}
	switch {
	case os.IsNotExist(err):
		return &wire.Error{Status: http.StatusNotFound, Type: wire.TypeInvalid, Param: "session", Code: "not_found", Message: "session: there is no " + name}
	case err != nil:
		return fmt.Errorf("%w: %w", grove.ErrSession, err)
	}
	return nil
}
