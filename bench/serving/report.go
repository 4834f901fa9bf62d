package serving

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"grove/internal/stat"
)

// Report is the result of [Run]. Figures are of the requests that were answered; failed requests are only counted.
type Report struct {
	URL         string  `json:"url"`
	Model       string  `json:"model"`
	API         API     `json:"api"`
	Concurrency int     `json:"concurrency"`
	Rate        float64 `json:"rate,omitempty"` // requests that begin in a second; 0: a request begins when another ends
	Seed        uint64  `json:"seed"`

	Requests   int `json:"requests"`
	Completed  int `json:"completed"`
	Failed     int `json:"failed"`
	Unfinished int `json:"unfinished"` // stopped or not sent, because the run ended early
	Textless   int `json:"textless"`   // answers without text, which count in EndToEnd alone
	Shorter    int `json:"shorter"`    // answers that the model ended although IgnoreEOS was set

	Seconds     float64 `json:"seconds"`
	RequestRate float64 `json:"requests_per_second"`

	PromptTokens int     `json:"prompt_tokens"` // as the server reports them
	CachedTokens int     `json:"cached_tokens"` // of these, found in the cache of the server
	OutputTokens int     `json:"output_tokens"`
	CountedBy    string  `json:"output_tokens_counted_by"` // "usage" of the server, "chunks" with text, or "usage and chunks"
	Chunks       int     `json:"chunks"`
	OutputRate   float64 `json:"output_tokens_per_second"`
	TotalRate    float64 `json:"total_tokens_per_second"`

	Drafted    int     `json:"drafted_tokens"` // as the server reports them
	Accepted   int     `json:"accepted_tokens"`
	Acceptance float64 `json:"acceptance"`

	FirstToken *Times `json:"time_to_first_token_ms,omitempty"`
	PerToken   *Times `json:"time_per_output_token_ms,omitempty"` // of each request behind its first chunk
	InterToken *Times `json:"inter_token_latency_ms,omitempty"`   // between chunks, over all requests
	EndToEnd   *Times `json:"end_to_end_latency_ms,omitempty"`    // from sending to the end of the stream
	Late       *Times `json:"behind_arrival_time_ms,omitempty"`   // with Rate: how long requests waited to be sent

	Failures []*Failure `json:"failures,omitempty"` // most frequent first
}

// Times summarizes times in milliseconds.
type Times struct {
	Mean   float64 `json:"mean"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

// tally collects answers.
type tally struct {
	ended, completed, failed, textless, shorter int

	prompt, cached, output, chunks, byUsage int

	drafted, accepted int
	reported          bool // the answers report draft tokens

	first, per, between, whole, late []float64
	end                              time.Time
	failures                         map[string]*Failure
}

// add adds an answer.
func (t *tally) add(a answer) {
	if a.end.After(t.end) {
		t.end = a.end
	}
	switch {
	case a.stopped:
		return
	case a.failure != nil:
		t.ended++
		t.failed++
		if t.failures[a.failure.Kind] == nil {
			t.failures[a.failure.Kind] = a.failure
		}
		t.failures[a.failure.Kind].Count++
		return
	}
	t.ended++
	t.completed++
	t.late = append(t.late, a.late.Seconds())
	t.whole = append(t.whole, a.end.Sub(a.start).Seconds())
	t.chunks += a.chunks
	if a.finish == "stop" {
		t.shorter++
	}
	output := t.count(a)
	if a.chunks == 0 {
		t.textless++
		return
	}
	t.first = append(t.first, a.first.Sub(a.start).Seconds())
	t.between = append(t.between, a.gaps...)
	if a.chunks > 1 && output > 1 {
		t.per = append(t.per, a.last.Sub(a.first).Seconds()/float64(output-1))
	}
}

// count adds the tokens of an answer and returns the number of generated tokens.
func (t *tally) count(a answer) (output int) {
	output = a.chunks
	if u := a.usage; u != nil {
		t.byUsage++
		t.prompt += int(u.Prompt)
		t.cached += int(u.PromptDetails.Cached)
		output = int(u.Completion)
	}
	t.output += output
	switch {
	case a.timings != nil:
		t.reported = true
		t.drafted += int(a.timings.Drafted)
		t.accepted += int(a.timings.Accepted)
	case a.usage != nil && a.usage.Details.Accepted != nil && a.usage.Details.Rejected != nil:
		accepted, rejected := int(*a.usage.Details.Accepted), int(*a.usage.Details.Rejected)
		t.reported = t.reported || accepted+rejected > 0
		t.drafted += accepted + rejected
		t.accepted += accepted
	}
	return output
}

// report returns the figures of a run that began at start.
func (t *tally) report(c *client, start time.Time) *Report {
	o := c.options
	r := &Report{
		URL: c.base.Redacted(), Model: c.model, API: o.API, Concurrency: o.Concurrency, Rate: o.Rate, Seed: o.Seed,
		Requests: o.Requests, Completed: t.completed, Failed: t.failed, Unfinished: o.Requests - t.ended, Textless: t.textless,
		PromptTokens: t.prompt, CachedTokens: t.cached, OutputTokens: t.output, Chunks: t.chunks, CountedBy: "usage and chunks",
		Drafted: t.drafted, Accepted: t.accepted, Acceptance: stat.Ratio(float64(t.accepted), float64(t.drafted)),
		FirstToken: times(t.first), PerToken: times(t.per), InterToken: times(t.between), EndToEnd: times(t.whole),
		Failures: slices.SortedFunc(maps.Values(t.failures), func(a, b *Failure) int {
			return cmp.Or(b.Count-a.Count, strings.Compare(a.Kind, b.Kind))
		}),
	}
	switch t.byUsage {
	case 0:
		r.CountedBy = "chunks"
	case t.completed:
		r.CountedBy = "usage"
	}
	if o.IgnoreEOS {
		r.Shorter = t.shorter
	}
	if o.Rate > 0 {
		r.Late = times(t.late)
	}
	if t.end.After(start) {
		r.Seconds = t.end.Sub(start).Seconds()
	}
	r.RequestRate = stat.Ratio(float64(t.completed), r.Seconds)
	r.OutputRate, r.TotalRate = stat.Ratio(float64(t.output), r.Seconds), stat.Ratio(float64(t.output+t.prompt), r.Seconds)
	return r
}

// times summarizes seconds; nil: there are none.
func times(seconds []float64) *Times {
	if len(seconds) == 0 {
		return nil
	}
	slices.Sort(seconds)
	sum := 0.0
	for _, s := range seconds {
		sum += s
	}
	return &Times{
		Mean: 1e3 * sum / float64(len(seconds)), Median: 1e3 * stat.Quantile(seconds, 0.5),
		P99: 1e3 * stat.Quantile(seconds, 0.99), Max: 1e3 * seconds[len(seconds)-1],
	}
}

// WriteJSON writes the report as one object.
func (r *Report) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// WriteTable writes the report as tables.
func (r *Report) WriteTable(w io.Writer) error {
	how := fmt.Sprintf("%d at a time", r.Concurrency)
	if r.Rate > 0 {
		how = fmt.Sprintf("%g begin a second, at most %d at a time", r.Rate, r.Concurrency)
	}
	fmt.Fprintf(w, "%s at %s, %s, %s\n\n", r.Model, r.URL, r.API, how)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "requests\t%d of %d in %.2f s, %.2f/s%s\n", r.Completed, r.Requests, r.Seconds, r.RequestRate, r.exceptions())
	if r.Completed > 0 {
		r.writeTokens(tw)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	if err := r.writeTimes(w); err != nil {
		return err
	}
	return r.writeFailures(w)
}

func (r *Report) writeTokens(w io.Writer) {
	fmt.Fprintf(w, "prompt tokens\t%s\n", r.prompts())
	fmt.Fprintf(w, "output tokens\t%d, %.1f/s; with prompts %.1f/s; %s\n", r.OutputTokens, r.OutputRate, r.TotalRate, r.counting())
	if r.Drafted > 0 {
		fmt.Fprintf(w, "acceptance\t%.1f %%, %d of %d draft tokens\n", 100*r.Acceptance, r.Accepted, r.Drafted)
	} else {
		fmt.Fprintln(w, "acceptance\tthe server reports no draft tokens")
	}
}

func (r *Report) exceptions() (text string) {
	for _, e := range []struct {
		n    int
		what string
	}{
		{r.Failed, "failed"}, {r.Unfinished, "unfinished"}, {r.Textless, "answered without text"},
		{r.Shorter, "ended before their full length"},
	} {
		if e.n > 0 {
			text += fmt.Sprintf("; %d %s", e.n, e.what)
		}
	}
	return text
}

func (r *Report) prompts() string {
	if r.PromptTokens == 0 {
		return "the server does not report them"
	}
	return fmt.Sprintf("%d, of which it had %d cached", r.PromptTokens, r.CachedTokens)
}

func (r *Report) counting() string {
	if r.CountedBy == "usage" {
		return fmt.Sprintf("counted by the server, in %d chunks", r.Chunks)
	}
	return fmt.Sprintf("counted by %s, %d chunks", r.CountedBy, r.Chunks)
}

func (r *Report) writeTimes(w io.Writer) error {
	if r.EndToEnd == nil {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\nms\tmean\tmedian\tp99\tmax\t")
	for _, row := range []struct {
		name string
		t    *Times
	}{
		{"time to first token", r.FirstToken}, {"time per output token", r.PerToken},
		{"inter-token latency", r.InterToken}, {"end-to-end latency", r.EndToEnd}, {"behind arrival time", r.Late},
	} {
		if row.t != nil {
			fmt.Fprintf(tw, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t\n", row.name, row.t.Mean, row.t.Median, row.t.P99, row.t.Max)
		}
	}
	return tw.Flush()
}

func (r *Report) writeFailures(w io.Writer) error {
	if len(r.Failures) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "\nfailures")
	for _, f := range r.Failures {
		fmt.Fprintf(tw, "%d\t%s\t%s\n", f.Count, f.Kind, f.Detail)
	}
	return tw.Flush()
}
