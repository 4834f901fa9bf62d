package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/server/wire"
)

// body is a body with fields of each kind.
type body struct {
	inner
	Number *int              `json:"number"`
	IDs    []int64           `json:"ids"`
	Share  *float32          `json:"share"`
	Text   string            `json:"text"`
	Part   *part             `json:"part"`
	Parts  []part            `json:"parts"`
	Any    json.RawMessage   `json:"any"`
	Vars   map[string]string `json:"vars"`
	Own    own               `json:"own"`
}

type inner struct {
	Large int64 `json:"large"`
}

type part struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

func (part) Tolerated() []wire.Toleration {
	return []wire.Toleration{{Names: "note", Values: `"" 0`, Reason: "notes are not read"}}
}

func (body) Tolerated() []wire.Toleration {
	return []wire.Toleration{{Names: "echo user", Values: "false", Reason: "there is no echo"}}
}

// own reads itself in the form of a list.
type own []part

func (o *own) ReadJSON(r *wire.Reader) error { return r.Into((*[]part)(o)) }
func (*own) Like() any                       { return []part{} }

// TestDecode: what is taken has the meaning that it has elsewhere.
func TestDecode(t *testing.T) {
	n, share := 16, float32(0.5)
	for _, tt := range []struct {
		text string
		want body
	}{
		{`{"number":16.0}`, body{Number: &n}}, {`{"number":1.6e1}`, body{Number: &n}}, {`{"number":160E-1}`, body{Number: &n}}, {`{"number":0.0016e+4}`, body{Number: &n}},
		{`{"ids":[1e2,-2.0,0.0,-0,3]}`, body{IDs: []int64{100, -2, 0, 0, 3}}},
		{`{"large":9223372036854775807}`, body{inner: inner{9223372036854775807}}}, {`{"large":9223372036854775807.0}`, body{inner: inner{9223372036854775807}}},
		{`{"large":9.007199254740993e15}`, body{inner: inner{9007199254740993}}}, {`{"large":-1e0}`, body{inner: inner{-1}}}, {`{"large":0e999}`, body{}},
		{`{"share":5e-1}`, body{Share: &share}},
		{`{"number":null,"ids":null,"share":null,"text":null,"part":null,"parts":null,"any":null,"vars":null,"own":null,"large":null}`, body{Any: json.RawMessage("null")}},
		{`{"parts":[{"name":"a","count":2.0,"note":null,"mood":null},{"note":"","name":null},{"note":0.0}]}`, body{Parts: []part{{"a", 2}, {}, {}}}},
		{`{"own":[{"count":1e1,"note":""}]}`, body{Own: own{{Count: 10}}}},
		{`{"part":{"count":3.0}}`, body{Part: &part{Count: 3}}},
		{`{"any":{"count":3.0,"mood":1},"vars":{"x":"y"}}`, body{Any: json.RawMessage(`{"count":3.0,"mood":1}`), Vars: map[string]string{"x": "y"}}},
		{`{"echo":false,"store":true,"metadata":{"a":1},"mood":null,"verbosity":"low","num_ctx":4096,"mode":1,"part":{"humour":[1]},"modalities":[ "text" ],"tfs_z":1.0,"t_max_predict_ms":-1}`, body{Part: &part{}}},
	} {
		var got body
		err := wire.Decode([]byte(tt.text), &got)
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(body{}, inner{}), cmp.Comparer(func(a, b inner) bool { return a == b })); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", tt.text, err, d)
		}
	}
}

// TestDecodeRefused: what cannot be honoured is refused by its name.
func TestDecodeRefused(t *testing.T) {
	for _, tt := range []struct{ text, param, wants string }{
		{`{"number":16.5}`, "number", "16.5"}, {`{"number":"16"}`, "number", "string"}, {`{"number":1e99}`, "number", "1e99"}, {`{"number":1e-1}`, "number", "1e-1"},
		{`{"number":1e99999999999999999999}`, "number", "number"}, {`{"number":true}`, "number", "bool"}, {`{"number":9223372036854775808}`, "number", "9223372036854775808"},
		{`{"number":9.3e18}`, "number", "number"}, {`{"number":1e20}`, "number", "number"}, {`{"number":0.` + strings.Repeat("0", 1<<16) + `1}`, "number", "number"}, {`{"number":` + strings.Repeat("1", 1<<16) + `.0}`, "number", "number"},
		{`{"ids":[1.5]}`, "ids[0]", "1.5"}, {`{"ids":["1"]}`, "ids[0]", "string"}, {`{"ids":[1,null]}`, "ids[1]", "element is null"}, {`{"ids":{}}`, "ids", "object"},
		{`{"nummer":1}`, "nummer", `did you mean "number"?`}, {`{"Number":1}`, "Number", `"number"`},
		{`{"part":{"nmae":1}}`, "part.nmae", `did you mean "name" or`}, {`{"part":{"Name":"a"}}`, "part.Name", "not known"}, {`{"part":{"name":"a","name":"b"}}`, "part.name", "twice"},
		{`{"part":{"note":"x"}}`, "part.note", "notes are not read"}, {`{"parts":[{"note":[]}]}`, "parts[0].note", "notes are not read"}, {`{"parts":[null]}`, "parts[0]", "element is null"},
		{`{"own":[{"nama":1}]}`, "own[0].nama", "not known"}, {`{"own":[{"note":1}]}`, "own[0].note", "notes"},
		{`{"user":"me"}`, "user", "no echo"}, {`{"echo":true}`, "echo", "no echo"},
		{`{"format":"json"}`, "format", "response_format"}, {`{"tfs_z":0.5}`, "tfs_z", "sample"}, {`{"tfs_z":"1"}`, "tfs_z", "sample"},
		{`{"functions":[{}]}`, "functions", "use tools"}, {`{"options":{"a":1}}`, "options", "fields of the request"},

		// All of a body at once, until its first value beyond a bound.
		{`{"tfs_z":0.5,"number":"1","mood":1,"part":{"nmae":1,"count":1e99},"format":"json"}`, "tfs_z", "5 faults: tfs_z: this way to sample is not supported; number: a string is not a value of this field; part.nmae: the field is not known"},
		{`{"format":"json","ids":[true],"tfs_z":0.5}`, "format", "2 faults: format: use response_format; ids[0]: a bool"},

		// Twice, or in another case, at every level.
		{`{"number":1,"number":1}`, "number", "twice"}, {`{"any":{"a":[{"b":1,"b":2}]}}`, "any.a[0].b", "twice"}, {`{"vars":{"a":"1","\u0061":"2"}}`, "vars.a", "twice"},
		{`{"parts":[{"name":"a"},{"NAME":"a"}]}`, "parts[1].NAME", `did you mean "name" or`}, {`{"mood":null,"mood":null}`, "mood", "twice"},

		// What no body may have.
		{`{"any":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `,"number":""}`, "number", "string"},
		{`{"any":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "any", "deeper than 64"},
		{`{"any":` + strings.Repeat(`{"a":`, 1_000_000), "any", "deeper than 64"}, {`{"mood":` + strings.Repeat(`[`, 1_000_000), "mood", "deeper than 64"},
		{`{"any":[` + strings.Repeat("0,", 100_000) + `0]}`, "any", "more than 100000 values"}, {`{"any":` + strings.Repeat("1", 1001) + `}`, "any", "more than 1000 characters"},
		{`{"vars":{` + names(10_001) + `}}`, "vars", "more than 10000 fields"}, {`{` + names(10_001) + `}`, "", "more than 10000 fields"},
		{`{"any":"\ud800"}`, "", "half a character"}, {"{\"any\":\"\xff\"}", "", "not UTF-8"}, {`{"any":[1,]}`, "", "not a JSON object"}, {`{"any":nul}`, "", "not a JSON object"},
		{`{"number":01}`, "", "not a JSON object"}, {`{"a" 1}`, "", "not a JSON object"}, {`{"any":1}x`, "", "goes on"}, {`{"any":1`, "", "ends too early"}, {` `, "", "ends too early"},
	} {
		var into body
		err := wire.Decode([]byte(tt.text), &into)
		var e *wire.Error
		if !errors.As(err, &e) || e.Status != 400 || e.Param != tt.param || !strings.Contains(e.Message, tt.wants) || len(e.Message) > 500 {
			t.Errorf("%.80s: %v (%+v), want %q of %s", tt.text, err, e, tt.wants, tt.param)
		}
	}
}

// names returns n fields of an object, which are null.
func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"n%d":null`, i)
	}
	return b.String()[1:]
}

// TestSkipped: a strict decoder takes only fields that are read; another reports what it leaves out, and refuses what would change an answer.
func TestSkipped(t *testing.T) {
	for _, tt := range []struct {
		text          string
		strict, usual string // the field to blame; "": none is
		skipped       string // those of tables with a star
	}{
		{`{"number":1,"text":null}`, "", "", ""},
		{`{"user":false}`, "user", "", "user*"},
		{`{"store":true}`, "store", "", "store*"},
		{`{"store":null}`, "store", "", ""},
		{`{"mood":null}`, "mood", "", ""},
		{`{"mood":1,"part":{"mood":{"a":[]},"name":"x"},"parts":[{"mood":2}]}`, "mood", "", "mood part.mood parts[0].mood"},
		{`{"own":[{"mood":1}]}`, "own[0].mood", "", "own[0].mood"},
		{`{"part":{"note":""}}`, "part.note", "", "part.note*"},
		{`{"format":"x"}`, "format", "format", ""},
		{`{"part":{"note":"x"}}`, "part.note", "part.note", ""},
		{`{"number":"1"}`, "number", "number", ""},
	} {
		param := func(err error) string {
			var e *wire.Error
			if errors.As(err, &e) {
				return e.Param
			}
			return fmt.Sprint(err)
		}
		if got := param(wire.Decoder{Strict: true}.Decode([]byte(tt.text), new(body))); got != tt.strict && !(tt.strict == "" && got == "<nil>") {
			t.Errorf("%s: strict: %s, want %s", tt.text, got, tt.strict)
		}
		var skipped []string
		d := wire.Decoder{Skipped: func(name string, known bool) {
			if known {
				name += "*"
			}
			skipped = append(skipped, name)
		}}
		got := param(d.Decode([]byte(tt.text), new(body)))
		if got != tt.usual && !(tt.usual == "" && got == "<nil>") || strings.Join(skipped, " ") != tt.skipped {
			t.Errorf("%s: %s, want %s; skipped %v, want %s", tt.text, got, tt.usual, skipped, tt.skipped)
		}
		if err := (wire.Decoder{}).Decode([]byte(tt.text), new(body)); tt.usual == "" && err != nil {
			t.Errorf("%s: %v", tt.text, err)
		}
	}
}

// TestTolerated: no field is in the table twice, and its values are JSON.
func TestTolerated(t *testing.T) {
	for _, table := range [][]wire.Toleration{wire.Tolerated(), wire.MessageFields} {
		seen := map[string]bool{}
		for _, r := range table {
			if r.Names == "" || r.Reason == "" || r.Client == "" {
				t.Errorf("%+v", r)
			}
			for name := range strings.FieldsSeq(r.Names) {
				if seen[name] {
					t.Errorf("%s is there twice", name)
				}
				seen[name] = true
			}
			for value := range strings.FieldsSeq(r.Values) {
				if value != "*" && !json.Valid([]byte(value)) {
					t.Errorf("%s: %s", r.Names, value)
				}
			}
		}
	}
}

// TestToleratedDocs holds the tables of docs/server.md to those of the code; with GROVE_UPDATE set, it writes them.
func TestToleratedDocs(t *testing.T) {
	const path = "../../docs/server.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	for _, table := range []struct {
		mark string
		rows []wire.Toleration
	}{{"<!-- tolerated fields -->\n", wire.Tolerated()}, {"<!-- tolerated fields of messages -->\n", wire.MessageFields}} {
		before, rest, ok := strings.Cut(doc, table.mark)
		_, after, closed := strings.Cut(rest, "\n<!-- end -->")
		if !ok || !closed {
			t.Fatalf("%s: no %s", path, table.mark)
		}
		var b strings.Builder
		b.WriteString("\n| fields | who sends them | values | why, or why others are refused |\n|---|---|---|---|\n")
		for _, r := range table.rows {
			values := "all"
			if r.Values != "*" {
				values = strings.Join(append(quoted(r.Values), "null"), ", ")
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(quoted(r.Names), ", "), r.Client, values, r.Reason)
		}
		doc = before + table.mark + b.String() + "\n<!-- end -->" + after
	}
	if os.Getenv("GROVE_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if d := cmp.Diff(string(text), doc); d != "" {
		t.Errorf("GROVE_UPDATE=1 go test -run TestToleratedDocs ./server/wire\n%s", d)
	}
}

func quoted(words string) (all []string) {
	for w := range strings.FieldsSeq(words) {
		all = append(all, "`"+w+"`")
	}
	return all
}

// FuzzDecode: no body makes a decoder panic, and what it takes it takes again.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{`{"number":1.0e1,"ids":[1e0],"parts":[{"name":"a","note":""}]}`, `{"own":[{}],"any":[1,{}]}`, `{"a":1`, `{"number":-0.0e-0}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, strict := range []bool{false, true} {
			var a, b body
			if (wire.Decoder{Strict: strict}).Decode([]byte(text), &a) != nil {
				continue
			}
			if err := (wire.Decoder{Strict: strict}).Decode([]byte(text), &b); err != nil || !cmp.Equal(a, b, cmp.AllowUnexported(body{}, inner{})) {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}

// held is a body whose texts hold JSON.
type held struct {
	Text string          `json:"text" holds:"json"`
	Any  json.RawMessage `json:"any" holds:"json"`
	More json.RawMessage `json:"more"`
}

// TestHeld: the values of JSON in texts count to the bound of all values, and are refused before they take memory.
func TestHeld(t *testing.T) {
	list := func(n int) string { return `{"a":[` + strings.Repeat(`{"":0},`, n) + `0]}` } // 3n+4 values
	text := func(s string) string { return strings.TrimSpace(string(must(json.Marshal(s)))) }
	for _, c := range []struct {
		name, body, param string
	}{
		{"fit", `{"text":` + text(list(16_000)) + `,"any":` + text(list(16_000)) + `,"more":[1]}`, ""},
		{"a text", `{"text":` + text(list(33_333)) + `}`, "text"}, {"a value that is a text", `{"any":` + text(list(33_333)) + `}`, "any"},
		{"a value", `{"any":` + list(33_333) + `}`, "any"}, {"together", `{"text":` + text(list(17_000)) + `,"more":` + list(17_000) + `}`, "more"},
		{"large", `{"text":` + text(list(1_500_000)) + `}`, "text"}, {"no JSON", `{"text":"{\"a\":","any":"x"}`, ""},
	} {
		var into held
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := wire.Decode([]byte(c.body), &into)
		runtime.ReadMemStats(&after)
		var e *wire.Error
		if errors.As(err, &e) != (c.param != "") || e != nil && (e.Param != c.param || e.Code != "object_above_max_properties" || !strings.Contains(e.Message, "more than 100000 values")) {
			t.Errorf("%s: %v", c.name, err)
		}
		if took := int(after.TotalAlloc - before.TotalAlloc); took > 8*len(c.body)+16<<20 {
			t.Errorf("%s: a body of %d bytes takes %d", c.name, len(c.body), took)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
