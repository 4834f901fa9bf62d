package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"grove"
	"grove/bench"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/terminal"
	"grove/internal/gopher"
	"grove/internal/weights/find"
)

// modelsCommand lists models.
type modelsCommand struct {
	flags.JSON
}

// listedModel is the object of a model that --json writes.
type listedModel struct {
	Name    string `json:"name"`
	Arch    string `json:"architecture"`
	Params  int    `json:"parameters"`
	Bytes   int64  `json:"bytes"`
	Type    string `json:"type"`
	Context int    `json:"context"`
	Source  string `json:"source"`
	Path    string `json:"path"`
}

// Run implements the command.
func (c *modelsCommand) Run() error {
	models, faults := find.System().List()
	if len(models) == 0 {
		fmt.Fprintln(os.Stderr, "grove: no models but those inside this program: 'grove pull NAME' fetches one, and GROVE_MODELS lists directories to look in, besides the caches of Hugging Face, llama.cpp, ollama and LM Studio")
	}
	for _, name := range gopher.Names() {
		models = append(models, find.Model{Name: name, Path: name, Source: "this program"})
	}
	var listed []listedModel
	for _, m := range models {
		d, err := m.Describe(grove.OpenFile)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		listed = append(listed, listedModel{
			Name: m.Name, Arch: d.Arch, Params: d.Params, Bytes: d.Bytes, Type: d.Type.String(), Context: d.Context,
			Source: m.Source, Path: m.Path,
		})
	}
	for _, err := range faults {
		fmt.Fprintln(os.Stderr, "grove: skipped:", harmless.Line(err.Error()))
	}
	if c.JSON.On {
		return bench.WriteLines(harmless.JSON(terminal.Stdout), listed)
	}
	return writeModelsTable(listed)
}

func writeModelsTable(models []listedModel) error {
	w := tabwriter.NewWriter(terminal.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "name\tarchitecture\tparameters\tsize\ttype\tcontext\tfound in")
	for _, m := range models {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n",
			harmless.Line(m.Name), harmless.Line(m.Arch), rounded(int64(m.Params), ""), rounded(m.Bytes, "B"), m.Type, m.Context, harmless.Line(m.Source))
	}
	return w.Flush()
}

// rounded writes a number in millions or billions of a unit.
func rounded(n int64, unit string) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f M%s", float64(n)/1e6, unit)
	}
	return fmt.Sprintf("%.2f G%s", float64(n)/1e9, unit)
}
