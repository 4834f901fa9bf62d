package driver

import (
	"cmp"
	"context"
	"strings"
	"time"

	"grove"
	"grove/server/access"
	"grove/server/serving"
	"grove/server/structured"
	"grove/server/traces"
	"grove/server/wire"
)

// Fields are the fields of a body that all routes that generate have.
type Fields struct {
	wire.Sampling
	structured.Fields

	Model      string           `json:"model" bytes:"1024"`
	Stream     bool             `json:"stream"`
	Prediction *wire.Prediction `json:"prediction"`
}

// Common implements [Body].
func (f *Fields) Common() *Fields { return f }

// Body is the JSON body of a route that generates.
type Body interface {
	Common() *Fields
	// Parse checks the fields, fills in the prompts of g, and returns the Encoder of the answers.
	Parse(g *Generation) (Encoder, error)
}

// Encoder writes the answers to one request in the form of its route: whole, or as parts of [Generation.Out].
// The driver calls all methods from one goroutine, and none after an error but fail.
type Encoder interface {
	// Begin is called before the first token. The job is prepared.
	Begin() error
	// Token adds a token to an answer. Its ID is [token.None] where text was held back until the end. The timings are those up to
	// the token; nil: the request does not ask for them.
	Token(answer int, t grove.Token, so *serving.Timings) error
	// End is called behind the last token of an answer, which has its final statistics then.
	End(answer int) error
	// Finish is called behind the last answer. It sends the whole answers, or the end of the stream.
	Finish() error
	// Fail sends the last event of a stream that has begun and cannot be completed.
	Fail(e *wire.Error) error
}

// CanvasEncoder is an Encoder that tells how far the canvas of a diffusion model is.
type CanvasEncoder interface {
	Encoder
	// Canvas sends what is behind the tokens so far of an answer, as texts and numbers of masks.
	Canvas(answer int, runs []any) error
}

// pinger is an Encoder whose API has an event that tells that the stream goes on, in place of a comment.
type pinger interface{ Ping() error }

// watch lets the stream tell how far the canvas or the search is, where the request asks for that.
func (g *Generation) watch(e Encoder) (err error) {
	if g.Watched, err = g.fields.Diffusion.Watched(g.Out != nil); err != nil {
		return err
	}
	field := "diffusion.progress"
	if g.Searching = g.fields.SearchProgress; g.Searching {
		field = "search_progress"
		switch {
		case g.Out == nil:
			return wire.Refuse(field, "search_progress: it is of streams, and stream is not true")
		case len(g.Prompts) > 0 && g.Prompts[0].Search == "":
			return wire.Refuse(field, "search_progress: the request has no search")
		}
	}
	if _, tells := e.(CanvasEncoder); !tells && (g.Watched || g.Searching) {
		return wire.Unsupported(field, "the streams of this route do not tell it; /v1/chat/completions, /v1/completions and /completion do")
	}
	return nil
}

// searchPart is the object of a stream that tells how far the search of an answer is. It has no choices, as OpenAI's last one with the usage.
type searchPart struct {
	Choices  [0]int `json:"choices"`
	Progress struct {
		Answer int `json:"answer"`
		grove.SearchProgress
	} `json:"search_progress"`
}

// Generation is a request for answers. Parse sets its prompts, N, Scores, FieldNames, LogprobsField and Stored.
type Generation struct {
	*Request
	serving.Spec
	Model         *serving.OpenModel // of the model
	Scores        bool               // nothing is generated: the answers have the prompts' usage and log-probabilities alone
	FieldNames    map[string]string  // the route's names of fields, by their usual names, for errors
	Created       int64              // seconds since 1970
	Job           *serving.Job       // set once the body is parsed
	Out           *Stream            // nil: answers are sent whole
	LogprobsField string             // the route's name of the field that asks for log-probabilities
	Stored        bool               // the answer is kept with its log-probabilities, also where it streams

	read    []*Answer            // of conversations
	kept    int                  // bytes of log-probabilities
	adapter []grove.AdapterScale // that the request names as its model; nil: none
	fields  *Fields
}

// Answers returns the handler of a route that generates, whose body is a B and whose streams have a framing.
func Answers[B any, P interface {
	*B
	Body
}](f Framing) Handler {
	return func(x *Request) error { return x.answer(P(new(B)), f) }
}

// answer handles a request of a route that generates.
func (x *Request) answer(q Body, framing Framing) (err error) {
	if err = x.Read(q); err != nil {
		return err
	}
	return x.Generate(q, framing)
}

// Generate answers a request of a route that generates, whose body has been read.
func (x *Request) Generate(q Body, framing Framing) (err error) {
	f := q.Common()
	model, adapter := x.Server.Pool.Adapter(f.Model)
	h, err := x.Model(model)
	if err != nil {
		return err
	}
	g := &Generation{Request: x, fields: f, Model: h, Created: time.Now().Unix(), adapter: adapter}
	g.RequestID, g.N, g.Session, g.Timed = x.ID, 1, f.Session, f.TimingsPerTok && f.Stream
	if f.Timeout != nil {
		g.Timeout = time.Duration(*f.Timeout * float64(time.Second))
	}
	if f.Stream {
		k, done, err := x.keep(framing)
		if err != nil {
			return err
		}
		defer done()
		g.Out = NewStream(x, framing)
		g.Out.kept = k
	}
	var e Encoder
	err = x.Work(func(context.Context) (err error) {
		if e, err = q.Parse(g); err == nil && e != nil {
			if err = g.checkKept(); err == nil {
				err = g.watch(e)
			}
		}
		if err == nil && e != nil {
			g.Job, err = h.Prepare(x.R.Context(), g.Spec)
		}
		return err
	})
	switch {
	case err != nil:
		return g.blame(err)
	case e == nil:
		return nil
	}
	defer g.Job.Close()
	if g.Out != nil {
		g.Out.pause = g.Job.Pause
		defer func() { err = cmp.Or(g.Out.Close(), err) }() // a client that takes nothing is why the request is cancelled
	}
	defer g.traceCalls()
	return g.run(e)
}

// traceCalls tells the request's trace which tools the answers call.
func (g *Generation) traceCalls() {
	for _, a := range g.read {
		for _, c := range a.Calls {
			traces.Call(g.R.Context(), c.ID, c.Name)
		}
	}
}

// Base returns the request that the common fields make, without a prompt.
func (g *Generation) Base(d wire.Defaults) (r grove.Request, err error) {
	f := g.fields.Sampling
	if given := g.Model.Gives; given != nil {
		f = f.Over(given.Sampling)
	}
	if r, err = f.Request(g.Model.Model, d); err != nil {
		return r, err
	}
	if given := g.Model.Gives; given != nil && given.MaxTokens > 0 {
		r.MaxTokens = given.MaxTokens // where the route's own field does not say
	}
	switch {
	case g.adapter != nil && r.Adapters != nil:
		return r, wire.Refuse("lora", "lora: the model %q is an adapter already; name its base to choose adapters", wire.Clip(g.fields.Model))
	case g.adapter != nil:
		r.Adapters = g.adapter
	}
	return r, g.fields.Prediction.Apply(&r)
}

// Constrain holds the answers to a request to the form that its fields ask for, or that of the route's field of a format, or of the calls
// of a conversation; c is nil where there is none. The prompt of the conversation has been made.
func (g *Generation) Constrain(r *grove.Request, format *structured.Form, err error, c *Chat) error {
	if err != nil {
		return err
	}
	form, err := g.fields.Form(format)
	if err == nil && c != nil {
		form, err = c.form(form)
	}
	if err != nil || form == nil {
		return err
	}
	return form.Apply(g.Model.Model, r)
}

// Ask makes a request with the prompt of a conversation the one of the generation. The form of its answers is that of [Generation.Constrain].
func (g *Generation) Ask(r grove.Request, c *Chat, format *structured.Form, err error) error {
	p, fault := c.Prompt(g.R.Context(), g.Model)
	if fault != nil {
		return fault
	}
	return g.AskPrompt(r, c, p, format, err)
}

// AskPrompt is [Generation.Ask] for a conversation whose prompt has been made.
func (g *Generation) AskPrompt(r grove.Request, c *Chat, p grove.ChatPrompt, format *structured.Form, err error) error {
	r.PromptIDs = p.Tokens
	err = g.Constrain(&r, format, err, c)
	g.Prompts, g.Cut, g.Operation = []grove.Request{r}, c.Cut, traces.Chat
	return err
}

// CheckPrefix refuses what does not go with a prompt whose tokens see each other.
func CheckPrefix(prefix bool, session string) error {
	if prefix && session != "" {
		return wire.Refuse("session", "session: with prefix_lm nothing is kept")
	}
	return nil
}

// AddPrompts adds a copy of a request for each prompt.
func (g *Generation) AddPrompts(base grove.Request, prompts []wire.RawPrompt) error {
	for _, raw := range prompts {
		p, err := raw.Resolve(g.R.Context(), g.Model.Model)
		if err != nil {
			return err
		}
		if p.IDs != nil && base.Suffix != nil {
			return wire.Refuse("suffix", "suffix needs a prompt of text")
		}
		base.Prompt, base.PromptIDs = p.Text, p.IDs
		g.Prompts = append(g.Prompts, base)
	}
	return nil
}

// blame returns an error with the route's own name of the field.
func (g *Generation) blame(err error) error {
	e := *wire.ErrorOf(err)
	field, _, _ := strings.Cut(e.Param, "[")
	if name, ok := g.FieldNames[field]; ok {
		name += strings.TrimPrefix(e.Param, field)
		if rest, begins := strings.CutPrefix(e.Message, e.Param+": "); begins {
			e.Message = name + ": " + rest
		}
		e.Param = name
	}
	return &e
}

// run computes the answers and feeds the Encoder. In a stream that has begun, an error is the last event.
func (g *Generation) run(e Encoder) error {
	err := g.drive(e)
	if err != nil && g.Out != nil && g.sent != 0 && g.R.Context().Err() == nil {
		_ = e.Fail(wire.ErrorOf(err)) // the client may have gone, which is no further error
	}
	return err
}

// drive computes the answers and feeds the Encoder. A panic is an error of this request.
func (g *Generation) drive(e Encoder) (err error) {
	defer g.Server.Pool.Guard(g.R.Context(), &err)
	if !g.Scores {
		if err := g.Job.CheckQueue(); err != nil { // before a stream begins, so that the status says it
			return err
		}
	}
	if err := e.Begin(); err != nil {
		return err
	}
	if g.Scores {
		access.CallerOf(g.R.Context()).Spend(g.Job.Usage().PromptTokens)
		for i := range g.Job.Answers {
			if err := e.End(i); err != nil {
				return err
			}
		}
		return e.Finish()
	}
	err = g.Job.Run(func(n serving.Event) error {
		switch {
		case n.Done:
			return e.End(n.Answer)
		case n.Canvas != nil:
			return e.(CanvasEncoder).Canvas(n.Answer, wire.Canvas(n.Canvas))
		case n.Search != nil:
			var p searchPart
			p.Progress.Answer, p.Progress.SearchProgress = n.Answer, *n.Search
			return g.Out.Send(p)
		case n.Answer >= 0:
			return e.Token(n.Answer, n.Token, n.Timings)
		case g.Out != nil:
			if p, ok := e.(pinger); ok {
				return p.Ping()
			}
			return g.Out.Alive()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err = g.Job.Unsaved(); err != nil && g.Out != nil {
		return err // the last event: the answer is sent
	}
	g.unsaved = err
	return e.Finish()
}

// Fail sends an error as OpenAI's streams and llama.cpp's have it.
func (g *Generation) Fail(e *wire.Error) error { return g.Out.Send(e) }

// Ended returns why an answer ended: the reason in OpenAI's words, and the stop string or token that ended it.
func (g *Generation) Ended(answer int) (reason string, stop any) {
	if g.Scores {
		return string(grove.FinishLength), nil
	}
	s := g.Job.Answers[answer].Stats()
	return serving.Reason(s.Finish), serving.StopReason(s, g.Prompts[0].StopTokens)
}

// Spent returns the usage and the timings of the request; nil where nothing is generated.
func (g *Generation) Spent() (serving.Usage, *serving.Timings) {
	u := g.Job.Usage()
	if g.Scores {
		u.Details.Rejected = 0 // there was no answer to have the prediction
		return u, nil
	}
	t := g.Job.Timings()
	return u, &t
}

// Limits are the names of the bound of an answer's tokens.
type Limits struct {
	MaxTokens     *int `json:"max_tokens" range:"-1 * no bound"`
	MaxCompletion *int `json:"max_completion_tokens" range:"-1 * no bound"`
	Predict       *int `json:"n_predict" range:"-1 * no bound"` // llama.cpp's
}

// Max returns the bound, or absent where no field has it. It is at least low, or unbounded where the field is -1.
func (l *Limits) Max(low, unbounded, absent int) (int, error) {
	most, given := absent, false
	for _, f := range []struct {
		name string
		v    *int
	}{{"max_tokens", l.MaxTokens}, {"max_completion_tokens", l.MaxCompletion}, {"n_predict", l.Predict}} {
		if f.v == nil {
			continue
		}
		v := *f.v
		switch {
		case v == -1:
			v = unbounded
		case v < low:
			return 0, wire.Refuse(f.name, "%s is %d; it must be -1 (no bound), or %d or more", f.name, v, low)
		}
		if given && v != most {
			return 0, wire.Refuse(f.name, "%s is %d; it differs from %d under another name of the field", f.name, *f.v, most)
		}
		most, given = v, true
	}
	return most, nil
}
