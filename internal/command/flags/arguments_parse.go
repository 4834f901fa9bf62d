package flags

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"grove/internal/command/exit"
)

// ErrHelp says that a command line asked for help, and that it was written.
var ErrHelp = errors.New("help is written")

// ParseArguments reads a command line into the struct of k, as k.Parse does, whose errors it returns as an [exit.ParseError]. Where the
// line asks for help, it writes that and returns [ErrHelp].
//
// k.Parse, k's Validate and its contexts' Run look for methods by names that the linker cannot know, so that a program which has them keeps
// every exported method of every type: 5 MB. What grove and lab declare is checked here: enums, required flags and arguments, and flags that
// exclude each other. Hooks are [flags.Hooked], and commands [Command].
func ParseArguments(k *kong.Kong, args []string) (*kong.Context, error) {
	line, err := kong.Trace(k, args)
	if err == nil {
		err = line.Error
	}
	if err == nil {
		err = apply(line)
	}
	switch {
	case err == ErrHelp:
		return nil, err
	case err != nil:
		return nil, &exit.ParseError{Err: err, Line: line}
	}
	return line, nil
}

// apply gives the fields of the commands on a line their values, and checks them.
func apply(line *kong.Context) error {
	for _, p := range line.Path {
		if p.Flag != nil && p.Flag == line.Model.HelpFlag {
			if err := line.PrintUsage(false); err != nil {
				return err
			}
			return ErrHelp
		}
	}
	err := line.Reset()
	if err == nil {
		err = line.Resolve()
	}
	if err == nil {
		_, err = line.Apply()
	}
	if err == nil {
		err = check(line)
	}
	if err == nil {
		err = hook(line)
	}
	return err
}

// check refuses values that are not valid, and lines with too few of them. The order and the words are kong's.
func check(line *kong.Context) error {
	for _, p := range line.Path {
		node := p.Node()
		if node == nil {
			continue
		}
		for _, v := range node.Values() {
			if v.Enum != "" && (!v.Required || v.HasDefault) {
				if err := checkEnum(v, v.Target); err != nil {
					return err
				}
			}
		}
	}
	for _, p := range line.Path {
		if err := validate(p); err != nil {
			return err
		}
	}
	for _, p := range line.Path {
		var v *kong.Value
		if v = p.Positional; p.Flag != nil {
			v = p.Flag.Value
		}
		if v != nil && v.Tag.Enum != "" {
			if err := checkEnum(v, v.Target); err != nil {
				return err
			}
		}
		if err := checkRequired(p.Flags); err != nil {
			return err
		}
	}
	node := line.Selected()
	if node == nil {
		node = line.Model.Node
	}
	if err := checkComplete(node); err != nil {
		return err
	}
	for _, p := range line.Path {
		if err := checkExclusive(p.Flags); err != nil {
			return err
		}
	}
	return nil
}

// validate calls the methods Valid of a part of the line and of the structs in it. Their errors begin with its name.
func validate(p *kong.Path) error {
	var target reflect.Value
	name := ""
	switch {
	case p.App != nil:
		target = p.App.Target
	case p.Flag != nil:
		target, name = p.Flag.Target, p.Flag.ShortSummary()
	case p.Positional != nil:
		target, name = p.Positional.Target, p.Positional.ShortSummary()
	case p.Command != nil:
		target, name = p.Command.Target, p.Command.Path()
	default:
		return nil
	}
	for _, part := range embedded(target) {
		v, ok := part.(interface{ Valid() error })
		if r := reflect.ValueOf(part).Elem(); !ok || slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, r.Kind()) && r.IsNil() {
			continue
		}
		if err := v.Valid(); err != nil && name != "" {
			return fmt.Errorf("%s: %w", name, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// embedded returns pointers to a value, what it points to, and the structs that are embedded in it, at any depth.
func embedded(v reflect.Value) (all []any) {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if !v.IsValid() || !v.CanAddr() {
		return nil
	}
	all = append(all, v.Addr().Interface())
	if v.Kind() != reflect.Struct {
		return all
	}
	for field, part := range v.Fields() {
		if field.Anonymous && field.IsExported() {
			all = append(all, embedded(part)...)
		}
	}
	return all
}

// hook calls the hooks of the commands on a line, each once: a struct has the method of one that is embedded in it.
func hook(line *kong.Context) error {
	called := map[any]bool{}
	for _, p := range line.Path {
		if p.App == nil && p.Command == nil {
			continue
		}
		for _, part := range embedded(p.Node().Target) {
			hooked, ok := part.(Hooked)
			if !ok {
				continue
			}
			h := hooked.Parsed()
			if called[h.Of] {
				continue
			}
			called[h.Of] = true
			if err := h.Do(line); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkEnum(v *kong.Value, target reflect.Value) error {
	switch target.Kind() {
	case reflect.Slice:
		for i := range target.Len() {
			if err := checkEnum(v, target.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Pointer:
		if target.IsNil() {
			return nil
		}
		return checkEnum(v, target.Elem())
	}
	got, all := fmt.Sprint(target.Interface()), v.EnumSlice()
	if slices.Contains(all, got) {
		return nil
	}
	quoted := make([]string, len(all))
	for i, one := range all {
		quoted[i] = strconv.Quote(one)
	}
	return fmt.Errorf("%s must be one of %s but got %q", v.ShortSummary(), strings.Join(quoted, ","), got)
}

func checkRequired(all []*kong.Flag) error {
	var missing []string
	for _, f := range all {
		if f.Required && !f.Set {
			missing = append(missing, f.Summary())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("missing flags: %s", strings.Join(missing, ", "))
}

// checkComplete refuses a command whose arguments are missing, or one that is a group of commands.
func checkComplete(node *kong.Node) error {
	var missing, names []string
	for _, v := range node.Positional {
		if v.Required && !v.Set {
			names = append(names, v.Summary())
		}
	}
	if len(names) > 0 {
		missing = append(missing, strconv.Quote(strings.Join(names, " ")))
	}
	for _, child := range node.Children {
		if !child.Hidden {
			missing = append(missing, strconv.Quote(child.Name))
		}
	}
	switch most := 5; {
	case len(missing) == 0:
		return nil
	case len(missing) == 1:
		return fmt.Errorf("expected %s", missing[0])
	case len(missing) > most:
		missing = append(missing[:most], "...")
	}
	return fmt.Errorf("expected one of %s", strings.Join(missing, ", "))
}

// checkExclusive refuses two flags of which one alone may stand.
func checkExclusive(all []*kong.Flag) error {
	seen := map[string]*kong.Flag{}
	for _, f := range all {
		if !f.Set {
			continue
		}
		for _, group := range f.Xor {
			if seen[group] != nil {
				return fmt.Errorf("--%s and --%s can't be used together", seen[group].Name, f.Name)
			}
			seen[group] = f
		}
	}
	return nil
}

// Command is a command that can be run.
type Command interface{ Run() error }

// lined is a command that reads the command line.
type lined interface{ Run(*kong.Context) error }

// runArguments runs the command of a line.
func runArguments(line *kong.Context) error {
	node := line.Selected()
	if node == nil {
		return errors.New("no command selected")
	}
	switch c := node.Target.Addr().Interface().(type) {
	case Command:
		return c.Run()
	case lined:
		return c.Run(line)
	}
	return fmt.Errorf("%s: no command", node.FullPath())
}
