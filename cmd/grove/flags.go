package main

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/alecthomas/kong"

	"grove"
	"grove/gopher"
	"grove/weights/find"
	"grove/weights/gguf"
)

// modelFlag chooses the model of a command.
type modelFlag struct {
	Model string `short:"m" placeholder:"MODEL" var:"GROVE_MODEL" help:"A GGUF file, a folder with one or of Hugging Face, or a name that 'grove models' lists; without it, the model inside this program."`
}

// findModel returns the path of the model that a path or name stands for, or the name of one inside this program.
func findModel(name string) (string, error) {
	if _, err := os.Stat(name); err != nil && gopher.Named(name) != nil {
		return name, nil
	}
	path, err := find.System().Find(name)
	if err != nil && strings.HasPrefix(name, "gopher") {
		err = fmt.Errorf("%w; this program has %s", err, strings.Join(gopher.Names(), ", "))
	}
	return path, asFileError(err)
}

// open opens the model for generation.
func (f modelFlag) open(o grove.Options) (_ *grove.Model, err error) {
	if o.Draft != "" {
		if o.Draft, err = findModel(o.Draft); err != nil {
			return nil, err
		}
	}
	if f.Model != "" {
		path, err := findModel(f.Model)
		if err != nil {
			return nil, err
		}
		m, err := grove.Open(path, o)
		return m, asFileError(err)
	}
	announce()
	m, err := grove.OpenBytes(gopher.Model(), o)
	return m, asFileError(err)
}

// file opens the model's file alone.
func (f modelFlag) file() (*gguf.File, error) {
	if f.Model != "" {
		path, err := findModel(f.Model)
		if err != nil {
			return nil, err
		}
		file, err := grove.OpenFile(path)
		return file, asFileError(err)
	}
	announce()
	file, err := gguf.Parse(gopher.Model())
	return file, asFileError(err)
}

// announce says, once, that the model is the one inside the program.
var announce = sync.OnceFunc(func() {
	fmt.Fprintf(os.Stderr, "grove: no model is named: using %s, which is part of this program (-m MODEL names another)\n", gopher.Name)
})

func asFileError(err error) error {
	if err == nil {
		return nil
	}
	return fileError{err}
}

// The types below are values of flags that know their range.

type count int

// Validate refuses negative counts.
func (n count) Validate() error {
	if n < 0 {
		return fmt.Errorf("%d is negative", n)
	}
	return nil
}

type byteCount uint64

// UnmarshalText reads a number of bytes, with KiB, MiB, GiB or TiB behind it or not.
func (n *byteCount) UnmarshalText(text []byte) error {
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
	*n = byteCount(v * unit)
	return nil
}

type temperature float32

// Validate asks the library.
func (v temperature) Validate() error { return grove.Sampling{Temperature: float32(v)}.Validate() }

type topK int

// Validate asks the library.
func (v topK) Validate() error { return grove.Sampling{TopK: int(v)}.Validate() }

type topP float32

// Validate asks the library.
func (v topP) Validate() error { return grove.Sampling{TopP: float32(v)}.Validate() }

type minP float32

// Validate asks the library.
func (v minP) Validate() error { return grove.Sampling{MinP: float32(v)}.Validate() }

type cacheType string

// Validate asks the library.
func (v cacheType) Validate() error {
	_, err := grove.ParseCacheType(string(v))
	return err
}

type methodNames string

// Validate asks the library.
func (v methodNames) Validate() error { return grove.CheckMethods(string(v), "") }

type acceptRule string

// Validate asks the library.
func (v acceptRule) Validate() error { return grove.CheckMethods(grove.MethodAuto, string(v)) }

// variables gives a flag that is not on the command line the value of its environment variable, if that is
// set and not empty.
func variables(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	name := flag.Tag.Get("var")
	text := os.Getenv(name)
	if text == "" {
		return nil, nil
	}
	trial := reflect.New(flag.Target.Type()).Elem()
	if trial.Kind() == reflect.Pointer {
		trial.Set(reflect.New(trial.Type().Elem()))
	}
	scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: text})
	err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, trial)
	if v, ok := trial.Interface().(interface{ Validate() error }); ok && err == nil {
		err = v.Validate()
	}
	if err != nil {
		return nil, &variableError{name, err}
	}
	return text, nil
}

// describe is the help of a flag or argument, with its environment variable.
func describe(value *kong.Value) string {
	if name := value.Tag.Get("var"); name != "" {
		return value.Help + " ($" + name + ")"
	}
	return value.Help
}
