package server

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"grove"
	"grove/sample"
	"grove/token"
)

// The bounds of requests.
const (
	maxChoices = 128     // answers to a prompt
	maxAnswers = 1024    // answers of a request
	maxTop     = 20      // likely tokens beside each of the answer, on OpenAI's routes
	maxProbs   = 1000    // the same on llama.cpp's
	maxStops   = 64      // stop strings
	maxStop    = 4 << 10 // bytes of one
	maxBiases  = 10_000
)

// sampling are the fields that say how tokens are drawn; all APIs share them. A field that is null counts as absent.
type sampling struct {
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
	CachePrompt   *bool    `json:"cache_prompt"` // false: as if nothing were cached
	PostSampling  bool     `json:"post_sampling_probs"`
	Method        string   `json:"method"` // of drafting
	TimingsPerTok bool     `json:"timings_per_token"`
}

// defaults are what an API means by fields that are absent.
type defaults struct {
	sampling   grove.Sampling
	repeatLast int // tokens of the text that penalties look at, as llama.cpp has it; 0: each as its own API says
}

var (
	defaultsOpenAI = defaults{sampling: grove.Sampling{Temperature: 1, TopP: 1, Order: sample.TemperFirst}}
	defaultsNative = defaults{sampling: grove.DefaultSampling(), repeatLast: 64}
)

// request returns the part of a request that these fields decide.
func (f *sampling) request(h *host, d defaults) (r grove.Request, err error) {
	r.Sampling = d.sampling
	set(&r.Sampling.Temperature, f.Temperature)
	set(&r.Sampling.TopP, f.TopP)
	set(&r.Sampling.MinP, f.MinP)
	if f.TopK != nil {
		r.Sampling.TopK = max(0, *f.TopK) // -1: off
	}
	for _, c := range []struct {
		name string
		v    *float32
		low  float32
		high float32
	}{
		{"temperature", f.Temperature, 0, 100}, {"top_p", f.TopP, 0, 1}, {"min_p", f.MinP, 0, 1},
		{"presence_penalty", f.Presence, -2, 2}, {"frequency_penalty", f.Frequency, -2, 2},
		{"repeat_penalty", f.Repeat, 0.01, 100}, {"repetition_penalty", f.Repetition, 0.01, 100},
	} {
		if c.v != nil && !(*c.v >= c.low && *c.v <= c.high) {
			return r, refuse(c.name, "%s is %v; it must be from %v to %v", c.name, *c.v, c.low, c.high)
		}
	}
	switch {
	case f.TopK != nil && *f.TopK < -1:
		return r, refuse("top_k", "top_k is %d; it must be -1 (off) or more", *f.TopK)
	case f.MinTokens < 0:
		return r, refuse("min_tokens", "min_tokens is %d", f.MinTokens)
	case f.RepeatLast != nil && *f.RepeatLast < -1:
		return r, refuse("repeat_last_n", "repeat_last_n is %d; it must be -1 (the context) or more", *f.RepeatLast)
	case f.Repeat != nil && f.Repetition != nil && *f.Repeat != *f.Repetition:
		return r, refuse("repetition_penalty", "repetition_penalty and repeat_penalty are the same and differ")
	}
	if f.Seed != nil && !f.Seed.random {
		r.Seed = &f.Seed.n
	}
	r.Shape = f.shape(d)
	if r.Shape.Bias, err = f.LogitBias.resolve(h); err != nil {
		return r, err
	}
	for _, id := range f.StopTokens {
		if err := h.check("stop_token_ids", id); err != nil {
			return r, err
		}
		r.StopTokens = append(r.StopTokens, token.ID(id))
	}
	if f.CachePrompt != nil && !*f.CachePrompt {
		f.CacheSalt = strconv.FormatUint(sample.RandomSeed(), 16) + " " + f.CacheSalt
	}
	r.Stop, r.IgnoreEnd, r.CacheSalt, r.PostSampling, r.Method = f.Stop, f.IgnoreEOS, f.CacheSalt, f.PostSampling, f.Method
	if err := grove.CheckMethods(clip(f.Method), grove.AcceptExact); err != nil {
		return r, refuse("method", "%v", err)
	}
	return r, nil
}

// shape returns the penalties. OpenAI's look at the answer, and vLLM's repetition penalty at the whole text; with
// repeat_last_n, and on llama.cpp's routes always, all look at the last tokens of the text.
func (f *sampling) shape(d defaults) grove.Shape {
	s := grove.Shape{MinTokens: f.MinTokens, RepeatWindow: -1}
	set(&s.Repeat, f.Repeat)
	set(&s.Repeat, f.Repetition)
	set(&s.Presence, f.Presence)
	set(&s.Frequency, f.Frequency)
	last := d.repeatLast
	if f.RepeatLast != nil {
		if last = *f.RepeatLast; last == 0 {
			s.Repeat, s.Presence, s.Frequency = 0, 0, 0
		}
	}
	if last != 0 {
		s.Window, s.RepeatWindow = last, last
	}
	return s
}

func set[T any](to, from *T) {
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
	if n, err := strconv.ParseUint(string(b), 10, 64); err == nil {
		*s = seed{n: n}
		return nil
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return refuse("", "seed is %s; it must be a whole number of 64 bits", clip(string(b)))
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
		return refuse("stop", "stop: it must be a text or a list of texts")
	}
	if len(*s) > maxStops {
		return refuse("stop", "%d stop strings; at most %d", len(*s), maxStops)
	}
	for _, w := range *s {
		if w == "" || len(w) > maxStop {
			return refuse("stop", "a stop string of %d bytes; it must have 1 to %d", len(w), maxStop)
		}
	}
	return nil
}

// bias is one entry of logit_bias: of a token, or of those that a text is made of.
type bias struct {
	id   int64
	text *string
	add  float32
}

// biases is logit_bias in OpenAI's form, an object of ids and numbers, or llama.cpp's, a list of pairs of an id or a
// text and a number or false.
type biases []bias

// UnmarshalJSON implements [json.Unmarshaler].
func (l *biases) UnmarshalJSON(b []byte) error {
	switch b = bytes.TrimSpace(b); {
	case string(b) == "null":
		return nil
	case b[0] == '{':
		var m map[string]float32
		if err := json.Unmarshal(b, &m); err != nil {
			return refuse("logit_bias", "logit_bias: %s", clip(err.Error()))
		}
		for key, v := range m {
			id, err := strconv.ParseInt(key, 10, 64)
			if err != nil || strconv.FormatInt(id, 10) != key {
				return refuse("logit_bias", "logit_bias: %q is not a token id", clip(key))
			}
			*l = append(*l, bias{id: id, add: v})
		}
	default:
		var pairs [][2]json.RawMessage
		if err := json.Unmarshal(b, &pairs); err != nil {
			return refuse("logit_bias", "logit_bias: it must be an object of token ids and numbers, or a list of pairs")
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
		return refuse("logit_bias", "%d biases; at most %d", len(*l), maxBiases)
	}
	return nil
}

func parsePair(p [2]json.RawMessage) (e bias, err error) {
	var off bool
	switch {
	case json.Unmarshal(p[1], &off) == nil && !off && string(p[1]) != "null":
		e.add = float32(math.Inf(-1))
	case string(p[1]) == "null" || json.Unmarshal(p[1], &e.add) != nil:
		return e, refuse("logit_bias", "logit_bias: %s is not a number, nor false", clip(string(p[1])))
	}
	if json.Unmarshal(p[0], &e.text) == nil && e.text != nil {
		return e, nil
	}
	e.text = nil
	if string(p[0]) == "null" || json.Unmarshal(p[0], &e.id) != nil {
		return e, refuse("logit_bias", "logit_bias: %s is not a token id or a text", clip(string(p[0])))
	}
	return e, nil
}

// resolve returns the biases with their tokens.
func (l biases) resolve(h *host) (all []sample.Bias, err error) {
	const most = 100
	for _, b := range l {
		if b.add > most || b.add < -most && !math.IsInf(float64(b.add), -1) {
			return nil, refuse("logit_bias", "a bias of %v; it must be from -%d to %d", b.add, most, most)
		}
		ids := []token.ID{token.ID(b.id)}
		if b.text == nil {
			err = h.check("logit_bias", b.id)
		} else {
			ids, err = h.model.Tokenize(*b.text, false, false)
		}
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			all = append(all, sample.Bias{ID: id, Add: b.add})
		}
	}
	return all, nil
}

// prompt is a text, or tokens.
type prompt struct {
	text string
	ids  []token.ID // nil: text
}

// prompts is one prompt or a list of them. On llama.cpp's routes a list may mix texts and tokens, which make one prompt.
type prompts struct {
	list  []rawPrompt
	given bool
}

// A rawPrompt is a text, or a list of token ids and texts.
type rawPrompt []part

type part struct {
	text string
	id   int64
	isID bool
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *prompts) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	p.given = true
	if e, ok := parsePart(b); ok && !e.isID {
		p.list = []rawPrompt{{e}}
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(b, &items) != nil {
		return refuse("", "it must be a text, a list of token ids, or a list of these")
	}
	var flat rawPrompt
	texts := 0
	for _, item := range items {
		e, ok := parsePart(item)
		var inner []json.RawMessage
		if !ok && (json.Unmarshal(item, &inner) != nil || inner == nil) {
			return refuse("", "%s is not a text or a list of token ids", clip(string(item)))
		}
		if ok {
			if flat = append(flat, e); !e.isID {
				texts++
			}
			continue
		}
		one := make(rawPrompt, 0, len(inner))
		for _, x := range inner {
			e, ok := parsePart(x)
			if !ok {
				return refuse("", "%s is not a token id", clip(string(x)))
			}
			one = append(one, e)
		}
		p.list = append(p.list, one)
	}
	switch {
	case len(p.list) > 0 && len(flat) > texts:
		return refuse("", "a list of prompts has a token id among them")
	case len(flat) > texts || len(items) == 0: // ids, perhaps with texts between them: one prompt
		p.list = []rawPrompt{flat}
	case len(p.list) > 0 && len(flat) > 0:
		p.list = nil
		for _, item := range items {
			var one prompts
			if err := one.UnmarshalJSON(item); err != nil {
				return err
			}
			p.list = append(p.list, one.list...)
		}
	default:
		for _, e := range flat {
			p.list = append(p.list, rawPrompt{e})
		}
	}
	return nil
}

// parsePart reads a text or a whole number.
func parsePart(b []byte) (e part, ok bool) {
	switch {
	case len(b) > 0 && b[0] == '"':
		return e, json.Unmarshal(b, &e.text) == nil
	case len(b) > 0 && (b[0] == '-' || b[0] >= '0' && b[0] <= '9'):
		e.isID = true
		return e, json.Unmarshal(b, &e.id) == nil
	}
	return e, false
}

// resolve returns a prompt as the library takes it.
func (p rawPrompt) resolve(h *host) (out prompt, err error) {
	if len(p) == 1 && !p[0].isID {
		return prompt{text: p[0].text}, nil
	}
	out.ids = []token.ID{}
	for i, e := range p {
		if e.isID {
			if err := h.check("prompt", e.id); err != nil {
				return out, err
			}
			out.ids = append(out.ids, token.ID(e.id))
			continue
		}
		ids, err := h.model.Tokenize(e.text, i == 0, false)
		if err != nil {
			return out, err
		}
		out.ids = append(out.ids, ids...)
	}
	if len(out.ids) == 0 {
		return out, refuse("prompt", "the prompt is an empty list of tokens")
	}
	return out, nil
}

// prediction is what the answer is expected to contain.
type prediction struct {
	Type    string      `json:"type"`
	Content contentText `json:"content"`
}

// contentText is a text, or parts of type text that make one.
type contentText string

// UnmarshalJSON implements [json.Unmarshaler].
func (c *contentText) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if json.Unmarshal(b, (*string)(c)) == nil {
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if d.Decode(&parts) != nil {
		return refuse("", "the content must be a text or a list of parts")
	}
	var text []byte
	for _, p := range parts {
		if p.Type != "text" && p.Type != "input_text" && p.Type != "output_text" {
			return refuse("", "a part of type %q: text alone is supported", clip(p.Type))
		}
		text = append(text, p.Text...)
	}
	*c = contentText(text)
	return nil
}

// apply makes a request expect its prediction.
func (p *prediction) apply(r *grove.Request) error {
	if p == nil {
		return nil
	}
	if p.Type != "content" {
		return refuse("prediction", "a prediction of type %q: it must be content", clip(p.Type))
	}
	r.Prediction = string(p.Content)
	return nil
}

// format is response_format.
type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"json_schema"`
	Plain  json.RawMessage `json:"schema"`
}

// check refuses formats that cannot be promised.
func (f *format) check(field string) error {
	switch {
	case f == nil || f.Type == "text":
		return nil
	case f.Type == "json_object" || f.Type == "json_schema":
		return unsupported(field, noGrammar+", and an answer of type "+f.Type+" could not be promised")
	}
	return refuse(field, "%s: type %q is not known", field, clip(f.Type))
}

// streamOptions is stream_options.
type streamOptions struct {
	IncludeUsage       bool  `json:"include_usage"`
	IncludeObfuscation *bool `json:"include_obfuscation"`
}

// check refuses options without a stream.
func (o *streamOptions) check(stream bool) error {
	switch {
	case o == nil:
		return nil
	case !stream:
		return refuse("stream_options", "stream_options: there is no stream")
	case o.IncludeObfuscation != nil && *o.IncludeObfuscation:
		return unsupported("stream_options.include_obfuscation", "it is not supported")
	}
	return nil
}
