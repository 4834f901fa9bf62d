package remote

import (
	"encoding/binary"
	"fmt"
	"time"

	"grove/internal/text/token"
)

// Request is an HTTP request that the far side answers.
type Request struct {
	Method, Path string
	Header       []string // names and values in turn
	Salt         string   // sets its texts apart from those of other callers of the near side
	Wait         time.Duration
	Body         []byte
}

// Head is the beginning of the answer to a request.
type Head struct {
	Status int
	Header []string // names and values in turn
}

// Model says which model computes, and by which arithmetic.
type Model struct {
	Name       string
	Weights    string // names its hyperparameters and weights
	Vocabulary string // the digest of its tokens
	Numerics   string // the version of the arithmetic
}

// Start is the text that an answer begins with, and how its tokens are drawn.
type Start struct {
	Answer      int
	Text        []token.ID
	Sampling    string // JSON, which this package does not read
	SampleIndex int
}

// Tokens are tokens that have become text.
type Tokens struct {
	Answer   int
	At       int // the index of the first one
	Accepted int // of them, that were drafts of the near side
	Rows     int // of the step that drew them
	Step     time.Duration
	IDs      []token.ID
	Digest   uint64 // of the whole text, with them; see [Digest]
}

// Drafts are tokens that may follow a text.
type Drafts struct {
	Answer int
	At     int           // the index of the first one
	Digest uint64        // of the text before them
	Wait   time.Duration // how long a step may wait for drafts, from now on
	IDs    []token.ID
}

// End is the end of an answer.
type End struct {
	Whole  bool // false: it was cut off
	Tokens int  // of the prompts and the answers
}

// MaxAnswers bounds the numbers of the texts of a request that are drafted.
const MaxAnswers = 64

// Digest extends the digest of a text by tokens; that of an empty one is 0. It tells texts apart that differ by chance. Nothing but
// speed depends on it: the sums of the frames guard the text.
func Digest(d uint64, ids []token.ID) uint64 {
	for _, id := range ids {
		d = (d ^ uint64(id) + 1) * 0x9e3779b97f4a7c15
		d ^= d >> 29
	}
	return d
}

// Payload is the content of the frames of a kind.
type Payload interface {
	// fields gives the fields to a codec in their order.
	fields(c *codec)
}

// Append appends a payload: integers as unsigned variable-length integers, durations in microseconds, digests as 8 bytes, lists and texts behind
// their length.
func Append(b []byte, p Payload) []byte {
	c := codec{b: b, writes: true}
	p.fields(&c)
	return c.b
}

// Parse reads a payload that [Append] has made. Its error is [ErrFrame].
func Parse(b []byte, p Payload) error {
	c := codec{b: b}
	if p.fields(&c); c.bad || len(c.b) > 0 {
		return fmt.Errorf("%w: its payload", ErrFrame)
	}
	return nil
}

func (r *Request) fields(c *codec) {
	c.text(&r.Method)
	c.text(&r.Path)
	c.texts(&r.Header)
	c.text(&r.Salt)
	c.time(&r.Wait)
	c.rest(&r.Body)
}

func (h *Head) fields(c *codec) {
	c.int(&h.Status)
	c.texts(&h.Header)
	c.check(h.Status >= 200 && h.Status < 600)
}

func (m *Model) fields(c *codec) {
	c.text(&m.Name)
	c.text(&m.Weights)
	c.text(&m.Vocabulary)
	c.text(&m.Numerics)
}

func (s *Start) fields(c *codec) {
	c.answer(&s.Answer)
	c.ids(&s.Text)
	c.text(&s.Sampling)
	c.int(&s.SampleIndex)
}

func (t *Tokens) fields(c *codec) {
	c.answer(&t.Answer)
	c.int(&t.At)
	c.int(&t.Accepted)
	c.int(&t.Rows)
	c.time(&t.Step)
	c.ids(&t.IDs)
	c.digest(&t.Digest)
	c.check(t.Accepted <= len(t.IDs))
}

func (d *Drafts) fields(c *codec) {
	c.answer(&d.Answer)
	c.int(&d.At)
	c.digest(&d.Digest)
	c.time(&d.Wait)
	c.ids(&d.IDs)
}

func (e *End) fields(c *codec) {
	whole := 0
	if e.Whole {
		whole = 1
	}
	c.int(&whole)
	c.int(&e.Tokens)
	e.Whole = whole == 1
}

// codec appends the fields of a payload, which it leaves as they are, or reads them. What it reads takes no more memory than the payload is long,
// times a small factor.
type codec struct {
	b      []byte // what was appended, or is left to read
	writes bool
	bad    bool // what was read makes no sense
}

// maxInt bounds integers: those that are larger make no sense.
const maxInt = 1<<31 - 1

// check says whether what was read makes sense.
func (c *codec) check(ok bool) {
	if !ok {
		c.bad = true
	}
}

func (c *codec) int(n *int) {
	if c.writes {
		c.b = binary.AppendUvarint(c.b, uint64(max(*n, 0)))
		return
	}
	v, size := binary.Uvarint(c.b)
	if size <= 0 || v > maxInt {
		v, size, c.bad = 0, len(c.b), true
	}
	*n, c.b = int(v), c.b[size:]
}

func (c *codec) answer(n *int) {
	c.int(n)
	c.check(*n < MaxAnswers)
}

func (c *codec) time(d *time.Duration) {
	n := int(d.Microseconds())
	if c.int(&n); !c.writes {
		*d = time.Duration(n) * time.Microsecond
	}
}

// length returns the length of a list, whose elements have a byte at least: n, or the one that is read.
func (c *codec) length(n int) int {
	if c.int(&n); !c.writes && n > len(c.b) {
		n, c.b, c.bad = 0, nil, true
	}
	return n
}

func (c *codec) text(s *string) {
	n := c.length(len(*s))
	if c.writes {
		c.b = append(c.b, *s...)
		return
	}
	*s, c.b = string(c.b[:n]), c.b[n:]
}

// texts are names and values in turn.
func (c *codec) texts(all *[]string) {
	n := c.length(len(*all))
	if !c.writes {
		*all = make([]string, n)
	}
	for i := range n {
		c.text(&(*all)[i])
	}
	c.check(n%2 == 0)
}

func (c *codec) ids(all *[]token.ID) {
	n := c.length(len(*all))
	if !c.writes {
		*all = make([]token.ID, n)
	}
	for i := range n {
		id := int((*all)[i])
		if c.int(&id); !c.writes {
			(*all)[i] = token.ID(id)
		}
	}
}

func (c *codec) digest(d *uint64) {
	switch {
	case c.writes:
		c.b = binary.LittleEndian.AppendUint64(c.b, *d)
	case len(c.b) < 8:
		*d, c.b, c.bad = 0, nil, true
	default:
		*d, c.b = binary.LittleEndian.Uint64(c.b), c.b[8:]
	}
}

// rest is the last field: bytes up to the end, a part of the payload where they are read.
func (c *codec) rest(b *[]byte) {
	if c.writes {
		c.b = append(c.b, *b...)
		return
	}
	*b, c.b = c.b, nil
}
