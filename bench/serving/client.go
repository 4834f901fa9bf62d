package serving

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// client sends requests to a server.
type client struct {
	options Options
	base    *url.URL // up to /v1
	http    *http.Client
	model   string
	noUsage bool // the server refuses the field that asks for usage
}

// The limits of an answer of a server, in bytes and in time.
const (
	maxHeader = 64 << 10
	maxBody   = 1 << 20 // of a body that is not a stream
	maxDetail = 300     // of a message

	smallAnswer = 30 * time.Second // of an answer that is not a stream
	afterEnd    = time.Second      // the time that a stream may stay open behind its end
)

// baseURL returns a server's URL up to /v1.
func baseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("serving: %q is not the URL of a server, such as http://127.0.0.1:8080", text)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("serving: %s: a server's URL has no query and no fragment", u.Redacted())
	}
	u.Path = "/" + strings.Trim(u.Path, "/")
	if strings.HasSuffix(u.Path, "/v1") {
		return u, nil
	}
	return u.JoinPath("v1"), nil
}

func newClient(o Options) (*client, error) {
	base, err := baseURL(o.URL)
	if err != nil {
		return nil, err
	}
	transport := o.Transport
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone()
		own.MaxIdleConns, own.MaxIdleConnsPerHost = o.Concurrency, o.Concurrency
		own.MaxResponseHeaderBytes = maxHeader
		own.DisableCompression = true // a compressor would delay chunks
		transport = own
	}
	return &client{options: o, base: base, model: o.Model, http: &http.Client{
		Transport: transport,
		// A redirect would send the key and the load to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// get returns the body of a small answer.
func (c *client) get(ctx context.Context, u *url.URL) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, smallAnswer)
	defer cancel()
	response, err := c.do(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, refusal(response)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if len(body) > maxBody {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxBody)
	}
	return body, err
}

func (c *client) do(ctx context.Context, method string, u *url.URL, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream")
	}
	if c.options.APIKey != "" {
		r.Header.Set("Authorization", "Bearer "+c.options.APIKey)
	}
	return c.http.Do(r)
}

// firstModel returns the name of the first model that the server lists.
func (c *client) firstModel(ctx context.Context) (string, error) {
	u := c.base.JoinPath("models")
	body, err := c.get(ctx, u)
	if err != nil {
		if of := new(url.Error); errors.As(err, &of) {
			err = of.Err // the message names the URL itself
		}
		return "", fmt.Errorf("serving: the models of %s: %w", u.Redacted(), err)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return "", fmt.Errorf("serving: the models of %s: %w", u.Redacted(), err)
	}
	if len(list.Data) == 0 || list.Data[0].ID == "" {
		return "", fmt.Errorf("serving: %s lists no model; name one", u.Redacted())
	}
	return list.Data[0].ID, nil
}

// counters is the counts of a server since its start.
type counters struct{ drafted, accepted int }

// counters reads the numbers of draft tokens from the metrics of the server, under the names of vLLM and llama.cpp. ok
// reports whether the server has them.
func (c *client) counters(ctx context.Context) (n counters, ok bool) {
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "v1") + "metrics"
	body, err := c.get(ctx, &u)
	if err != nil {
		return n, false
	}
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, maxBody)
	for lines.Scan() {
		name, x := metric(lines.Text())
		switch _, name, _ := strings.Cut(name, ":"); name {
		case "spec_decode_num_draft_tokens_total":
			n.drafted, ok = n.drafted+x, true
		case "spec_decode_num_accepted_tokens_total":
			n.accepted, ok = n.accepted+x, true
		}
	}
	return n, ok
}

// metric returns the name and the value of a line of metrics; "": the line has no count.
func metric(line string) (name string, value int) {
	end := strings.IndexAny(line, "{ ")
	if end < 0 {
		return "", 0
	}
	fields := strings.Fields(line[max(end, strings.LastIndexByte(line, '}')+1):]) // the value and, optionally, a time
	if len(fields) == 0 {
		return "", 0
	}
	x, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || !(x >= 0) || x > math.MaxInt32 {
		return "", 0
	}
	return line[:end], int(x)
}

// request is the body of a request.
type request struct {
	Model         string          `json:"model"`
	Prompt        string          `json:"prompt,omitempty"`
	Messages      []message       `json:"messages,omitempty"`
	Prediction    *prediction     `json:"prediction,omitempty"`
	MaxTokens     int             `json:"max_tokens"`
	Temperature   float64         `json:"temperature"`
	Seed          *int64          `json:"seed,omitempty"`
	IgnoreEOS     bool            `json:"ignore_eos,omitempty"`
	Stream        bool            `json:"stream"`
	StreamOptions map[string]bool `json:"stream_options,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type prediction struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

// request returns the route and the body of request i.
func (c *client) request(t Task, i int) (*url.URL, []byte, error) {
	r := request{Model: c.model, MaxTokens: t.MaxTokens, Temperature: c.options.Temperature, IgnoreEOS: c.options.IgnoreEOS, Stream: true}
	if !c.noUsage {
		r.StreamOptions = map[string]bool{"include_usage": true}
	}
	if r.Temperature > 0 {
		seed := int64((c.options.Seed + uint64(i)) & math.MaxInt32) // the range of every server
		r.Seed = &seed
	}
	u := c.base.JoinPath("completions")
	if c.options.API == Chat {
		u = c.base.JoinPath("chat", "completions")
		r.Messages = []message{{"user", t.Prompt}}
		if t.Prediction != "" {
			r.Prediction = &prediction{"content", t.Prediction}
		}
	} else {
		r.Prompt = t.Prompt
	}
	body, err := json.Marshal(r)
	if err != nil || c.options.ExtraBody == "" {
		return u, body, err
	}
	fields := map[string]json.RawMessage{}
	for _, object := range [][]byte{body, []byte(c.options.ExtraBody)} {
		if err := json.Unmarshal(object, &fields); err != nil {
			return nil, nil, err
		}
	}
	body, err = json.Marshal(fields)
	return u, body, err
}

// ask sends request i and reads its answer.
func (c *client) ask(ctx context.Context, i int) (a answer) {
	t := c.options.Tasks[i%len(c.options.Tasks)]
	a.asked = t.MaxTokens
	u, body, err := c.request(t, i)
	if err != nil {
		return answer{failure: &Failure{Kind: "request", Detail: err.Error()}}
	}
	within, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	a.start = time.Now()
	a.failure = c.exchange(within, cancel, u, body, &a)
	if a.end.IsZero() {
		a.end = time.Now()
	}
	switch {
	case a.failure == nil:
	case ctx.Err() != nil:
		a.stopped = true
	case errors.Is(within.Err(), context.DeadlineExceeded):
		a.failure = &Failure{Kind: "timeout", Detail: fmt.Sprintf("after %v", c.options.Timeout)}
	}
	return a
}

// exchange sends a request and reads the stream that answers it into a.
func (c *client) exchange(ctx context.Context, cancel func(), u *url.URL, body []byte, a *answer) *Failure {
	response, err := c.do(ctx, http.MethodPost, u, body)
	if err != nil {
		if of := new(url.Error); errors.As(err, &of) {
			err = of.Err // without the route, which is the same for all
		}
		return failure("no answer", "%v", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return refusal(response)
	}
	header := response.Header.Get("Content-Type")
	if media, _, _ := mime.ParseMediaType(header); media != "text/event-stream" {
		return failure("not a stream", "its type is %q", header)
	}
	if f := a.read(response.Body); f != nil {
		return f
	}
	// The rest of the body is read for a short time, so that the connection can serve the next request.
	defer time.AfterFunc(afterEnd, cancel).Stop()
	_, _ = io.CopyN(io.Discard, response.Body, maxHeader)
	return nil
}

// refusal returns the failure of an answer whose status is not 200.
func refusal(response *http.Response) *Failure {
	kind := "HTTP " + strconv.Itoa(response.StatusCode)
	if to := response.Header.Get("Location"); to != "" && response.StatusCode/100 == 3 {
		return failure(kind, "a redirect to %s, which is not followed", to)
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxHeader)) // as much as arrived
	var told struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &told) == nil && told.Error != nil {
		return failure(kind, "%s", errorMessage(told.Error))
	}
	return failure(kind, "%s", bytes.TrimSpace(body))
}
