package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// right names the share of tasks that are done.
func (r *CanvasReport) right() string {
	if r.Lists {
		return "right lists"
	}
	return "parsed"
}

// WriteText writes the figures as a table of Markdown, and below it what does not go together.
func (r *CanvasReport) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s, judged by %s\n\n| policy | cache | tasks | tokens | passes/token | rows/token | tokens/s | speed-up | judge, nats/token | %s | order | nats/pass | least passes |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n", r.Model, r.Judge, r.right())
	refused := ""
	for _, f := range r.Figures {
		if f.Refused != "" {
			refused += fmt.Sprintf("- `%s` with the cache `%s`: %s\n", f.Policy, f.Cache, f.Refused)
			continue
		}
		bound := "-"
		if f.Bound > 0 {
			bound = fmt.Sprintf("%.1f", f.Bound)
		}
		fmt.Fprintf(w, "| `%s` | `%s` | %d | %d | %.3f | %.2f | %.1f | %.2f | %.4f | %.1f %% | %.2f | %.2f | %s |\n",
			f.Policy, f.Cache, f.Tasks, f.Tokens, f.Passes, f.Rows, f.Rate, f.Ratio, f.Loss, 100*f.Right, f.Order, f.Nats, bound)
	}
	if refused != "" {
		refused = "\nThese do not go together:\n\n" + refused
	}
	_, err := io.WriteString(w, strings.TrimSuffix(refused, "\n")+"\n")
	return err
}

// WriteJSON writes the report as one object.
func (r *CanvasReport) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }
