package lark

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"grove/constrain/earley"
)

// compareJSON fails where the grammar and encoding/json disagree about a text, and returns whether both accept it. The decoder takes bytes that
// are no UTF-8 within strings; the grammar does not, as RFC 8259 has it.
func compareJSON(t *testing.T, e *earley.Engine, text string) bool {
	t.Helper()
	want := json.Valid([]byte(text)) && utf8.ValidString(text)
	start, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	at, n, err := e.Push(start, []byte(text))
	if err != nil && !errors.Is(err, earley.ErrIllegal) {
		t.Fatal(err)
	}
	if got := n == len(text) && e.Ends(at); got != want {
		t.Errorf("accepted: %v, by encoding/json: %v: %s", got, want, around(text, n))
	}
	return want
}

// TestJSONWalks reads random texts of the JSON grammar with encoding/json: it accepts all of them.
func TestJSONWalks(t *testing.T) {
	source := shipped(t, "json")
	w := newWalker(source, "", "", " ", "\n\t", "\r ")
	e := byBytes(t, shipped(t, "json"))
	for seed := range uint64(1500) {
		text := w.text(seed, 1+int(seed%60))
		if !compareJSON(t, e, text) && utf8.ValidString(text) {
			t.Errorf("a walk is no JSON: %q", text)
		}
	}
}

// TestJSONMutated changes texts, of walks and of a list, byte by byte: the grammar and encoding/json accept the same ones.
func TestJSONMutated(t *testing.T) {
	source := shipped(t, "json")
	w := newWalker(source, "", "", " ")
	e := byBytes(t, shipped(t, "json"))
	texts := []string{
		`{"a":[1,2.50,-0,1e5,-1.5E-7,0.1e+2],"b":{"c":null,"d":true},"e":false}`, `"\u00e9\ud83d\ude00\ud800 \" \\ \/ \b\f\n\r\t"`, ` [ ] `, `{ }`, `[[[[]]]]`, "\"\u2028\x7fé😀\"", "0",
		`[1,[2,{"a":"b"}],"",{}]`, "\t[\n1\r,2 ]\n", `{"":{"":{"":[]}}}`, `-12.340e-056`, `"a"`,
	}
	for _, text := range texts {
		if !compareJSON(t, e, text) {
			t.Errorf("refused: %q", text)
		}
	}
	for _, text := range []string{
		"", " ", "{", "[1,]", "[,1]", `{"a"}`, `{"a":}`, `{a:1}`, `{"a":1,}`, "01", "-", "1.", ".5", "1e", "1e+", "+1", "0x1", "NaN", "nul", "truefalse", "1 2", `"a`, `"\x"`, `"\u12g4"`, "\"\n\"", "\"\x1f\"",
		"'a'", "[1 2]", "\v1", "\u00a01", "\ufeff1", "// a\n1", "\"\xff\"", "\"\xed\xa0\x80\"", `{"a":1 "b":2}`, "[}", "]", `{1:2}`, "--1", "1.2.3", "tru e", "\"a\x00\"",
	} {
		if compareJSON(t, e, text) {
			t.Errorf("accepted: %q", text)
		}
	}
	const marks = "{}[]\",:\\ \n0123456789.-+eEtrufalsn/ub\x00\x1f\x7f\xc3\xa9"
	random := rand.New(rand.NewPCG(3, 4))
	both := [2]int{}
	for i := range 4000 {
		text := texts[i%len(texts)]
		if i%2 == 0 {
			text = w.text(uint64(i), 1+i%25)
		}
		for range 1 + random.IntN(2) {
			text = mutated(random, text, marks)
		}
		if compareJSON(t, e, text) {
			both[0]++
		} else {
			both[1]++
		}
	}
	t.Logf("%d are accepted, %d are not", both[0], both[1])
	if both[0] < 400 || both[1] < 400 {
		t.Errorf("%d are accepted, and %d are not: there should be many of each", both[0], both[1])
	}
}

// mutated returns a text with a byte put in, taken out, replaced or written twice, or with a part left out or two parts exchanged.
func mutated(r *rand.Rand, text, marks string) string {
	i := r.IntN(len(text) + 1)
	mark := string(marks[r.IntN(len(marks))])
	if i == len(text) {
		return text + mark
	}
	j := i + r.IntN(len(text)-i) + 1
	switch r.IntN(6) {
	case 0:
		return text[:i] + mark + text[i:]
	case 1:
		return text[:i] + text[i+1:]
	case 2:
		return text[:i] + mark + text[i+1:]
	case 3:
		return text[:i] + strings.Repeat(text[i:i+1], 2) + text[i+1:]
	case 4:
		return text[:i] + text[j:]
	}
	return text[i:j] + text[:i] + text[j:]
}
