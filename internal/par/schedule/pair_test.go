package schedule

import (
	"math"
	"strings"
	"testing"
)

// reportOf is a report of steps that take so many seconds on a thread, and bytes, and share their time evenly among threads.
func reportOf(seconds, bytes float64, threads ...int) *Report {
	r := &Report{Title: "m", Machine: &Machine{Slowdown: 1, Reads: []float64{1e9}, Bandwidth: 1e12}}
	for _, rows := range []int{1, 9, 17} {
		for _, n := range threads {
			r.Results = append(r.Results, Result{Rows: rows, Threads: n, Predicted: &Prediction{Threads: n, Seconds: seconds / float64(n), Bytes: bytes}})
		}
	}
	return r
}

// TestPair holds drafting before and beside steps to values worked out by hand: PEARL's of 0.8 and 0.2, with steps that cost the same for any rows.
func TestPair(t *testing.T) {
	// A target of 1 s on one thread with a draft model of 0.2 s on another: 2.283 tokens a second with 5 drafts. Taking turns on two threads, a
	// step takes 0.5 s and a draft 0.1 s: 1.868 tokens in half the time with 4 drafts.
	p := &Pair{Target: reportOf(1, 0, 1, 2), Draft: reportOf(0.2, 0, 1, 2), Accept: 0.8}
	two := p.Results()[1]
	if math.Abs(two.Beside.Rate-2.283) > 0.001 || two.Beside.Drafts != 5 || two.Beside.DraftThreads != 1 || two.Beside.Threads != 1 {
		t.Errorf("beside: %+v", two.Beside)
	}
	if math.Abs(two.Before.Rate-2*1.868) > 0.001 || two.Before.Drafts != 4 || two.Before.Threads != 2 || two.Plain != 2 {
		t.Errorf("before: %+v of %v", two.Before, two.Plain)
	}
	if one := p.Results()[0]; one.Beside.Rate != 0 || p.From() != 0 {
		t.Errorf("one thread: %+v, from %d", one, p.From())
	}
	// Steps that further threads do not make shorter: a thread for the draft model costs nothing.
	flat := func(r *Report) *Report {
		for i := range r.Results {
			r.Results[i].Predicted.Seconds *= float64(r.Results[i].Threads)
		}
		return r
	}
	p = &Pair{Target: flat(reportOf(1, 0, 1, 2, 3)), Draft: flat(reportOf(0.2, 0, 1, 2, 3)), Accept: 0.8}
	if p.From() != 2 {
		t.Errorf("from %d threads", p.From())
	}
	var text, lines strings.Builder
	if err := p.WriteText(&text); err != nil || !strings.Contains(text.String(), "from 2 threads on") || !strings.Contains(text.String(), "| 1 | 1.0 | 1.9 | 4 | 1 | - | - | - | - |") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if err := p.WriteJSON(&lines); err != nil || strings.Count(lines.String(), "\n") != 3 || !strings.Contains(lines.String(), `"draft_threads":1`) {
		t.Errorf("%v\n%s", err, lines.String())
	}
	// Memory that gives both models only what one reads in a step of twice the time.
	p = &Pair{Target: flat(reportOf(1, 1, 1, 2)), Draft: flat(reportOf(0.2, 0.2, 1, 2)), Accept: 0.8}
	p.Target.Machine = &Machine{Slowdown: 1, Reads: []float64{1}, Bandwidth: 1}
	if rate := p.beside(2, 1, 1, 5); math.Abs(rate-2.283/2) > 0.001 {
		t.Errorf("bound by memory: %v", rate)
	}
}
