package constrain

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hostile are specs that cost more than they look like, or say what no text meets; %d makes each one new.
func hostile(n int) map[string]Spec {
	s := func(format string) string { return strings.ReplaceAll(format, "%d", fmt.Sprint(n)) }
	deep := strings.Repeat(`{"properties":{"a":`, 2000) + s(`{"const":%d}`) + strings.Repeat("}}", 2000)
	all := make([]string, 300)
	for i := range all {
		all[i] = fmt.Sprintf(`{"pattern":"a.{%d}b"}`, i+n)
	}
	return map[string]Spec{
		"counts in counts":          {Regex: s(`((a{1000}){1000}b){1000}%d`)},
		"a long class of counts":    {Regex: s(`(.*a.{5000}|.*b.{5000}|.*c.{5000})%d`)},
		"optional parts":            {Regex: strings.Repeat("a?", 30000) + strings.Repeat("a", 1000) + s("%d")},
		"groups":                    {Regex: strings.Repeat("(", 5000) + "a" + strings.Repeat(")", 5000) + s("%d")},
		"counted rules":             {Grammar: s("root ::= a{1000}\na ::= b{1000}\nb ::= c{1000} \"%d\"\nc ::= root? \"x\"")},
		"left recursion":            {Grammar: s("root ::= root root root \"%d\" | \"\"")},
		"ambiguity":                 {Grammar: s("root ::= a a a a a a a a \"%d\"\na ::= \"x\"* | \"x\"* a")},
		"a rule without end":        {Grammar: s("root ::= root \"%d\"")},
		"a schema in itself":        {Schema: []byte(s(`{"$defs":{"%d":{"allOf":[{"$ref":"#/$defs/%d"}]}},"$ref":"#/$defs/%d"}`))},
		"a deep schema":             {Schema: []byte(deep)},
		"many patterns":             {Schema: []byte(`{"type":"string","allOf":[` + strings.Join(all, ",") + `]}`)},
		"no text":                   {Schema: []byte(s(`{"allOf":[{"const":%d},{"type":"string"}]}`))},
		"alternatives of objects":   {Schema: []byte(s(`{"oneOf":[` + strings.Repeat(`{"properties":{"a":{"type":"string"},"b%d":{"minimum":3}}},`, 60) + `{"minItems":%d}]}`))},
		"a network":                 {Schema: []byte(s(`{"$ref":"http://127.0.0.1:%d/schema"}`))},
		"a file":                    {Schema: []byte(s(`{"$ref":"file:///etc/passwd#%d"}`))},
		"a terminal of terminals":   {Grammar: s("start: A\n") + "A: B B B B\nB: C C C C\nC: D D D D\nD: E E E E\nE: F F F F\nF: /.{100}/\n"},
		"a vocabulary of no tokens": {Grammar: s("root ::= <none%d>")},
	}
}

// TestHostile compiles hostile specs, each several times, and takes a few steps by those that compile: each ends soon, and what they took is given
// back.
func TestHostile(t *testing.T) {
	v := words(t, false)
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	compile := func(rounds int) (slowest time.Duration, name string) {
		cache := NewCache(v, Limits{})
		for n := range rounds {
			for what, spec := range hostile(n) {
				start := time.Now()
				c, err := cache.Compile(spec)
				if err == nil {
					stage := c.Stages(nil)[0].(*Stage)
					at := stage.Start(nil)
					logits := make([]float32, v.size)
					for _, b := range "axaxax1[{\"a" {
						stage.Apply(at, logits)
						at = stage.Next(at, firstByte+tokenOf(b))
					}
				}
				if took := time.Since(start); took > slowest {
					slowest, name = took, fmt.Sprintf("%s: %.200v", what, err)
				}
			}
		}
		return slowest, name
	}
	compile(1)
	before := heap()
	rounds := 1
	if os.Getenv("GROVE_LONG") != "" {
		rounds = 10
	}
	slowest, name := compile(rounds)
	grown := heap() - before
	t.Logf("the slowest took %v: %s; the heap grew by %d bytes", slowest, name, grown)
	if slowest > 10*time.Second {
		t.Errorf("a spec took %v: %s", slowest, name)
	}
	if grown > 8<<20 {
		t.Errorf("%d bytes are left of what is gone", grown)
	}
}
