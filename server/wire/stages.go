package wire

import (
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"grove"
)

// Stages are the fields of the stages that llama.cpp has and OpenAI's API lacks, and those of grove's own that make an
// answer another one than plain decoding's.
type Stages struct {
	TypicalP       *float32 `json:"typical_p" range:"0 1"`
	TopNSigma      *float32 `json:"top_n_sigma" range:"-1 1000000 off"`
	XTCProbability *float32 `json:"xtc_probability" range:"0 1"`
	XTCThreshold   *float32 `json:"xtc_threshold" range:"0 1"`
	DynatempRange  *float32 `json:"dynatemp_range" range:"0 100"`
	DynatempExp    *float32 `json:"dynatemp_exponent" range:"0.01 100"`
	Mirostat       *int     `json:"mirostat" range:"0 2 off"`
	MirostatTau    *float32 `json:"mirostat_tau" range:"0.01 32"`
	MirostatEta    *float32 `json:"mirostat_eta" range:"0 1"`
	MinKeep        *int     `json:"min_keep" range:"0 *"`

	DRYMultiplier *float32  `json:"dry_multiplier" range:"0 100"`
	DRYBase       *float32  `json:"dry_base" range:"1 100"`
	DRYAllowed    *int      `json:"dry_allowed_length" range:"1 65536"`
	DRYLast       *int      `json:"dry_penalty_last_n" range:"-1 * the context"`
	DRYBreakers   *[]string `json:"dry_sequence_breakers" most:"16" bytes:"40"`

	Samplers *samplers `json:"samplers" most:"64" bytes:"64"`

	ThinkingTokens  *int    `json:"thinking_budget_tokens" range:"-1 2147483647 no bound"`
	ReasoningTokens *int    `json:"reasoning_budget_tokens" range:"-1 2147483647 no bound"` // the same, as are the next two
	ReasoningBudget *int    `json:"reasoning_budget" range:"-1 2147483647 no bound"`
	ThinkingBudget  *int    `json:"thinking_token_budget" range:"-1 2147483647 no bound"` // as vLLM has it
	ThinkingMessage *string `json:"reasoning_budget_message" bytes:"4096"`
	ThinkingLeast   int     `json:"thinking_least_tokens" range:"0 *"`
	ThinkingExtends int     `json:"thinking_extensions" range:"0 *"`
	ThinkingWait    *string `json:"thinking_wait" bytes:"4096"`

	Accept string `json:"accept" bytes:"1024"` // the rule by which drafts are accepted
	Search string `json:"search" bytes:"1024"` // a program with its options

	SearchProgress bool `json:"search_progress"` // of a stream: objects tell how far the search is

	Heal heal `json:"heal"` // the end of a prompt: true, or "exact"

	SkipLayers string `json:"skip_layers" bytes:"1024"` // by which places tokens skip layers

	Diffusion *Diffusion `json:"diffusion"` // of a diffusion model
}

// stages sets what the fields decide.
func (f *Sampling) stages(m *grove.Model, r *grove.Request) error {
	s, p := &r.Sampling, &r.Penalties
	s.XTC.Threshold, s.DynamicTemperature.Exponent = cmp.Or(s.XTC.Threshold, 0.1), 1
	s.Mirostat.Tau, s.Mirostat.Eta = cmp.Or(s.Mirostat.Tau, 5), cmp.Or(s.Mirostat.Eta, 0.1)
	p.DRY = grove.DRY{Base: 1.75, AllowedLength: 2, Window: -1}
	set([]pair[float32]{
		{&s.TypicalP, f.TypicalP}, {&s.TopNSigma, f.TopNSigma}, {&s.XTC.Probability, f.XTCProbability}, {&s.XTC.Threshold, f.XTCThreshold},
		{&s.DynamicTemperature.Range, f.DynatempRange}, {&s.DynamicTemperature.Exponent, f.DynatempExp}, {&s.Mirostat.Tau, f.MirostatTau},
		{&s.Mirostat.Eta, f.MirostatEta}, {&p.DRY.Multiplier, f.DRYMultiplier}, {&p.DRY.Base, f.DRYBase},
	})
	set([]pair[int]{{&s.Mirostat.Version, f.Mirostat}, {&s.MinKeep, f.MinKeep}, {&p.DRY.AllowedLength, f.DRYAllowed}, {&p.DRY.Window, f.DRYLast}})
	if p.DRY.Window == 0 {
		p.DRY.Multiplier = 0
	}
	if p.DRY.Multiplier > 0 {
		breakers, err := m.Breakers(f.Breakers())
		if err != nil {
			return Refuse("dry_sequence_breakers", "dry_sequence_breakers: %s", Plain(err))
		}
		p.DRY.Breakers = breakers
	}
	var err error
	if r.Thinking, err = f.thinking(); err != nil {
		return err
	}
	r.Thoughts = grove.Thoughts{Least: f.ThinkingLeast, Extensions: f.ThinkingExtends}
	Set(&r.Thoughts.Message, f.ThinkingMessage)
	Set(&r.Thoughts.Wait, f.ThinkingWait)
	numbers := grove.Thoughts{Least: f.ThinkingLeast, Extensions: f.ThinkingExtends, Wait: r.Thoughts.Wait}
	if err := numbers.Check(r.Thinking); err != nil {
		return Refuse("thinking_least_tokens", "thinking_least_tokens: %s", Plain(err))
	}
	return f.order(s, p)
}

// Breakers returns the texts that interrupt the repetitions that DRY looks for.
func (f *Stages) Breakers() []string {
	if f.DRYBreakers == nil {
		return grove.DefaultBreakers()
	}
	return *f.DRYBreakers
}

// thinking returns the thinking budget, which has several names; nil: there is no bound.
func (f *Stages) thinking() (budget *int, err error) {
	name := ""
	for _, n := range []struct {
		name string
		from *int
	}{
		{"thinking_budget_tokens", f.ThinkingTokens}, {"reasoning_budget_tokens", f.ReasoningTokens},
		{"reasoning_budget", f.ReasoningBudget}, {"thinking_token_budget", f.ThinkingBudget},
	} {
		if n.from == nil {
			continue
		}
		if budget != nil && *budget != *n.from {
			return nil, Refuse(n.name, "%s is %d, and %s, another name of the field, is %d", n.name, *n.from, name, *budget)
		}
		budget, name = n.from, n.name
	}
	if budget != nil && *budget < 0 {
		return nil, nil
	}
	return budget, nil
}

// samplers is the list of samplers: their names, or a text of their letters, both as llama.cpp has them.
type samplers []string

// samplerLetters are the letters of the samplers, in llama.cpp's order.
const samplerLetters = "edskypmxt"

// ReadJSON implements [Own].
func (l *samplers) ReadJSON(r *Reader) error {
	all := grove.TruncateFirst.Stages()
	*l = samplers{}
	if r.Kind() == jsontext.KindString {
		letters, err := r.Text()
		if err != nil {
			return err
		}
		for _, c := range letters {
			at := strings.IndexRune(samplerLetters, c)
			if at < 0 {
				return r.Refuse("the letter %q is not known; known are %s, for %s", string(c), samplerLetters, strings.Join(all, ", "))
			}
			*l = append(*l, all[at])
		}
		return nil
	}
	if r.Kind() != jsontext.KindBeginArray {
		return r.Refuse("it must be a list of names, or a text of letters")
	}
	if err := r.List(func(int) error {
		name, err := r.Text()
		*l = append(*l, name)
		return err
	}); err != nil {
		return err
	}
	for i, name := range *l {
		stage, known := grove.TruncateFirst.Stage(name)
		if !known {
			return r.Refuse("%q is not known; known are %s", Clip(stage), strings.Join(all, ", "))
		}
		(*l)[i] = stage
	}
	return nil
}

// order sets the order of the samplers where the request has a list of them. Samplers that it leaves out are turned
// off; one that the request turns on is refused.
func (f *Sampling) order(s *grove.Sampling, p *grove.Penalties) error {
	if f.Samplers == nil {
		return nil
	}
	list := *f.Samplers
	if s.Mirostat.Version != 0 {
		return Refuse("samplers", "samplers: mirostat replaces them; leave one of the two fields out")
	}
	order, ok := s.Order.With(list)
	if !ok {
		return Refuse("samplers", "samplers: the order %s is not supported; it must be %s, or %s, where samplers may be left out", Clip(strings.Join(list, ", ")),
			strings.Join(grove.TruncateFirst.Stages(), ", "), strings.Join(grove.TemperFirst.Stages(), ", "))
	}
	s.Order = order
	for _, stage := range []struct {
		name  string
		asked bool // by the request
		off   func()
	}{
		{"penalties", p.Presence != 0 || p.Frequency != 0 || p.Repeat != 0 && p.Repeat != 1, func() { p.Presence, p.Frequency, p.Repeat = 0, 0, 0 }},
		{"dry", p.DRY.Multiplier > 0, func() {}},
		{"top_n_sigma", s.TopNSigma > 0, func() {}},
		{"top_k", f.TopK != nil && s.TopK > 0, func() { s.TopK = 0 }},
		{"typ_p", s.TypicalP > 0 && s.TypicalP < 1, func() {}},
		{"top_p", f.TopP != nil && s.TopP > 0 && s.TopP < 1, func() { s.TopP = 0 }},
		{"min_p", f.MinP != nil && s.MinP > 0, func() { s.MinP = 0 }},
		{"xtc", s.XTC.Probability > 0, func() {}},
		{"temperature", f.Temperature != nil && s.Temperature != 1 || s.DynamicTemperature.Range > 0, func() { s.Temperature = 1 }},
	} {
		switch {
		case slices.Contains(list, stage.name):
		case stage.asked:
			return Refuse("samplers", "samplers: %s is left out, and another field turns it on", stage.name)
		default:
			stage.off()
		}
	}
	return nil
}
