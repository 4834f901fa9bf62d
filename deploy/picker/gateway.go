// Package picker runs grove behind the endpoint picker of the Gateway API Inference Extension: with the real picker and a real API server, without nodes
// and without Envoy. The script check builds these programs and runs the tests; docs/kubernetes.md says what they show.
package picker

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
)

// destination is the header by which the picker names servers: addresses with ports, the preferred one first, with commas between them.
const destination = "x-gateway-destination-endpoint"

// maxBody bounds the body of a request, in bytes.
const maxBody = 16 << 20

// A Gateway is a gateway for tests, in place of Envoy: it asks the picker for a server by ext_proc and forwards the request there. Where the
// server refuses the connection, answers 503, or goes before its response begins, the next server of the pool has the request, as a gateway with
// retries does. Where the picker does not answer, servers have requests in turn (failureMode: FailOpen). It is safe for concurrent use.
type Gateway struct {
	Picker extproc.ExternalProcessorClient                // nil: servers have requests in turn
	Pool   func(ctx context.Context) (addresses []string) // the servers that are ready

	Retried, Unpicked atomic.Int64 // attempts after the first; requests that the picker did not answer

	turn atomic.Uint64
}

// A request is one that the picker has seen.
type request struct {
	method, path string
	header       http.Header
	body         []byte
	addresses    []string                                // that the picker named
	refused      *extproc.ImmediateResponse              // the picker's own response; nil: the request is forwarded
	stream       extproc.ExternalProcessor_ProcessClient // nil: the picker does not see the response
}

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	asked := &request{method: r.Method, path: r.URL.RequestURI(), header: r.Header.Clone(), body: body}
	if g.Picker != nil {
		if err := g.pick(r.Context(), asked); err != nil {
			g.Unpicked.Add(1)
			asked = &request{method: r.Method, path: r.URL.RequestURI(), header: r.Header.Clone(), body: body}
		}
	}
	if asked.refused != nil {
		w.WriteHeader(int(asked.refused.GetStatus().GetCode()))
		_, _ = w.Write(asked.refused.GetBody())
		return
	}
	response, err := g.forward(r.Context(), asked)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer response.Body.Close()
	asked.relay(w, response)
}

// pick shows the picker a request and takes over its headers, its body and the addresses.
func (g *Gateway) pick(ctx context.Context, asked *request) error {
	stream, err := g.Picker.Process(ctx)
	if err != nil {
		return err
	}
	headers := []*core.HeaderValue{{Key: ":method", RawValue: []byte(asked.method)}, {Key: ":path", RawValue: []byte(asked.path)}}
	for name, values := range asked.header {
		headers = append(headers, &core.HeaderValue{Key: strings.ToLower(name), RawValue: []byte(strings.Join(values, ","))})
	}
	err = stream.Send(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestHeaders{
		RequestHeaders: &extproc.HttpHeaders{Headers: &core.HeaderMap{Headers: headers}, EndOfStream: len(asked.body) == 0},
	}})
	if err == nil && len(asked.body) > 0 {
		err = stream.Send(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{
			RequestBody: &extproc.HttpBody{Body: asked.body, EndOfStream: true},
		}})
	}
	if err != nil && !errors.Is(err, io.EOF) { // of io.EOF, the answer tells the cause
		return err
	}
	return asked.picked(stream)
}

// picked reads what the picker says of a request.
func (asked *request) picked(stream extproc.ExternalProcessor_ProcessClient) error {
	var body []byte
	for ended := false; !ended; {
		said, err := stream.Recv()
		if err != nil {
			return err
		}
		if asked.refused = said.GetImmediateResponse(); asked.refused != nil {
			return nil
		}
		for _, h := range said.GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders() {
			if name := h.GetHeader().GetKey(); name == destination {
				asked.addresses = strings.Split(string(h.GetHeader().GetRawValue()), ",")
			} else if !strings.HasPrefix(name, ":") {
				asked.header.Set(name, string(h.GetHeader().GetRawValue()))
			}
		}
		part := said.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse()
		body = append(body, part.GetBody()...)
		ended = part.GetEndOfStream() || len(asked.body) == 0
	}
	asked.body, asked.stream = body, stream
	go func() { // what it says of the response changes nothing
		for {
			if _, err := stream.Recv(); err != nil {
				return
			}
		}
	}()
	return nil
}

// forward sends a request to the servers that the picker named, then to others, until one begins a response.
func (g *Gateway) forward(ctx context.Context, asked *request) (*http.Response, error) {
	pool := g.Pool(ctx)
	first := int(g.turn.Add(1)) % max(1, len(pool))
	addresses := slices.Clone(asked.addresses)
	for i := range pool {
		if a := pool[(first+i)%len(pool)]; !slices.Contains(addresses, a) {
			addresses = append(addresses, a)
		}
	}
	failed := errors.New("no server is ready")
	for i, address := range addresses {
		if i > 0 {
			g.Retried.Add(1)
		}
		r, err := http.NewRequestWithContext(ctx, asked.method, "http://"+address+asked.path, bytes.NewReader(asked.body))
		if err != nil {
			return nil, err
		}
		r.Header = asked.header.Clone()
		response, err := http.DefaultTransport.RoundTrip(r)
		if err == nil && response.StatusCode != http.StatusServiceUnavailable {
			return response, nil
		}
		if err == nil {
			response.Body.Close()
			err = errors.New(address + " answers " + response.Status)
		}
		failed = err
	}
	return nil, failed
}

// relay sends a response to the client, and shows it to the picker. One that ends too soon ends so for the client.
func (asked *request) relay(w http.ResponseWriter, response *http.Response) {
	asked.show(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseHeaders{
		ResponseHeaders: &extproc.HttpHeaders{Headers: &core.HeaderMap{Headers: []*core.HeaderValue{
			{Key: ":status", RawValue: []byte(strconv.Itoa(response.StatusCode))},
			{Key: "content-type", RawValue: []byte(response.Header.Get("Content-Type"))},
		}}},
	}})
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	part := make([]byte, 32<<10)
	for {
		n, err := response.Body.Read(part)
		_, _ = w.Write(part[:n]) // a client that left ends the request's context
		_ = http.NewResponseController(w).Flush()
		asked.show(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_ResponseBody{
			ResponseBody: &extproc.HttpBody{Body: slices.Clone(part[:n]), EndOfStream: errors.Is(err, io.EOF)},
		}})
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	if asked.stream != nil {
		_ = asked.stream.CloseSend()
	}
}

// show sends the picker a part of a response.
func (asked *request) show(part *extproc.ProcessingRequest) {
	if asked.stream != nil {
		_ = asked.stream.Send(part) // a picker that went has no use for it
	}
}
