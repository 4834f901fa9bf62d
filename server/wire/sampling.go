package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"grove"
	"grove/text/token"
)

// The bounds of requests.
const (
	MaxChoices = 128     // answers to a prompt
	MaxAnswers = 1024    // answers of a request
	MaxTexts   = 2048    // to embed
	MaxTop     = 20      // likely tokens beside each of the answer, on OpenAI's routes
	MaxProbs   = 1000    // the same on llama.cpp's
	maxStops   = 64      // stop strings
	maxStop    = 4 << 10 // bytes of one
	maxBiases  = 10_000
	maxTimeout = 86_400 // seconds

	MaxMessages = 16_384 // of a conversation
	MaxTools    = 1024
)

// Sampling are the fields of all routes that generate, of all APIs. A field that is null counts as absent.
type Sampling struct {
	Stages

	Temperature *float32 `json:"temperature"`
	TopP        *float32 `json:"top_p"`
	TopK        *int     `json:"top_k"`
	MinP        *float32 `json:"min_p"`
	Seed        *seed    `json:"seed"`

	Presence      *float32 `json:"presence_penalty"`
	Frequency     *float32 `json:"frequency_penalty"`
	Repeat        *float32 `json:"repeat_penalty"`
	Repetition    *float32 `json:"repetition_penalty"` // the same, as vLLM has it
	RepeatLast    *int     `json:"repeat_last_n"`
	LogitBias     biases   `json:"logit_bias"`
	IgnoreEOS     bool     `json:"ignore_eos"`
	MinTokens     int      `json:"min_tokens"`
	Stop          stops    `json:"stop"`
	StopTokens    []int64  `json:"stop_token_ids"`
	CacheSalt     string   `json:"cache_salt"`
	CachePrompt   *bool    `json:"cache_prompt"` // false: the cache is not used
	PostSampling  bool     `json:"post_sampling_probs"`
	Method        string   `json:"method"` // of drafting
	TimingsPerTok bool     `json:"timings_per_token"`
	Priority      int      `json:"priority"` // the lower, the earlier, as vLLM has it
	Timeout       *float64 `json:"timeout"`  // seconds
	Slot          *int     `json:"id_slot"`  // checked and without effect: all slots share the cache
	Session       string   `json:"session"`  // name of the file that keeps keys and values; "": none
}

// Defaults are an API's values of absent fields. What a model's file recommends takes their place, as in vLLM and llama.cpp.
type Defaults struct {
	Sampling   grove.Sampling
	RepeatLast int // repeat_last_n of llama.cpp; 0: see [Sampling.limitPenalties]
}

// The defaults of OpenAI's routes and of llama.cpp's.
var (
	DefaultsOpenAI = Defaults{Sampling: grove.Sampling{Temperature: 1, TopP: 1, Order: grove.TemperFirst}}
	DefaultsNative = Defaults{Sampling: grove.DefaultSampling(), RepeatLast: 64}
)

// For returns the values for a model. The window of Penalties is that of the repeat penalty; 0: none is named.
func (d Defaults) For(m *grove.Model) (grove.Sampling, grove.Penalties) {
	s, p := d.Sampling, grove.Penalties{RepeatWindow: d.RepeatLast}
	m.Advice().Apply(&s, &p)
	return s, p
}

// number is a field that has a range.
type number[T int | float32] struct {
	name      string
	from      *T // nil: absent
	low, high T
	lowest    string // meaning of low, for the error; "": none of its own
	to        *T     // the setting that it changes; nil: none directly
}

// set changes the settings of the fields that are there, or refuses the first one that is out of its range.
func set[T int | float32](all ...number[T]) error {
	for _, n := range all {
		switch {
		case n.from == nil:
		case !(*n.from >= n.low && *n.from <= n.high) && float64(n.high) >= math.MaxInt:
			return Refuse(n.name, "%s is %v; it must be %v%s or more", n.name, *n.from, n.low, n.lowest)
		case !(*n.from >= n.low && *n.from <= n.high):
			return Refuse(n.name, "%s is %v; it must be from %v%s to %v", n.name, *n.from, n.low, n.lowest, n.high)
		case n.to != nil:
			*n.to = *n.from
		}
	}
	return nil
}

// Request returns the part of a request that these fields decide.
func (f *Sampling) Request(m *grove.Model, d Defaults) (r grove.Request, err error) {
	r.Sampling, r.Penalties = d.For(m)
	s, p := &r.Sampling, &r.Penalties
	if err := set(
		number[float32]{"temperature", f.Temperature, 0, 100, "", &s.Temperature},
		number[float32]{"top_p", f.TopP, 0, 1, "", &s.TopP},
		number[float32]{"min_p", f.MinP, 0, 1, "", &s.MinP},
		number[float32]{"presence_penalty", f.Presence, -2, 2, "", &p.Presence},
		number[float32]{"frequency_penalty", f.Frequency, -2, 2, "", &p.Frequency},
		number[float32]{"repeat_penalty", f.Repeat, 0.01, 100, "", &p.Repeat},
		number[float32]{"repetition_penalty", f.Repetition, 0.01, 100, "", &p.Repeat},
	); err != nil {
		return r, err
	}
	if err := set(
		number[int]{"top_k", f.TopK, -1, math.MaxInt, " (off)", &s.TopK},
		number[int]{"min_tokens", &f.MinTokens, 0, math.MaxInt, "", &p.MinTokens},
		number[int]{"priority", &f.Priority, -grove.MostPriority, -grove.LeastPriority, "", nil},
		number[int]{"id_slot", f.Slot, -1, m.Info().Parallel - 1, " (any)", nil},
		number[int]{"repeat_last_n", f.RepeatLast, -1, math.MaxInt, " (the context)", nil},
	); err != nil {
		return r, err
	}
	switch {
	case f.Timeout != nil && !(*f.Timeout > 0 && *f.Timeout <= maxTimeout):
		return r, Refuse("timeout", "timeout is %v; it must be more than 0 and at most %d seconds", *f.Timeout, maxTimeout)
	case f.Session != "" && f.CachePrompt != nil && !*f.CachePrompt:
		return r, Refuse("session", "session: with cache_prompt false nothing is kept")
	case f.Repeat != nil && f.Repetition != nil && *f.Repeat != *f.Repetition:
		return r, Refuse("repetition_penalty", "repetition_penalty and repeat_penalty are two names of one field and differ")
	}
	s.TopK = max(0, s.TopK)
	f.limitPenalties(p, d)
	if err := f.stages(m, &r); err != nil {
		return r, err
	}
	if p.Bias, err = f.LogitBias.resolve(m); err != nil {
		return r, err
	}
	for _, id := range f.StopTokens {
		if err := CheckID(m, "stop_token_ids", id); err != nil {
			return r, err
		}
		r.StopTokens = append(r.StopTokens, token.ID(id))
	}
	if f.Seed != nil && !f.Seed.random {
		r.Seed = &f.Seed.n
	}
	r.Private = f.CachePrompt != nil && !*f.CachePrompt
	r.Priority = -f.Priority
	r.Stop, r.IgnoreEnd, r.CacheSalt, r.PostSampling, r.Method = f.Stop, f.IgnoreEOS, f.CacheSalt, f.PostSampling, f.Method
	r.Accept, r.Search = f.Accept, f.Search
	return r, f.checkNames()
}

// checkNames refuses methods, rules and programs that there are not.
func (f *Sampling) checkNames() error {
	if err := grove.CheckMethods(Clip(f.Method), grove.AcceptExact); err != nil {
		return Refuse("method", "%v", err)
	}
	if err := grove.CheckMethods(f.Method, Clip(f.Accept)); err != nil {
		return Refuse("accept", "%v", err)
	}
	if _, err := grove.SearchSamples(Clip(f.Search)); err != nil {
		return Refuse("search", "%v", err)
	}
	return nil
}

// limitPenalties sets the part of the text that penalties look at. OpenAI's look at the answer, and vLLM's repetition penalty
// at the whole text, or at as much as a model recommends for the penalty that it recommends; with repeat_last_n, and always on
// llama.cpp's routes, all look at the last tokens of the text.
func (f *Sampling) limitPenalties(p *grove.Penalties, d Defaults) {
	last := 0
	if d.RepeatLast != 0 {
		last = p.RepeatWindow
	} else if p.Window = 0; p.RepeatWindow == 0 || f.Repeat != nil || f.Repetition != nil {
		p.RepeatWindow = -1
	}
	Set(&last, f.RepeatLast)
	switch {
	case last != 0:
		p.Window, p.RepeatWindow = last, last
	case f.RepeatLast != nil:
		p.Repeat, p.Presence, p.Frequency = 0, 0, 0
	}
}

// Set copies a field that is there.
func Set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// seed is a number from -2^63 to 2^64 - 1; -1 asks for a random one.
type seed struct {
	n      uint64
	random bool
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *seed) UnmarshalJSON(b []byte) error {
	b = whole(b)
	if n, err := strconv.ParseUint(string(b), 10, 64); err == nil {
		*s = seed{n: n}
		return nil
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return Refuse("", "seed is %s; it must be a whole number of 64 bits", Clip(string(b)))
	}
	*s = seed{uint64(n), n == -1}
	return nil
}

// stops is a stop string or a list of them.
type stops []string

// UnmarshalJSON implements [json.Unmarshaler].
func (s *stops) UnmarshalJSON(b []byte) error {
	var one string
	if string(b) == "null" {
		return nil
	}
	if json.Unmarshal(b, &one) == nil {
		*s = stops{one}
	} else if err := json.Unmarshal(b, (*[]string)(s)); err != nil {
		return Refuse("stop", "stop: it must be a text or a list of texts")
	}
	if len(*s) > maxStops {
		return Refuse("stop", "%d stop strings; at most %d", len(*s), maxStops)
	}
	for _, w := range *s {
		if w == "" || len(w) > maxStop {
			return Refuse("stop", "a stop string of %d bytes; it must have 1 to %d", len(w), maxStop)
		}
	}
	return nil
}

// bias is one entry of logit_bias: of a token, or of all tokens of a text.
type bias struct {
	id   int64
	text *string
	add  float32
}

// biases is logit_bias. OpenAI's form is an object of token ids and numbers. llama.cpp's may have texts in place of ids, or is a list of
// pairs: an id or a text, and a number or false (never).
type biases []bias

// UnmarshalJSON implements [json.Unmarshaler].
func (l *biases) UnmarshalJSON(b []byte) error {
	switch b = bytes.TrimSpace(b); {
	case string(b) == "null":
		return nil
	case b[0] == '{':
		var m map[string]float32
		if err := json.Unmarshal(b, &m); err != nil {
			return Refuse("logit_bias", "logit_bias: %s", Clip(err.Error()))
		}
		for key, v := range m {
			id, err := strconv.ParseInt(key, 10, 64)
			switch {
			case errors.Is(err, strconv.ErrSyntax): // llama.cpp: a text
				*l = append(*l, bias{text: &key, add: v})
			case err != nil || strconv.FormatInt(id, 10) != key:
				return Refuse("logit_bias", "logit_bias: %q is not a token id", Clip(key))
			default:
				*l = append(*l, bias{id: id, add: v})
			}
		}
	default:
		var pairs [][2]json.RawMessage
		if err := json.Unmarshal(b, &pairs); err != nil {
			return Refuse("logit_bias", "logit_bias: it must be an object of token ids and numbers, or a list of pairs")
		}
		for _, p := range pairs {
			e, err := parsePair(p)
			if err != nil {
				return err
			}
			*l = append(*l, e)
		}
	}
	if len(*l) > maxBiases {
		return Refuse("logit_bias", "%d biases; at most %d", len(*l), maxBiases)
	}
	return nil
}

func parsePair(p [2]json.RawMessage) (e bias, err error) {
	var off bool
	switch {
	case json.Unmarshal(p[1], &off) == nil && !off && string(p[1]) != "null":
		e.add = float32(math.Inf(-1))
	case string(p[1]) == "null" || json.Unmarshal(p[1], &e.add) != nil:
		return e, Refuse("logit_bias", "logit_bias: %s is not a number, nor false", Clip(string(p[1])))
	}
	if json.Unmarshal(p[0], &e.text) == nil && e.text != nil {
		return e, nil
	}
	e.text = nil
	if string(p[0]) == "null" || json.Unmarshal(whole(p[0]), &e.id) != nil {
		return e, Refuse("logit_bias", "logit_bias: %s is not a token id or a text", Clip(string(p[0])))
	}
	return e, nil
}

// resolve returns a bias for each token.
func (l biases) resolve(m *grove.Model) (all []grove.Bias, err error) {
	const most = 100
	for _, b := range l {
		if b.add > most || b.add < -most && !math.IsInf(float64(b.add), -1) {
			return nil, Refuse("logit_bias", "a bias of %v; it must be from -%d to %d", b.add, most, most)
		}
		ids := []token.ID{token.ID(b.id)}
		if b.text == nil {
			err = CheckID(m, "logit_bias", b.id)
		} else {
			ids, err = m.Tokenize(*b.text, false, false)
		}
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			all = append(all, grove.Bias{ID: id, Add: b.add})
		}
	}
	return all, nil
}
