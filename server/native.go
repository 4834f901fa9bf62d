package server

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"
	"time"

	"grove"
	"grove/compute"
	"grove/server/serving"
	"grove/server/wire"
	"grove/text/token"
)

// nativeRequest is the body of llama.cpp's /completion and /infill.
type nativeRequest struct {
	wire.Sampling

	Model         string           `json:"model"`
	Prompt        wire.Prompts     `json:"prompt"`
	Prefix        *string          `json:"input_prefix"`
	Suffix        *string          `json:"input_suffix"`
	Extra         []extra          `json:"input_extra"`
	Predict       *int             `json:"n_predict"`
	MaxTokens     *int             `json:"max_tokens"`
	Choices       *int             `json:"n_cmpl"`
	N             *int             `json:"n"`
	Probs         *int             `json:"n_probs"`
	Stream        bool             `json:"stream"`
	ReturnTokens  bool             `json:"return_tokens"`
	Fields        []string         `json:"response_fields"`
	Prediction    *wire.Prediction `json:"prediction"`
	ReturnMetrics bool             `json:"return_metrics"`

	files []grove.File // of Extra
}

// extra is a file that goes before the one to fill in; llama.vim sends a time besides.
type extra struct {
	Name string          `json:"filename"`
	Text *string         `json:"text"`
	Time json.RawMessage `json:"time"`
}

// nativeBody is an answer of these routes, whole or a part.
type nativeBody struct {
	Index           int              `json:"index"`
	Content         string           `json:"content"`
	Tokens          []token.ID       `json:"tokens"`
	Stop            bool             `json:"stop"`
	Slot            int              `json:"id_slot"`
	TokensPredicted int              `json:"tokens_predicted"`
	TokensEvaluated int              `json:"tokens_evaluated"`
	Probs           []nativeProb     `json:"completion_probabilities,omitempty"`
	Timings         *serving.Timings `json:"timings,omitempty"`
	Final           *nativeFinal     `json:"-"`
	Fields          map[string]any   `json:"-"`
}

// nativeFinal is what the last part of an answer has besides.
type nativeFinal struct {
	Model       string         `json:"model"`
	Prompt      string         `json:"prompt"`
	Settings    map[string]any `json:"generation_settings"`
	HasNewLine  bool           `json:"has_new_line"`
	Truncated   bool           `json:"truncated"` // the context ended it
	StopType    string         `json:"stop_type"`
	StopWord    string         `json:"stopping_word"`
	TokensCache int            `json:"tokens_cached"`
}

// nativeProb is a token with the likeliest ones at its place: log-probabilities of the model, or, with
// post_sampling_probs, the probabilities of the draw.
type nativeProb struct {
	nativeToken
	Top     []nativeToken `json:"top_logprobs,omitempty"`
	TopPost []nativeToken `json:"top_probs,omitempty"`
}

type nativeToken struct {
	ID      token.ID `json:"id"`
	Token   string   `json:"token"`
	Bytes   []int    `json:"bytes"`
	Logprob *float32 `json:"logprob,omitempty"`
	Prob    *float64 `json:"prob,omitempty"`
}

// native is an answer of these routes under way.
type native struct {
	*nativeRequest
	x       *exchange
	host    *serving.Host
	job     *serving.Job
	n       int
	stops   []token.ID
	top     int
	answers []nativeAnswer
}

type nativeAnswer struct {
	whole  strings.Builder
	text   string // not sent yet
	ids    []token.ID
	tokens []token.ID // not sent yet
	probs  []nativeProb
}

// completion handles POST /completion.
func (s *Server) completion(x *exchange) error {
	q := new(nativeRequest)
	if err := s.read(x, q); err != nil {
		return err
	}
	switch {
	case q.Prefix != nil || q.Suffix != nil || q.Extra != nil:
		return wire.Refuse("input_suffix", "input_prefix, input_suffix and input_extra are for /infill")
	case !q.Prompt.Given:
		return wire.Refuse("prompt", "prompt is missing")
	}
	return s.native(x, q, q.Prompt.List, nil)
}

// infill handles POST /infill: the model fills in what is between input_prefix, with prompt behind it, and
// input_suffix.
func (s *Server) infill(x *exchange) error {
	q := new(nativeRequest)
	if err := s.read(x, q); err != nil {
		return err
	}
	switch {
	case q.Prefix == nil:
		return wire.Refuse("input_prefix", "input_prefix is missing")
	case q.Suffix == nil:
		return wire.Refuse("input_suffix", "input_suffix is missing")
	}
	for i, f := range q.Extra {
		if f.Text == nil {
			return wire.Refuse("input_extra", "input_extra: file %d has no text", i)
		}
		q.files = append(q.files, grove.File{Name: cmp.Or(f.Name, "tmp"), Text: *f.Text})
	}
	prefix := *q.Prefix
	for _, raw := range q.Prompt.List {
		text, ok := raw.Text()
		if !ok || len(q.Prompt.List) != 1 {
			return wire.Refuse("prompt", "prompt: one text is wanted")
		}
		prefix += text
	}
	return s.native(x, q, []wire.RawPrompt{wire.NewRawPrompt(prefix)}, q.Suffix)
}

func (s *Server) native(x *exchange, q *nativeRequest, list []wire.RawPrompt, suffix *string) error {
	h, err := x.host(q.Model)
	if err != nil {
		return err
	}
	c := &native{nativeRequest: q, x: x, host: h, n: 1}
	requests, err := c.requests(list, suffix)
	if err != nil {
		return err
	}
	if c.job, err = h.Prepare(x.r.Context(), order(x, &q.Sampling, requests, c.n, q.Stream)); err != nil {
		return err
	}
	defer c.job.Close()
	c.answers = make([]nativeAnswer, len(c.job.Answers))
	if c.Stream {
		return c.stream(s)
	}
	if err := c.job.Run(func(e serving.Event) error { c.take(e); return nil }); err != nil {
		return err
	}
	all := make([]any, len(c.answers))
	for i := range c.answers {
		if all[i], err = c.final(i); err != nil {
			return err
		}
	}
	if len(all) == 1 {
		return x.reply(all[0])
	}
	return x.reply(all)
}

// requests checks the fields and returns what is to be generated for each prompt.
func (c *native) requests(list []wire.RawPrompt, suffix *string) ([]grove.Request, error) {
	q := c.nativeRequest
	wire.Set(&c.n, q.Choices)
	wire.Set(&c.n, q.N)
	if q.Predict == nil {
		q.Predict = q.MaxTokens
	}
	if q.Predict != nil && *q.Predict < -1 {
		return nil, wire.Refuse("n_predict", "n_predict is %d; it must be -1 (no bound) or more", *q.Predict)
	}
	if q.Probs != nil && (*q.Probs < 0 || *q.Probs > wire.MaxProbs) {
		return nil, wire.Refuse("n_probs", "n_probs is %d; it must be from 0 to %d", *q.Probs, wire.MaxProbs)
	}
	base, err := q.Request(c.host.Model, wire.DefaultsNative)
	if err != nil {
		return nil, err
	}
	if err := q.Prediction.Apply(&base); err != nil {
		return nil, err
	}
	if q.Predict != nil && *q.Predict == 0 {
		return nil, wire.Refuse("n_predict", "n_predict is 0: there is nothing to generate")
	}
	if q.Predict != nil {
		base.MaxTokens = max(0, *q.Predict)
	}
	wire.Set(&c.top, q.Probs)
	base.Top, base.PostSampling, base.Suffix, c.stops = c.top, q.PostSampling && c.top > 0, suffix, base.StopTokens
	base.Files = q.files
	var all []grove.Request
	for _, raw := range list {
		p, err := raw.Resolve(c.host.Model)
		if err != nil {
			return nil, err
		}
		r := base
		r.Prompt, r.PromptIDs = p.Text, p.IDs
		all = append(all, r)
	}
	return all, nil
}

// take adds news to an answer.
func (c *native) take(e serving.Event) {
	if e.Answer < 0 || e.Done {
		return
	}
	a := &c.answers[e.Answer]
	a.text += e.Token.Text
	a.whole.WriteString(e.Token.Text)
	if e.Token.ID == token.None {
		return
	}
	a.ids, a.tokens = append(a.ids, e.Token.ID), append(a.tokens, e.Token.ID)
	if c.top > 0 {
		a.probs = append(a.probs, c.prob(e.Token))
	}
}

func (c *native) prob(t grove.Token) nativeProb {
	p := nativeProb{nativeToken: c.token(t.ID, t.Logprob)}
	for _, l := range t.Top {
		if c.PostSampling {
			p.TopPost = append(p.TopPost, c.token(l.ID, l.Logprob))
		} else {
			p.Top = append(p.Top, c.token(l.ID, l.Logprob))
		}
	}
	return p
}

func (c *native) token(id token.ID, logprob float32) nativeToken {
	text, raw := c.host.Piece(id)
	t := nativeToken{ID: id, Token: text, Bytes: numbers(raw)}
	if c.PostSampling {
		p := math.Exp(float64(logprob))
		t.Prob = &p
	} else {
		t.Logprob = &logprob
	}
	return t
}

// numbers returns bytes as JSON shows them.
func numbers(raw []byte) []int {
	n := make([]int, len(raw))
	for i, b := range raw {
		n[i] = int(b)
	}
	return n
}

// part returns what is new of an answer.
func (c *native) part(i int) nativeBody {
	a, s := &c.answers[i], c.job.Answers[i]
	b := nativeBody{
		Index: i, Content: a.text, Tokens: []token.ID{}, Slot: -1, TokensPredicted: len(a.ids), Probs: a.probs,
		TokensEvaluated: len(s.Prompt()),
	}
	if c.ReturnTokens || c.Stream {
		b.Tokens = append(b.Tokens, a.tokens...)
	}
	a.text, a.tokens, a.probs = "", nil, nil
	return b
}

// final returns the last part of an answer, or all of it where it does not stream.
func (c *native) final(i int) (any, error) {
	stats := c.job.Answers[i].Stats()
	a := &c.answers[i]
	b := c.part(i)
	b.Stop, b.TokensPredicted, b.TokensEvaluated = true, stats.Tokens, stats.PromptTokens
	b.Timings = serving.TimingsOf(stats)
	f := nativeFinal{
		Model: c.host.Name, Settings: c.settings(stats), StopWord: stats.StopText,
		HasNewLine: strings.Contains(a.whole.String(), "\n"), TokensCache: stats.PromptTokens + stats.Tokens,
	}
	switch {
	case stats.StopText != "":
		f.StopType = "word"
	case stats.Finish == grove.FinishStop:
		f.StopType = "eos"
	default:
		f.StopType = "limit"
		f.Truncated = stats.Tokens != c.job.Answers[i].Request().MaxTokens
	}
	var err error
	if f.Prompt, err = c.host.Model.Detokenize(c.job.Answers[i].Prompt()); err != nil {
		return nil, err
	}
	return c.choose(struct {
		nativeBody
		nativeFinal
	}{b, f})
}

// choose leaves the fields of an answer that the request asks for, those of objects by slashes, which are then their
// names: timings/prompt_n.
func (c *native) choose(v any) (any, error) {
	if len(c.Fields) == 0 {
		return v, nil
	}
	body, err := wire.Marshal(v)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, err
	}
	chosen := map[string]any{}
	for _, path := range c.Fields {
		var v any = all
		found := true
		for name := range strings.SplitSeq(path, "/") {
			at, _ := v.(map[string]any)
			if v, found = at[name]; !found {
				break
			}
		}
		if found {
			chosen[path] = v
		}
	}
	return chosen, nil
}

// settings returns what an answer was made by.
func (c *native) settings(s grove.Stats) map[string]any {
	r := c.job.Answers[0].Request()
	predict := r.MaxTokens
	if predict == 0 {
		predict = -1
	}
	stop := []string(c.Stop)
	if stop == nil {
		stop = []string{}
	}
	biases := []map[string]any{}
	for _, b := range r.Penalties.Bias {
		var add any // null: never, for which JSON has no number
		if !math.IsInf(float64(b.Add), -1) {
			add = b.Add
		}
		biases = append(biases, map[string]any{"token": b.ID, "bias": add})
	}
	return map[string]any{
		"n_ctx": c.host.Info.Context, "n_predict": predict, "max_tokens": predict, "seed": s.Seed,
		"temperature": r.Sampling.Temperature, "top_k": r.Sampling.TopK, "top_p": r.Sampling.TopP, "min_p": r.Sampling.MinP,
		"presence_penalty": r.Penalties.Presence, "frequency_penalty": r.Penalties.Frequency, "repeat_penalty": r.Penalties.Repeat,
		"repeat_last_n": r.Penalties.Window, "min_tokens": r.Penalties.MinTokens, "ignore_eos": r.IgnoreEnd, "stop": stop,
		"logit_bias": biases, "stream": c.Stream, "n_probs": c.top, "post_sampling_probs": c.PostSampling,
		"samplers": []string{"logit_bias", "penalties", "top_k", "top_p", "min_p", "temperature"},
	}
}

// stream sends answers as they come. Its end is the last part: llama.cpp sends no [DONE] here.
func (c *native) stream(s *Server) error {
	out := c.x.stream()
	err := c.job.Run(func(e serving.Event) error {
		if e.Answer < 0 {
			return out.alive()
		}
		c.take(e)
		if e.Done {
			f, err := c.final(e.Answer)
			if err != nil {
				return err
			}
			return out.send(f)
		}
		if a := &c.answers[e.Answer]; a.text == "" && a.probs == nil && e.Timings == nil {
			return nil
		}
		p := c.part(e.Answer)
		p.Timings = e.Timings
		return out.send(p)
	})
	if err != nil {
		return out.fail(err)
	}
	return nil
}

func unix() int64 { return time.Now().Unix() }

// fingerprint names what decides the bits of answers besides the model.
const fingerprint = compute.NumericsVersion
