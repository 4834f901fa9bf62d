// Package remote is the link between two servers that compute one answer: a near one that drafts, and a far one that verifies. It has the
// frames of their protocol, a [Link] that carries them over connections that may break, the drafts that wait for their text, and the cost
// model that says how many to make (FlexSpec: frozen drafts meet evolving targets in edge-cloud collaborative speculative decoding). It knows
// neither HTTP nor models.
//
// A frame is its kind (a byte), its number and its length (unsigned variable-length integers), its payload, and the first 8 bytes of the
// sum of its direction: SHA-256 over the sum before, the kind, the number and the payload. The sum of what the far side sends begins with the
// near side's sum behind the request. So an answer that is not to this request, not in order, not whole, or changed on its way is found
// at its first frame. Frames of a connection itself have the number 0, 8 bytes of payload, and no sum.
package remote

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Version is the version of the protocol.
const Version = "grove-far-1"

// Kind says what a frame is.
type Kind byte

// The kinds of frames. The near side sends the first three, the far side the others.
const (
	KindRequest Kind = 1 + iota // a [Request], the first frame
	KindDrafts                  // [Drafts]
	KindCancel                  // the client has gone
	KindHead                    // a [Head] of the answer
	KindBody                    // bytes of the answer's body
	KindModel                   // the [Model] that computes
	KindStart                   // the [Start] of a text
	KindTokens                  // [Tokens]
	KindEnd                     // an [End]
	lastKind    = KindEnd
)

// The frames of a connection itself.
const (
	kindPing Kind = 0x80 + iota // the sender's clock in ns
	kindPong                    // the clock of the ping
	kindAck                     // the number of the last frame that was taken
)

// The bounds of payloads, in bytes.
const (
	MaxBody  = 1 << 10 // of a frame of an answer's body: what is lost with a connection is sent again by whole frames
	maxFrame = 1 << 20 // of a frame, but for requests, whose bound is [Config.Request]
)

// The errors of a link. They end it, and no connection mends them.
var (
	ErrDigest = errors.New("remote: the digest of a frame is not that of the request's answer: it was changed, or is to another request")
	ErrFrame  = errors.New("remote: a frame is invalid")
	ErrFlood  = errors.New("remote: more was sent than the link takes unread")
)

// Frame is a frame of a link.
type Frame struct {
	Kind    Kind
	Payload []byte
	number  uint64
	size    int // on the connection
}

const sumBytes = 8

type sum [sha256.Size]byte

// next returns the sum behind a frame.
func (s *sum) next(kind Kind, number uint64, payload []byte) sum {
	h := sha256.New()
	h.Write(s[:])
	h.Write(binary.LittleEndian.AppendUint64([]byte{byte(kind)}, number))
	h.Write(payload)
	var to sum
	h.Sum(to[:0])
	return to
}

// answer returns the sum that the answers to a request begin with.
func (s *sum) answer() sum { return s.next(0, 0, []byte("answer")) }

// seal appends a frame with the sum behind it.
func seal(dst []byte, kind Kind, number uint64, payload []byte, behind *sum) []byte {
	dst = append(dst, byte(kind))
	dst = binary.AppendUvarint(dst, number)
	dst = binary.AppendUvarint(dst, uint64(len(payload)))
	dst = append(dst, payload...)
	return append(dst, behind[:sumBytes]...)
}

// control appends a frame of the connection itself.
func control(dst []byte, kind Kind, value uint64) []byte {
	return binary.LittleEndian.AppendUint64(append(dst, byte(kind)), value)
}

// readFrame reads a frame, and the beginning of the sum that it has. A frame that ends in the middle is [io.ErrUnexpectedEOF]. Memory grows with
// the bytes that come, not with the length that is said.
func readFrame(r *bufio.Reader, request int) (f Frame, has [sumBytes]byte, err error) {
	kind, err := r.ReadByte()
	if err != nil {
		return f, has, err
	}
	f.Kind = Kind(kind)
	if f.Kind >= kindPing && f.Kind <= kindAck {
		_, err = io.ReadFull(r, has[:])
		f.number, f.size = binary.LittleEndian.Uint64(has[:]), 1+len(has)
		return f, has, broken(err)
	}
	if f.Kind == 0 || f.Kind > lastKind {
		return f, has, fmt.Errorf("%w: kind %d", ErrFrame, kind)
	}
	if f.number, err = readUvarint(r); err != nil {
		return f, has, err
	}
	n, err := readUvarint(r)
	most := maxFrame
	if f.Kind == KindRequest {
		most = request
	}
	switch {
	case err != nil:
		return f, has, err
	case n > uint64(most):
		return f, has, fmt.Errorf("%w: %d bytes, of %d at most", ErrFrame, n, most)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return f, has, broken(err)
	}
	f.Payload, f.size = b.Bytes(), 1+uvarintLen(f.number)+uvarintLen(n)+int(n)+sumBytes
	_, err = io.ReadFull(r, has[:])
	return f, has, broken(err)
}

func readUvarint(r *bufio.Reader) (uint64, error) {
	n, err := binary.ReadUvarint(r)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && err.Error() == "binary: varint overflows a 64-bit integer" {
		return 0, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return n, broken(err)
}

func uvarintLen(n uint64) int { return len(binary.AppendUvarint(nil, n)) }

// broken returns an error that says that a frame ended in the middle.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
