package serving

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"grove"
	"grove/server/access"
	"grove/server/wire"
)

const maxSession = 100 // bytes of the name of a session

// sessionName matches the names of sessions, each the name of a file in the folder of sessions.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// keep sets the file of the session that a request names, if it names one. Where the server has keys, the sessions of each are in a
// folder of their own, whose name no session has.
func (p *Pool) keep(c *access.Caller, r *Spec) error {
	switch {
	case r.Session == "":
		return nil
	case p.config.Sessions == "":
		return wire.Unsupported("session", "the server keeps none (grove serve --session-dir)")
	case len(r.Session) > maxSession, !sessionName.MatchString(r.Session), !filepath.IsLocal(r.Session), strings.Contains(r.Session, ".tmp-"):
		return wire.Refuse("session", "session: %q is no name for one: up to %d letters, digits, '_', '-' and '.', which does not begin it; nor is %q in it",
			wire.Clip(r.Session), maxSession, ".tmp-")
	case r.N != 1 || len(r.Prompts) != 1:
		return wire.Refuse("session", "session: %d prompts with %d answers each; a session keeps one answer", len(r.Prompts), r.N)
	}
	folder := filepath.Join(p.config.Sessions, c.Folder())
	if c.Folder() != "" {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			p.config.Log.Error("session", "key", c.Name(), "error", err)
			return fmt.Errorf("%w: %w", grove.ErrSession, err)
		}
	}
	r.Prompts[0].Session = filepath.Join(folder, r.Session)
	return nil
}
