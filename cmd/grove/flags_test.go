package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"grove"
	"grove/internal/command/flags"
	"grove/internal/gopher"
)

// ownMeaning lists the flags that more than one struct declares, and why. Every other flag is declared once.
var ownMeaning = map[string]string{
	"--model":         "serve takes several, with names; bench serve takes the name that a server gave it",
	"-m":              "as --model",
	"-p":              "run takes a prompt, as llama.cpp does; bench speed takes numbers of rows, as llama-bench does",
	"--chat-template": "serve takes one for each of several models",
	"--api-key":       "serve checks several keys; commands that talk to a server send one",
	"--tokens":        "logits computes ids, exactly these; embed takes places in a text",
	"--shape":         "bench make needs one; bench scaling takes one instead of a model",
	"--type":          "convert takes a mix of types; bench make and bench scaling take one type for every matrix",
	"--heads":         "models are opened with a file of heads; convert is told that its source is heads",
}

// TestFlagsDeclaredOnce: a flag that several commands have is one field of one struct, so that it means the same everywhere.
func TestFlagsDeclaredOnce(t *testing.T) {
	places := declarations(reflect.TypeOf(commands{}))
	for _, known := range []string{"--temp", "--context", "-n", "--json", "--methods"} {
		if len(places[known]) != 1 {
			t.Errorf("%s is declared in %v, want one place", known, places[known])
		}
	}
	for flag, where := range places {
		if _, ok := ownMeaning[flag]; len(where) > 1 && !ok {
			t.Errorf("%s is declared in %v; declare it once, in package flags", flag, where)
		}
	}
	for flag := range ownMeaning {
		if len(places[flag]) < 2 {
			t.Errorf("%s is declared in %v; take it off the list ownMeaning", flag, places[flag])
		}
	}
	type twice struct {
		A struct {
			Temp int `help:"x"`
		} `cmd:""`
		B struct {
			T int `name:"temp"`
		} `cmd:""`
	}
	if got := declarations(reflect.TypeOf(twice{}))["--temp"]; len(got) != 2 {
		t.Errorf("two declarations of one flag are found in %v", got)
	}
}

// declarations returns the fields that declare each flag of commands, by its name with hyphens, long and short.
func declarations(commands reflect.Type) map[string][]string {
	places := map[string][]string{}
	var walk func(t reflect.Type)
	walk = func(t reflect.Type) {
		for i := range t.NumField() {
			f := t.Field(i)
			_, command := f.Tag.Lookup("cmd")
			if _, argument := f.Tag.Lookup("arg"); argument {
				continue
			}
			if command || f.Anonymous {
				walk(f.Type)
				continue
			}
			name := f.Tag.Get("name")
			if name == "" {
				name = hyphens(f.Name)
			}
			place := fmt.Sprintf("%s.%s", t, f.Name)
			if t.Name() == "" {
				place = fmt.Sprintf("%p.%s", &f, f.Name)
			}
			for _, flag := range []string{"--" + name, "-" + f.Tag.Get("short")} {
				if flag != "-" && !slices.Contains(places[flag], place) {
					places[flag] = append(places[flag], place)
				}
			}
		}
	}
	walk(commands)
	return places
}

// hyphens returns the name that kong gives the flag of a field.
func hyphens(field string) string {
	var b strings.Builder
	for i, r := range field {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

// withoutAdvice returns a model that recommends no sampling.
func withoutAdvice(t *testing.T) []byte {
	data, err := os.ReadFile(filepath.Join(goldens, "llama-gqa.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestFlagsDefaults: the defaults of sampling flags are those of the library, and every help text ends as a sentence.
func TestFlagsDefaults(t *testing.T) {
	var c commands
	parser, err := kong.New(&c, program.Options()...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := flags.ParseArguments(parser, []string{"run", "x"}); err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{gopher.Model(), withoutAdvice(t)} {
		m, err := grove.OpenBytes(data, grove.Options{Forget: true})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		r, err := c.Run.RequestOf(m)
		if err != nil {
			t.Fatal(err)
		}
		if want := m.DefaultSampling(); !reflect.DeepEqual(r.Sampling, want) || r.Penalties.Repeat != m.DefaultPenalties().Repeat {
			t.Errorf("the flags give %+v, the library %+v", r.Sampling, want)
		}
	}
	_ = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		flag, ok := node.(*kong.Flag)
		if ok && flag.Name != "help" && !flag.Hidden && (!strings.HasSuffix(flag.Help, ".") || strings.Contains(flag.Help, "${")) {
			t.Errorf("--%s: the help is %q", flag.Name, flag.Help)
		}
		return next(nil)
	})
}
