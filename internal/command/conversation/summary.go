// summary.go sums up a generation in figures.

package conversation

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"grove"
	"grove/internal/machine"
)

// Summary is a generation in figures. Rates are tokens per second; 0: too short to measure.
type Summary struct {
	PromptTokens int     `json:"prompt_tokens"`
	Reused       int     `json:"-"` // prompt tokens that an earlier turn or a session had computed
	PromptRate   float64 `json:"prompt_tokens_per_second"`
	FirstToken   float64 `json:"first_token_ms"`
	Tokens       int     `json:"generated_tokens"` // with the token that ends the text
	Rate         float64 `json:"generated_tokens_per_second"`
	Memory       int64   `json:"memory_bytes"` // the most that the process has held
	Seed         uint64  `json:"seed"`
	Finish       string  `json:"finish"` // stop, length, context, or interrupted
	Steps        int     `json:"steps"`  // passes of the model that drew tokens with drafts; 0 in plain decoding
	Drafted      int     `json:"drafted_tokens"`
	Accepted     int     `json:"accepted_tokens"`
	Grade        string  `json:"grade"` // exact, same-distribution, or lossy

	Advice    string             `json:"model_sampling,omitempty"`      // settings of the draw that the model's file recommends
	Reasoning int                `json:"reasoning_tokens"`              // of the generated, between the model's markers of thinking
	Extended  int                `json:"thinking_extensions,omitempty"` // ends of thoughts that were replaced
	Forced    bool               `json:"thinking_forced,omitempty"`     // the budget ended thoughts
	Attempts  []grove.Attempt    `json:"attempts,omitempty"`            // of a search
	Figures   map[string]float64 `json:"search_figures,omitempty"`      // of a search, by their names
	Passes    int                `json:"passes,omitempty"`              // over the canvas of a diffusion model
	Rows      int                `json:"rows,omitempty"`                // of these
	Nats      float64            `json:"information_nats,omitempty"`
	Bound     int                `json:"least_passes,omitempty"` // that fix as much by the policy's rule
}

// Summarize returns the summary of a generation.
func Summarize(s grove.Stats) Summary {
	finish := string(s.Finish)
	if s.Finish == grove.FinishNone {
		finish = "interrupted"
	}
	return Summary{
		PromptTokens: s.PromptTokens, Reused: s.ReusedTokens, PromptRate: rate(s.PromptTokens-s.ReusedTokens, s.PromptTime),
		FirstToken: float64(s.FirstTokenTime) / float64(time.Millisecond),
		Tokens:     s.Tokens, Rate: rate(s.Tokens-1, s.GenerationTime), // the clock of generation starts with the first token
		Memory: machine.PeakMemory(), Seed: s.Seed, Finish: finish,
		Steps: s.Drafting.Rounds, Drafted: s.Drafting.Drafted, Accepted: s.Drafting.Accepted,
		Grade: string(s.Grade), Reasoning: s.Reasoning, Extended: s.Extensions, Forced: s.ThoughtsForced, Attempts: s.Attempts, Figures: s.Figures, Passes: s.Passes, Rows: s.Rows, Nats: s.Information, Bound: s.Bound,
	}
}

func rate(n int, d time.Duration) float64 {
	if n <= 0 || d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// WriteSuggestions writes the answers of a search that suggests several, in its order, a line each.
func (s Summary) WriteSuggestions(w io.Writer) {
	for i, a := range s.Attempts {
		if a.Perplexity > 0 {
			fmt.Fprintf(w, "grove: suggestion %d of %d, perplexity %.4g, log-probability %.4g: %q\n", i+1, len(s.Attempts), a.Perplexity, a.Logprob, a.Text)
		}
	}
}

// String returns the figures as one line.
func (s Summary) String() string {
	drafts := ""
	if s.Steps > 0 {
		drafts = fmt.Sprintf("%d steps, %d of %d draft tokens accepted", s.Steps, s.Accepted, s.Drafted)
		if s.Grade != string(grove.Exact) {
			drafts += " (" + s.Grade + ")"
		}
		drafts += "; "
	} else if s.Grade == string(grove.Lossy) {
		drafts = "lossy; "
	}
	if s.Passes > 0 {
		bound := ""
		if s.Bound > 0 {
			bound = fmt.Sprintf(", at least %d by its rule", s.Bound)
		}
		drafts = fmt.Sprintf("%d passes of %d rows for %.1f nats%s (%s); ", s.Passes, s.Rows, s.Nats, bound, s.Grade)
	}
	for i, a := range s.Attempts {
		if a.Perplexity > 0 {
			continue // WriteSuggestions has its line
		}
		drafts += fmt.Sprintf("sample %d of %d: %d tokens%s; ", i+1, len(s.Attempts), a.Tokens, map[bool]string{true: ", ended"}[a.Ended])
	}
	for _, name := range slices.Sorted(maps.Keys(s.Figures)) {
		drafts += fmt.Sprintf("%s %.4g; ", strings.ReplaceAll(name, "_", " "), s.Figures[name])
	}
	advice := ""
	if s.Advice != "" {
		advice = "sampling of the model: " + s.Advice + "; "
	}
	reused := ""
	if s.Reused > 0 {
		reused = fmt.Sprintf(" (%d reused)", s.Reused)
	}
	finish := s.Finish + map[string]string{string(grove.FinishLength): ", cut by -n", string(grove.FinishContext): ", which is full"}[s.Finish]
	return fmt.Sprintf("prompt %d tokens%s, %.1f tokens/s; first token after %.1f ms; generated %d tokens, %.1f tokens/s; %smemory %.1f MiB; %sseed %d; finish: %s",
		s.PromptTokens, reused, s.PromptRate, s.FirstToken, s.Tokens, s.Rate, drafts, float64(s.Memory)/(1<<20), advice, s.Seed, finish)
}
