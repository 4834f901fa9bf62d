package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"grove/bench"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/command/reach"
	"grove/internal/command/terminal"
)

// psCommand lists the models of a running server.
type psCommand struct {
	flags.Server
	flags.JSON
}

// stopCommand closes a model of a running server.
type stopCommand struct {
	flags.Server

	Name string `arg:"" name:"model" help:"Name of the model on the server, as 'grove ps' lists it."`
}

const (
	remoteTime  = 30 * time.Second // that an answer of a server may take
	remoteBytes = 16 << 20         // that it may have
)

// ask sends a request to a server and reads its answer, a JSON object, into answer. body nil is GET.
func ask(s flags.Server, route string, body, answer any) error {
	base, err := s.Base()
	if err != nil {
		return err
	}
	url, transport, err := reach.Client(base, s.Cert())
	if err != nil {
		return err
	}
	signalled, stop := terminal.UntilSignal()
	defer stop()
	ctx, cancel := context.WithTimeout(signalled, remoteTime)
	defer cancel()
	method, content := http.MethodGet, []byte(nil)
	if body != nil {
		method = http.MethodPost
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, url+route, bytes.NewReader(content))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if s.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+s.APIKey)
	}
	reply, err := transport.RoundTrip(r) // no redirects: the key is for this server
	switch {
	case signalled.Err() != nil:
		return context.Cause(signalled)
	case errors.Is(err, context.DeadlineExceeded):
		return exit.With(exit.CodeAddress, fmt.Errorf("%s does not answer within %v", base, remoteTime))
	case err != nil:
		return exit.With(exit.CodeAddress, fmt.Errorf("no server answers at %s (%s); start one with 'grove serve MODEL', or name another with --url", base, reason(err)))
	}
	defer reply.Body.Close()
	return read(base+route, reply, answer)
}

// reason returns the part of an error of a connection that says what happened.
func reason(err error) string {
	if number := syscall.Errno(0); errors.As(err, &number) {
		return number.Error()
	}
	return harmless.Line(err.Error())
}

// read reads a reply of a server into answer; a refusal becomes an error with the message of the server.
func read(url string, reply *http.Response, answer any) error {
	text, err := io.ReadAll(io.LimitReader(reply.Body, remoteBytes+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: the answer broke off: %s", url, harmless.Line(err.Error()))
	case len(text) > remoteBytes:
		return fmt.Errorf("%s: the answer has more than %d bytes", url, remoteBytes)
	case reply.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("%s: the key is missing or wrong; --api-key or GROVE_API_KEY gives it", url)
	case reply.StatusCode != http.StatusOK:
		var refusal struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(text, &refusal) != nil || refusal.Error.Message == "" {
			refusal.Error.Message = "it may be no server of grove's, or an older one"
		}
		return fmt.Errorf("%s: the server answers %s: %.500s", url, harmless.Line(reply.Status), harmless.Line(refusal.Error.Message))
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s: the answer is not what grove serve gives: %s", url, harmless.Line(err.Error()))
	}
	return nil
}

// remoteModel is the object of a model that ps writes as JSON. What the server does not say is nil.
type remoteModel struct {
	Name    string  `json:"name"`
	Status  *string `json:"status"`
	Memory  *int64  `json:"memory_bytes"`
	Context *int64  `json:"context"`
	Running *int64  `json:"running"`
	Queued  *int64  `json:"queued"`
	Method  *string `json:"method"`
}

// object is an object of JSON whose members are read one by one, so that one of another type than expected is as none.
type object map[string]json.RawMessage

// member returns the value at the end of a path of members, nil where there is none of its type.
func member[T any](o object, path ...string) *T {
	for _, name := range path[:len(path)-1] {
		var inner object
		if json.Unmarshal(o[name], &inner) != nil {
			return nil
		}
		o = inner
	}
	var v *T
	if json.Unmarshal(o[path[len(path)-1]], &v) != nil {
		return nil
	}
	return v
}

// firstOf returns the first value that is not nil, nil for none.
func firstOf[T any](values ...*T) *T {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

// remoteOf reads the description of a model.
func remoteOf(o object) remoteModel {
	m := remoteModel{
		Status: firstOf(member[string](o, "status", "value"), member[string](o, "status")),
		Memory: member[int64](o, "memory_bytes"), Context: firstOf(member[int64](o, "max_model_len"), member[int64](o, "meta", "n_ctx")),
		Running: member[int64](o, "requests", "running"), Queued: member[int64](o, "requests", "queued"), Method: member[string](o, "method"),
	}
	if name := firstOf(member[string](o, "id"), member[string](o, "name")); name != nil {
		m.Name = *name
	}
	return m
}

// Run implements the command.
func (c *psCommand) Run() error {
	var list struct {
		Data []object `json:"data"`
	}
	if err := ask(c.Server, "/models", nil, &list); err != nil {
		return err
	}
	models := make([]remoteModel, len(list.Data))
	for i, o := range list.Data {
		models[i] = remoteOf(o)
	}
	if c.JSON.On {
		return bench.WriteLines(harmless.JSON(terminal.Stdout), models)
	}
	w := tabwriter.NewWriter(terminal.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "name\tstatus\tmemory\tcontext\trunning\tqueued\tmethod")
	for _, m := range models {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", harmless.Line(m.Name), text(m.Status), shown(m.Memory, func(n int64) string { return rounded(n, "B") }),
			shown(m.Context, decimal), shown(m.Running, decimal), shown(m.Queued, decimal), text(m.Method))
	}
	return w.Flush()
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func text(s *string) string { return shown(s, harmless.Line) }

// shown returns a value as a table shows it, - for none.
func shown[T any](v *T, show func(T) string) string {
	if v == nil {
		return "-"
	}
	return show(*v)
}

// Run implements the command.
func (c *stopCommand) Run() error {
	var done object
	if err := ask(c.Server, "/models/unload", map[string]string{"model": c.Name}, &done); err != nil {
		return err
	}
	_, err := fmt.Fprintf(terminal.Stdout, "%s is closed; the next request opens it again\n", harmless.Line(c.Name))
	return err
}
