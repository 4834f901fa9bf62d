// Command ledger measures the figures that README.md and docs/figures.md quote, by commands of grove, each of which is a process of its own. It
// records them in the format of Go benchmarks, which benchstat reads, and compares them with recorded ones or, in turns, with those of another
// grove. CONTRIBUTING.md describes it.
//
//	go -C lab run ./ledger -against OLD/grove Decode Serve/eight
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ledger:", err)
		os.Exit(1)
	}
}

// run does what the arguments say.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	var o options
	flags := flag.NewFlagSet("ledger", flag.ContinueOnError)
	list := flags.Bool("list", false, "list the figures, and measure nothing")
	last := flags.String("last", "", "file of recorded figures to compare with")
	file := flags.String("record", "", "file to record the figures in; others that it has stay")
	flags.StringVar(&o.program, "grove", "", "program to measure; built from this checkout where it is empty")
	flags.StringVar(&o.against, "against", "", "another grove, which is measured in turns with the first")
	flags.StringVar(&o.models, "models", "", "folder that keeps the models of random weights; where it is empty, they are removed at the end")
	flags.StringVar(&o.checks, "checks", "", "file of what .ci/run printed, for the figures Checks")
	flags.IntVar(&o.turns, "turns", 6, "times that each figure is measured")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o.names, o.note = flags.Args(), os.Stderr
	var old, kept *record
	switch {
	case *list:
		return listFigures(out)
	case o.turns < 1:
		return fmt.Errorf("-turns: %d; it must be 1 or more", o.turns)
	case *last != "" && o.against != "":
		return errors.New("-against and -last are given; leave out one")
	case *last != "":
		if old, err = readFile(*last); err != nil {
			return err
		}
	}
	if _, err := os.Stat(*file); err == nil {
		if kept, err = readFile(*file); err != nil {
			return err
		}
	}
	temp, err := os.MkdirTemp("", "ledger-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	if o.models == "" {
		o.models = temp
	}
	if o.program == "" {
		if o.program, err = build(ctx, temp); err != nil {
			return err
		}
	}
	now, against, err := measure(ctx, o)
	if err != nil {
		return err
	}
	if against != nil {
		old = against
	}
	report := now.compare(old, against != nil)
	if err := errors.Join(report.write(out), save(now, kept, *file)); err != nil {
		return err
	}
	return report.worse()
}

// build builds grove by README.md's command, and names the commit of the checkout in it.
func build(ctx context.Context, dir string) (program string, err error) {
	revision, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty=+dirty", "--exclude=*").Output()
	if err != nil {
		return "", fmt.Errorf("the commit of the checkout is not known: %w", err)
	}
	path, err := exec.CommandContext(ctx, "go", "-C", "../..", "list", "-m").Output()
	if err != nil {
		return "", fmt.Errorf("the module of the checkout is not known: %w", err)
	}
	program = filepath.Join(dir, "grove")
	c := exec.CommandContext(ctx, "go", "-C", "../..", "build", "-trimpath", "-ldflags", "-X "+strings.TrimSpace(string(path))+".commit="+strings.TrimSpace(string(revision)), "-o", program, "./cmd/grove")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building grove: %w: %s", err, said)
	}
	return program, nil
}

// save writes a record over that which the file had; "": nowhere.
func save(now, kept *record, path string) (err error) {
	if path == "" {
		return nil
	}
	if kept != nil {
		if err := now.keep(kept); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(now.write(f), f.Close())
}

func listFigures(out io.Writer) error {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "figure\tunit\tstands for")
	for _, f := range allFigures() {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", f.name, f.unit, f.quoted)
	}
	return tw.Flush()
}
