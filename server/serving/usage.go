package serving

import (
	"time"

	"grove"
	"grove/internal/text/token"
)

// Usage counts the tokens of a request as OpenAI's API does.
type Usage struct {
	PromptTokens     int               `json:"prompt_tokens"`
	CompletionTokens int               `json:"completion_tokens"`
	TotalTokens      int               `json:"total_tokens"`
	PromptDetails    promptDetails     `json:"prompt_tokens_details"`
	Details          completionDetails `json:"completion_tokens_details"`
}

type promptDetails struct {
	Cached int `json:"cached_tokens"`
}

type completionDetails struct {
	Reasoning int `json:"reasoning_tokens"`
	Accepted  int `json:"accepted_prediction_tokens"`
	Rejected  int `json:"rejected_prediction_tokens"`
}

// Usage adds up the usage of the answers. The prompt of several answers counts once.
func (j *Job) Usage() (u Usage) {
	cached := 0
	for i, a := range j.Answers {
		s := a.Stats()
		if i%j.spec.N == 0 {
			u.PromptTokens += s.PromptTokens
			cached = s.ReusedTokens
		}
		cached = min(cached, s.ReusedTokens) // the first answer computes the pages that the others find
		if i%j.spec.N == j.spec.N-1 {
			u.PromptDetails.Cached += cached
		}
		u.CompletionTokens += s.Tokens
		u.Details.Reasoning += s.Reasoning
		predicted := a.Prediction()
		found := foundIn(j.ids[i], predicted)
		u.Details.Accepted += found
		u.Details.Rejected += len(predicted) - found
	}
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	return u
}

// foundIn counts the tokens of a prediction that an answer has in the same order. Between two of them, the prediction has fewer than
// skipped tokens that the answer lacks.
func foundIn(answer, predicted []token.ID) (n int) {
	const skipped = 64
	at := 0
	for _, id := range answer {
		for i := at; i < min(len(predicted), at+skipped); i++ {
			if predicted[i] == id {
				n, at = n+1, i+1
				break
			}
		}
	}
	return n
}

// Timings are the counts and times of a request as llama.cpp reports them, summed over its answers.
type Timings struct {
	CacheN             int     `json:"cache_n"`
	PromptN            int     `json:"prompt_n"`
	PromptMS           float64 `json:"prompt_ms"`
	PromptPerToken     float64 `json:"prompt_per_token_ms"`
	PromptPerSecond    float64 `json:"prompt_per_second"`
	PredictedN         int     `json:"predicted_n"`
	PredictedMS        float64 `json:"predicted_ms"`
	PredictedPerToken  float64 `json:"predicted_per_token_ms"`
	PredictedPerSecond float64 `json:"predicted_per_second"`
	DraftN             int     `json:"draft_n"`
	DraftAccepted      int     `json:"draft_n_accepted"`
	Rounds             int     `json:"rounds"` // steps that drew tokens

	ThinkingN          int `json:"thinking_n,omitempty"`          // tokens of thoughts
	ThinkingExtensions int `json:"thinking_extensions,omitempty"` // ends of thoughts that were replaced
	ThinkingForced     int `json:"thinking_forced,omitempty"`     // answers whose thoughts the budget ended

	Grade  grove.Grade     `json:"grade,omitempty"`  // where the answer need not be that of plain decoding: the lowest
	Search []grove.Attempt `json:"search,omitempty"` // the samples that a search drew

	SearchFigures map[string]float64 `json:"search_figures,omitempty"` // of a search: counts and measures by their names; of several answers, the last one's
}

// Timings returns the sums over the answers of a job.
func (j *Job) Timings() (t Timings) {
	for _, a := range j.Answers {
		t.add(a.Stats())
		t.label(a.Stats())
	}
	t.finish()
	return t
}

// label says what of an answer is not plain decoding.
func (t *Timings) label(s grove.Stats) {
	if s.Grade != grove.Exact && t.Grade != grove.Lossy {
		t.Grade = s.Grade
	}
	t.Search = append(t.Search, s.Attempts...)
	if s.Figures != nil {
		t.SearchFigures = s.Figures
	}
}

func (t *Timings) add(s grove.Stats) {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
	t.CacheN += s.ReusedTokens
	t.PromptN += s.PromptTokens - s.ReusedTokens
	t.PromptMS += ms(s.PromptTime)
	t.PredictedN += s.Tokens
	t.PredictedMS += ms(s.GenerationTime)
	t.DraftN += s.Drafting.Drafted
	t.DraftAccepted += s.Drafting.Accepted
	t.Rounds += s.Drafting.Rounds
	t.ThinkingN += s.Reasoning
	t.ThinkingExtensions += s.Extensions
	if s.ThoughtsForced {
		t.ThinkingForced++
	}
}

// TimingsOf returns the timings of one answer.
func TimingsOf(s grove.Stats) *Timings {
	t := new(Timings)
	t.add(s)
	t.label(s)
	t.finish()
	return t
}

// finish computes the rates; a rate over no time is 0.
func (t *Timings) finish() {
	ratio := func(a, b float64) float64 {
		if b == 0 {
			return 0
		}
		return a / b
	}
	t.PromptPerToken = ratio(t.PromptMS, float64(t.PromptN))
	t.PromptPerSecond = ratio(float64(t.PromptN), t.PromptMS/1e3)
	t.PredictedPerToken = ratio(t.PredictedMS, float64(t.PredictedN))
	t.PredictedPerSecond = ratio(float64(t.PredictedN), t.PredictedMS/1e3)
}

// Reason returns the finish_reason of OpenAI's API.
func Reason(f grove.Finish) string {
	if f == grove.FinishContext {
		return string(grove.FinishLength)
	}
	return string(f)
}

// StopReason returns the stop string or the token of stop_token_ids that ended an answer, as vLLM does; nil: none did.
func StopReason(s grove.Stats, stops []token.ID) any {
	if s.StopText != "" {
		return s.StopText
	}
	for _, id := range stops {
		if id == s.StopToken {
			return id
		}
	}
	return nil
}
