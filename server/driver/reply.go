package driver

import (
	"bufio"
	"fmt"
	"net/http"
	"sync"
	"time"

	"grove"
	"grove/internal/text/token"
	"grove/server/wire"
)

// MaxKept bounds the log-probabilities that are kept for an answer that is sent whole, in bytes; those of /v1/responses, which stores
// answers, have an eighth of it.
const MaxKept = 16 << 20

// Scored is a token of an answer with its log-probability, as it is kept until it is written. The texts of tokens are looked up then.
type Scored struct {
	ID      token.ID
	Logprob float32
	Top     []grove.TopLogprob
}

// scoredBytes is the memory of a token with a number of likely ones beside it, and of what grows in advance.
func scoredBytes(top int) int { return 48 + 8*top }

// Keep keeps a token until the answer is written. It is an error where more than [MaxKept] is kept then, and the answer does not stream.
func (g *Generation) Keep(t grove.Token) (Scored, error) {
	return Scored{t.ID, t.Logprob, t.Top}, g.Count(1, len(t.Top))
}

// Count counts n tokens that are kept, with a number of likely ones beside each.
func (g *Generation) Count(n, top int) error {
	most := MaxKept
	if g.Stored {
		most /= 8
	}
	g.kept += n * scoredBytes(top)
	if g.kept <= most || g.Out != nil && !g.Stored {
		return nil
	}
	e := wire.Refuse(g.LogprobsField, "%s: the answers have more log-probabilities than the %d MiB that are kept of them; stream, or ask for fewer", g.LogprobsField, most>>20)
	e.Code = "too_many_logprobs"
	return e
}

// checkKept refuses a request whose answers have more log-probabilities than are kept, where its bound of tokens says that.
func (g *Generation) checkKept() (err error) {
	for _, p := range g.Prompts {
		if p.MaxTokens < g.Model.Info.Context && g.LogprobsField != "" && err == nil {
			err = g.Count(g.N*p.MaxTokens, p.Top)
		}
	}
	g.kept = 0
	return err
}

// reply is the body of an answer that is not a stream. The header is sent before its first byte.
type reply struct {
	x      *Request
	status int
}

// Write implements [io.Writer].
func (r reply) Write(b []byte) (int, error) {
	_ = http.NewResponseController(r.x.W).SetWriteDeadline(time.Now().Add(WriteTime)) // a recorder of tests has none
	if r.x.sent != 0 {
		return r.x.W.Write(b)
	}
	r.x.W.Header().Set("Content-Type", "application/json; charset=utf-8")
	r.x.W.WriteHeader(r.status)
	if r.x.unsaved == nil || r.status != http.StatusOK {
		return r.x.W.Write(b)
	}
	fault, _ := wire.Marshal(wire.ErrorOf(r.x.unsaved)) // {"error": ...}
	if _, err := fmt.Fprintf(r.x.W, `{"session_%s,`, fault[len(`{"`):len(fault)-1]); err != nil {
		return 0, err
	}
	n, err := r.x.W.Write(b[1:]) // behind the object's brace
	return n + 1, err
}

// writers are buffers for the parts of answers.
var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

// write sends an answer in parts, each of which the client must take within [WriteTime]. An answer that cannot be written is an error
// where nothing of it was sent, and else ends with the connection.
func (x *Request) write(status int, v any) {
	w := writers.Get().(*bufio.Writer)
	defer func() {
		w.Reset(nil)
		writers.Put(w)
	}()
	w.Reset(reply{x, status})
	err := wire.Write(w, v)
	if err == nil {
		_ = w.WriteByte('\n') // Flush has its error
		err = w.Flush()
	}
	switch {
	case err == nil || x.R.Context().Err() != nil: // the client has gone
	case x.sent == 0:
		w.Reset(reply{x, http.StatusInternalServerError})
		_ = wire.Write(w, wire.ErrInternal)
		_ = w.Flush()
	default:
		panic(http.ErrAbortHandler) // so that the client does not take the part for the whole
	}
}
