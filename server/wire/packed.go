package wire

import "strings"

// packings are the first bytes of the forms of compressed bodies, none of which begins a text.
var packings = []struct{ name, begin string }{{"gzip", "\x1f\x8b"}, {"zstd", "\x28\xb5\x2f\xfd"}, {"xz", "\xfd7zXZ"}, {"bzip2", "BZh"}, {"zip", "PK\x03\x04"}}

// checkPlain refuses a body that is compressed where its header does not say so.
func checkPlain(body []byte) error {
	begin := string(body[:min(len(body), 8)])
	for _, p := range packings {
		if strings.HasPrefix(begin, p.begin) {
			return Refuse("", "the body begins as one that is compressed by %s, and the header Content-Encoding does not say so; send it plain, or by gzip with Content-Encoding: gzip", p.name)
		}
	}
	return nil
}
