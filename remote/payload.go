package remote

import (
	"encoding/binary"
	"fmt"
	"time"

	"grove/text/token"
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
	Sampling    []byte // JSON, which this package does not read
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

// The payloads are the fields in their order: integers as unsigned variable-length integers, durations in microseconds, digests as 8
// bytes, lists and texts behind their length.

// Append appends the payload.
func (r *Request) Append(b []byte) []byte {
	b = appendText(appendText(b, r.Method), r.Path)
	b = appendText(appendTexts(b, r.Header), r.Salt)
	return append(appendTime(b, r.Wait), r.Body...)
}

// Parse reads the payload.
func (r *Request) Parse(b []byte) error {
	p := parser{b: b}
	*r = Request{Method: p.text(), Path: p.text(), Header: p.texts(), Salt: p.text(), Wait: p.time(), Body: p.rest()}
	return p.end()
}

// Append appends the payload.
func (h *Head) Append(b []byte) []byte { return appendTexts(appendInt(b, h.Status), h.Header) }

// Parse reads the payload.
func (h *Head) Parse(b []byte) error {
	p := parser{b: b}
	*h = Head{Status: p.int(), Header: p.texts()}
	if h.Status < 200 || h.Status > 599 {
		p.bad = true
	}
	return p.end()
}

// Append appends the payload.
func (m *Model) Append(b []byte) []byte {
	return appendText(appendText(appendText(appendText(b, m.Name), m.Weights), m.Vocabulary), m.Numerics)
}

// Parse reads the payload.
func (m *Model) Parse(b []byte) error {
	p := parser{b: b}
	*m = Model{Name: p.text(), Weights: p.text(), Vocabulary: p.text(), Numerics: p.text()}
	return p.end()
}

// Append appends the payload.
func (s *Start) Append(b []byte) []byte {
	b = appendIDs(appendInt(b, s.Answer), s.Text)
	return appendInt(appendText(b, string(s.Sampling)), s.SampleIndex)
}

// Parse reads the payload.
func (s *Start) Parse(b []byte) error {
	p := parser{b: b}
	*s = Start{Answer: p.answer(), Text: p.ids(), Sampling: []byte(p.text()), SampleIndex: p.int()}
	return p.end()
}

// Append appends the payload.
func (t *Tokens) Append(b []byte) []byte {
	b = appendInt(appendInt(appendInt(appendInt(b, t.Answer), t.At), t.Accepted), t.Rows)
	return binary.LittleEndian.AppendUint64(appendIDs(appendTime(b, t.Step), t.IDs), t.Digest)
}

// Parse reads the payload.
func (t *Tokens) Parse(b []byte) error {
	p := parser{b: b}
	*t = Tokens{Answer: p.answer(), At: p.int(), Accepted: p.int(), Rows: p.int(), Step: p.time(), IDs: p.ids(), Digest: p.digest()}
	if t.Accepted > len(t.IDs) {
		p.bad = true
	}
	return p.end()
}

// Append appends the payload.
func (d *Drafts) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(appendInt(appendInt(b, d.Answer), d.At), d.Digest)
	return appendIDs(appendTime(b, d.Wait), d.IDs)
}

// Parse reads the payload.
func (d *Drafts) Parse(b []byte) error {
	p := parser{b: b}
	*d = Drafts{Answer: p.answer(), At: p.int(), Digest: p.digest(), Wait: p.time(), IDs: p.ids()}
	return p.end()
}

// Append appends the payload.
func (e *End) Append(b []byte) []byte {
	whole := 0
	if e.Whole {
		whole = 1
	}
	return appendInt(appendInt(b, whole), e.Tokens)
}

// Parse reads the payload.
func (e *End) Parse(b []byte) error {
	p := parser{b: b}
	*e = End{Whole: p.int() == 1, Tokens: p.int()}
	return p.end()
}

func appendInt(b []byte, n int) []byte            { return binary.AppendUvarint(b, uint64(max(n, 0))) }
func appendTime(b []byte, d time.Duration) []byte { return appendInt(b, int(d.Microseconds())) }
func appendText(b []byte, s string) []byte        { return append(appendInt(b, len(s)), s...) }

func appendTexts(b []byte, all []string) []byte {
	b = appendInt(b, len(all))
	for _, s := range all {
		b = appendText(b, s)
	}
	return b
}

func appendIDs(b []byte, ids []token.ID) []byte {
	b = appendInt(b, len(ids))
	for _, id := range ids {
		b = appendInt(b, int(id))
	}
	return b
}

// parser reads a payload. It allocates no more than the payload is long, times a small factor.
type parser struct {
	b   []byte
	bad bool
}

// maxInt bounds integers: those that are larger make no sense.
const maxInt = 1<<31 - 1

func (p *parser) int() int {
	v, n := binary.Uvarint(p.b)
	if n <= 0 || v > maxInt {
		p.bad, p.b = true, nil
		return 0
	}
	p.b = p.b[n:]
	return int(v)
}

func (p *parser) answer() int {
	n := p.int()
	if n >= MaxAnswers {
		p.bad = true
	}
	return n
}

func (p *parser) time() time.Duration { return time.Duration(p.int()) * time.Microsecond }

// length reads the length of a list whose elements have a byte at least.
func (p *parser) length() int {
	n := p.int()
	if n > len(p.b) {
		p.bad, p.b = true, nil
		return 0
	}
	return n
}

func (p *parser) text() string {
	n := p.length()
	s := string(p.b[:n])
	p.b = p.b[n:]
	return s
}

func (p *parser) texts() (all []string) {
	for range p.length() {
		all = append(all, p.text())
	}
	if len(all)%2 != 0 {
		p.bad = true
	}
	return all
}

func (p *parser) ids() (ids []token.ID) {
	for range p.length() {
		ids = append(ids, token.ID(p.int()))
	}
	return ids
}

func (p *parser) digest() uint64 {
	if len(p.b) < 8 {
		p.bad, p.b = true, nil
		return 0
	}
	d := binary.LittleEndian.Uint64(p.b)
	p.b = p.b[8:]
	return d
}

func (p *parser) rest() []byte {
	b := p.b
	p.b = nil
	return b
}

func (p *parser) end() error {
	if p.bad || len(p.b) > 0 {
		return fmt.Errorf("%w: its payload", ErrFrame)
	}
	return nil
}
