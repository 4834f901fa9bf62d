package benchmarks

import (
	"fmt"
	"io"
	"text/tabwriter"

	"grove"
	"grove/bench"
)

// writeDraftMemory writes what a model takes, and what the rounds of the methods that draft take besides, as a table in KiB.
func writeDraftMemory(w io.Writer, i grove.Info, figures []bench.MethodFigures) error {
	const kib = 1024.0
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(tw, "\nweights %.0f KiB, cache %.0f KiB; drafting of one text, in KiB:\n", float64(i.WeightBytes)/kib, float64(i.CacheBytes)/kib)
	fmt.Fprintln(tw, "method\trows\tlogits\ttrees\tdistributions\tkept\tcaches\tstates\tall\t")
	for _, f := range figures {
		if b := f.Rounds; f.Category == bench.Overall && b.Total() > 0 {
			b.Add(1, i.DraftBytes)
			fmt.Fprint(tw, f.Method)
			for _, n := range []int{b.Rows, b.Logits, b.Trees, b.Distributions, b.Kept, b.Caches, b.States, b.Total()} {
				fmt.Fprintf(tw, "\t%.1f", float64(n)/kib)
			}
			fmt.Fprintln(tw, "\t")
		}
	}
	return tw.Flush()
}
