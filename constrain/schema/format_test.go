package schema

import (
	"encoding/json"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"

	"grove/constrain/regex"
)

// language compiles a format in a store of its own.
func language(t testing.TB, name string) (*regex.Store, regex.ID) {
	t.Helper()
	s := regex.New(regex.Limits{})
	id, known, err := FormatLanguage(s, name)
	if !known || err != nil {
		t.Fatalf("%s: known %v, %v", name, known, err)
	}
	return s, id
}

func TestLanguage(t *testing.T) {
	for _, c := range []struct {
		name    string
		yes, no []string
	}{
		{"date", []string{"0000-02-29", "9999-12-31"}, []string{"2023-02-29", "1900-02-29"}},
		{"time", []string{"23:59:60.5z", "07:44:60+07:45", "16:14:60-07:45"}, []string{"23:59:60.Z", "23:59:60", "07:44:60+07:44", "23:59:60+24:00", "23:59:60Z0"}},
		{"ipv6", []string{"1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::3:4:5:6:7:8"}, []string{"1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "1::2::3"}},
		{"hostname", []string{"a", strings.Repeat("a.", 126) + "a"}, []string{"xn--9n2bp8q", strings.Repeat("a.", 127) + "a", "a_b"}},
		{"email", []string{strings.Repeat("a", 64) + "@b.c", `"a b"@b`}, []string{`"\""@b`, strings.Repeat("a", 65) + "@b.c", "a@b@c", "a@-b", "é@b"}},
		{"idn-email", []string{strings.Repeat("é", 32) + "@b.c"}, []string{strings.Repeat("é", 33) + "@b.c", "a@é."}},
		{"uri", []string{"a:", "a:b", "a:/", "a://", "http://[v1.a]:80/"}, []string{"a", "", "a://[1]", "a:/[", "http://a:b", "a:#a#b"}},
		{"uri-reference", []string{"", "a@b", "?", "#", "//"}, []string{"a b", "1:2"}},
		{"iri", []string{"a:é", "a:%C3"}, []string{"é:a", "a:\u200e", "a:\ue000"}},
		{"regex", []string{"", `^[a-z\d-]+(\.[A-Z]{2,3}){1,}?$`, `((((a))))`, `a|b||`}, []string{"(", "[z-a]", "a{3,2}", "a**", "*", `\`, `\Z`, "(?<n>a)"}},
	} {
		s, id := language(t, c.name)
		for _, text := range c.yes {
			if !s.Matches(id, text) {
				t.Errorf("%s refuses %q", c.name, text)
			}
		}
		for _, text := range c.no {
			if s.Matches(id, text) {
				t.Errorf("%s accepts %q", c.name, text)
			}
		}
	}
	if _, known, err := FormatLanguage(regex.New(regex.Limits{}), "int32"); known || err != nil {
		t.Errorf("int32: known %v, %v", known, err)
	}
}

// missing are the valid texts of the test suite that the formats described from inside leave out, by format.
var missing = map[string]int{"hostname": 15, "idn-hostname": 23, "idn-email": 1, "ecmascript-regex": 6}

// TestFormatSuite runs the optional files of the JSON Schema Test Suite: no text that is not valid may be accepted.
func TestFormatSuite(t *testing.T) {
	total := 0
	for _, draft := range []string{"draft2020-12", "draft7"} {
		root := filepath.Join("../../../shared")
		folder := filepath.Join(root, "data", "json-schema-test-suite", draft, "optional", "format")
		files, err := os.ReadDir(folder)
		if err != nil {
			if _, err := os.Stat(root); err == nil && os.Getenv("CI") != "" {
				t.Fatal("../shared/data/json-schema-test-suite is missing")
			}
			t.Skip("needs ../shared/data/json-schema-test-suite: not there")
		}
		for _, file := range files {
			if file.Name() == "unknown.json" {
				continue
			}
			left, n := formatRunSuite(t, filepath.Join(folder, file.Name()))
			total += n
			if name := strings.TrimSuffix(file.Name(), ".json"); left > missing[name] {
				t.Errorf("%s: %s: %d valid texts are refused, want %d", draft, name, left, missing[name])
			}
		}
	}
	if t.Logf("%d texts", total); total < 700 {
		t.Errorf("only %d texts were compared", total)
	}
}

func formatRunSuite(t *testing.T, file string) (left, n int) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []struct {
		Schema struct{ Format string }
		Tests  []struct {
			Description string
			Data        any
			Valid       bool
		}
	}
	if err := json.Unmarshal(raw, &groups); err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		s, id := language(t, g.Schema.Format)
		most, _, err := FormatPossible(s, g.Schema.Format)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range g.Tests {
			text, ok := c.Data.(string)
			if !ok {
				continue
			}
			n++
			switch got := s.Matches(id, text); {
			case got && !c.Valid:
				t.Errorf("%s accepts %q: %s", g.Schema.Format, text, c.Description)
			case !got && c.Valid:
				left++
				if !s.Matches(most, text) {
					t.Errorf("%s refuses %q: %s", g.Schema.Format, text, c.Description)
				}
			}
		}
	}
	return left, n
}

// TestExact asks that exactly the formats that leave out texts of the suite, or say so, are not exact.
func TestExact(t *testing.T) {
	for name, want := range map[string]bool{"date": true, "uri": true, "iri-reference": true, "email": false, "hostname": false,
		"regex": false, "url": false} {
		if got := FormatExact(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name := range missing {
		if name != "ecmascript-regex" && FormatExact(name) {
			t.Errorf("%s is exact and leaves texts out", name)
		}
	}
}

// walk draws a text of a language: bytes at random among those that can follow.
func walk(s *regex.Store, id regex.ID, r *rand.Rand, stop int) (string, bool) {
	var out []byte
	for len(out) < 200 {
		if s.Nullable(id) && (r.IntN(stop) == 0 || len(out) > 60) {
			return string(out), true
		}
		first := s.First(id)
		var can []byte
		for b := range 255 {
			if first.Has(byte(b)) {
				can = append(can, byte(b))
			}
		}
		if len(can) == 0 {
			return string(out), s.Nullable(id)
		}
		b := can[r.IntN(len(can))]
		out = append(out, b)
		id = s.Derive(id, b)
	}
	return "", false
}

// TestPossible draws texts of the formats that are described from inside.
func TestPossible(t *testing.T) {
	for name := range possible {
		s, id := language(t, name)
		most, _, err := FormatPossible(s, name)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 1))
		for range 200 {
			if text, ok := walk(s, id, r, 8); ok && !s.Matches(most, text) {
				t.Errorf("%s: %q is not possible", name, text)
			}
		}
	}
}

// TestAgainstParsers draws texts of each format and asks a parser of it, which must accept them all.
func TestAgainstParsers(t *testing.T) {
	for name, valid := range map[string]func(string) bool{
		"date": func(text string) bool { _, err := time.Parse(time.DateOnly, text); return err == nil },
		"date-time": func(text string) bool {
			_, err := time.Parse(time.RFC3339, strings.Replace(strings.ToUpper(text), ":60", ":59", 1))
			return err == nil || strings.Contains(err.Error(), "offset hour") // package time bounds offsets of hours more tightly
		},
		"ipv4": func(text string) bool { a, err := netip.ParseAddr(text); return err == nil && a.Is4() },
		"ipv6": func(text string) bool { a, err := netip.ParseAddr(text); return err == nil && a.Is6() },
		"uri":  func(text string) bool { u, err := url.Parse(text); return err == nil && u.IsAbs() },
		"regex": func(text string) bool {
			_, err := regexp.Compile(text)
			if e, ok := err.(*syntax.Error); ok && e.Code == syntax.ErrInvalidRepeatSize {
				err = nil // a bound of package regexp
			}
			_, other := regexp2.Compile(text, regexp2.ECMAScript)
			return err == nil && other == nil
		},
	} {
		s, id := language(t, name)
		r := rand.New(rand.NewPCG(7, 8))
		n := 0
		for range 500 {
			text, ok := walk(s, id, r, 8)
			if !ok {
				continue
			}
			n++
			if !valid(text) {
				t.Errorf("%s accepts %q", name, text)
			}
		}
		if n < 250 {
			t.Errorf("%s: only %d texts were drawn", name, n)
		}
	}
}

// TestDates compares every date of some years, and days that do not exist, with package time.
func TestDates(t *testing.T) {
	s, id := language(t, "date")
	for _, year := range []int{0, 4, 100, 400, 1900, 1999, 2000, 2023, 2024, 9999} {
		for month := 0; month <= 13; month++ {
			for day := 0; day <= 32; day++ {
				text := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Format("2006") + "-" + two(month) + "-" + two(day)
				_, err := time.Parse(time.DateOnly, text)
				if got := s.Matches(id, text); got != (err == nil) {
					t.Errorf("%s: %v", text, got)
				}
			}
		}
	}
}

func two(n int) string { return string([]byte{byte('0' + n/10), byte('0' + n%10)}) }

// TestLeap compares every time with a second 60 and an offset of some kinds with arithmetic.
func TestLeap(t *testing.T) {
	s, id := language(t, "time")
	for local := range 24 * 60 {
		for offset := -24*60 + 1; offset < 24*60; offset += 7 {
			sign, size := "+", offset
			if offset < 0 {
				sign, size = "-", -offset
			}
			text := two(local/60) + ":" + two(local%60) + ":60" + sign + two(size/60) + ":" + two(size%60)
			want := (local-offset+48*60)%(24*60) == 23*60+59
			if got := s.Matches(id, text); got != want {
				t.Fatalf("%s: %v", text, got)
			}
		}
	}
}

func BenchmarkLanguage(b *testing.B) {
	for _, name := range []string{"date-time", "uri", "iri", "email", "hostname", "ipv6", "regex", "uri-template"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s := regex.New(regex.Limits{})
				id, _, err := FormatLanguage(s, name)
				if err != nil {
					b.Fatal(err)
				}
				s.Quoted(id)
			}
		})
	}
}
