package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// firstRead is the size of the buffer that a body is read into at first, in bytes.
const firstRead = 4 << 10

// ReadBody reads the body of a request, of most bytes. Before it takes more memory than for its first bytes it calls hold with the bytes of
// all, which waits until there is memory for them, and again with the length of the body.
func ReadBody(w http.ResponseWriter, r *http.Request, most int64, hold func(n int64) error) ([]byte, error) {
	from := http.MaxBytesReader(w, r.Body, most)
	body := make([]byte, 0, firstRead)
	for {
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case err == io.EOF:
			return body, hold(int64(len(body)))
		case err != nil:
			return nil, bodyError(err)
		case len(body) < cap(body):
			continue
		}
		size := int(min(int64(2*len(body)), most+1)) // one more: more than most bytes are an error before there is room for them
		if r.ContentLength <= int64(2*size) {
			size = max(size, int(r.ContentLength)+1) // one more: the end is seen without more room
		}
		if err := hold(int64(size)); err != nil {
			return nil, err
		}
		body = append(make([]byte, 0, size), body...)
	}
}

// bodyError returns the answer to a body that cannot be read.
func bodyError(err error) error {
	large, api := new(http.MaxBytesError), new(Error)
	switch {
	case errors.As(err, &api):
		return api
	case errors.As(err, &large):
		return &Error{
			Status: http.StatusRequestEntityTooLarge, Type: TypeInvalid, Code: "body_too_large", Message: fmt.Sprintf("the body has more than %d bytes", large.Limit),
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Error{Status: http.StatusRequestTimeout, Type: TypeInvalid, Code: "request_timeout", Message: "the body did not come in time"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return Refuse("", "the body is cut off: it ends before its length")
	}
	return Refuse("", "the body cannot be read")
}
