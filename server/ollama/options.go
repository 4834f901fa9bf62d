package ollama

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"grove"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// defaults are the values of absent options.
var defaults = wire.Defaults{
	Sampling:   grove.Sampling{Temperature: 0.8, TopK: 40, TopP: 0.9, Order: grove.DefaultSampling().Order},
	RepeatLast: 64,
}

// options are the settings of an answer: those of ollama, and all others that the routes of grove share.
type options struct {
	wire.Sampling

	Predict *int `json:"num_predict" range:"-2 *"` // -1: no bound; -2: until the context is full, which is the same here
	Context *int `json:"num_ctx" range:"0 *"`

	PenalizeNewline *bool `json:"penalize_newline"`

	// Ollama reads these no more, and they are no part of what it answers.
	TailFree  *float64 `json:"tfs_z"`
	RopeBase  *float64 `json:"rope_frequency_base"`
	RopeScale *float64 `json:"rope_frequency_scale"`
}

// Tolerated implements [wire.Tolerant].
func (options) Tolerated() []wire.Toleration {
	return []wire.Toleration{
		{Names: "num_batch num_gpu main_gpu num_thread draft_num_predict use_mmap use_mlock numa low_vram f16_kv vocab_only logits_all embedding_only num_gqa", Values: "*", Client: "ollama", Reason: "they size the work of ollama's runner, or say what the model's file says"},
		{Names: "num_keep", Values: "*", Client: "ollama", Reason: "it counts tokens to keep where a prompt is cut; messages are dropped as a whole, and those of the system stay"},
	}
}

// over sets the options that are absent to others.
func (o *options) over(others *options) {
	o.Sampling = o.Sampling.Over(others.Sampling)
	o.Predict, o.Context, o.PenalizeNewline = cmp.Or(o.Predict, others.Predict), cmp.Or(o.Context, others.Context), cmp.Or(o.PenalizeNewline, others.PenalizeNewline)
	o.TailFree, o.RopeBase, o.RopeScale = cmp.Or(o.TailFree, others.TailFree), cmp.Or(o.RopeBase, others.RopeBase), cmp.Or(o.RopeScale, others.RopeScale)
}

// check refuses what cannot be honoured.
func (o *options) check() error {
	switch {
	case o.Predict != nil && *o.Predict == 0:
		return wire.Refuse("num_predict", "num_predict is %d; it must be 1 or more, -1 (no bound) or -2 (until the context is full)", *o.Predict)
	case o.TimingsPerTok:
		return wire.Unsupported("timings_per_token", "this route has no place for them")
	}
	return nil
}

// checkNewline refuses penalties that spare line ends.
func (o *options) checkNewline(p *grove.Penalties) error {
	repeat := p.Repeat != 0 && p.Repeat != 1
	if o.PenalizeNewline != nil && !*o.PenalizeNewline && (repeat || p.Presence != 0 || p.Frequency != 0) {
		return wire.Unsupported("penalize_newline", "penalties count line ends like other tokens; it may be false where none is on")
	}
	return nil
}

// leaveOut calls ignored for the options that ask for something and are left out: those that ollama read once, and a truncation that mirostat replaces
// in llama.cpp.
func (o *options) leaveOut(ignored func(option string)) {
	if o.Mirostat != nil && *o.Mirostat != 0 && o.TypicalP != nil && *o.TypicalP < 1 {
		o.TypicalP = nil
		ignored("options.typical_p")
	}
	for _, f := range []struct {
		name  string
		value *float64
		off   float64
	}{{"tfs_z", o.TailFree, 1}, {"rope_frequency_base", o.RopeBase, 0}, {"rope_frequency_scale", o.RopeScale, 1}} {
		if f.value != nil && *f.value != f.off && *f.value != 0 {
			ignored("options." + f.name)
		}
	}
}

// context returns the tokens of a prompt and its answer: those of the request, at most those of the model.
func (o *options) context(h *serving.OpenModel) int {
	n := 0
	if h.Gives != nil {
		n = h.Gives.Context
	}
	wire.Set(&n, o.Context)
	if n == 0 {
		return h.Info.Context
	}
	return min(n, h.Info.Context)
}

// common are the fields of the routes that generate.
type common struct {
	Model     string          `json:"model" bytes:"1024"`
	Stream    *bool           `json:"stream"` // absent: true
	Format    json.RawMessage `json:"format"`
	KeepAlive *keepAlive      `json:"keep_alive"`
	Options   options         `json:"options"`
	Think     *think          `json:"think"`
	Truncate  *bool           `json:"truncate"`
	Shift     *bool           `json:"shift"`
	Logprobs  bool            `json:"logprobs"`
	Top       int             `json:"top_logprobs" range:"0 20"`
	Render    bool            `json:"_debug_render_only"`

	// The provider of the AI SDK writes options outside of Options. Ollama does not read them there.
	options
	MaxOutput *int `json:"max_output_tokens" range:"-2 *"` // num_predict

	fields driver.Fields
}

// Common implements [driver.Body].
func (q *common) Common() *driver.Fields {
	q.Options.over(&q.options)
	q.Options.Predict = cmp.Or(q.Options.Predict, q.MaxOutput)
	q.fields.Model, q.fields.Sampling = q.Model, q.Options.Sampling
	q.fields.Stream = q.Stream == nil || *q.Stream
	return &q.fields
}

// request checks the fields and returns the request that they make, without a prompt.
func (q *common) request(g *driver.Generation) (r grove.Request, err error) {
	g.FieldNames = map[string]string{"n_predict": "num_predict"}
	if err := q.check(); err != nil {
		return r, err
	}
	q.Options.leaveOut(g.Ignored)
	q.fields.Sampling = q.Options.Sampling
	if r, err = g.Base(defaults); err == nil {
		err = q.Options.checkNewline(&r.Penalties)
	}
	if err != nil {
		return r, err
	}
	if q.Shift != nil && *q.Shift { // an answer that has no more room ends
		g.Ignored("shift")
	}
	if q.Options.Predict != nil {
		r.MaxTokens = max(0, *q.Options.Predict)
	}
	if q.Logprobs {
		r.Top, g.LogprobsField = q.Top, "top_logprobs"
	}
	return r, q.KeepAlive.apply(g.Server.Pool, g.Model.Name)
}

// check refuses what cannot be honoured.
func (q *common) check() error {
	switch {
	case q.Top > 0 && !q.Logprobs:
		return wire.Refuse("top_logprobs", "top_logprobs needs logprobs to be true")
	case q.Render:
		return wire.Unsupported("_debug_render_only", "/apply-template shows the prompt of a conversation")
	}
	return q.Options.check()
}

// keepAlive is how long an unused model stays open: a number of seconds or a text such as 5m; negative: for ever.
type keepAlive time.Duration

// ReadJSON implements [wire.Own].
func (k *keepAlive) ReadJSON(r *wire.Reader) error {
	raw, err := r.Raw()
	if err != nil {
		return err
	}
	if seconds, err := strconv.ParseFloat(string(raw), 64); err == nil && math.Abs(seconds) < 1e9 {
		*k = keepAlive(seconds * float64(time.Second))
		return nil
	}
	if text, err := strconv.Unquote(string(raw)); err == nil {
		if d, err := time.ParseDuration(text); err == nil {
			*k = keepAlive(d)
			return nil
		}
	}
	return r.Refuse("it is %s; it must be a number of seconds or a text such as 5m", wire.Clip(string(raw)))
}

// apply sets the time of a model.
func (k *keepAlive) apply(p *serving.Pool, model string) error {
	if k == nil {
		return nil
	}
	return p.Keep(model, time.Duration(*k))
}

// think says whether the model may think, or how hard.
type think struct {
	on    bool
	level string // "": not said
}

// ReadJSON implements [wire.Own].
func (t *think) ReadJSON(r *wire.Reader) error {
	raw, err := r.Raw()
	switch text := string(raw); text {
	case "true", "false":
		t.on = text == "true"
	case `"low"`, `"medium"`, `"high"`, `"max"`:
		t.on, t.level = true, strings.Trim(text, `"`)
	default:
		if err == nil {
			err = r.Refuse("it is %s; it must be true, false, low, medium, high or max", wire.Clip(text))
		}
	}
	return err
}

// apply says it in a conversation.
func (t *think) apply(c *driver.Chat) {
	if t == nil {
		return
	}
	if c.Options.Reasoning = grove.ReasoningOff; t.on {
		c.Options.Reasoning = grove.ReasoningOn
	}
	if t.level != "" {
		c.SetEffort(t.level)
	}
}
