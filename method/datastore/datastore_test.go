package datastore

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

// numbers is a tokenizer of n tokens.
func numbers(tb testing.TB, n int) *tokenizer.Tokenizer {
	tb.Helper()
	v := tokenizer.Vocab{
		Model: "llama", BOS: token.None, EOS: 0, EOT: token.None, EOM: token.None, UNK: token.None, SEP: token.None, FIM: tokenizer.NoFIM,
		Scores: make([]float32, n),
	}
	for i := range n {
		v.Tokens = append(v.Tokens, strconv.Itoa(i))
	}
	t, err := tokenizer.New(v)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// write returns the bytes of a datastore.
func write(tb testing.TB, vocabulary int, texts ...[]token.ID) []byte {
	tb.Helper()
	b := NewBuilder(numbers(tb, vocabulary))
	for _, text := range texts {
		if err := b.Add(text); err != nil {
			tb.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := b.Write(&out); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func parse(tb testing.TB, b []byte) *Store {
	tb.Helper()
	s, err := Parse(b)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// follows returns what follows a run, and how often.
func follows(s *Store, r Range) map[token.ID]int {
	got := map[token.ID]int{}
	for _, next := range s.Next(nil, r) {
		got[next.ID] += next.Count()
	}
	return got
}

func TestExample(t *testing.T) {
	s := parse(t, write(t, 10, []token.ID{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 5, 6}))
	r := s.Longest([]token.ID{9, 2, 3}, 2, 16)
	if r.Count() != 3 || r.Length != 2 {
		t.Fatalf("2 3 occurs %d times, want 3", r.Count())
	}
	if diff := cmp.Diff(map[token.ID]int{4: 2, 5: 1}, follows(s, r)); diff != "" {
		t.Errorf("behind 2 3 (-want +got):\n%s", diff)
	}
	if r := s.Longest([]token.ID{9, 3}, 2, 16); r.Count() != 0 {
		t.Errorf("9 3 occurs %d times", r.Count())
	}
}

// TestSearch compares with a search of random texts, of vocabularies with tokens of two bytes and of four.
func TestSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for _, vocabulary := range []int{6, 1 << 16} {
		for range 30 {
			var texts [][]token.ID
			for range rng.IntN(4) {
				text := make([]token.ID, rng.IntN(200))
				for i := range text {
					text[i] = token.ID(vocabulary - 1 - rng.IntN(1+rng.IntN(5)))
				}
				texts = append(texts, text)
			}
			s := parse(t, write(t, vocabulary, texts...))
			if tokens, n := s.Tokens(); n != len(texts) || tokens != len(slices.Concat(texts...)) {
				t.Fatalf("%d tokens of %d texts", tokens, n)
			}
			for range 50 {
				query := make([]token.ID, rng.IntN(8))
				for i := range query {
					query[i] = token.ID(vocabulary - 1 - rng.IntN(3))
				}
				compare(t, s, texts, query)
			}
		}
	}
}

// compare compares the longest end of a query that occurs, and what follows it, with a search.
func compare(t *testing.T, s *Store, texts [][]token.ID, query []token.ID) {
	t.Helper()
	r := s.Longest(query, 2, 16)
	for n := len(query); n >= 2; n-- {
		count, want := 0, map[token.ID]int{}
		for _, text := range texts {
			for i := range len(text) - n + 1 {
				if slices.Equal(text[i:i+n], query[len(query)-n:]) {
					count++
					if i+n < len(text) {
						want[text[i+n]]++
					}
				}
			}
		}
		if count == 0 {
			continue
		}
		if int(r.Length) != n || r.Count() != count {
			t.Fatalf("%v: %d tokens occur %d times, want %d, %d times", query, r.Length, r.Count(), n, count)
		}
		got := follows(s, r)
		for id := range token.ID(s.vocabulary) {
			if id > 5 && int(id) < int(s.vocabulary)-6 {
				continue
			}
			if then := s.Then(r, id); then.Count() != want[id] {
				t.Fatalf("%v: %d follows %d times, want %d", query, id, then.Count(), want[id])
			}
		}
		for id, n := range want {
			if got[id] != n && (got[id] != 0 || n*probes >= count) {
				t.Fatalf("%v: %d follows %d times of %d, want %d", query, id, got[id], count, n)
			}
		}
		return
	}
	if r.Count() > 0 {
		t.Fatalf("%v: %d tokens occur", query, r.Length)
	}
}

// TestFile: a file is read in place, is refused for another tokenizer, and is an error where it shrinks.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	text := slices.Repeat([]token.ID{1, 2, 3, 4, 5}, 10_000)
	if err := os.WriteFile(path, write(t, 10, text), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(numbers(t, 10)); err != nil {
		t.Error(err)
	}
	if err := s.Check(numbers(t, 11)); err == nil || !strings.Contains(err.Error(), "of another tokenizer, of 10 tokens; the model's has 11") {
		t.Errorf("another tokenizer: %v", err)
	}
	read := func() error {
		return s.Read(func() error {
			if r := s.Longest([]token.ID{4, 5}, 2, 16); r.Count() != 10_000 {
				t.Errorf("4 5 occurs %d times", r.Count())
			}
			return nil
		})
	}
	if err := read(); err != nil {
		t.Error(err)
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Skip(err)
	}
	if err := read(); err == nil {
		t.Error("a file that has become shorter is read")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "cut off or damaged") {
		t.Errorf("a file that is cut off: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is opened")
	}
}

func TestRefused(t *testing.T) {
	sound := write(t, 10, []token.ID{1, 2, 3})
	for _, c := range []struct {
		name, want string
		change     func(b []byte) []byte
	}{
		{"nothing", "the file is not a datastore", func([]byte) []byte { return nil }},
		{"another file", "the file is not a datastore", func(b []byte) []byte { b[0] = 'G'; return b }},
		{"another version", "version 2; this program reads version 1", func(b []byte) []byte { b[8] = 2; return b }},
		{"a damaged header", "the header is damaged", func(b []byte) []byte { b[50] ^= 1; return b }},
		{"a byte more", "117 bytes, and the header says 116", func(b []byte) []byte { return append(b, 0) }},
		{"a byte less", "115 bytes, and the header says 116", func(b []byte) []byte { return b[:len(b)-1] }},
		{"tokens of three bytes", "tokens of 3 bytes", func(b []byte) []byte { b[12] = 3; return seal(b) }},
		{"no vocabulary", "for a vocabulary of 0", func(b []byte) []byte { b[16] = 0; return seal(b) }},
		{"a vocabulary beyond its tokens", "for a vocabulary of 16777226", func(b []byte) []byte { b[19] = 1; return seal(b) }},
		{"more tokens than may be", "at most 536870912", func(b []byte) []byte { b[31] = 0xff; return seal(b) }},
		{"more texts than tokens", "4 tokens in 5 texts", func(b []byte) []byte { b[32] = 5; return seal(b) }},
	} {
		if _, err := Parse(c.change(slices.Clone(sound))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	b := NewBuilder(numbers(t, 10))
	for _, id := range []token.ID{-1, 10} {
		if err := b.Add([]token.ID{id}); err == nil {
			t.Errorf("token %d is added", id)
		}
	}
}

// seal gives a header the checksum that it should have.
func seal(b []byte) []byte {
	binary.LittleEndian.PutUint32(b[headerSize-4:], crc32.Checksum(b[:headerSize-4], castagnoli))
	return b
}

// FuzzParse reads files whose headers have the right checksum, and searches what they hold.
func FuzzParse(f *testing.F) {
	f.Add(write(f, 10, []token.ID{1, 2, 3, 1, 2, 4}, nil))
	f.Add(write(f, 1<<16, []token.ID{1 << 15, 2, 1 << 15, 2}))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= headerSize {
			b = seal(b)
		}
		s, err := Parse(b)
		if err != nil {
			return
		}
		for _, query := range [][]token.ID{{1, 2}, {1 << 15, 2}, {0, 0, 0}} {
			r := s.Longest(query, 1, 16)
			for range Sorted + 1 {
				next := s.Next(nil, r)
				if len(next) > probes {
					t.Fatalf("%d tokens follow", len(next))
				}
				if len(next) == 0 {
					break
				}
				r = next[0]
			}
		}
	})
}

// TestRepeats: texts of one token and of long repeats are sorted in little time.
func TestRepeats(t *testing.T) {
	text := slices.Repeat([]token.ID{1}, 300_000)
	s := parse(t, write(t, 10, text, text[:100_000]))
	if r := s.Longest(text[:20], 2, 16); r.Length != 16 || r.Count() != 400_000-2*15 {
		t.Errorf("%d tokens occur %d times", r.Length, r.Count())
	}
}

func BenchmarkBuild(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	text := make([]token.ID, 1_000_000)
	for i := range text {
		text[i] = token.ID(min(rng.ExpFloat64()*300, 8000))
	}
	t := numbers(b, 8192)
	for b.Loop() {
		x := NewBuilder(t)
		if err := x.Add(text); err != nil {
			b.Fatal(err)
		}
		if err := x.Write(&bytes.Buffer{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(text)), "ns/token")
}
