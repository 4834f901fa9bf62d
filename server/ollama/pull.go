package ollama

import (
	"context"
	"errors"
	"net/http"

	"grove/internal/weights/find"
	"grove/internal/weights/pull"
	"grove/server/access"
	"grove/server/driver"
	"grove/server/serving"
	"grove/server/wire"
)

// maxPulls is the number of models that clients may pull at a time.
const maxPulls = 4

// pulling has a place for each pull under way.
var pulling = make(chan struct{}, maxPulls)

// errManage refuses what changes the models of the machine.
var errManage = &wire.Error{
	Status: http.StatusForbidden, Type: wire.TypeInvalid, Code: "pull_not_allowed",
	Message: "clients may not pull or delete models of this server (grove serve --allow-pull)",
}

// progress is a line of a pull.
type progress struct {
	Status    string `json:"status"`
	Digest    string `json:"digest,omitempty"`
	Total     int64  `json:"total,omitempty"`
	Completed int64  `json:"completed,omitempty"`
}

// pullRequest is the body of /api/pull.
type pullRequest struct {
	nameRequest
	Insecure bool    `json:"insecure"`
	Username *string `json:"username" bytes:"1024"` // without effect in ollama, too
	Password *string `json:"password" bytes:"1024"`
	Stream   *bool   `json:"stream"`
}

// manage reads the body of a route that changes the models of the machine, and returns the name of the model, where clients may do that.
func manage(x *driver.Request, body any, q *nameRequest) (string, error) {
	if err := x.Read(body); err != nil {
		return "", err
	}
	name, err := q.name()
	if err == nil && !x.Server.Pull {
		err = errManage
	}
	return name, err
}

// pullModel handles POST /api/pull. A stream has a line for each step. The pull ends when the client goes or the server stops.
func pullModel(x *driver.Request) error {
	var q pullRequest
	name, err := manage(x, &q, &q.nameRequest)
	if err != nil {
		return err
	}
	ref, err := pull.Parse(name)
	if err != nil {
		return wire.Refuse("model", "%s", wire.Plain(err))
	}
	select {
	case pulling <- struct{}{}:
		defer func() { <-pulling }()
	default:
		return &wire.Error{Status: http.StatusTooManyRequests, Retry: 30, Type: wire.TypeBusy, Code: "pulls_full", Message: "too many models are being pulled"}
	}
	o := pull.Options{Insecure: q.Insecure, Store: x.Server.Store}
	ctx, cancel := x.Server.Pool.Within(x.R.Context())
	defer cancel(nil)
	if q.Stream == nil || *q.Stream {
		out := driver.NewStream(x, driver.Lines)
		o.Progress = func(e pull.Event) {
			if err := out.Send(lineOf(e)); err != nil {
				cancel(err) // the client has gone; what is there stays for the next pull
			}
		}
		_, err := pull.Run(ctx, ref, o)
		if err != nil && x.R.Context().Err() == nil {
			_ = out.Send(ErrorBody(failed(ctx, err))) // Close has the error
		}
		return out.Close()
	}
	if _, err := pull.Run(ctx, ref, o); err != nil {
		return failed(ctx, err)
	}
	return x.Reply(progress{Status: string(pull.Done)})
}

// lineOf returns an event as ollama writes it: a file is named by the beginning of its digest.
func lineOf(e pull.Event) progress {
	p := progress{Status: string(e.State), Digest: e.Digest, Total: e.Total, Completed: e.Completed}
	switch {
	case e.State == pull.Note:
		p.Status = e.Text
	case e.File != "" && p.Digest == "":
		p.Status += " " + e.File
	case e.File != "":
		p.Status += " " + e.Digest[len("sha256:"):][:12]
	}
	return p
}

// failed returns the answer to a pull in ctx that failed: the status of the registry's answer where that is the client's fault.
func failed(ctx context.Context, err error) *wire.Error {
	if errors.Is(context.Cause(ctx), wire.ErrStopping) {
		return wire.ErrStopping
	}
	var status *pull.StatusError
	e := &wire.Error{Status: http.StatusBadGateway, Type: wire.TypeServer, Code: "pull_failed", Message: wire.Plain(err), Cause: err}
	if errors.As(err, &status) && status.Code == http.StatusNotFound {
		e.Status, e.Type = http.StatusNotFound, wire.TypeInvalid
	}
	return e
}

// deleteName forgets a name that clients made.
func deleteName(x *driver.Request, a *serving.Alias) error {
	err := access.CallerOf(x.R.Context()).Operates()
	if err == nil {
		_, err = x.Server.Pool.Names().Drop(a.Name)
	}
	if err == nil {
		x.W.WriteHeader(http.StatusOK)
	}
	return err
}

// deleteModel handles DELETE /api/delete.
func deleteModel(x *driver.Request) error {
	var q nameRequest
	if err := x.Read(&q); err != nil {
		return err
	}
	name, err := q.name()
	if err != nil {
		return err
	}
	if s, err := x.Server.Pool.State(name); err == nil && s.Alias != nil {
		return deleteName(x, s.Alias)
	}
	if !x.Server.Pull {
		return errManage
	}
	m, err := x.Server.Pool.State(name)
	if err != nil {
		return err
	}
	if !x.Server.Pool.Forget(m.Name) {
		return &wire.Error{Status: http.StatusConflict, Type: wire.TypeInvalid, Code: "model_in_use", Message: "the model is in use, or the server was started with it"}
	}
	store := x.Server.Store
	if store == nil {
		store = find.System()
	}
	if _, err := pull.Remove(store, m.Name); err != nil {
		return wire.Refuse("model", "%s", wire.Plain(err))
	}
	x.W.WriteHeader(http.StatusOK)
	return nil
}
