// Package completion completes command lines: the shells' scripts ask the program, which knows its commands, flags and values.
package completion

import (
	_ "embed"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"
)

//go:embed grove.bash
var bash string

//go:embed grove.zsh
var zsh string

//go:embed grove.fish
var fish string

// Script returns the script of a shell: bash, zsh or fish. It runs "grove complete WORDS", whose output is [Answer.Write]'s.
func Script(shell string) (string, error) {
	script, ok := map[string]string{"bash": bash, "zsh": zsh, "fish": fish}[shell]
	if !ok {
		return "", fmt.Errorf("grove: completion: shell %q is not known; bash, zsh and fish are", shell)
	}
	return script, nil
}

// Candidate is a word that may stand at the cursor, with what it means.
type Candidate struct{ Word, Help string }

// Answer lists the words that may stand at the cursor.
type Answer struct {
	Candidates []Candidate
	Files      bool // names of files may stand there too
}

// Write writes the answer for a script: a line of each candidate, its word, a tab and its meaning; the line :files where files may
// stand there. A word that a shell would not take as it is, is left out.
func (a Answer) Write(w io.Writer) error {
	for _, c := range a.Candidates {
		if strings.ContainsFunc(c.Word, special) {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\n", c.Word, c.Help); err != nil {
			return err
		}
	}
	if a.Files {
		_, err := fmt.Fprintln(w, ":files")
		return err
	}
	return nil
}

// special reports whether a character may mean something to a shell.
func special(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@+,=", r)
}

// Values is implemented by types of flags and arguments with a list of values, which [Complete] offers.
type Values interface{ Values() []string }

// Complete returns what may stand in place of the last of words, which follow the program's name on the command line. models lists the
// names of models; it is called where one may stand.
//
// The values of a flag or argument are those of its enum or of its type ([Values]). Else its tag complete, its placeholder or the name
// of the argument say what it is: MODEL, FILE, DIR, IN, OUT or FOLDER.
func Complete(app *kong.Application, words []string, models func() []string) (a Answer) {
	if len(words) == 0 {
		words = []string{""}
	}
	last := len(words) - 1
	l := line{node: app.Node, used: map[*kong.Flag]bool{}}
	for _, word := range words[:last] {
		l.read(word)
	}
	word := words[last]
	name, value, assigned := strings.Cut(word, "=")
	switch {
	case l.flag != nil:
		a = valuesOf(l.flag.Value, "", word, models)
	case strings.HasPrefix(word, "--") && assigned && !l.ended:
		if f := l.find(name); f != nil && !f.IsBool() {
			a = valuesOf(f.Value, name+"=", value, models)
		}
	case strings.HasPrefix(word, "-") && !l.ended:
		a.Candidates = l.flags(word)
	default:
		a = l.words(word, models)
	}
	return a
}

// line is the part of a command line that has been read.
type line struct {
	node  *kong.Node // the command
	flag  *kong.Flag // whose value follows; nil: none
	used  map[*kong.Flag]bool
	args  int  // positional arguments that were read
	ended bool // by --: what follows is no flag
}

// read reads a word.
func (l *line) read(word string) {
	name, _, assigned := strings.Cut(word, "=")
	switch {
	case l.flag != nil:
		l.flag = nil
	case word == "--" && !l.ended:
		l.ended = true
	case strings.HasPrefix(word, "-") && word != "-" && !l.ended:
		if f := l.find(name); f != nil {
			if l.used[f] = true; !assigned && !f.IsBool() && !f.IsCounter() {
				l.flag = f
			}
		}
	default:
		if child := l.child(word); child != nil {
			l.node = child
		} else {
			l.args++
		}
	}
}

// child returns the command of a name below the present one; nil: there is none.
func (l *line) child(name string) *kong.Node {
	for _, n := range l.node.Children {
		if n.Type == kong.CommandNode && l.args == 0 && (n.Name == name || slices.Contains(n.Aliases, name)) {
			return n
		}
	}
	return nil
}

// all calls f for each flag that may stand here.
func (l *line) all(f func(*kong.Flag)) {
	for _, group := range l.node.AllFlags(true) {
		for _, flag := range group {
			f(flag)
		}
	}
}

// find returns the flag of a name with its hyphens, nil: there is none.
func (l *line) find(name string) (found *kong.Flag) {
	l.all(func(f *kong.Flag) {
		if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
			found = f
		}
	})
	return found
}

// flags returns the flags that begin with a word. One that was given and takes no list is left out.
func (l *line) flags(word string) (all []Candidate) {
	l.all(func(f *kong.Flag) {
		if name := "--" + f.Name; strings.HasPrefix(name, word) && (!l.used[f] || f.Target.Kind() == reflect.Slice) {
			all = append(all, Candidate{name, brief(f.Help)})
		}
	})
	return all
}

// words returns the commands that begin with a word, and the values of the argument that stands here.
func (l *line) words(word string, models func() []string) (a Answer) {
	at := min(l.args, len(l.node.Positional)-1)
	switch {
	case at < 0, at < l.args && !l.node.Positional[at].IsCumulative():
	case l.ended && !l.node.Positional[at].Required: // a text, which may begin like anything
	default:
		a = valuesOf(l.node.Positional[at], "", word, models)
	}
	for _, n := range l.node.Children {
		if n.Type == kong.CommandNode && !n.Hidden && l.args == 0 && strings.HasPrefix(n.Name, word) {
			a.Candidates = append(a.Candidates, Candidate{n.Name, brief(n.Help)})
		}
	}
	return a
}

// valuesOf returns the values of a flag or argument that begin with a text, each after head.
func valuesOf(v *kong.Value, head, text string, models func() []string) (a Answer) {
	var values []string
	kind := v.Tag.Get("complete")
	if f := v.Flag; f != nil && kind == "" {
		kind = f.PlaceHolder
	} else if kind == "" {
		kind = strings.ToUpper(v.Name)
	}
	if rest, named := strings.CutPrefix(kind, "[NAME=]"); named {
		at := strings.LastIndexByte(text, '=') + 1
		kind, head, text = rest, head+text[:at], text[at:]
	}
	listed, ok := valueOf(v)
	switch {
	case v.Enum != "":
		values = v.EnumSlice()
	case ok:
		values = listed
	case kind == "MODEL":
		values, a.Files = models(), true
	default:
		a.Files = slices.Contains([]string{"FILE", "DIR", "IN", "OUT", "FOLDER", "TEMPLATE"}, kind)
	}
	if at := strings.LastIndexByte(text, ',') + 1; at > 0 && kind != "MODEL" {
		head, text = head+text[:at], text[at:]
	}
	for _, value := range values {
		if strings.HasPrefix(value, text) && value != "" {
			a.Candidates = append(a.Candidates, Candidate{head + value, ""})
		}
	}
	return a
}

// valueOf returns the values of a type that lists them.
func valueOf(v *kong.Value) ([]string, bool) {
	t := v.Target.Type()
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && !t.Implements(reflect.TypeFor[Values]()) {
		t = t.Elem()
	}
	list, ok := reflect.New(t).Elem().Interface().(Values)
	if !ok {
		return nil, false
	}
	return list.Values(), true
}

// brief returns the first sentence of a help text, without its point.
func brief(help string) string {
	help, _, _ = strings.Cut(strings.Join(strings.Fields(help), " "), ". ")
	return strings.TrimSuffix(help, ".")
}
