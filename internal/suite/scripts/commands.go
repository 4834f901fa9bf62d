package scripts

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Folder is the folder of a package's scripts.
const Folder = "testdata/script"

// Params returns the parameters of a package's scripts. Its commands are those given and these:
//
//   - NAME [<FILE] ARGUMENTS..., the program. FILE is its standard input, as of the command stdin. exec NAME is a process of its own, for what needs one: a
//     pipe, a terminal, a server.
//   - fails CODE MESSAGE [env VARIABLE=VALUE...] NAME [<FILE] ARGUMENTS..., the program where it must end with the code and a line "grove: MESSAGE", and nothing else, on standard error.
//
// Each script has a folder of caches. What setup adds to the variables comes after.
func Params(setup func(*testscript.Env) error, commands map[string]func(*testscript.TestScript, bool, []string)) testscript.Params {
	commands[program.name], commands["fails"] = call, fails
	return testscript.Params{
		Dir:                 folder,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Deadline:            time.Now().Add(3 * time.Minute), // a server that starts where it should not runs for ever
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			if err := setup(env); err != nil {
				return err
			}
			var names []string
			for _, v := range env.Vars {
				name, _, _ := strings.Cut(v, "=")
				names = append(names, name)
			}
			env.Values[variables{}] = &names
			return nil
		},
		Cmds: commands,
	}
}

// folder is the folder of a package's scripts.
const folder = "testdata/script"

// variables is the key of the names of the variables that a script has without a line for them.
type variables struct{}

// Setenv sets a variable of a script for a command of a package's own.
func Setenv(ts *testscript.TestScript, name, value string) {
	names := ts.Value(variables{}).(*[]string)
	*names = append(*names, name)
	ts.Setenv(name, value)
}

// setting finds the lines of a script that set variables.
var setting = regexp.MustCompile(`(?m)^(?:\[.*\] )?env .*`)

// named finds the names on such a line.
var named = regexp.MustCompile(`(\w+)=`)

// environment returns the present variables of a script. testscript tells one by its name, and not all. A variable that is empty is left out.
func environment(ts *testscript.TestScript) (all []string, err error) {
	text, err := os.ReadFile(filepath.Join(folder, ts.Name()+".txtar"))
	names := slices.Clone(*ts.Value(variables{}).(*[]string))
	for _, line := range setting.FindAll(text, -1) {
		for _, found := range named.FindAllSubmatch(line, -1) {
			names = append(names, string(found[1]))
		}
	}
	for _, name := range names {
		if value := ts.Getenv(name); value != "" {
			all = append(all, name+"="+value)
		}
	}
	return append(all, "PWD="+ts.MkAbs(".")), err
}

// call runs a command of the program.
func call(ts *testscript.TestScript, neg bool, args []string) {
	if code := runLine(ts, nil, args).Code; neg != (code != 0) {
		ts.Fatalf("exit code %d", code)
	}
}

// fails runs a command that must fail.
func fails(ts *testscript.TestScript, neg bool, args []string) {
	i := slices.Index(args, program.name)
	if neg || i != 2 && (i < 4 || args[2] != "env") {
		ts.Fatalf("usage: fails code message [env variable=value...] %s arguments...", program.name)
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	r := runLine(ts, args[min(3, i):i], args[i+1:])
	if r.Code != want {
		ts.Fatalf("exit code %d, want %d", r.Code, want)
	}
	if want := "grove: " + args[1] + "\n"; string(r.Stderr) != want {
		ts.Fatalf("standard error is\n%swant\n%s", r.Stderr, want)
	}
}

// runLine runs the program with the variables and arguments of a line, and keeps what it wrote for the next commands of the script.
func runLine(ts *testscript.TestScript, variables, args []string) Result {
	var stdin string
	if len(args) > 0 && strings.HasPrefix(args[0], "<") {
		stdin, args = ts.ReadFile(args[0][1:]), args[1:]
	}
	if len(args) > 0 && strings.HasPrefix(args[len(args)-1], "&") {
		ts.Fatalf("a command in the background is a process of its own: exec %s", program.name)
	}
	env, err := environment(ts)
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := Run(ctx, Command{args, append(env, variables...), ts.MkAbs("."), []byte(stdin)})
	ts.Check(err)
	_, err = ts.Stdout().Write(r.Stdout)
	ts.Check(err)
	_, err = ts.Stderr().Write(r.Stderr)
	ts.Check(err)
	return r
}
