package access

import (
	"bytes"
	"net/http"
)

// CloseMixed lets the connection of a request end with its answer where the header gives the body both a length and chunks (RFC 9112, section 6.3): a proxy before
// this server may have taken the other one, and what follows for a request of its own. Package net/http drops the length; below TLS
// the header cannot be seen, so that there every body in chunks ends its connection.
func CloseMixed(w http.ResponseWriter, r *http.Request) {
	c, ok := r.Context().Value(connectionKey{}).(*connection)
	if ok && r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 && (r.TLS != nil || c.mixedHeaders()) {
		w.Header().Set("Connection", "close")
	}
}

// headerScan looks for headers with both lengths in what a client sends. It takes each line that may be of a header for one: a body that looks like
// that ends a connection too early, and nothing else. The lock of its connection guards it.
type headerScan struct {
	line          []byte // the beginning of the line so far
	length, chunk bool   // the block of lines so far has a line with it
	mixed         bool   // a block has both
}

// longestName is how many bytes of a line are looked at.
const longestName = len("transfer-encoding:")

// add scans further bytes.
func (s *headerScan) add(p []byte) {
	for !s.mixed && len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		s.line = append(s.line, line[:min(len(line), longestName-len(s.line))]...)
		if p = rest; !ended {
			return
		}
		switch name, _, _ := bytes.Cut(s.line, []byte(":")); {
		case len(bytes.TrimSuffix(s.line, []byte("\r"))) == 0:
			s.length, s.chunk = false, false
		case bytes.EqualFold(name, []byte("content-length")):
			s.length = true
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			s.chunk = true
		}
		s.mixed, s.line = s.length && s.chunk, s.line[:0]
	}
}
