package wire

import (
	"errors"
	"math"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"grove"
	"grove/internal/text/token"
)

// The bounds of requests that no tag has, or that tags repeat.
const (
	MaxChoices  = 128    // answers to a prompt
	MaxAnswers  = 1024   // answers of a request
	MaxMessages = 16_384 // of a conversation
	maxBiases   = 10_000 // tokens of all biases
)

// Sampling are the fields of all routes that generate, of all APIs. A field that is null counts as absent.
type Sampling struct {
	Stages

	Temperature *float32 `json:"temperature" range:"0 100"`
	TopP        *float32 `json:"top_p" range:"0 1"`
	TopK        *int     `json:"top_k" range:"-1 * off"`
	MinP        *float32 `json:"min_p" range:"0 1"`
	Seed        *seed    `json:"seed"`

	Presence      *float32  `json:"presence_penalty" range:"-2 2"`
	Frequency     *float32  `json:"frequency_penalty" range:"-2 2"`
	Repeat        *float32  `json:"repeat_penalty" range:"0.01 100"`
	Repetition    *float32  `json:"repetition_penalty" range:"0.01 100"` // the same, as vLLM has it
	RepeatLast    *int      `json:"repeat_last_n" range:"-1 * the context"`
	LogitBias     biases    `json:"logit_bias" most:"10000" bytes:"1024"`
	IgnoreEOS     bool      `json:"ignore_eos"`
	MinTokens     int       `json:"min_tokens" range:"0 *"`
	Stop          Stops     `json:"stop" most:"64" bytes:"4096"`
	StopTokens    []int64   `json:"stop_token_ids" most:"4096"`
	CacheSalt     string    `json:"cache_salt" bytes:"1024"`
	CachePrompt   *bool     `json:"cache_prompt"` // false: the cache is not used
	PostSampling  bool      `json:"post_sampling_probs"`
	Method        string    `json:"method" bytes:"1024"` // of drafting
	TimingsPerTok bool      `json:"timings_per_token"`
	Priority      int       `json:"priority" range:"-10 10"`           // the lower, the earlier, as vLLM has it
	Timeout       *float64  `json:"timeout" range:"0.000000001 86400"` // seconds
	Slot          *int      `json:"id_slot" range:"-1 * any"`          // checked and without effect: all slots share the cache
	Session       string    `json:"session" bytes:"100"`               // name of the file that keeps keys and values; "": none
	Lora          []Adapter `json:"lora" most:"256"`                   // the adapters of the text; absent: those of the server
}

// Adapter is an adapter that a request asks for, by llama.cpp's number, and its scale.
type Adapter struct {
	ID    int     `json:"id" range:"0 *"`
	Scale float64 `json:"scale" range:"-1000000 1000000"`
}

// Adapters returns a list of adapters as the library has it. nil stays nil: the request asks for none by itself.
func Adapters(list []Adapter) []grove.AdapterScale {
	if list == nil {
		return nil
	}
	all := make([]grove.AdapterScale, len(list))
	for i, a := range list {
		all[i] = grove.AdapterScale{ID: a.ID, Scale: a.Scale}
	}
	return all
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

// Over returns the fields with others in place of those that are absent.
func (f Sampling) Over(others Sampling) Sampling {
	if f.Repeat != nil || f.Repetition != nil { // two names of one field
		others.Repeat, others.Repetition = nil, nil
	}
	if f.ThinkingTokens != nil || f.ReasoningTokens != nil || f.ReasoningBudget != nil || f.ThinkingBudget != nil {
		others.ThinkingTokens, others.ReasoningTokens, others.ReasoningBudget, others.ThinkingBudget = nil, nil, nil, nil
	}
	fill(reflect.ValueOf(&f).Elem(), reflect.ValueOf(others))
	return f
}

// fill sets the fields of a struct that are zero.
func fill(to, from reflect.Value) {
	for i := range to.NumField() {
		switch f := to.Field(i); {
		case to.Type().Field(i).Anonymous:
			fill(f, from.Field(i))
		case f.IsZero():
			f.Set(from.Field(i))
		}
	}
}

// Request returns the part of a request that these fields decide.
func (f *Sampling) Request(m *grove.Model, d Defaults) (r grove.Request, err error) {
	r.Sampling, r.Penalties = d.For(m)
	s, p := &r.Sampling, &r.Penalties
	set([]pair[float32]{
		{&s.Temperature, f.Temperature}, {&s.MinP, f.MinP}, {&p.Presence, f.Presence}, {&p.Frequency, f.Frequency},
		{&p.Repeat, f.Repeat}, {&p.Repeat, f.Repetition},
	})
	Set(&s.TopK, f.TopK)
	if f.TopP != nil {
		s.SetTopP(*f.TopP)
	}
	p.MinTokens = f.MinTokens
	switch {
	case f.Slot != nil && *f.Slot >= m.Info().Parallel:
		return r, Refuse("id_slot", "id_slot is %d; it must be from -1 (any) to %d", *f.Slot, m.Info().Parallel-1)
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
	a := m.Advice()
	if r.Seed = a.Seed; f.Seed != nil {
		r.Seed = nil
		if !f.Seed.random {
			r.Seed = &f.Seed.n
		}
	}
	if a.MaxTokens != nil {
		r.MaxTokens = *a.MaxTokens // where the route's field says nothing
	}
	r.Private = f.CachePrompt != nil && !*f.CachePrompt
	r.Priority = -f.Priority
	r.Stop, r.IgnoreEnd, r.CacheSalt, r.PostSampling, r.Method = f.Stop, f.IgnoreEOS, f.CacheSalt, f.PostSampling, f.Method
	r.Accept, r.Search, r.SkipLayers, r.Adapters, r.Diffusion = f.Accept, f.Search, f.SkipLayers, Adapters(f.Lora), f.Diffusion.setting()
	if f.Stop == nil {
		r.Stop = a.Stop
	}
	r.Heal, r.HealExact = f.Heal == healTokens, f.Heal == healExact
	return r, f.checkNames()
}

// checkNames refuses methods, rules and programs that there are not.
func (f *Sampling) checkNames() error {
	if err := grove.CheckMethods(Clip(f.Method), grove.AcceptExact); err != nil {
		return Refuse("method", "%s", Plain(err))
	}
	if err := grove.CheckMethods(f.Method, Clip(f.Accept)); err != nil {
		return Refuse("accept", "%s", Plain(err))
	}
	if _, err := grove.SearchSlots(Clip(f.Search)); err != nil {
		return Refuse("search", "%s", Plain(err))
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

// pair is a setting and the field that changes it; nil: the field is absent.
type pair[T any] struct{ to, from *T }

func set[T any](all []pair[T]) {
	for _, p := range all {
		Set(p.to, p.from)
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

// ReadJSON implements [Own].
func (s *seed) ReadJSON(r *Reader) error {
	b, err := r.Number()
	if err != nil {
		return err
	}
	if n, err := strconv.ParseUint(string(b), 10, 64); err == nil {
		*s = seed{n: n}
		return nil
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return r.Refuse("%s is not a whole number of 64 bits", Clip(string(b)))
	}
	*s = seed{uint64(n), n == -1}
	return nil
}

// Stops is a stop string or a list of them.
type Stops []string

// ReadJSON implements [Own].
func (s *Stops) ReadJSON(r *Reader) error {
	add := func(int) error {
		text, err := r.Text()
		if err == nil && text == "" {
			err = r.Refuse("a stop string of 0 bytes")
		}
		*s = append(*s, text)
		return err
	}
	*s = Stops{}
	switch r.Kind() {
	case jsontext.KindString:
		return add(0)
	case jsontext.KindBeginArray:
		return r.List(add)
	}
	return r.Refuse("it must be a text or a list of texts")
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

// ReadJSON implements [Own].
func (l *biases) ReadJSON(r *Reader) error {
	bound := r.bound
	switch r.Kind() {
	case jsontext.KindBeginObject:
	case jsontext.KindBeginArray:
		return r.List(func(int) error {
			var e bias
			err := e.readPair(r)
			*l = append(*l, e)
			return err
		})
	default:
		return r.Refuse("it must be an object of token ids and numbers, or a list of pairs")
	}
	return r.Object(func(key string) error {
		var e bias
		id, err := strconv.ParseInt(key, 10, 64)
		switch {
		case errors.Is(err, strconv.ErrSyntax): // llama.cpp: a text
			if e.text = &key; len(key) > bound.bytes {
				return r.beyond("string_above_max_length", "a text of %d bytes; at most %d", len(key), bound.bytes)
			}
		case err != nil || strconv.FormatInt(id, 10) != key:
			return r.Refuse("%q is not a token id", Clip(key))
		}
		e.id = id
		err = e.readAdd(r)
		*l = append(*l, e)
		return err
	})
}

// readPair reads an id or a text, and a number or false.
func (e *bias) readPair(r *Reader) error {
	n := 0
	err := r.list(func(i int) error {
		switch n = i + 1; {
		case i > 1:
			return r.Refuse("a bias is a pair")
		case i == 1:
			return e.readAdd(r)
		case r.Kind() == jsontext.KindString:
			text, err := r.Text()
			e.text = &text
			return err
		}
		return r.Into(&e.id)
	})
	if err == nil && n != 2 {
		err = r.Refuse("a bias is a pair: a token id or a text, and a number or false")
	}
	return err
}

// readAdd reads a number, or false: never.
func (e *bias) readAdd(r *Reader) error {
	const most = 100
	if r.Kind() == jsontext.KindFalse {
		e.add = float32(math.Inf(-1))
		return r.skip()
	}
	if r.Kind() != jsontext.KindNumber {
		return r.Refuse("a bias is a number, or false")
	}
	if err := r.Into(&e.add); err != nil {
		return err
	}
	if e.add > most || e.add < -most {
		return r.Refuse("a bias of %v; it must be from -%d to %d", e.add, most, most)
	}
	return nil
}

// resolve returns a bias for each token.
func (l biases) resolve(m *grove.Model) (all []grove.Bias, err error) {
	for _, b := range l {
		ids := []token.ID{token.ID(b.id)}
		if b.text == nil {
			err = CheckID(m, "logit_bias", b.id)
		} else {
			ids, err = m.Tokenize(*b.text, false, false)
		}
		if err != nil {
			return nil, err
		}
		if len(all)+len(ids) > maxBiases {
			return nil, Refuse("logit_bias", "logit_bias: its texts have more than %d tokens together", maxBiases)
		}
		for _, id := range ids {
			all = append(all, grove.Bias{ID: id, Add: b.add})
		}
	}
	return all, nil
}
