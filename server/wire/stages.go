package wire

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"grove"
)

// Stages are the fields of the stages that llama.cpp has and OpenAI's API lacks, and those of grove's own that make an
// answer another one than plain decoding's.
type Stages struct {
	TypicalP       *float32 `json:"typical_p"`
	TopNSigma      *float32 `json:"top_n_sigma"`
	XTCProbability *float32 `json:"xtc_probability"`
	XTCThreshold   *float32 `json:"xtc_threshold"`
	DynatempRange  *float32 `json:"dynatemp_range"`
	DynatempExp    *float32 `json:"dynatemp_exponent"`
	Mirostat       *int     `json:"mirostat"`
	MirostatTau    *float32 `json:"mirostat_tau"`
	MirostatEta    *float32 `json:"mirostat_eta"`
	MinKeep        *int     `json:"min_keep"`

	DRYMultiplier *float32  `json:"dry_multiplier"`
	DRYBase       *float32  `json:"dry_base"`
	DRYAllowed    *int      `json:"dry_allowed_length"`
	DRYLast       *int      `json:"dry_penalty_last_n"`
	DRYBreakers   *[]string `json:"dry_sequence_breakers"`

	Samplers *samplers `json:"samplers"`

	ThinkingTokens  *int `json:"thinking_budget_tokens"`
	ReasoningTokens *int `json:"reasoning_budget_tokens"` // the same, as are the next two
	ReasoningBudget *int `json:"reasoning_budget"`
	ThinkingBudget  *int `json:"thinking_token_budget"` // as vLLM has it

	Accept string `json:"accept"` // the rule by which drafts are accepted
	Search string `json:"search"` // a program with its options
}

// stages sets what the fields decide.
func (f *Sampling) stages(m *grove.Model, r *grove.Request) error {
	s, p := &r.Sampling, &r.Penalties
	s.XTC.Threshold, s.DynamicTemperature.Exponent = cmp.Or(s.XTC.Threshold, 0.1), 1
	s.Mirostat.Tau, s.Mirostat.Eta = cmp.Or(s.Mirostat.Tau, 5), cmp.Or(s.Mirostat.Eta, 0.1)
	p.DRY = grove.DRY{Base: 1.75, AllowedLength: 2, Window: -1}
	if err := set(
		number[float32]{"typical_p", f.TypicalP, 0, 1, "", &s.TypicalP},
		number[float32]{"top_n_sigma", f.TopNSigma, -1, 1e6, " (off)", &s.TopNSigma},
		number[float32]{"xtc_probability", f.XTCProbability, 0, 1, "", &s.XTC.Probability},
		number[float32]{"xtc_threshold", f.XTCThreshold, 0, 1, "", &s.XTC.Threshold},
		number[float32]{"dynatemp_range", f.DynatempRange, 0, 100, "", &s.DynamicTemperature.Range},
		number[float32]{"dynatemp_exponent", f.DynatempExp, 0.01, 100, "", &s.DynamicTemperature.Exponent},
		number[float32]{"mirostat_tau", f.MirostatTau, 0.01, 32, "", &s.Mirostat.Tau},
		number[float32]{"mirostat_eta", f.MirostatEta, 0, 1, "", &s.Mirostat.Eta},
		number[float32]{"dry_multiplier", f.DRYMultiplier, 0, 1e6, "", &p.DRY.Multiplier},
		number[float32]{"dry_base", f.DRYBase, 1, 100, "", &p.DRY.Base},
	); err != nil {
		return err
	}
	if err := set(
		number[int]{"mirostat", f.Mirostat, 0, 2, " (off)", &s.Mirostat.Version},
		number[int]{"min_keep", f.MinKeep, 0, math.MaxInt, "", &s.MinKeep},
		number[int]{"dry_allowed_length", f.DRYAllowed, 1, 1 << 16, "", &p.DRY.AllowedLength},
		number[int]{"dry_penalty_last_n", f.DRYLast, -1, math.MaxInt, " (the context)", &p.DRY.Window},
	); err != nil {
		return err
	}
	if p.DRY.Window == 0 {
		p.DRY.Multiplier = 0
	}
	if p.DRY.Multiplier > 0 {
		breakers, err := m.Breakers(f.Breakers())
		if err != nil {
			return Refuse("dry_sequence_breakers", "dry_sequence_breakers: %v", err)
		}
		p.DRY.Breakers = breakers
	}
	var err error
	if r.Thinking, err = f.thinking(); err != nil {
		return err
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
	for _, n := range []number[int]{
		{"thinking_budget_tokens", f.ThinkingTokens, -1, math.MaxInt32, " (no bound)", nil},
		{"reasoning_budget_tokens", f.ReasoningTokens, -1, math.MaxInt32, " (no bound)", nil},
		{"reasoning_budget", f.ReasoningBudget, -1, math.MaxInt32, " (no bound)", nil},
		{"thinking_token_budget", f.ThinkingBudget, -1, math.MaxInt32, " (no bound)", nil},
	} {
		if err := set(n); err != nil {
			return nil, err
		}
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

// orders are the samplers in the two orders that there are.
var orders = map[grove.Order]samplers{
	grove.TruncateFirst: {"penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"},
	grove.TemperFirst:   {"penalties", "dry", "temperature", "top_n_sigma", "min_p", "top_k", "typ_p", "top_p", "xtc"},
}

// Samplers returns the names of the samplers in an order.
func Samplers(o grove.Order) []string { return orders[o] }

// samplerLetters are the letters of the samplers, in llama.cpp's order.
const samplerLetters = "edskypmxt"

// UnmarshalJSON implements [json.Unmarshaler].
func (l *samplers) UnmarshalJSON(b []byte) error {
	all, letters := orders[grove.TruncateFirst], ""
	if json.Unmarshal(b, &letters) == nil {
		*l = samplers{}
		for _, c := range letters {
			at := strings.IndexRune(samplerLetters, c)
			if at < 0 {
				return Refuse("samplers", "samplers: the letter %q is not known; known are %s, for %s", string(c), samplerLetters, strings.Join(all, ", "))
			}
			*l = append(*l, all[at])
		}
		return nil
	}
	if json.Unmarshal(b, (*[]string)(l)) != nil {
		return Refuse("samplers", "samplers: it must be a list of names, or a text of letters")
	}
	for i, name := range *l {
		switch name {
		case "typical_p":
			name = "typ_p"
		case "temp":
			name = "temperature"
		}
		if !(samplers{name}).within(all) {
			return Refuse("samplers", "samplers: %q is not known; known are %s", Clip(name), strings.Join(all, ", "))
		}
		(*l)[i] = name
	}
	return nil
}

// within reports whether a list is an order, or leaves some of it out.
func (l samplers) within(order samplers) bool {
	for _, name := range order {
		if len(l) > 0 && l[0] == name {
			l = l[1:]
		}
	}
	return len(l) == 0
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
	if !list.within(orders[s.Order]) {
		if s.Order = grove.TemperFirst - s.Order; !list.within(orders[s.Order]) {
			return Refuse("samplers", "samplers: the order %s is not supported; it must be %s, or %s, where samplers may be left out", Clip(strings.Join(list, ", ")),
				strings.Join(orders[grove.TruncateFirst], ", "), strings.Join(orders[grove.TemperFirst], ", "))
		}
	}
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
		case (samplers{stage.name}).within(list):
		case stage.asked:
			return Refuse("samplers", "samplers: %s is left out, and another field turns it on", stage.name)
		default:
			stage.off()
		}
	}
	return nil
}
