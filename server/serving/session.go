package serving

import (
	"path/filepath"
	"regexp"
	"strings"

	"grove/server/wire"
)

// sessionName is what a session may be called: the name is a file's, and a file's alone.
var sessionName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

// keep has the answer of a request kept in the session that it names. A session is of one text.
func (p *Pool) keep(o *Order) error {
	switch {
	case o.Session == "":
		return nil
	case p.config.Sessions == "":
		return wire.Unsupported("session", "the server keeps none (grove serve --session-dir)")
	case !sessionName.MatchString(o.Session), !filepath.IsLocal(o.Session), strings.Contains(o.Session, ".tmp-"):
		return wire.Refuse("session", "session: %q is no name for one: up to 100 letters, digits, '_', '-' and '.', which does not begin it; nor is %q in it", wire.Clip(o.Session), ".tmp-")
	case o.N != 1 || len(o.Requests) != 1:
		return wire.Refuse("session", "session: %d prompts with %d answers each; a session keeps one answer", len(o.Requests), o.N)
	}
	o.Requests[0].Session = filepath.Join(p.config.Sessions, o.Session)
	return nil
}
