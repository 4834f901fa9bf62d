package flags

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/alecthomas/kong"

	"grove/internal/command/exit"
)

func TestBlame(t *testing.T) {
	t.Setenv("GROVE_CONTEXT", "600")
	t.Setenv("GROVE_THREADS", "512")
	t.Setenv("GROVE_MODEL", "none.gguf")
	t.Setenv("GROVE_JSON", "1")
	var c struct {
		Run struct {
			Model
			Context
			Threads
			JSON
			Top int `name:"top"`
		} `cmd:""`
	}
	parser, err := kong.New(&c, kong.Resolvers(kong.ResolverFunc(resolve)), kong.Vars{"zero": ""})
	if err != nil {
		t.Fatal(err)
	}
	usage := func(text string) error { return exit.With(exit.CodeUsage, errors.New(text)) }
	for _, c := range []struct {
		err  error
		args []string
		want string // "": as it was
	}{
		{usage("a context of 600 tokens"), nil, "GROVE_CONTEXT: a context of 600 tokens"},
		{usage("a context of 600 tokens; the model was trained for 512"), nil, "GROVE_CONTEXT or GROVE_THREADS: a context of 600 tokens; the model was trained for 512"},
		{exit.File(fmt.Errorf("open none.gguf: %w", fs.ErrNotExist)), nil, "GROVE_MODEL: open none.gguf: file does not exist"},
		{usage("top is 7; it must be from 0 to 512"), []string{"--top", "7"}, ""},
		{usage("a context of 6000 tokens"), nil, ""},
		{usage("600-1 tokens"), nil, ""},
		{usage("1 is no word"), nil, ""},
		{exit.File(errors.New("none.gguf is broken")), nil, ""},
		{errors.New("600 tokens do not fit"), nil, ""},
		{&exit.VariableError{Name: "GROVE_X", Err: errors.New("600")}, nil, ""},
		{nil, nil, ""},
	} {
		line, err := parser.Parse(append([]string{"run"}, c.args...))
		if err != nil {
			t.Fatal(err)
		}
		got := blame(line, c.err)
		if c.want == "" && got != c.err || c.want != "" && (got == nil || got.Error() != c.want || exit.Code(got) != exit.CodeVariable) {
			t.Errorf("%v: got %v, want %q", c.err, got, c.want)
		}
	}
	if err := usage("600"); blame(nil, err) != err {
		t.Error("an error without a command line is changed")
	}
}
