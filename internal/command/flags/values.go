package flags

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"grove"
)

// The types below are values of flags. Each knows its range and refuses what lies outside it.

// Count is a number from 0 up.
type Count int

// Valid refuses negative numbers.
func (n Count) Valid() error {
	if n < 0 {
		return fmt.Errorf("%d is negative; it must be 0 or more", n)
	}
	return nil
}

// vocab is a number of tokens of a vocabulary from 0 up, or the word auto.
type vocab int

// UnmarshalText reads a number or the word.
func (v *vocab) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*v = grove.AutoVocab
		return nil
	}
	n, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil {
		return fmt.Errorf("%q; it must be auto, or a number from 0 up", text)
	}
	*v = vocab(n)
	return nil
}

// tokenLimit is a number of tokens from 0 up, or -1 for no bound as in llama.cpp and ollama.
type tokenLimit int

// Valid refuses other negative numbers.
func (n tokenLimit) Valid() error {
	if n < -1 {
		return fmt.Errorf("%d; it must be 0 or more, or -1 for no bound", n)
	}
	return nil
}

// Bytes is a number of bytes from 1 up.
type Bytes uint64

// UnmarshalText reads a number of bytes. The unit KiB, MiB, GiB or TiB may follow it.
func (n *Bytes) UnmarshalText(text []byte) error {
	digits, unit := strings.TrimSpace(string(text)), uint64(1)
	for i, name := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if d, ok := strings.CutSuffix(digits, name); ok {
			digits, unit = strings.TrimSpace(d), 1<<(10*(i+1))
		}
	}
	v, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || v == 0 || v > math.MaxUint64/unit {
		return fmt.Errorf("%q is not a number of bytes such as 6GiB", text)
	}
	*n = Bytes(v * unit)
	return nil
}

type temperature float32

// Valid asks the library.
func (v temperature) Valid() error { return grove.Sampling{Temperature: float32(v)}.Validate() }

type topK int

// Valid asks the library.
func (v topK) Valid() error { return grove.Sampling{TopK: int(v)}.Validate() }

type topP float32

// Valid asks the library.
func (v topP) Valid() error { return grove.Sampling{TopP: float32(v)}.Validate() }

type minP float32

// Valid asks the library.
func (v minP) Valid() error { return grove.Sampling{MinP: float32(v)}.Validate() }

// CacheName is the name of a type of cached keys and values.
type CacheName string

// Valid asks the library.
func (v CacheName) Valid() error {
	_, err := grove.ParseCacheType(string(v))
	return err
}

// Values returns the names, for completion.
func (v CacheName) Values() []string { return []string{"f32", "f16", "q8_0"} }

type methodNames string

// Values returns the names, for completion.
func (v methodNames) Values() (names []string) {
	for _, m := range grove.Methods() {
		names = append(names, m.Name)
	}
	return append(names, grove.MethodAuto, "off")
}

// Valid asks the library.
func (v methodNames) Valid() error { return grove.CheckMethods(string(v), "") }

type acceptRule string

// Valid asks the library.
func (v acceptRule) Valid() error { return grove.CheckMethods(grove.MethodAuto, string(v)) }

// Values returns the names, for completion.
func (v acceptRule) Values() (names []string) {
	for _, r := range grove.Rules() {
		names = append(names, r.Name)
	}
	return names
}

type methodList string

// Values returns the names, for completion.
func (v methodList) Values() []string { return append(methodNames("").Values(), allMethods) }

// Valid asks the library about each entry.
func (v methodList) Valid() error {
	if v == allMethods {
		return nil
	}
	for _, name := range v.split() {
		if err := grove.CheckMethods(name, ""); err != nil {
			return err
		}
	}
	return nil
}

// split returns the entries, each as [grove.Request] takes it. A + stands between methods of an entry, or between the options of one: what
// follows the + of an option is another method where it begins with the name of one.
func (v methodList) split() []string {
	entries, known := strings.Split(string(v), ","), methodNames("").Values()
	for i, entry := range entries {
		var names []string
		for _, part := range strings.Split(strings.TrimSpace(entry), "+") {
			name, _, _ := strings.Cut(part, ":")
			if n := len(names); n > 0 && strings.Contains(names[n-1], ":") && !slices.Contains(known, name) {
				names[n-1] += "+" + part
			} else {
				names = append(names, part)
			}
		}
		entries[i] = strings.Join(names, ",")
	}
	return entries
}

type stopTexts []string

// Valid refuses a text that stands everywhere.
func (v stopTexts) Valid() error {
	if slices.Contains(v, "") {
		return errors.New("the text is empty; it must have at least one character")
	}
	return nil
}
