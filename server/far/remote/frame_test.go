package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grove/internal/text/token"
)

// payloads returns one empty payload of each kind.
func payloads() []Payload {
	return []Payload{&Request{}, &Head{}, &Model{}, &Start{}, &Tokens{}, &Drafts{}, &End{}}
}

// TestPayloads reads what was written.
func TestPayloads(t *testing.T) {
	for i, want := range []Payload{
		&Request{Method: "POST", Path: "/v1/completions?a=b", Header: []string{"A", "b", "A", ""}, Salt: "s", Wait: 3 * time.Millisecond, Body: []byte("{}")},
		&Head{Status: 429, Header: []string{"Retry-After", "1"}},
		&Model{Name: "m", Weights: "00ff", Vocabulary: "aa", Numerics: "n"},
		&Start{Answer: 63, Text: []token.ID{0, 1, math.MaxInt32}, Sampling: "{}", SampleIndex: 7},
		&Tokens{Answer: 1, At: 300, Accepted: 1, Rows: 3, Step: time.Second, IDs: []token.ID{5, 128000}, Digest: math.MaxUint64},
		&Drafts{Answer: 2, At: 1 << 20, Digest: 1, Wait: time.Minute, IDs: []token.ID{9}},
		&End{Whole: true, Tokens: 12},
	} {
		b, got := Append(nil, want), payloads()[i]
		if err := Parse(b, got); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%T: %v\n%s", want, err, cmp.Diff(want, got))
		}
		if _, open := want.(*Request); !open && Parse(append(b, 0), got) == nil {
			t.Errorf("%T: a byte too many is taken", want)
		}
		for n := range b {
			if err := Parse(b[:n], got); err != nil && !errors.Is(err, ErrFrame) {
				t.Errorf("%T of %d bytes: %v", want, n, err)
			}
		}
	}
	for name, bad := range map[string]error{
		"a status":                 Parse(Append(nil, &Head{Status: 100}), new(Head)),
		"more accepted than there": Parse(Append(nil, &Tokens{Accepted: 1}), new(Tokens)),
		"the answer":               Parse(Append(nil, &Drafts{Answer: MaxAnswers}), new(Drafts)),
		"a name without a value":   Parse(Append(nil, &Head{Status: 200, Header: []string{"a"}}), new(Head)),
	} {
		if !errors.Is(bad, ErrFrame) {
			t.Errorf("%s: %v", name, bad)
		}
	}
}

// TestDigest tells texts apart that differ in a token, in the order and in the length.
func TestDigest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOf(rapid.Map(rapid.IntRange(0, 200000), func(i int) token.ID { return token.ID(i) })).Draw(t, "a")
		b := rapid.SliceOf(rapid.Map(rapid.IntRange(0, 200000), func(i int) token.ID { return token.ID(i) })).Draw(t, "b")
		if slices.Equal(a, b) != (Digest(0, a) == Digest(0, b)) {
			t.Fatalf("%v and %v", a, b)
		}
		if whole := slices.Concat(a, b); Digest(Digest(0, a), b) != Digest(0, whole) {
			t.Fatal("the digest of a text depends on its parts")
		}
	})
}

// TestFrames reads frames as they were sealed; cut off anywhere they are broken, and changed anywhere their sum is another.
func TestFrames(t *testing.T) {
	var s sum
	body := []byte("0123456789")
	to := s.next(KindBody, 300, body)
	sealed := seal(nil, KindBody, 300, body, &to)
	f, has, err := readFrame(bufio.NewReader(bytes.NewReader(sealed)), 0)
	if err != nil || f.Kind != KindBody || f.number != 300 || !bytes.Equal(f.Payload, body) || f.size != len(sealed) || has != [8]byte(to[:8]) {
		t.Fatalf("%+v %v", f, err)
	}
	for n := range sealed {
		if _, _, err := readFrame(bufio.NewReader(bytes.NewReader(sealed[:n])), 0); n == 0 && err != io.EOF || n > 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", n, err)
		}
		for bit := range 8 {
			changed := slices.Clone(sealed)
			changed[n] ^= 1 << bit
			f, has, err := readFrame(bufio.NewReader(bytes.NewReader(append(changed, make([]byte, 8)...))), 0)
			if to := s.next(f.Kind, f.number, f.Payload); err == nil && f.Kind < kindPing && [8]byte(to[:8]) == has {
				t.Errorf("bit %d of byte %d changes nothing", bit, n)
			}
		}
	}
	if _, _, err := readFrame(bufio.NewReader(bytes.NewReader([]byte{byte(KindBody), 1, 0xff, 0xff, 0xff, 0x7f})), 0); !errors.Is(err, ErrFrame) {
		t.Errorf("a long frame: %v", err)
	}
	if _, _, err := readFrame(bufio.NewReader(bytes.NewReader(bytes.Repeat([]byte{0xff}, 20)[:])), 0); !errors.Is(err, ErrFrame) {
		t.Errorf("an unknown kind: %v", err)
	}
}

// FuzzFrame reads frames and payloads from bytes: errors, no panics, and no more memory than a factor of the bytes.
func FuzzFrame(f *testing.F) {
	var s sum
	for i, p := range payloads() {
		f.Add(seal(nil, Kind(i+1), uint64(i), Append(nil, p), &s))
	}
	f.Add(control(control(nil, kindPing, 1), kindAck, math.MaxUint64))
	f.Add([]byte{byte(KindRequest), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		for {
			f, _, err := readFrame(r, 1<<20)
			if err != nil {
				return
			}
			for _, p := range payloads() {
				if Parse(f.Payload, p) != nil {
					continue
				}
				again := Append(nil, p)
				if Parse(again, p) != nil {
					t.Fatalf("%T: what was read cannot be written", p)
				}
			}
		}
	})
}

// TestWaiting compares the drafts that wait with those that are found by looking at the whole texts.
func TestWaiting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 1))
		ids := func(n int) (ids []token.ID) {
			for range n {
				ids = append(ids, token.ID(r.IntN(2)))
			}
			return ids
		}
		text := ids(1 + r.IntN(4))
		var drafts []token.ID // that follow the text
		var w Waiting
		w.Begin(text)
		for range 30 {
			if r.IntN(2) == 0 {
				own := slices.Concat(text, drafts) // of the near side, which may be behind, or wrong
				own = own[:r.IntN(len(own)+1)]
				if r.IntN(4) == 0 {
					own = append(own, ids(1)...)
				}
				d := Drafts{At: len(own), Digest: Digest(0, own), IDs: ids(1 + r.IntN(4))}
				if r.IntN(4) == 0 && len(own) < len(text) {
					d.IDs = slices.Concat(text[len(own):], d.IDs)
				}
				whole := slices.Concat(own, d.IDs)
				known := slices.Concat(text, drafts)
				fits := len(own) <= len(known) && slices.Equal(own, known[:len(own)]) && len(whole) > len(text) && slices.Equal(whole[:len(text)], text)
				if got := w.Add(d); got != fits {
					t.Fatalf("text %v, drafts %v: %v behind %v: %v", text, drafts, d.IDs, own, got)
				}
				if fits {
					drafts = whole[len(text):]
				}
			} else {
				add := ids(1 + r.IntN(3))
				if r.IntN(2) == 0 && len(drafts) > 0 {
					add = drafts[:1+r.IntN(len(drafts))]
				}
				add = slices.Clone(add)
				n := 0
				for n < min(len(add), len(drafts)) && add[n] == drafts[n] {
					n++
				}
				if got := w.Commit(add); got != n {
					t.Fatalf("%d of the drafts became text, want %d", got, n)
				}
				text = append(text, add...)
				if drafts = drafts[n:]; n < len(add) {
					drafts = nil
				}
			}
			if !slices.Equal(w.Drafts(), drafts) || w.Len() != len(text) || w.Digest() != Digest(0, text) {
				t.Fatalf("text %v: drafts %v, want %v", text, w.Drafts(), drafts)
			}
		}
	})
	var w Waiting
	w.Begin([]token.ID{1})
	if w.Add(Drafts{At: 1, Digest: w.Digest(), IDs: make([]token.ID, 2*MaxDrafts)}); len(w.Drafts()) != MaxDrafts {
		t.Errorf("%d drafts wait", len(w.Drafts()))
	}
}
