package pull

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
)

// Digest is the hash of a file's content. The zero value is an unknown one.
type Digest struct {
	kind, hex string
}

// ParseDigest reads a digest as registries write it: sha256: and 64 hexadecimal digits.
func ParseDigest(text string) (Digest, error) {
	digits, ok := strings.CutPrefix(text, "sha256:")
	if !ok || !isHex(digits, 2*sha256.Size) {
		return Digest{}, fmt.Errorf("%.80q is not a digest: it must be sha256: and 64 hexadecimal digits", text)
	}
	return Digest{"sha256", digits}, nil
}

// ParseGit reads the name that git gives to a file's content: 40 hexadecimal digits.
func ParseGit(text string) (Digest, error) {
	if !isHex(text, 2*sha1.Size) {
		return Digest{}, fmt.Errorf("%.80q is not an object of git: it must be 40 hexadecimal digits", text)
	}
	return Digest{"git", text}, nil
}

// isHex reports whether a text has n hexadecimal digits and nothing else.
func isHex(text string, n int) bool {
	return len(text) == n && strings.Trim(text, "0123456789abcdef") == ""
}

// String returns the digest with its kind, "" for an unknown one.
func (d Digest) String() string {
	if d.kind == "" {
		return ""
	}
	return d.kind + ":" + d.hex
}

// Hex returns the digits, "" for an unknown digest.
func (d Digest) Hex() string { return d.hex }

// hasher returns the hash function of a digest for content of a size.
func (d Digest) hasher(size int64) hash.Hash {
	if d.kind == "git" {
		h := sha1.New()
		fmt.Fprintf(h, "blob %d\x00", size)
		return h
	}
	return sha256.New()
}

// check returns an error if a hash is not that of the digest.
func (d Digest) check(h hash.Hash) error {
	if got := hex.EncodeToString(h.Sum(nil)); d.kind != "" && got != d.hex {
		return &digestError{got, d.String()}
	}
	return nil
}

// digestError reports content with another hash.
type digestError struct{ got, want string }

// Error names both hashes.
func (e *digestError) Error() string {
	return fmt.Sprintf("the content has the hash %s, and %s was promised; what came is removed", e.got, e.want)
}
