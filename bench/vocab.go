package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"

	"grove"
	"grove/internal/engine/plan"
	"grove/internal/stat"
	"grove/internal/text/token"
	"grove/method/vocabulary"
)

// VocabOptions is the options of [Vocab].
type VocabOptions struct {
	Tokens int   // of an answer
	Sizes  []int // numbers of tokens that the head computes, whose figures are reported besides the best ones
	// Cost are the costs of the target's and of the draft model's steps, which other models may have given.
	Target, Draft *grove.Cost
}

// VocabFigures has the results of drafting where the head of the draft model computes a part of its vocabulary.
type VocabFigures struct {
	Tokens     int     `json:"tokens"`        // that the head computes for a text that begins
	Coverage   float64 `json:"coverage"`      // share of texts that they make up, as counted elsewhere
	Acceptance float64 `json:"acceptance"`    // share of first drafts that are accepted, in the trace
	Predicted  float64 `json:"predicted"`     // the same, by the coverage
	Seconds    float64 `json:"draft_seconds"` // of a draft
	Length     int     `json:"drafts"`        // a round, for the most tokens a second
	Accepted   float64 `json:"mean_accepted_tokens"`
	Rate       float64 `json:"tokens_per_second"`
	Choice     string  `json:"choice,omitempty"` // auto, best of all sizes, or both
}

// VocabReport is the result of [Vocab].
type VocabReport struct {
	Figures  []VocabFigures `json:"figures"`
	measured vocabulary.Measured
	Texts    int     `json:"texts"`
	Places   int     `json:"places"` // tokens of the trace
	Alpha    float64 `json:"alpha"`
	Kappa    float64 `json:"kappa"`
	Share    float64 `json:"share"` // of the best rate, by the choice
}

// Vocab measures how much of its vocabulary a draft model should compute. The target answers every second task greedily, which gives a
// trace: at each token of an answer, the sizes of the head with which the draft model would have drafted it. The tokens of the other tasks
// are counted, for the order of tokens and their coverage. Rates are those of chains of drafts, replayed on the trace at the costs of steps;
// the choice is that of [vocabulary.Head.Groups], which knows the trace by two numbers, and the best is that of all sizes.
func Vocab(ctx context.Context, target, draft *grove.Model, prompts []Prompt, o VocabOptions, progress Progress) (*VocabReport, error) {
	if len(prompts) < 2 {
		return nil, errors.New("bench: a trace needs two tasks or more: the tokens of every second one are counted")
	}
	if len(o.Draft.Part.X) == 0 {
		return nil, errors.New("bench: the cost of the draft model does not say what a part of its head costs")
	}
	t := &vocabTrace{counts: vocabulary.New(draft.Vocabulary(), nil)}
	var texts [][]token.ID
	var prompt []int
	for i, p := range prompts {
		ids, n, err := answered(ctx, target, draft, p, o.Tokens)
		if err != nil {
			return nil, fmt.Errorf("bench: task %s: %w", p.ID, err)
		}
		if i%2 == 0 {
			for _, id := range ids {
				t.counts.Count(id)
			}
		} else {
			texts, prompt = append(texts, ids), append(prompt, n)
		}
		progress.show(i+1, len(prompts)+len(prompts)/2)
	}
	t.order()
	for i, ids := range texts {
		if err := t.add(ctx, draft, ids, prompt[i]); err != nil {
			return nil, err
		}
		progress.show(len(prompts)+i+1, len(prompts)+len(prompts)/2)
	}
	if t.places == 0 {
		return nil, errors.New("bench: no answer has a token")
	}
	return t.report(o), nil
}

// answered returns a task's prompt and greedy answer, and the number of tokens of the prompt.
func answered(ctx context.Context, target, draft *grove.Model, p Prompt, tokens int) (ids []token.ID, n int, err error) {
	if ids, err = target.Tokenize(p.Prompt, true, false); err != nil {
		return nil, 0, err
	}
	if other, err := draft.Tokenize(p.Prompt, true, false); err != nil || !slices.Equal(ids, other) {
		return nil, 0, errors.Join(errors.New("the draft model has other tokens; it needs the target's vocabulary"), err)
	}
	r, err := answerTask(ctx, target, p, MethodsOptions{Tokens: tokens}, grove.MethodOff)
	if err != nil {
		return nil, 0, err
	}
	ids, n = append(ids, r.ids...), len(ids)
	if most := draft.Info().Context; len(ids) > most {
		ids = ids[:most]
	}
	return ids, n, nil
}

// vocabTrace says at each token of answers with which sizes of the head it would have been drafted.
type vocabTrace struct {
	counts vocabulary.Frequencies
	rank   []int // of groups of tokens: how many groups a head computes at least that computes this one

	texts  [][]span // by token of the answer
	held   [][]int  // by text: the ranks of its groups, ascending; these are computed in any case
	places int
	all    float64 // groups of the vocabulary of the draft model that gave the costs
}

// span is sizes of the head, in groups: from up to, but not including, to.
type span struct{ from, to int }

func (s span) has(groups int) bool { return s.from <= groups && groups < s.to }

// order fixes the order of groups.
func (t *vocabTrace) order() {
	order := t.counts.Order()
	t.rank = make([]int, len(order))
	for i, g := range order {
		t.rank[g] = i + 1
	}
}

// add adds an answer. The draft behind a text is the token of the largest logit among those that the head computes: those of the first
// groups, and of the groups of the text. So the answer's token is drafted where it is computed, and no token with a larger logit is.
func (t *vocabTrace) add(ctx context.Context, draft *grove.Model, ids []token.ID, prompt int) error {
	var spans []span
	held := map[token.ID]bool{}
	need := func(id token.ID) int {
		if held[id/vocabulary.Group] {
			return 0
		}
		return t.rank[id/vocabulary.Group]
	}
	at := 0
	err := draft.Logits(ctx, ids, func(row []float32) error {
		held[ids[at]/vocabulary.Group] = true
		if at++; at < prompt || at == len(ids) || int(ids[at]) >= len(row) {
			return nil
		}
		next := ids[at]
		s := span{need(next), math.MaxInt}
		for id, l := range row {
			if l > row[next] || l == row[next] && token.ID(id) < next {
				s.to = min(s.to, need(token.ID(id)))
			}
		}
		spans = append(spans, s)
		return nil
	})
	var ranks []int
	for g := range held {
		ranks = append(ranks, t.rank[g])
	}
	sort.Ints(ranks)
	t.texts, t.held, t.places = append(t.texts, spans), append(t.held, ranks), t.places+len(spans)
	return err
}

// accepted returns the share of the trace's tokens that are drafted, by the number of groups less one.
func (t *vocabTrace) accepted() []float64 {
	n := len(t.rank)
	change := make([]int, n+2)
	for _, spans := range t.texts {
		for _, s := range spans {
			if from, to := max(1, s.from), min(s.to, n+1); from < to {
				change[from]++
				change[to]--
			}
		}
	}
	shares, sum := make([]float64, n), 0
	for i := range shares {
		sum += change[i+1]
		shares[i] = float64(sum) / float64(t.places)
	}
	return shares
}

// beside returns how many groups the head computes besides the first ones, for the tokens of a text; the mean of the texts.
func (t *vocabTrace) beside(groups int) float64 {
	sum := 0
	for _, ranks := range t.held {
		sum += len(ranks) - sort.SearchInts(ranks, groups+1)
	}
	return float64(sum) / float64(len(t.held))
}

// rounds returns how many rounds of so many drafts the answers take.
func (t *vocabTrace) rounds(groups, drafts int) (n int) {
	for _, spans := range t.texts {
		for at := 0; at < len(spans); n++ {
			end := min(at+drafts, len(spans)-1) // the last token of a round is the target's own
			for at < end && spans[at].has(groups) {
				at++
			}
			at++
		}
	}
	return n
}

// figures replays the trace with heads of a number of groups.
func (t *vocabTrace) figures(h *vocabulary.Head, groups int) VocabFigures {
	share := float64(groups)/float64(len(t.rank)) + t.beside(groups)/t.all
	f := VocabFigures{Tokens: groups * vocabulary.Group, Seconds: h.Draft(min(1, share))}
	for n := 1; n < len(h.Steps); n++ {
		rounds := float64(t.rounds(groups, n))
		if rate := float64(t.places) / (rounds * (float64(n)*f.Seconds + h.Steps[n])); rate > f.Rate {
			f.Rate, f.Length, f.Accepted = rate, n, float64(t.places)/rounds
		}
	}
	return f
}

func (t *vocabTrace) report(o VocabOptions) *VocabReport {
	t.all = float64(o.Draft.Part.X[len(o.Draft.Part.X)-1]) / vocabulary.Group
	t.counts.Order()
	coverage, shares := t.counts.Coverage(nil, t.counts.Unseen()), t.accepted()
	a := vocabulary.Fit(coverage, shares)
	h := plan.NewHead(a, o.Target, plan.Mixture{}, o.Draft)
	auto := h.Groups(coverage)
	r := &VocabReport{Texts: len(t.texts), Places: t.places, Alpha: a.Alpha, Kappa: a.Kappa}
	r.measured = vocabulary.Measured{Acceptance: a, Counts: t.counts.Counts(), Tokens: auto * vocabulary.Group}
	var best VocabFigures
	var at int
	report := map[int]string{}
	for groups := 1; groups <= len(t.rank); groups++ {
		if f := t.figures(h, groups); f.Rate > best.Rate {
			best, at = f, groups
		}
	}
	for _, n := range o.Sizes {
		report[min(len(t.rank), (n+vocabulary.Group-1)/vocabulary.Group)] = ""
	}
	report[len(t.rank)], report[at], report[auto] = "", "best", "auto"
	if at == auto {
		report[at] = "auto, best"
	}
	for groups, choice := range report {
		f := t.figures(h, groups)
		f.Coverage, f.Acceptance, f.Predicted, f.Choice = coverage[groups-1], shares[groups-1], h.At(coverage[groups-1]), choice
		r.Figures = append(r.Figures, f)
		if groups == auto {
			r.Share = stat.Ratio(f.Rate, best.Rate)
		}
	}
	sort.Slice(r.Figures, func(i, j int) bool { return r.Figures[i].Tokens < r.Figures[j].Tokens })
	return r
}

// Keep writes what was measured to the user's cache directory, for [grove.AutoVocab]: beside the files of the costs of both models' steps. It
// returns the path of the file.
func (r *VocabReport) Keep(target, draft string) (path string, err error) {
	if path, err = vocabulary.Path(target, draft); err != nil {
		return "", err
	}
	return path, r.measured.Save(path)
}

// WriteText writes the report as a table.
func (r *VocabReport) WriteText(w io.Writer) error {
	fmt.Fprint(w, "| tokens | coverage | accepted | predicted | draft ms | drafts | tokens/round | tokens/s | |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range r.Figures {
		fmt.Fprintf(w, "| %d | %.1f %% | %.1f %% | %.1f %% | %.3f | %d | %.2f | %.1f | %s |\n", f.Tokens, 100*f.Coverage, 100*f.Acceptance,
			100*f.Predicted, 1e3*f.Seconds, f.Length, f.Accepted, f.Rate, f.Choice)
	}
	_, err := fmt.Fprintf(w, "\nof %d tokens in %d answers %.1f %% are drafted with the whole vocabulary, and that times coverage^%.2f with a part\n"+
		"auto reaches %.1f %% of the rate of the best size\n", r.Places, r.Texts, 100*r.Alpha, r.Kappa, 100*r.Share)
	return err
}

// WriteJSON writes the report as one object.
func (r *VocabReport) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }
