package flags

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/terminal"
)

// A Program is a command line whose commands have the flags of this package.
type Program struct {
	Name, Description string
	Help              kong.HelpOptions
	Commands          func() any // returns a new struct of the commands, whose type has a name
}

// Options returns how kong reads the command line.
func (p Program) Options() []kong.Option {
	return []kong.Option{
		kong.Name(p.Name), kong.Description(p.Description), kong.ConfigureHelp(p.Help),
		kong.ValueFormatter(describe), kong.Resolvers(kong.ResolverFunc(resolve)),
		kong.WithHyphenPrefixedParameters(true), kong.Writers(terminal.Stdout, os.Stderr),
	}
}

// Run runs the command of the arguments, with the streams that package os has now, and returns the exit code.
func (p Program) Run(args []string) (code int) {
	defer func() {
		if fault := recover(); fault != nil {
			code = exit.ReportFault(os.Stderr, fault)
		}
	}()
	announce = newAnnounce()
	commands := p.Commands()
	parser := kong.Must(commands, append(p.Options(), alone(commands, args))...)
	args, err := RewriteArguments(parser.Model, func() *kong.Application { return kong.Must(p.Commands(), p.Options()...).Model }, args, os.Stderr)
	if err != nil {
		return exit.Report(os.Stderr, err)
	}
	line, err := ParseArguments(parser, args)
	if errors.Is(err, ErrHelp) {
		return exit.CodeOK
	}
	if err == nil {
		err = chooseKernels(os.Getenv("GROVE_KERNELS"))
	}
	if err == nil {
		err = runArguments(line)
	}
	if parse := new(exit.ParseError); errors.As(err, &parse) {
		if line = parse.Line; strings.HasPrefix(err.Error(), `expected "<`) {
			err = fmt.Errorf("%w; '%s --help' shows the arguments", err, line.Selected().FullPath())
		}
	}
	return exit.Report(os.Stderr, blame(line, err))
}

// alone leaves the other commands out where the arguments begin with the name of one: kong describes every flag of every command that it has, which takes
// longer than all else before a model is opened. Help, completion and hints about names need all.
func alone(commands any, args []string) kong.Option {
	var others []string
	found := false
	of := reflect.TypeOf(commands).Elem()
	for f := range of.Fields() {
		_, passes := f.Tag.Lookup("passthrough")
		command := len(args) > 0 && strings.ToLower(f.Name) == args[0] && !passes && args[0] != "completion"
		if found = found || command; !command && !f.Anonymous {
			others = append(others, f.Name)
		}
	}
	if !found {
		return kong.IgnoreFields()
	}
	return kong.IgnoreFields(`^` + of.Name() + `\.(` + strings.Join(others, "|") + ")$")
}

// chooseKernels makes the named implementation of the kernels run; "": the fastest.
func chooseKernels(name string) error {
	if name == "" {
		return nil
	}
	if err := grove.UseKernels(name); err != nil {
		return &exit.VariableError{Name: "GROVE_KERNELS", Err: err}
	}
	return nil
}
