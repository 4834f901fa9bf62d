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

	"grove/internal/fileio"
)

// MaxJSON bounds the text files of a folder that are read whole.
const MaxJSON = 64 << 20

// ReadFile returns a text file of a folder.
func ReadFile(path string) ([]byte, error) {
	text, err := fileio.ReadRegular(path, MaxJSON)
	switch {
	case err != nil:
		return nil, fmt.Errorf("hf: %w", err)
	case filepath.Ext(path) != ".json":
		return text, nil
	case len(text) == 0:
		return nil, fmt.Errorf("hf: %s: the file is empty; download it again", path)
	}
	if first := bytes.TrimLeft(text, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return nil, fmt.Errorf("hf: %s: the file begins with %.20q; it must be a JSON object%s", path, first, fileio.InsteadOf(first))
	}
	return text, nil
}

// Explained adds to the error of a JSON text where the fault is and what to do, and takes names of Go's types out of it.
func Explained(err error) error {
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

// FolderConfig is a JSON object of settings. Its methods return the value of a key, which must be of the
// right kind and in range, and keep the first error of the whole file, so that they read as a list. A
// key that is null counts as missing.
type FolderConfig struct {
	Path   string // for messages: the file, then the keys of nested objects
	Values map[string]json.RawMessage
	Sum    [sha256.Size]byte // of the file
	Err    *error
	Dry    bool // a number that is missing is the least; see [Dry]
}

// ReadConfig reads a file that holds one object.
func ReadConfig(path string) (*FolderConfig, error) {
	text, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &FolderConfig{Path: path + ": ", Sum: sha256.Sum256(text), Err: new(error)}
	if err := json.Unmarshal(finite(text), &c.Values); err != nil {
		return nil, fmt.Errorf("hf: %s: %w", path, Explained(err))
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

// Fail keeps an error, with the file and the keys of nested objects, unless there is one.
func (c *FolderConfig) Fail(format string, args ...any) {
	if *c.Err == nil {
		*c.Err = fmt.Errorf("hf: "+c.Path+format, args...)
	}
}

// Has reports whether a key is there and not null.
func (c *FolderConfig) Has(key string) bool {
	v := c.Values[key]
	return v != nil && !bytes.Equal(v, []byte("null"))
}

// First returns the first of keys that is there, and the first one where none is.
func (c *FolderConfig) First(keys ...string) string {
	for _, k := range keys {
		if c.Has(k) {
			return k
		}
	}
	return keys[0]
}

// Sub returns a nested object, an empty one where the key is missing.
func (c *FolderConfig) Sub(key string) *FolderConfig {
	s := &FolderConfig{Path: c.Path + key + ".", Sum: c.Sum, Err: c.Err, Dry: c.Dry}
	c.Value(key, &s.Values, "an object")
	return s
}

// Value decodes the value of a key and reports whether it is there.
func (c *FolderConfig) Value(key string, into any, want string) bool {
	if !c.Has(key) {
		return false
	}
	if err := json.Unmarshal(c.Values[key], into); err != nil {
		c.Fail("%s: want %s, found %.40s", key, want, c.Values[key])
		return false
	}
	return true
}

// Count returns an integer from low to high; a missing one is an error.
func (c *FolderConfig) Count(key string, low, high int) int {
	if !c.Has(key) && !c.Dry {
		c.Fail("%s is missing", key)
	}
	return c.CountOr(key, low, low, high)
}

// CountOr returns an integer from low to high, or other where the key is missing.
func (c *FolderConfig) CountOr(key string, other, low, high int) int {
	var number json.Number
	if !c.Value(key, &number, "an integer") {
		return other
	}
	x, err := strconv.ParseFloat(number.String(), 64) // some files write 1e6
	if err != nil || x != math.Trunc(x) || !(x >= float64(low) && x <= float64(high)) {
		c.Fail("%s is %.40s; it must be an integer from %d to %d", key, number, low, high)
		return low
	}
	return int(x)
}

// FloatOr returns a number from low to high, or other where the key is missing.
func (c *FolderConfig) FloatOr(key string, other, low, high float64) float64 {
	var x float64
	if !c.Value(key, &x, "a number") {
		return other
	}
	if !(x >= low && x <= high) {
		c.Fail("%s is %v; it must be from %v to %v", key, x, low, high)
		return low
	}
	return x
}

// BoolOr returns a truth value, or other where the key is missing.
func (c *FolderConfig) BoolOr(key string, other bool) bool {
	c.Value(key, &other, "true or false")
	return other
}

// TextOr returns a string, or other where the key is missing.
func (c *FolderConfig) TextOr(key, other string) string {
	c.Value(key, &other, "a string")
	return other
}

// Floats returns an array of n finite numbers; a missing one is an error.
func (c *FolderConfig) Floats(key string, n int) []float32 {
	var x []float32
	if !c.Value(key, &x, "an array of numbers") && *c.Err == nil {
		c.Fail("%s is missing", key)
	}
	if len(x) != n && *c.Err == nil {
		c.Fail("%s has length %d; it must be %d", key, len(x), n)
	}
	return x
}

// Only refuses a key whose text is not one of known.
func (c *FolderConfig) Only(key string, known ...string) {
	if !c.Has(key) {
		return
	}
	text := c.TextOr(key, "")
	for _, k := range known {
		if text == k {
			return
		}
	}
	c.Fail("%s is %.40q; it must be one of %q", key, text, known)
}
