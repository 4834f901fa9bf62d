package agreement

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dlclark/regexp2/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"grove/constrain/schema"
	"grove/internal/suite/schematest"
)

// An ecma is an expression of ECMA-262 for the validator.
type ecma struct{ *regexp2.Regexp }

func (e ecma) MatchString(s string) bool {
	ok, err := e.Regexp.MatchString(s)
	return ok && err == nil
}

// validator returns the validator of a schema, or nil where it does not take the schema.
func validator(text []byte, formats bool) (v *jsonschema.Schema) {
	defer func() {
		if recover() != nil {
			v = nil
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil
	}
	c := jsonschema.NewCompiler()
	if formats {
		c.AssertFormat()
		for _, name := range []string{"semver", "period"} { // of no draft
			c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
		}
	}
	c.UseLoader(jsonschema.SchemeURLLoader{})
	c.UseRegexpEngine(func(s string) (jsonschema.Regexp, error) {
		re, err := regexp2.Compile(s, regexp2.ECMAScript)
		return ecma{re}, err
	})
	if c.AddResource("mem:///schema.json", doc) != nil {
		return nil
	}
	if v, err = c.Compile("mem:///schema.json"); err != nil {
		return nil
	}
	return v
}

// errPanic is the error of a validator that panics, as this one does for some schemas.
var errPanic = errors.New("the validator panics")

// accepts reports whether the validator accepts a text.
func accepts(v *jsonschema.Schema, text string) (ok bool, err error) {
	defer func() {
		if recover() != nil {
			ok, err = false, errPanic
		}
	}()
	x, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return false, err
	}
	err = v.Validate(x)
	return err == nil, err
}

var draft4Integer = regexp.MustCompile(`\.0|\d[eE]`)

var farNumber = regexp.MustCompile(`[eE][-+]?\d{3}`)

// unclear reports whether the validator judges a text otherwise than the standard: it gives up numbers with far exponents, and
// takes 1.0 and 1e2 for integers in draft 4 too.
func unclear(form []byte, text string) bool {
	return farNumber.MatchString(text) || draft4Integer.MatchString(text) && bytes.Contains(form, []byte("draft-04"))
}

// agree writes texts by the grammar of a schema, and changes them. The validator must accept what was written, and for changed
// texts both must say the same. It returns how many texts were compared.
func agree(t *testing.T, name string, form []byte, texts []string, n int) (compared int) {
	v := validator(form, true)
	if v == nil {
		return 0
	}
	formats := bytes.Contains(form, []byte(`"format"`)) // it takes more than the standards allow
	h := fnv.New64a()
	h.Write([]byte(name))
	rng := rand.New(rand.NewPCG(h.Sum64(), 1))
	for _, order := range []schema.Order{schema.Declared, schema.Free} {
		src, err := schema.Compile(form, schema.Options{Order: order})
		if err != nil {
			return compared
		}
		w := schematest.NewWriter(src, rng, 300)
		for range n {
			text, fail := w.Random()
			if fail != "" {
				t.Errorf("%s: %s: behind %.300q", name, fail, w.Written())
				return compared
			}
			if text == "" || unclear(form, text) {
				continue
			}
			compared++
			if ok, err := accepts(v, text); !ok && err != errPanic {
				t.Errorf("%s: order %d: written, but not valid: %.600s\n%v", name, order, text, err)
				return compared
			}
			texts = append(texts, text)
		}
		if order == schema.Declared {
			continue
		}
		for _, text := range texts {
			for range 4 {
				changed := schematest.Mutate(rng, text)
				if changed == "" || unclear(form, changed) {
					continue
				}
				compared++
				want, err := accepts(v, changed)
				n, ends := w.Read(changed)
				if err == errPanic {
					continue
				}
				if got := n == len(changed) && ends; got != want && (got || !formats) {
					t.Errorf("%s: accepted %v (at byte %d; %v), validator %v: %.600s\n%v", name, got, n, w.Err, want, changed, err)
					return compared
				}
			}
		}
	}
	return compared
}

// TestAgreement compares the grammars of the sample of MaskBench with a validator.
func TestAgreement(t *testing.T) {
	every, n := 40, 3
	if os.Getenv("GROVE_LONG") != "" {
		every, n = 4, 5
	}
	compared := 0
	for i, s := range schematest.ReadSuites(t, schematest.Shared(t, "../../..", "data/maskbench_sample.jsonl.gz")) {
		if only := os.Getenv("GROVE_ONLY"); only != "" && !strings.Contains(s.Name, only) || only == "" && i%every != 1%every {
			continue
		}
		var texts []string
		for _, x := range s.Tests {
			texts = append(texts, schematest.Spaced(t, x.Data))
		}
		compared += agree(t, s.Name, s.Schema, texts, n)
	}
	t.Logf("%d texts compared", compared)
}

// TestRandomSchemas compares the grammars of random schemas with a validator.
func TestRandomSchemas(t *testing.T) {
	n := 120
	if os.Getenv("GROVE_LONG") != "" {
		n = 800
	}
	compared := 0
	start := 0
	if text := os.Getenv("GROVE_SEED"); text != "" {
		start, _ = strconv.Atoi(text)
	}
	for seed := start; seed < start+n; seed++ {
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		var b strings.Builder
		schematest.RandomSchema(rng, &b, 3)
		text := b.String()
		start := time.Now()
		compared += agree(t, fmt.Sprintf("seed %d: %s", seed, text), []byte(text), schematest.Instances, 4)
		if took := time.Since(start); took > 2*time.Second {
			t.Logf("seed %d took %v: %s", seed, took, text)
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d texts compared", compared)
}
