package schedule

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// Pair predicts a target with a model that drafts for it: a draft is accepted with probability Accept where those before it are.
type Pair struct {
	Target, Draft *Report // with predictions for the same numbers of threads; the draft model's of one row
	Accept        float64 // above 0 and below 1
}

// Way is a way to draft. Threads that it has no use for are idle.
type Way struct {
	Drafts       int     `json:"drafts"`                  // before each step, or beside each
	Threads      int     `json:"threads"`                 // of the target
	DraftThreads int     `json:"draft_threads,omitempty"` // of the draft model; 0: the models take turns on the same
	Rate         float64 `json:"tokens_per_second"`
}

// Paired is the fastest ways on so many threads or fewer.
type Paired struct {
	Threads int     `json:"threads"`
	Plain   float64 `json:"plain_tokens_per_second"` // on all of them
	Before  Way     `json:"before"`                  // drafts are made before each step
	Beside  Way     `json:"beside"`                  // and while it runs, as by the method pearl; Rate 0: there is no such number of threads
}

// Results returns the fastest ways on each number of threads of the reports.
func (p *Pair) Results() (all []Paired) {
	for _, s := range p.Target.Results {
		if s.Rows == p.Target.Results[0].Rows {
			all = append(all, p.on(s.Threads))
		}
	}
	return all
}

func (p *Pair) on(threads int) Paired {
	most := p.Target.Results[len(p.Target.Results)-1].Rows
	one, _, _ := p.Target.step(1, threads)
	r := Paired{Threads: threads, Plain: 1 / one}
	for _, t := range p.Target.Results {
		if t.Rows != 1 || t.Threads > threads {
			continue
		}
		r.Before = p.before(r.Before, t.Threads, most)
		for _, d := range p.Draft.Results {
			for g := 1; d.Rows == 1 && t.Threads+d.Threads <= threads && g <= most; g++ {
				if rate := p.beside(threads, t.Threads, d.Threads, g); rate > r.Beside.Rate {
					r.Beside = Way{g, t.Threads, d.Threads, rate}
				}
			}
		}
	}
	return r
}

// before returns the faster of a way and of drafting before steps of most rows at most, on some threads.
func (p *Pair) before(best Way, threads, most int) Way {
	draft, _, _ := p.Draft.step(1, threads)
	for g := 1; g < most; g++ {
		step, _, _ := p.Target.step(g+1, threads)
		tokens := (1 - math.Pow(p.Accept, float64(g+1))) / (1 - p.Accept)
		if rate := tokens / (step + float64(g)*draft); rate > best.Rate {
			best = Way{Drafts: g, Threads: threads, Rate: rate}
		}
	}
	return best
}

// beside returns the tokens a second of drafting beside steps (PEARL, Liu et al. 2024): post-verify runs g rows and gives (1-a^g)/(1-a) tokens, pre-verify
// one, and a share a/(1+a-a^g) of the steps is post-verify. A step takes as long as the slower of the two models, and as long as it takes to read
// the weights of both: caches and memory give as much in a second as they give the target on all threads.
func (p *Pair) beside(threads, target, own, g int) float64 {
	draft, reads, _ := p.Draft.step(1, own)
	alone, read, _ := p.Target.step(1, threads)
	most := max(p.Target.Machine.Read(threads), read/alone)
	step := func(rows int) float64 {
		seconds, bytes, _ := p.Target.step(rows, target)
		return max(seconds, float64(g)*draft, (bytes+float64(g)*reads)/most)
	}
	all := math.Pow(p.Accept, float64(g))
	post := p.Accept / (1 + p.Accept - all)
	return (post*(1-all)/(1-p.Accept) + 1 - post) / (post*step(g) + (1-post)*step(1))
}

// step returns the seconds and the bytes of a step, between those of the nearest numbers of rows that were predicted; false where none was for so many
// threads.
func (r *Report) step(rows, threads int) (seconds, bytes float64, ok bool) {
	var low, high *Result
	for i := range r.Results {
		s := &r.Results[i]
		switch {
		case s.Threads != threads || s.Predicted == nil:
		case s.Rows <= rows && (low == nil || s.Rows > low.Rows):
			low = s
		case s.Rows > rows && (high == nil || s.Rows < high.Rows):
			high = s
		}
	}
	if low == nil {
		return 0, 0, false
	}
	seconds, bytes = low.Predicted.Seconds, low.Predicted.Bytes
	if high != nil {
		part := float64(rows-low.Rows) / float64(high.Rows-low.Rows)
		seconds += part * (high.Predicted.Seconds - seconds)
		bytes += part * (high.Predicted.Bytes - bytes)
	}
	return seconds, bytes, true
}

// From returns the number of threads from which on drafting beside the steps is faster than before them; 0: there is none.
func (p *Pair) From() (threads int) {
	for _, r := range p.Results() {
		switch {
		case r.Beside.Rate == 0:
		case r.Beside.Rate <= r.Before.Rate:
			threads = 0
		case threads == 0:
			threads = r.Threads
		}
	}
	return threads
}

// WriteText writes the ways as a table.
func (p *Pair) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s\ndrafts of %s, accepted with probability %.2f\n\n", p.Target.Title, p.Draft.Title, p.Accept)
	fmt.Fprint(w, "| threads | plain t/s | before t/s | drafts | of threads | beside t/s | drafts | of threads | draft threads |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range p.Results() {
		beside := "- | - | - | -"
		if b := r.Beside; b.Rate > 0 {
			beside = fmt.Sprintf("%.1f | %d | %d | %d", b.Rate, b.Drafts, b.Threads, b.DraftThreads)
		}
		fmt.Fprintf(w, "| %d | %.1f | %.1f | %d | %d | %s |\n", r.Threads, r.Plain, r.Before.Rate, r.Before.Drafts, r.Before.Threads, beside)
	}
	verdict := "drafting beside the steps is not faster than before them on the most threads"
	if n := p.From(); n > 0 {
		verdict = fmt.Sprintf("drafting beside the steps is faster than before them from %d threads on", n)
	}
	_, err := fmt.Fprintf(w, "\n%s\n%s\n", verdict, p.Target.Machine)
	return err
}

// WriteJSON writes the ways as one object a line.
func (p *Pair) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	for _, r := range p.Results() {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}
