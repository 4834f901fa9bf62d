package hf

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"grove/internal/regular"
)

// maxJSON bounds the text files of a folder that are read whole.
const maxJSON = 64 << 20

// readFile returns a text file of a folder.
func readFile(path string) ([]byte, error) {
	text, err := regular.Read(path, maxJSON)
	switch {
	case err != nil:
		return nil, fmt.Errorf("hf: %w", err)
	case filepath.Ext(path) != ".json":
		return text, nil
	case len(text) == 0:
		return nil, fmt.Errorf("hf: %s: the file is empty; download it again", path)
	}
	if first := bytes.TrimLeft(text, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return nil, fmt.Errorf("hf: %s: the file begins with %.20q; it must be a JSON object%s", path, first, regular.InsteadOf(first))
	}
	return text, nil
}

// explained adds to the error of a JSON text where the fault is and what to do, and takes names of Go's types out of it.
func explained(err error) error {
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		if strings.HasPrefix(syntax.Error(), "unexpected end of JSON") {
			return fmt.Errorf("%w: the file is cut off at %d bytes; download it again", err, syntax.Offset)
		}
		return fmt.Errorf("%w: the file is broken at byte %d; download it again", err, syntax.Offset)
	}
	if kind := new(json.UnmarshalTypeError); errors.As(err, &kind) {
		before, _, _ := strings.Cut(err.Error(), kind.Error())
		return fmt.Errorf("%s%s is of a wrong kind, %s (at byte %d)", before, cmp.Or(kind.Field, "the text"), kind.Value, kind.Offset)
	}
	return err
}

// config is a JSON object of settings. Its methods return the value of a key, which must be of the
// right kind and in range, and keep the first error of the whole file, so that they read as a list. A
// key that is null counts as missing.
type config struct {
	path   string // for messages: the file, then the keys of nested objects
	values map[string]json.RawMessage
	sum    [sha256.Size]byte // of the file
	err    *error
}

// readConfig reads a file that holds one object.
func readConfig(path string) (*config, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	c := &config{path: path + ": ", sum: sha256.Sum256(text), err: new(error)}
	if err := json.Unmarshal(finite(text), &c.values); err != nil {
		return nil, fmt.Errorf("hf: %s: %w", path, explained(err))
	}
	return c, nil
}

// finite replaces what Python writes for numbers that JSON does not have: Infinity by the largest number, NaN by null.
func finite(text []byte) []byte {
	var out []byte
	inside, done := false, 0
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '"':
			inside = !inside
		case inside:
		case bytes.HasPrefix(text[i:], []byte("Infinity")):
			out = strconv.AppendFloat(append(out, text[done:i]...), math.MaxFloat64, 'g', -1, 64)
			done = i + len("Infinity")
			i = done - 1
		case bytes.HasPrefix(text[i:], []byte("NaN")):
			out = append(append(out, text[done:i]...), "null"...)
			done = i + len("NaN")
			i = done - 1
		}
	}
	return append(out, text[done:]...)
}

func (c *config) fail(format string, args ...any) {
	if *c.err == nil {
		*c.err = fmt.Errorf("hf: "+c.path+format, args...)
	}
}

// has reports whether a key is there and not null.
func (c *config) has(key string) bool {
	v := c.values[key]
	return v != nil && !bytes.Equal(v, []byte("null"))
}

// first returns the first of keys that is there, and the first one where none is.
func (c *config) first(keys ...string) string {
	for _, k := range keys {
		if c.has(k) {
			return k
		}
	}
	return keys[0]
}

// sub returns a nested object, an empty one where the key is missing.
func (c *config) sub(key string) *config {
	s := &config{path: c.path + key + ".", sum: c.sum, err: c.err}
	c.value(key, &s.values, "an object")
	return s
}

// value decodes the value of a key and reports whether it is there.
func (c *config) value(key string, into any, want string) bool {
	if !c.has(key) {
		return false
	}
	if err := json.Unmarshal(c.values[key], into); err != nil {
		c.fail("%s: want %s, found %.40s", key, want, c.values[key])
		return false
	}
	return true
}

// count returns an integer from low to high; a missing one is an error.
func (c *config) count(key string, low, high int) int {
	if !c.has(key) {
		c.fail("%s is missing", key)
		return low
	}
	return c.countOr(key, low, low, high)
}

// countOr returns an integer from low to high, or other where the key is missing.
func (c *config) countOr(key string, other, low, high int) int {
	var number json.Number
	if !c.value(key, &number, "an integer") {
		return other
	}
	x, err := strconv.ParseFloat(number.String(), 64) // some files write 1e6
	if err != nil || x != math.Trunc(x) || !(x >= float64(low) && x <= float64(high)) {
		c.fail("%s is %.40s; it must be an integer from %d to %d", key, number, low, high)
		return low
	}
	return int(x)
}

// floatOr returns a number from low to high, or other where the key is missing.
func (c *config) floatOr(key string, other, low, high float64) float64 {
	var x float64
	if !c.value(key, &x, "a number") {
		return other
	}
	if !(x >= low && x <= high) {
		c.fail("%s is %v; it must be from %v to %v", key, x, low, high)
		return low
	}
	return x
}

// boolOr returns a truth value, or other where the key is missing.
func (c *config) boolOr(key string, other bool) bool {
	c.value(key, &other, "true or false")
	return other
}

// textOr returns a string, or other where the key is missing.
func (c *config) textOr(key, other string) string {
	c.value(key, &other, "a string")
	return other
}

// floats returns an array of n finite numbers; a missing one is an error.
func (c *config) floats(key string, n int) []float32 {
	var x []float32
	if !c.value(key, &x, "an array of numbers") && *c.err == nil {
		c.fail("%s is missing", key)
	}
	if len(x) != n && *c.err == nil {
		c.fail("%s has length %d; it must be %d", key, len(x), n)
	}
	return x
}

// only refuses a key whose text is not one of known.
func (c *config) only(key string, known ...string) {
	if !c.has(key) {
		return
	}
	text := c.textOr(key, "")
	for _, k := range known {
		if text == k {
			return
		}
	}
	c.fail("%s is %.40q; it must be one of %q", key, text, known)
}
