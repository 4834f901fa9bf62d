package earley

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"sync"
	"testing"
	"time"

	"grove/constrain/grammar"
	"grove/constrain/regex"
	"grove/constrain/vocab"
	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
	"grove/internal/weights/gguf"
)

// shared returns the path of a file of the shared reference data, or skips the test where it is missing. Where CI is set and
// there is shared data, a missing file is a failure.
func shared(t testing.TB, name string) string {
	t.Helper()
	root := filepath.Join("../../../shared")
	path := filepath.Join(root, filepath.FromSlash(name))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if _, err := os.Stat(root); err == nil && os.Getenv("CI") != "" {
		t.Fatalf("../shared/%s is missing", name)
	}
	t.Skipf("needs ../shared/%s: not there", name)
	return ""
}

var vocabularies struct {
	sync.Mutex
	known map[string]*vocab.Vocabulary
}

// real returns the vocabulary of a published tokenizer; "128k": the first 128,256 different tokens of all of them.
func real(t testing.TB, name string) *vocab.Vocabulary {
	t.Helper()
	vocabularies.Lock()
	defer vocabularies.Unlock()
	if v, ok := vocabularies.known[name]; ok {
		return v
	}
	var v *vocab.Vocabulary
	var err error
	if name == "128k" {
		v, err = vocab.New(union(t), 128256)
	} else {
		v, err = vocab.FromTokenizer(open(t, name), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if vocabularies.known == nil {
		vocabularies.known = map[string]*vocab.Vocabulary{}
	}
	vocabularies.known[name] = v
	return v
}

func open(t testing.TB, name string) *tokenizer.Tokenizer {
	f, err := gguf.Open(shared(t, "golden/tokenizers/ggml-vocab-"+name+".gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	k, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func union(t testing.TB) (all []vocab.Token) {
	seen := map[string]bool{}
	all = []vocab.Token{{ID: 0, Kind: vocab.End}, {ID: 1, Kind: vocab.Special}}
	for _, name := range []string{"gpt-2", "starcoder", "falcon", "deepseek-coder", "llama-spm"} {
		k := open(t, name)
		for id := range k.Size() {
			text, _ := k.AppendPiece(nil, token.ID(id), false)
			if len(text) > 0 && len(text) <= vocab.MaxBytes && !seen[string(text)] && len(all) < 128256 {
				seen[string(text)] = true
				all = append(all, vocab.Token{ID: token.ID(len(all)), Bytes: text, Kind: vocab.Ordinary})
			}
		}
	}
	return all
}

// json returns a greedy grammar of JSON: any value, and objects with members of each kind that schemas ask for.
func json(t testing.TB) grammar.Source {
	t.Helper()
	s := regex.New(regex.Limits{})
	b := grammar.NewBuilder(s)
	lit := func(text string) grammar.Expr { return b.Lexeme(s.Literal(text)) }
	text := s.Repeat(s.AnyRune(), 0, -1)
	digit := s.Runes(regex.Range{Lo: '0', Hi: '9'})
	digits := s.Repeat(digit, 1, -1)
	number := s.Concat(s.Repeat(s.Literal("-"), 0, 1), s.Or(s.Literal("0"), s.Concat(s.Runes(regex.Range{Lo: '1', Hi: '9'}), s.Repeat(digit, 0, -1))),
		s.Repeat(s.Concat(s.Literal("."), digits), 0, 1),
		s.Repeat(s.Concat(s.Or(s.Literal("e"), s.Literal("E")), s.Repeat(s.Or(s.Literal("+"), s.Literal("-")), 0, 1), digits), 0, 1))
	str := b.Lexeme(s.Quoted(text))
	list := func(open, close string, e grammar.Expr) grammar.Expr {
		return b.Seq(lit(open), b.Alt(b.Empty(), b.Seq(e, b.Repeat(b.Seq(lit(","), e), 0, -1))), lit(close))
	}
	b.Define("value", b.Alt(str, b.Lexeme(number), lit("true"), lit("false"), lit("null"), b.Rule("object"), b.Rule("array")))
	b.Define("object", list("{", "}", b.Seq(str, lit(":"), b.Rule("value"))))
	b.Define("array", list("[", "]", b.Rule("value")))
	member := func(name string, e grammar.Expr) grammar.Expr {
		return b.Seq(b.Lexeme(s.Quoted(s.Literal(name))), lit(":"), e)
	}
	other := b.Lexeme(s.Quoted(s.And(text, s.Not(s.Or(s.Literal("name"), s.Literal("kind"), s.Literal("size"))))))
	b.Define("schema", b.Seq(lit("{"),
		member("name", b.Lexeme(s.Quoted(s.Repeat(s.AnyRune(), 1, 40)))), lit(","),
		member("kind", b.Lexeme(s.Quoted(s.Or(s.Literal("person"), s.Literal("place"), s.Literal("placeholder"))))), lit(","),
		member("size", b.Lexeme(number)),
		b.Repeat(b.Seq(lit(","), other, lit(":"), b.Rule("value")), 0, -1), lit("}")))
	b.Define("start", b.Alt(b.Rule("value"), b.Rule("schema")))
	src, err := b.Source("schema", grammar.Options{Greedy: true, Ignored: s.Repeat(s.Or(s.Literal(" "), s.Literal("\n"), s.Literal("\t"), s.Literal("\r")), 1, -1)})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// draw returns a random token of a mask; rare ones as often as common ones, by their first byte.
func draw(rng *rand.Rand, v *vocab.Vocabulary, m Mask) (token.ID, bool) {
	var first [256][]token.ID
	n := 0
	for id := range token.ID(v.Size()) {
		if m.Has(id) && v.Kind(id) != vocab.End {
			b := v.Bytes(id)[0]
			if len(first[b]) == 0 {
				n++
			}
			first[b] = append(first[b], id)
		}
	}
	if n == 0 {
		return 0, false
	}
	for skip := rng.IntN(n); ; {
		for _, ids := range first {
			if len(ids) > 0 {
				if skip == 0 {
					return ids[rng.IntN(len(ids))], true
				}
				skip--
			}
		}
	}
}

// TestReal walks at random over published vocabularies, and compares masks with pushing the bytes of each token.
func TestReal(t *testing.T) {
	names := []string{"llama-spm", "gpt-2"}
	steps, every := 60, 97
	if os.Getenv("GROVE_LONG") != "" {
		names, steps, every = append(names, "falcon", "starcoder", "deepseek-coder", "phi-3", "128k"), 200, 13
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			v := real(t, name)
			rng := rand.New(rand.NewPCG(3, 4))
			for _, l := range []Limits{{}, {Bytes: 1 << 20}} {
				e, err := New(json(t), v, l)
				if err != nil {
					t.Fatal(err)
				}
				slow, err := New(json(t), v, Limits{})
				if err != nil {
					t.Fatal(err)
				}
				slow.noSlices = true
				free, err := New(scannerless{json(t)}, v, l)
				if err != nil {
					t.Fatal(err)
				}
				s, _ := e.Start()
				var text []byte
				for range steps {
					checkReal(t, e, slow, free, s, text, every)
					m, _ := e.Mask(s)
					id, ok := draw(rng, v, m)
					if !ok {
						s, _ = e.Start()
						text = text[:0]
						continue
					}
					text = append(text, v.Bytes(id)...)
					if s, err = e.Next(s, id); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// scannerless is a grammar whose lexemes end wherever they match. Of JSON, no lexeme can follow one that would prolong it, so the
// texts are the same.
type scannerless struct{ grammar.Source }

func (scannerless) Greedy() bool { return false }

func checkReal(t *testing.T, e, slow, free *Engine, s State, text []byte, every int) {
	t.Helper()
	m, err := e.Mask(s)
	if err != nil {
		t.Fatal(err)
	}
	start, _ := slow.Start()
	at, n, err := slow.Push(start, text)
	if err != nil {
		t.Fatalf("%q: byte %d: %v", text, n, err)
	}
	whole, err := slow.Mask(at)
	if err != nil || !equal(m, whole) {
		t.Fatalf("behind %q: the masks with slices and without differ: %v", text, err)
	}
	start, _ = free.Start()
	other, _, err := free.Push(start, text)
	if err != nil {
		t.Fatal(err)
	}
	if whole, err = free.Mask(other); err != nil || !equal(m, whole) {
		t.Fatalf("behind %q: the masks of the greedy and of the scannerless grammar differ: %v", text, err)
	}
	v := e.vocab
	for id := token.ID(len(text) % every); int(id) < v.Size(); id += token.ID(every) {
		want := v.Kind(id) == vocab.End && slow.Ends(at)
		if b := v.Bytes(id); len(b) > 0 {
			_, n, _ := slow.Push(at, b)
			want = n == len(b)
		}
		if m.Has(id) != want {
			t.Fatalf("behind %q: token %d %q: got %v, want %v", text, id, v.Bytes(id), m.Has(id), want)
		}
	}
}

func equal(x, y Mask) bool {
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return len(x) == len(y)
}

// BenchmarkMask measures masks: of states met for the first time by a new engine, and of states that are known.
func BenchmarkMask(b *testing.B) {
	text := []byte(`{"name": "Ada Lovelace", "kind": "person", "size": 1.75, "born": {"year": 1815, "tags": ["x", true, null, "a \"b\""]}, "zoë": -1e5}`)
	for _, name := range []string{"llama-spm", "gpt-2", "128k"} {
		b.Run("first/vocab="+name, func(b *testing.B) {
			v := real(b, name)
			var times []time.Duration
			for range b.N {
				e, err := New(json(b), v, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				s, _ := e.Start()
				for i := range text {
					began := time.Now()
					if _, err := e.Mask(s); err != nil {
						b.Fatal(err)
					}
					times = append(times, time.Since(began))
					if s, _, err = e.Push(s, text[i:i+1]); err != nil {
						b.Fatal(err)
					}
				}
			}
			report(b, times)
		})
		b.Run("known/vocab="+name, func(b *testing.B) {
			e, err := New(json(b), real(b, name), Limits{})
			if err != nil {
				b.Fatal(err)
			}
			s, _ := e.Start()
			s, _, _ = e.Push(s, text[:12])
			id := token.ID(0)
			for e.vocab.Kind(id) != vocab.Ordinary || !bytes.Equal(e.vocab.Bytes(id), []byte("a")) {
				id++
			}
			work := func() {
				if _, err := e.Mask(s); err != nil {
					b.Fatal(err)
				}
				if _, err := e.Next(s, id); err != nil {
					b.Fatal(err)
				}
			}
			if n := testing.AllocsPerRun(10, work); n != 0 {
				b.Fatalf("%v allocations", n)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				work()
			}
		})
	}
}

func report(b *testing.B, times []time.Duration) {
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	var sum time.Duration
	for _, d := range times {
		sum += d
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	b.ReportMetric(us(sum)/float64(len(times)), "mean-us")
	b.ReportMetric(us(times[len(times)/2]), "p50-us")
	b.ReportMetric(us(times[len(times)*99/100]), "p99-us")
	b.ReportMetric(us(times[len(times)-1]), "max-us")
}
