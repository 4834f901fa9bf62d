package picker

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	envoytype "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// fakePicker names an address for each request, and writes the body anew.
type fakePicker struct {
	extproc.UnimplementedExternalProcessorServer
	address string // "": it ends the stream with an error; "refuse": it answers the client
}

// Process implements the picker's service.
func (f *fakePicker) Process(stream extproc.ExternalProcessor_ProcessServer) error {
	for {
		said, err := stream.Recv()
		if err != nil {
			return nil
		}
		headers, body := said.GetRequestHeaders(), said.GetRequestBody()
		switch {
		case f.address == "":
			return errors.New("no")
		case f.address == "refuse":
			return stream.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_ImmediateResponse{
				ImmediateResponse: &extproc.ImmediateResponse{Status: &envoytype.HttpStatus{Code: 429}, Body: []byte("full")},
			}})
		case headers != nil && !headers.EndOfStream, headers == nil && body == nil:
			continue
		}
		set := []*core.HeaderValueOption{{Header: &core.HeaderValue{Key: destination, RawValue: []byte(f.address)}}}
		if err := stream.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestHeaders{
			RequestHeaders: &extproc.HeadersResponse{Response: &extproc.CommonResponse{HeaderMutation: &extproc.HeaderMutation{SetHeaders: set}}},
		}}); err != nil || body == nil {
			return err
		}
		for _, part := range []*extproc.StreamedBodyResponse{{Body: []byte("anew: ")}, {Body: body.Body, EndOfStream: true}} {
			if err := stream.Send(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestBody{
				RequestBody: &extproc.BodyResponse{Response: &extproc.CommonResponse{
					BodyMutation: &extproc.BodyMutation{Mutation: &extproc.BodyMutation_StreamedResponse{StreamedResponse: part}},
				}},
			}}); err != nil {
				return err
			}
		}
	}
}

// serveFake returns a client of a picker.
func serveFake(t *testing.T, f *fakePicker) extproc.ExternalProcessorClient {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	extproc.RegisterExternalProcessorServer(s, f)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return extproc.NewExternalProcessorClient(conn)
}

// TestGateway: requests go to the server that the picker names, and to another where that one does not begin a response.
func TestGateway(t *testing.T) {
	server := func(h http.HandlerFunc) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	echo := func(name string) string {
		return server(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			_, _ = io.WriteString(w, name+" "+r.URL.Path+" "+string(body))
		})
	}
	one, two := echo("one"), echo("two")
	draining := server(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	dies := server(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	cut := server(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	for _, c := range []struct {
		name, address, pool, body string
		status                    int
		want                      string
		retried, unpicked         int64
	}{
		{"named", two, one, "b", 200, "two /v1/x anew: b", 0, 0},
		{"no body", two, one, "", 200, "two /v1/x ", 0, 0},
		{"refused connection", "127.0.0.1:1", one, "b", 200, "one /v1/x anew: b", 1, 0},
		{"draining", draining, one, "b", 200, "one /v1/x anew: b", 1, 0},
		{"dies", dies, one, "b", 200, "one /v1/x anew: b", 1, 0},
		{"second address", "127.0.0.1:1," + two, one, "b", 200, "two /v1/x anew: b", 1, 0},
		{"cut", cut, one, "b", 200, "half, then unexpected EOF", 0, 0},
		{"no server", "127.0.0.1:1", draining, "b", 502, draining + " answers 503 Service Unavailable\n", 1, 0},
		{"picker refuses", "refuse", one, "b", 429, "full", 0, 0},
		{"picker fails", "", one, "b", 200, "one /v1/x b", 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := &Gateway{Picker: serveFake(t, &fakePicker{address: c.address}), Pool: func(context.Context) []string { return []string{c.pool} }}
			s := httptest.NewServer(g)
			defer s.Close()
			a, err := http.Post(s.URL+"/v1/x", "text/plain", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			text, err := io.ReadAll(a.Body)
			got := string(text)
			if err != nil {
				got += ", then " + err.Error()
			}
			if a.StatusCode != c.status || got != c.want || g.Retried.Load() != c.retried || g.Unpicked.Load() != c.unpicked {
				t.Errorf("%d %q, %d retried, %d unpicked; want %d %q, %d, %d", a.StatusCode, got, g.Retried.Load(), g.Unpicked.Load(), c.status, c.want, c.retried, c.unpicked)
			}
		})
	}
}

// TestTurns: without a picker servers have requests in turn.
func TestTurns(t *testing.T) {
	seen := map[string]int{}
	var pool []string
	for range 3 {
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen[r.Host]++ }))
		defer s.Close()
		pool = append(pool, strings.TrimPrefix(s.URL, "http://"))
	}
	g := httptest.NewServer(&Gateway{Pool: func(context.Context) []string { return pool }})
	defer g.Close()
	for range 6 {
		a, err := http.Get(g.URL)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
	}
	for _, address := range pool {
		if seen[address] != 2 {
			t.Errorf("%s has %d of 6 requests", address, seen[address])
		}
	}
}
