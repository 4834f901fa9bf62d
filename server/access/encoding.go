package access

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"grove/server/wire"
)

// encodingHeader says how a body is compressed.
const encodingHeader = "Content-Encoding"

// Unpack lets the body of a request that is compressed by gzip be read decompressed, and refuses one that is compressed by something else with 415, and with the encoding that is
// taken as a header of the answer. A body that cannot be decompressed is an error of reading it, a [*wire.Error].
func Unpack(answer http.Header, r *http.Request) error {
	encodings := r.Header.Values(encodingHeader)
	switch {
	case r.ContentLength == 0 || len(encodings) == 0:
		return nil
	case len(encodings) == 1 && (encodings[0] == "" || strings.EqualFold(encodings[0], "identity")):
		return nil
	case len(encodings) == 1 && (strings.EqualFold(encodings[0], "gzip") || strings.EqualFold(encodings[0], "x-gzip")):
		r.Header.Del(encodingHeader)
		r.Body = &unpacked{Closer: r.Body, packed: counted{Reader: r.Body}}
		r.ContentLength = -1
		return nil
	}
	answer.Set("Accept-Encoding", "gzip")
	return &wire.Error{
		Status: http.StatusUnsupportedMediaType, Type: wire.TypeInvalid, Code: "unsupported_encoding",
		Message: fmt.Sprintf("the header %s is %q; send the body without it, or by gzip", encodingHeader, wire.Clip(strings.Join(encodings, ", "))),
	}
}

// unpacked is a body that is decompressed as it is read.
type unpacked struct {
	io.Closer

	packed counted
	plain  *gzip.Reader // nil: nothing was read
	bytes  int64        // that were read of it
}

// errPacked reports a body that is not what its header says.
var errPacked = wire.Refuse("", "the body is not that of gzip, which the header %s names, or is damaged", encodingHeader)

// Read implements [io.Reader].
func (u *unpacked) Read(p []byte) (n int, err error) {
	u.packed.most = 64<<10 + 4*u.bytes // empty parts could go on for ever
	if u.plain == nil {
		if u.plain, err = gzip.NewReader(&u.packed); err != nil {
			u.plain = nil
			return 0, packedError(err)
		}
	}
	n, err = u.plain.Read(p)
	u.bytes += int64(n)
	return n, packedError(err)
}

// counted reads no more than most bytes.
type counted struct {
	io.Reader
	bytes, most int64
}

// Read implements [io.Reader].
func (c *counted) Read(p []byte) (int, error) {
	if c.bytes > c.most {
		return 0, errPacked
	}
	n, err := c.Reader.Read(p)
	c.bytes += int64(n)
	return n, err
}

// packedError returns an error of a compressed body, where it is its form's, as an answer.
func packedError(err error) error {
	var damaged flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &damaged) {
		return errPacked
	}
	return err
}
