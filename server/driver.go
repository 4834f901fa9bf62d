package server

import (
	"time"

	"grove"
	"grove/server/serving"
	"grove/server/wire"
	"grove/text/token"
)

// fields are the fields that all routes that generate have.
type fields struct {
	wire.Sampling

	Model      string           `json:"model"`
	Stream     bool             `json:"stream"`
	Prediction *wire.Prediction `json:"prediction"`
}

func (f *fields) common() *fields { return f }

// body is the JSON body of a route that generates.
type body interface {
	common() *fields
	// parse checks the fields, fills in the requests of g, and returns the encoder of the answers.
	parse(g *generation) (encoder, error)
}

// encoder writes the answers to one request in the form of its route: whole, or as parts of [generation.out].
// The driver calls all methods from one goroutine, and none after an error but fail.
type encoder interface {
	// begin is called before the first token. The job is prepared.
	begin() error
	// token adds a token to an answer. Its ID is [token.None] where text was held back until the end. The timings are those up to
	// the token; nil: the request does not ask for them.
	token(answer int, t grove.Token, so *serving.Timings) error
	// end is called behind the last token of an answer, which has its final statistics then.
	end(answer int) error
	// finish is called behind the last answer. It sends the whole answers, or the end of the stream.
	finish() error
	// fail sends the last event of a stream that has begun and cannot be completed.
	fail(e *wire.Error) error
}

// generation is a request for answers.
type generation struct {
	*request
	serving.Request                   // filled in by parse
	fields          *fields           // that all routes have
	host            *serving.Host     // of the model
	scores          bool              // nothing is generated: the answers have the prompts' usage and log-probabilities alone
	predicted       []token.ID        // of the prediction
	blames          map[string]string // the route's names of fields, by their usual names, for errors
	created         int64             // seconds since 1970
	job             *serving.Job
	out             *stream // nil: answers are sent whole
}

// answers handles a route that generates, whose body is a B.
func answers[B any, P interface {
	*B
	body
}](x *request) error {
	q := P(new(B))
	if err := x.read(q); err != nil {
		return err
	}
	f := q.common()
	h, err := x.model(f.Model)
	if err != nil {
		return err
	}
	g := &generation{request: x, fields: f, host: h, created: time.Now().Unix()}
	g.ID, g.N, g.Session, g.Timed = x.id, 1, f.Session, f.TimingsPerTok && f.Stream
	if f.Timeout != nil {
		g.Timeout = time.Duration(*f.Timeout * float64(time.Second))
	}
	if f.Stream {
		g.out = newStream(x)
	}
	e, err := q.parse(g)
	if err == nil {
		g.job, err = h.Prepare(x.r.Context(), g.Request)
	}
	if err != nil {
		return g.blame(err)
	}
	defer g.job.Close()
	return g.run(e)
}

// base returns the request that the common fields make, without a prompt.
func (g *generation) base(d wire.Defaults) (r grove.Request, err error) {
	if r, err = g.fields.Request(g.host.Model, d); err != nil {
		return r, err
	}
	if err = g.fields.Prediction.Apply(&r); err != nil {
		return r, err
	}
	g.predicted, err = g.host.Model.Tokenize(r.Prediction, false, false)
	return r, err
}

// addPrompts adds a copy of a request for each prompt.
func (g *generation) addPrompts(base grove.Request, prompts []wire.RawPrompt) error {
	for _, raw := range prompts {
		p, err := raw.Resolve(g.host.Model)
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
func (g *generation) blame(err error) error {
	e := wire.ErrorOf(err)
	if name, ok := g.blames[e.Param]; ok {
		e.Param = name
	}
	return e
}

// run computes the answers and feeds the encoder. In a stream that has begun, an error is the last event.
func (g *generation) run(e encoder) error {
	err := g.drive(e)
	if err != nil && g.out != nil && g.sent != 0 && g.r.Context().Err() == nil {
		_ = e.fail(wire.ErrorOf(err)) // the client may have gone, which is no further error
	}
	return err
}

// drive computes the answers and feeds the encoder. A panic is an error of this request.
func (g *generation) drive(e encoder) (err error) {
	defer g.server.pool.Guard(&err)
	if err := e.begin(); err != nil {
		return err
	}
	if g.scores {
		for i := range g.job.Answers {
			if err := e.end(i); err != nil {
				return err
			}
		}
		return e.finish()
	}
	err = g.job.Run(func(n serving.Event) error {
		switch {
		case n.Done:
			return e.end(n.Answer)
		case n.Answer >= 0:
			return e.token(n.Answer, n.Token, n.Timings)
		case g.out != nil:
			return g.out.alive()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return e.finish()
}

// fail sends an error as OpenAI's streams and llama.cpp's have it.
func (g *generation) fail(e *wire.Error) error { return g.out.send(e) }

// ended returns why an answer ended: the reason in OpenAI's words, and the stop string or token that ended it.
func (g *generation) ended(answer int) (reason string, stop any) {
	if g.scores {
		return string(grove.FinishLength), nil
	}
	s := g.job.Answers[answer].Stats()
	return serving.Reason(s.Finish), serving.StopReason(s, g.Prompts[0].StopTokens)
}

// spent returns the usage and the timings of the request; nil where nothing is generated.
func (g *generation) spent() (serving.Usage, *serving.Timings) {
	if g.scores {
		return g.job.Usage(nil), nil
	}
	t := g.job.Timings()
	return g.job.Usage(g.predicted), &t
}

// limits are the names of the bound of an answer's tokens.
type limits struct {
	MaxTokens     *int `json:"max_tokens"`
	MaxCompletion *int `json:"max_completion_tokens"`
	Predict       *int `json:"n_predict"` // llama.cpp's; -1: no bound
}

// most returns the bound, or absent where no field has it. It is at least low, or unbounded where n_predict is -1.
func (l *limits) most(low, unbounded, absent int) (int, error) {
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
		case v == -1 && f.v == l.Predict:
			v = unbounded
		case v < low:
			return 0, wire.Refuse(f.name, "%s is %d; it must be %d or more", f.name, v, low)
		}
		if given && v != most {
			return 0, wire.Refuse(f.name, "%s is %d; it differs from %d under another name of the field", f.name, *f.v, most)
		}
		most, given = v, true
	}
	return most, nil
}
