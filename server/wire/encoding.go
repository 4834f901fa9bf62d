package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// encodingHeader says how a body is compressed.
const encodingHeader = "Content-Encoding"

// CheckEncoding refuses a request whose body is compressed by something else than gzip, with 415 and the encoding that is taken as a header of the
// answer.
func CheckEncoding(answer http.Header, r *http.Request) error {
	encodings := r.Header.Values(encodingHeader)
	if r.ContentLength == 0 || len(encodings) == 0 || len(encodings) == 1 && (isPlain(encodings[0]) || isGzip(encodings[0])) {
		return nil
	}
	answer.Set("Accept-Encoding", "gzip")
	return &Error{
		Status: http.StatusUnsupportedMediaType, Type: TypeInvalid, Code: "unsupported_encoding",
		Message: fmt.Sprintf("the header %s is %q; send the body without it, or by gzip", encodingHeader, Clip(strings.Join(encodings, ", "))),
	}
}

func isPlain(encoding string) bool { return encoding == "" || strings.EqualFold(encoding, "identity") }

// isGzip reports whether an encoding is gzip, which has two names.
func isGzip(encoding string) bool {
	return strings.EqualFold(encoding, "gzip") || strings.EqualFold(encoding, "x-gzip")
}

// Unpack makes the body of a request that is compressed by gzip plain, as it is read. Neither form may have more than most bytes. A request whose body is
// plain stays as it is.
func Unpack(w http.ResponseWriter, r *http.Request, most int64) {
	if encodings := r.Header.Values(encodingHeader); r.ContentLength == 0 || len(encodings) == 0 || !isGzip(encodings[0]) {
		return
	}
	r.Header.Del(encodingHeader)
	r.Body = &unpacked{Closer: r.Body, packed: http.MaxBytesReader(w, r.Body, most)}
	r.ContentLength = -1
}

// unpacked is a body that is decompressed as it is read.
type unpacked struct {
	io.Closer

	packed io.Reader
	plain  *gzip.Reader // nil: nothing was read
}

// errPacked reports a body that is not what its header says.
var errPacked = Refuse("", "the body is not that of gzip, which the header %s names, or is damaged", encodingHeader)

// Read implements [io.Reader].
func (u *unpacked) Read(p []byte) (n int, err error) {
	if u.plain == nil {
		if u.plain, err = gzip.NewReader(u.packed); err != nil {
			u.plain = nil
			return 0, packedError(err)
		}
	}
	n, err = u.plain.Read(p)
	return n, packedError(err)
}

// packedError returns an error of a compressed body, where it is its form's, as an answer.
func packedError(err error) error {
	var damaged flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &damaged) {
		return errPacked
	}
	return err
}

// packings are the first bytes of the forms of compressed bodies, none of which begins a text.
var packings = []struct{ name, begin string }{{"gzip", "\x1f\x8b"}, {"zstd", "\x28\xb5\x2f\xfd"}, {"xz", "\xfd7zXZ"}, {"bzip2", "BZh"}, {"zip", "PK\x03\x04"}}

// checkPlain refuses a body that is compressed where its header does not say so.
func checkPlain(body []byte) error {
	for _, p := range packings {
		if bytes.HasPrefix(body, []byte(p.begin)) {
			return Refuse("", "the body begins as one that is compressed by %s, and the header %s does not say so; send it plain, or by gzip with %s: gzip", p.name, encodingHeader, encodingHeader)
		}
	}
	return nil
}
