package llamacpp

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"grove"
	"grove/internal/text/token"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// The bounds of what an answer repeats of its request.
const (
	maxEcho     = 64 << 10 // bytes of the prompt
	maxBiasEcho = 100      // biases
)

// completionRequest is the body of llama.cpp's /completion.
type completionRequest struct {
	driver.Fields

	Prompt        wire.Prompts `json:"prompt" most:"1024"`
	Prefix        *string      `json:"input_prefix"`
	Suffix        *string      `json:"input_suffix"`
	PrefixLM      bool         `json:"prefix_lm"` // the tokens of the prompt see each other
	Extra         []extraFile  `json:"input_extra" most:"1024"`
	Predict       *int         `json:"n_predict" range:"-1 * no bound"`
	MaxTokens     *int         `json:"max_tokens" range:"-1 * no bound"`
	Choices       *int         `json:"n_cmpl" range:"1 128"`
	N             *int         `json:"n" range:"1 128"`
	Probs         *int         `json:"n_probs" range:"0 1000"`
	ReturnTokens  bool         `json:"return_tokens"`
	Chosen        []string     `json:"response_fields" most:"256" bytes:"256"`
	ReturnMetrics bool         `json:"return_metrics"`
}

// infillRequest is the body of /infill: the model fills in the text between input_prefix, followed by prompt, and input_suffix.
type infillRequest struct{ completionRequest }

// extraFile is a file that is put before the one to fill in; llama.vim sends a time, too.
type extraFile struct {
	Name string          `json:"filename" bytes:"4096"`
	Text *string         `json:"text"`
	Time json.RawMessage `json:"time"`
}

// Parse implements [driver.Body].
func (q *completionRequest) Parse(g *driver.Generation) (driver.Encoder, error) {
	switch {
	case q.Prefix != nil || q.Suffix != nil || q.Extra != nil:
		return nil, wire.Refuse("input_suffix", "input_prefix, input_suffix and input_extra are for /infill")
	case !q.Prompt.Given:
		return nil, wire.Refuse("prompt", "prompt is missing")
	}
	return q.encoder(g, q.Prompt.List, nil)
}

// Parse implements [driver.Body].
func (q *infillRequest) Parse(g *driver.Generation) (driver.Encoder, error) {
	switch {
	case q.Prefix == nil:
		return nil, wire.Refuse("input_prefix", "input_prefix is missing")
	case q.Suffix == nil:
		return nil, wire.Refuse("input_suffix", "input_suffix is missing")
	}
	var files []grove.File
	for i, f := range q.Extra {
		if f.Text == nil {
			return nil, wire.Refuse("input_extra", "input_extra: file %d has no text", i)
		}
		files = append(files, grove.File{Name: cmp.Or(f.Name, "tmp"), Text: *f.Text})
	}
	prefix := *q.Prefix
	for _, raw := range q.Prompt.List {
		text, ok := raw.Text()
		if !ok || len(q.Prompt.List) != 1 {
			return nil, wire.Refuse("prompt", "prompt: it must be one text")
		}
		prefix += text
	}
	return q.encoder(g, []wire.RawPrompt{wire.NewRawPrompt(prefix)}, files)
}

// encoder checks the fields that both routes have, and adds the prompts.
func (q *completionRequest) encoder(g *driver.Generation, prompts []wire.RawPrompt, files []grove.File) (driver.Encoder, error) {
	wire.Set(&g.N, q.Choices)
	wire.Set(&g.N, q.N)
	most, top := cmp.Or(q.Predict, q.MaxTokens), 0
	wire.Set(&top, q.Probs)
	switch {
	case q.Predict != nil && q.MaxTokens != nil && *q.Predict != *q.MaxTokens:
		return nil, wire.Refuse("max_tokens", "max_tokens is %d; it differs from %d under another name of the field, n_predict", *q.MaxTokens, *q.Predict)
	case q.Choices != nil && q.N != nil && *q.Choices != *q.N:
		return nil, wire.Refuse("n", "n is %d; it differs from %d under another name of the field, n_cmpl", *q.N, *q.Choices)
	case most != nil && *most == 0:
		return nil, wire.Refuse("n_predict", "n_predict is 0: there is nothing to generate")
	}
	if err := driver.CheckPrefix(q.PrefixLM, q.Session); err != nil {
		return nil, err
	}
	base, err := g.Base(wire.DefaultsNative)
	if err != nil {
		return nil, err
	}
	if most != nil {
		base.MaxTokens = max(0, *most)
	}
	base.Top, base.PostSampling, base.Suffix, base.Files, base.Prefix = top, q.PostSampling && top > 0, q.Suffix, files, q.PrefixLM
	if err := g.Constrain(&base, nil, nil, nil); err != nil {
		return nil, err
	}
	if err := g.AddPrompts(base, prompts); err != nil {
		return nil, err
	}
	if top > 0 {
		g.LogprobsField = "n_probs"
	}
	return &completionEncoder{Generation: g, q: q, top: top}, nil
}

// completionPart is an answer, whole or a part.
type completionPart struct {
	Index           int              `json:"index"`
	Content         string           `json:"content"`
	Tokens          []token.ID       `json:"tokens"`
	Stop            bool             `json:"stop"`
	Slot            int              `json:"id_slot"`
	TokensPredicted int              `json:"tokens_predicted"`
	TokensEvaluated int              `json:"tokens_evaluated"`
	Probs           *wire.Sequence   `json:"completion_probabilities,omitempty"`
	Timings         *serving.Timings `json:"timings,omitempty"`
	Canvas          []any            `json:"canvas,omitempty"` // of a diffusion model
}

// completionEnd are the further fields of the last part of an answer.
type completionEnd struct {
	Model       string         `json:"model"`
	Prompt      string         `json:"prompt"`
	Settings    map[string]any `json:"generation_settings"`
	HasNewLine  bool           `json:"has_new_line"`
	Truncated   bool           `json:"truncated"` // the context ended it
	StopType    string         `json:"stop_type"`
	StopWord    string         `json:"stopping_word"`
	TokensCache int            `json:"tokens_cached"`
}

// tokenProb is a token of an answer with the likeliest tokens at its place: log-probabilities of the model, or, with
// post_sampling_probs, probabilities of the draw.
type tokenProb struct {
	likelyToken
	Top     []likelyToken `json:"top_logprobs,omitempty"`
	TopPost []likelyToken `json:"top_probs,omitempty"`
}

type likelyToken struct {
	ID      token.ID `json:"id"`
	Token   string   `json:"token"`
	Bytes   []int    `json:"bytes"`
	Logprob *float32 `json:"logprob,omitempty"`
	Prob    *float64 `json:"prob,omitempty"`
}

// completionEncoder writes the answers of these routes.
type completionEncoder struct {
	*driver.Generation
	q       *completionRequest
	top     int // likely tokens beside each
	answers []completionAnswer
}

// completionAnswer is an answer, or in a stream the part of it that is not sent yet.
type completionAnswer struct {
	text   strings.Builder
	tokens []token.ID
	probs  []driver.Scored
	n      int  // tokens of all parts
	lines  bool // there is a line break in a part
}

// Begin implements [driver.Encoder].
func (e *completionEncoder) Begin() error {
	e.answers = make([]completionAnswer, len(e.Job.Answers))
	return nil
}

// Token implements [driver.Encoder].
func (e *completionEncoder) Token(answer int, t grove.Token, so *serving.Timings) error {
	a := &e.answers[answer]
	a.text.WriteString(t.Text)
	a.lines = a.lines || strings.Contains(t.Text, "\n")
	if t.ID != token.None {
		a.n++
		a.tokens = append(a.tokens, t.ID)
		if e.top > 0 {
			s, err := e.Keep(t)
			if err != nil {
				return err
			}
			a.probs = append(a.probs, s)
		}
	}
	if e.Out == nil || a.text.Len() == 0 && a.probs == nil && so == nil {
		return nil
	}
	p := e.part(answer)
	p.Timings = so
	return e.Out.Send(p)
}

// Canvas implements [driver.CanvasEncoder].
func (e *completionEncoder) Canvas(answer int, runs []any) error {
	p := e.part(answer)
	p.Canvas = runs
	return e.Out.Send(p)
}

// End implements [driver.Encoder]. The last part of an answer ends a stream: llama.cpp sends no [DONE] here.
func (e *completionEncoder) End(answer int) error {
	if e.Out == nil {
		return nil
	}
	last, err := e.last(answer)
	if err != nil {
		return err
	}
	return e.Out.Send(last)
}

// Finish implements [driver.Encoder].
func (e *completionEncoder) Finish() error {
	if e.Out != nil {
		return nil
	}
	if len(e.answers) > 1 {
		return e.Reply(wire.Each(len(e.answers), e.last))
	}
	one, err := e.last(0)
	if err != nil {
		return err
	}
	return e.Reply(one)
}

// part returns the part of an answer that is not sent yet.
func (e *completionEncoder) part(answer int) completionPart {
	a := &e.answers[answer]
	p := completionPart{
		Index: answer, Content: a.text.String(), Tokens: []token.ID{}, Slot: -1, TokensPredicted: a.n, Probs: e.probs(a.probs),
		TokensEvaluated: len(e.Job.Answers[answer].Prompt()),
	}
	if e.q.ReturnTokens || e.Out != nil {
		p.Tokens = append(p.Tokens, a.tokens...)
	}
	a.text.Reset()
	a.tokens, a.probs = nil, nil
	return p
}

// last returns the last part of an answer, which is all of it where it does not stream.
func (e *completionEncoder) last(answer int) (any, error) {
	g := e.Job.Answers[answer]
	stats := g.Stats()
	p := e.part(answer)
	p.Stop, p.TokensPredicted, p.TokensEvaluated = true, stats.Tokens, stats.PromptTokens
	p.Timings = serving.TimingsOf(stats)
	f := completionEnd{
		Model: e.Model.Name, Settings: e.settings(stats), StopWord: stats.StopText,
		HasNewLine: e.answers[answer].lines, TokensCache: stats.PromptTokens + stats.Tokens,
	}
	switch {
	case stats.StopText != "":
		f.StopType = "word"
	case stats.Finish == grove.FinishStop:
		f.StopType = "eos"
	default:
		f.StopType = "limit"
		f.Truncated = stats.Tokens != g.Request().MaxTokens
	}
	var err error
	if f.Prompt, err = e.Model.Model.Detokenize(g.Prompt()); err != nil {
		return nil, err
	}
	if len(f.Prompt) > maxEcho {
		f.Prompt = strings.ToValidUTF8(f.Prompt[:maxEcho], "")
	}
	return e.choose(p, f)
}

// probs returns the probabilities of tokens, made while they are written; nil: there are none.
func (e *completionEncoder) probs(all []driver.Scored) *wire.Sequence {
	if len(all) == 0 {
		return nil
	}
	return wire.Each(len(all), func(i int) (any, error) {
		p := tokenProb{likelyToken: e.tokenOf(all[i].ID, all[i].Logprob)}
		top := make([]likelyToken, len(all[i].Top))
		for k, l := range all[i].Top {
			top[k] = e.tokenOf(l.ID, l.Logprob)
		}
		if p.Top = top; e.q.PostSampling {
			p.Top, p.TopPost = nil, top
		}
		return p, nil
	})
}

func (e *completionEncoder) tokenOf(id token.ID, logprob float32) likelyToken {
	text, raw := e.Model.Piece(id)
	t := likelyToken{ID: id, Token: text, Bytes: driver.Numbers(raw)}
	if e.q.PostSampling {
		p := math.Exp(float64(logprob))
		t.Prob = &p
	} else {
		t.Logprob = &logprob
	}
	return t
}

// choose keeps the fields of an answer that the request asks for. Slashes lead into objects, and are part of the new
// name: timings/prompt_n.
func (e *completionEncoder) choose(p completionPart, f completionEnd) (any, error) {
	type whole struct {
		completionPart
		completionEnd
	}
	if len(e.q.Chosen) == 0 {
		return whole{p, f}, nil
	}
	probs := p.Probs
	p.Probs = nil // it may be large, and nothing leads into it
	body, err := wire.Marshal(whole{p, f})
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, err
	}
	chosen := map[string]any{}
	for _, path := range e.q.Chosen {
		var v any = all
		found := true
		for name := range strings.SplitSeq(path, "/") {
			at, _ := v.(map[string]any)
			if v, found = at[name]; !found {
				break
			}
		}
		if path == "completion_probabilities" && probs != nil {
			v, found = probs, true
		}
		if found {
			chosen[path] = v
		}
	}
	return chosen, nil
}

// settings returns the settings of an answer.
func (e *completionEncoder) settings(s grove.Stats) map[string]any {
	r := e.Job.Answers[0].Request()
	predict := r.MaxTokens
	if predict == 0 {
		predict = -1
	}
	stop := []string(e.q.Stop)
	if stop == nil {
		stop = []string{}
	}
	biases := []map[string]any{}
	for _, b := range r.Penalties.Bias[:min(len(r.Penalties.Bias), maxBiasEcho)] {
		var add any // null: never, for which JSON has no number
		if !math.IsInf(float64(b.Add), -1) {
			add = b.Add
		}
		biases = append(biases, map[string]any{"token": b.ID, "bias": add})
	}
	sampling, dry, thinking := r.Sampling, r.Penalties.DRY, -1
	wire.Set(&thinking, r.Thinking)
	breakers := []string{}
	if dry.Multiplier > 0 {
		breakers = e.q.Breakers()
	}
	return map[string]any{
		"n_ctx": e.Model.Info.Context, "n_predict": predict, "max_tokens": predict, "seed": s.Seed,
		"temperature": sampling.Temperature, "top_k": sampling.TopK, "top_p": sampling.AskedTopP(), "min_p": sampling.MinP,
		"typical_p": orOff(sampling.TypicalP, 1), "top_n_sigma": orOff(sampling.TopNSigma, -1), "min_keep": sampling.MinKeep,
		"xtc_probability": sampling.XTC.Probability, "xtc_threshold": sampling.XTC.Threshold,
		"dynatemp_range": sampling.DynamicTemperature.Range, "dynatemp_exponent": sampling.DynamicTemperature.Exponent,
		"mirostat": sampling.Mirostat.Version, "mirostat_tau": sampling.Mirostat.Tau, "mirostat_eta": sampling.Mirostat.Eta,
		"dry_multiplier": dry.Multiplier, "dry_base": dry.Base, "dry_allowed_length": dry.AllowedLength, "dry_penalty_last_n": dry.Window,
		"dry_sequence_breakers": breakers, "thinking_budget_tokens": thinking,
		"presence_penalty": r.Penalties.Presence, "frequency_penalty": r.Penalties.Frequency, "repeat_penalty": orOff(r.Penalties.Repeat, 1),
		"repeat_last_n": r.Penalties.Window, "min_tokens": r.Penalties.MinTokens, "ignore_eos": r.IgnoreEnd, "stop": stop,
		"logit_bias": biases, "stream": e.q.Stream, "n_probs": e.top, "post_sampling_probs": e.q.PostSampling,
		"samplers": sampling.Order.Stages(), "accept": cmp.Or(r.Accept, grove.AcceptExact), "search": r.Search,
	}
}

// orOff returns a setting, and for 0 the value by which llama.cpp turns it off.
func orOff(v, off float32) float32 {
	if v == 0 {
		return off
	}
	return v
}
