package main

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"grove"
	"grove/bench"
	"grove/internal/command/flags"
	"grove/internal/command/terminal"
)

// methodsCommand lists the methods, the rules and the searches.
type methodsCommand struct {
	flags.JSON
}

// Run implements the command.
func (c *methodsCommand) Run() error {
	if c.JSON.On {
		return bench.WriteLines(terminal.Stdout, grove.Methods())
	}
	w := tabwriter.NewWriter(terminal.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tGRADE\tDRAFTS FROM\tNEEDS\tAUTO\tOPTIONS\tPAPER")
	for _, m := range grove.Methods() {
		auto := "no: " + cmp.Or(m.NotAuto, "not exact")
		if m.Auto {
			auto = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Grade, m.Kind, cmp.Or(m.Needs, "-"), auto, cmp.Or(m.Options, "-"), m.Paper)
	}
	fmt.Fprintln(w, "\nRULE\tGRADE\tOPTIONS")
	for _, r := range grove.Rules() {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Name, r.Grade, cmp.Or(r.Options, "-"))
	}
	fmt.Fprintln(w, "\nSEARCH\tGRADE\tOPTIONS\tPAPER")
	for _, s := range grove.Searches() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", s.Name, grove.Lossy, s.Options, s.Paper)
	}
	fmt.Fprintln(w, "\nPOLICY OF A CANVAS\tGRADE\tOPTIONS\tPAPER")
	for _, p := range grove.DiffusionPolicies() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Name, grove.Exact, cmp.Or(p.Options, "-"), p.Paper)
	}
	fmt.Fprintln(w, "\nCACHE OF A CANVAS\tGRADE\tOPTIONS\tPAPER")
	for _, c := range grove.DiffusionCaches() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", c.Name, c.Grade, cmp.Or(c.Options, "-"), c.Paper)
	}
	return w.Flush()
}
