// arguments.go reads the command line before kong does. It knows the names that flags and commands have in ollama, llama.cpp
// and vLLM: those that mean the same become ours, those that change nothing here are left out with a note, and all others are
// refused with what to do instead.

package flags

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"grove/internal/command/exit"
	"grove/internal/options"
)

// RewriteArguments returns the arguments of the program as kong takes them. app has the command that they begin with; all, which is called only where a
// flag is not known, returns one with every command, for the error names those that have the flag. It writes a line to notes for each flag that
// has no effect. Its errors have the code of a command line that is refused.
func RewriteArguments(app *kong.Application, all func() *kong.Application, args []string, notes io.Writer) ([]string, error) {
	switch {
	case len(args) == 0:
		return []string{"--help"}, nil
	case slices.Contains([]string{"--version", "-v", "-V"}, args[0]):
		args = append([]string{"version"}, args[1:]...)
	case args[0] == "help":
		args = append(slices.Clone(args[1:]), "--help")
	}
	l := line{app: app, all: all, node: app.Node, rest: args, notes: notes}
	for len(l.rest) > 0 {
		if l.node.Passthrough { // its arguments are words of another command line
			return append(l.out, l.rest...), nil
		}
		if err := l.step(); err != nil {
			return nil, exit.With(exit.CodeUsage, err)
		}
	}
	return l.out, nil
}

// line is a command line on its way.
type line struct {
	app   *kong.Application
	all   func() *kong.Application // with every command
	node  *kong.Node               // the command so far
	words int                      // arguments of the command that are no flags
	rest  []string
	out   []string
	notes io.Writer
}

// step reads an argument and its value.
func (l *line) step() error {
	arg := l.next()
	switch {
	case arg == "--":
		if l.words == 0 && l.flag(textOnly) != nil {
			l.out = append(l.out, "--"+textOnly)
		}
		l.out, l.rest = append(append(l.out, arg), l.rest...), nil
		return nil
	case strings.HasPrefix(arg, "--"):
		return l.long(arg)
	case len(arg) > 1 && arg[0] == '-':
		return l.short(arg)
	}
	l.out = append(l.out, arg)
	if len(l.node.Children) == 0 {
		l.words++
		return nil
	}
	return l.command(arg)
}

func (l *line) next() string {
	arg := l.rest[0]
	l.rest = l.rest[1:]
	return arg
}

// command goes down to the command of a name.
func (l *line) command(name string) error {
	var known []string
	for _, c := range l.node.Children {
		if c.Name == name || slices.Contains(c.Aliases, name) {
			l.node = c
			return nil
		}
		if !c.Hidden {
			known = append(append(known, c.Name), c.Aliases...)
		}
	}
	if why := foreignCommands[name]; why != "" && l.node == l.app.Node {
		return fmt.Errorf("%q is not a command: %s", name, why)
	}
	hint := options.NearHint(name, known)
	switch {
	case hint != "":
	case l.node == l.app.Node && LooksLikeModel(name):
		hint = fmt.Sprintf("; to use a model: grove run %s, or grove chat %s", name, name)
	default:
		hint = fmt.Sprintf("; '%s --help' lists the commands", path(l.node))
	}
	return fmt.Errorf("%q is not a command%s", name, hint)
}

// flag returns the flag of the command with a long name, nil for none.
func (l *line) flag(name string) *kong.Flag {
	return findFlag(l.node, func(f *kong.Flag) bool { return f.Name == name || slices.Contains(f.Aliases, name) })
}

func findFlag(node *kong.Node, is func(*kong.Flag) bool) *kong.Flag {
	for _, group := range node.AllFlags(false) {
		if i := slices.IndexFunc(group, is); i >= 0 {
			return group[i]
		}
	}
	return nil
}

// long reads a flag that begins with two hyphens, under our name or under one of another program.
func (l *line) long(arg string) error {
	given, value, joined := strings.Cut(arg[2:], "=")
	name := strings.ReplaceAll(given, "_", "-")
	f := l.flag(name)
	if f == nil {
		f = l.flag(aliases[name])
	}
	switch {
	case f == nil:
		return l.foreign("--"+given, name, value, joined)
	case f.Name == idle && name != idle:
		return l.keepAlive("--"+given, value, joined)
	}
	if arg = "--" + f.Name; joined {
		arg += "=" + value
	}
	l.out = append(l.out, arg)
	l.value(f, joined)
	return nil
}

// value moves the value of a flag, which is the next argument unless it was joined to the flag.
func (l *line) value(f *kong.Flag, joined bool) {
	if !f.IsBool() && !joined && len(l.rest) > 0 {
		l.out = append(l.out, l.next())
	}
}

// short reads an argument that begins with one hyphen: a flag of several letters of another program, or flags of one letter.
func (l *line) short(arg string) error {
	name, value, joined := strings.Cut(arg, "=")
	if long := shorts[name]; long != "" && (len(name) > 2 || l.letter(name[1]) == nil) {
		if joined {
			long += "=" + value
		}
		return l.long("--" + long)
	}
	for i := 1; i < len(arg); i++ {
		f := l.letter(arg[i])
		if f == nil {
			return l.unknown("-" + arg[i:i+1])
		}
		if !f.IsBool() {
			l.out = append(l.out, arg)
			l.value(f, i+1 < len(arg))
			return nil
		}
	}
	l.out = append(l.out, arg)
	return nil
}

// letter returns the flag of the command with a short name, nil for none.
func (l *line) letter(c byte) *kong.Flag {
	return findFlag(l.node, func(f *kong.Flag) bool { return f.Short == rune(c) })
}

// foreign reads a flag that the command does not have.
func (l *line) foreign(given, name, value string, joined bool) error {
	for _, o := range others {
		if !slices.Contains(strings.Fields(o.names), name) || o.commands != "" && !slices.Contains(strings.Fields(o.commands), l.node.Name) {
			continue
		}
		if o.refused {
			return fmt.Errorf("%s: %s", given, o.why)
		}
		if !joined && len(l.rest) > 0 && (o.takes == one || o.takes == perhaps && slices.Contains(switches, l.rest[0])) {
			value = l.next()
		}
		if o.only == "" {
			_, err := fmt.Fprintf(l.notes, "grove: %s has no effect: %s\n", given, o.why)
			return err
		}
		if !slices.Contains(strings.Fields(o.only), value) {
			return fmt.Errorf("%s: %.40q: %s", given, value, o.why)
		}
		return nil
	}
	return l.unknown(given)
}

// keepAlive gives the time of ollama's --keepalive to --idle: negative numbers mean for ever to the one, and 0 to the other.
func (l *line) keepAlive(given, value string, joined bool) error {
	if !joined {
		if len(l.rest) == 0 {
			return fmt.Errorf("%s: a time is missing, such as 10m", given)
		}
		value = l.next()
	}
	switch {
	case strings.HasPrefix(value, "-"):
		value = "0s"
	case strings.Trim(value, "0smh") == "":
		return fmt.Errorf("%s: %q: a model cannot close before it answers; --idle 1s closes it after a second without requests", given, value)
	case strings.Trim(value, "0123456789") == "":
		value += "s" // as ollama reads a number
	}
	l.out = append(l.out, "--"+idle+"="+value)
	return nil
}

// unknown returns the error for a flag that nobody knows, with the nearest flags, or the commands that have it.
func (l *line) unknown(given string) error {
	if l.node == l.app.Node {
		return fmt.Errorf("unknown flag %s; flags follow their command, as in grove run --temp 0 ('grove --help' lists the commands)", given)
	}
	own := path(l.node)
	if have := l.having(given); len(have) > 0 {
		return fmt.Errorf("unknown flag %s: %s has none; it is a flag of %s", given, own, strings.Join(have, ", "))
	}
	var known []string
	for _, group := range l.node.AllFlags(true) {
		for _, f := range group {
			known = append(known, "--"+f.Name)
		}
	}
	if strings.HasPrefix(given, "--") {
		for name := range aliases {
			if f := l.flag(aliases[name]); f != nil && "--"+name != given {
				known = append(known, "--"+name)
			}
		}
		slices.Sort(known)
		if hint := options.NearHint(given, known); hint != "" {
			return fmt.Errorf("unknown flag %s%s", given, hint)
		}
	}
	return errors.New("unknown flag " + given + "; '" + own + " --help' lists the flags")
}

// having returns the commands that have a flag.
func (l *line) having(given string) (names []string) {
	for _, leaf := range l.all().Leaves(true) {
		if findFlag(leaf, func(f *kong.Flag) bool { return !f.Hidden && ("--"+f.Name == given || "-"+string(f.Short) == given) }) != nil {
			names = append(names, path(leaf))
		}
	}
	return names
}

// path returns the names of a command and of those above it.
func path(node *kong.Node) string {
	if node.Parent == nil {
		return "grove"
	}
	return path(node.Parent) + " " + node.Name
}
