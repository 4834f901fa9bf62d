package batch_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"grove"
	"grove/batch"
	"grove/gopher"
	"grove/server"
)

// served returns a server of a model inside the program.
func served(tb testing.TB, name string, parallel int) *server.Server {
	tb.Helper()
	s := server.New(server.Config{})
	open := func(_ context.Context, memory uint64) (*grove.Model, error) {
		return grove.OpenBytes(gopher.Named(name), grove.Options{Parallel: parallel, Memory: memory, Forget: true, ChatTemplate: "chatml"})
	}
	if err := s.Add(server.Entry{Name: name, Path: name, Open: open}); err != nil {
		tb.Fatal(err)
	}
	if err := s.Load(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// BenchmarkLines compares a batch with 64 clients of the same server over HTTP: 400 completions of 16 tokens, behind 20 prompts in turns.
func BenchmarkLines(b *testing.B) {
	const lines = 400
	for _, parallel := range []int{4, 16} {
		s := served(b, gopher.NanoName, parallel)
		listener := httptest.NewServer(s)
		defer listener.Close()
		clients := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
		var bodies [][]byte
		round := 0
		file := func() string {
			bodies = nil
			var all bytes.Buffer
			for i := range lines {
				body := fmt.Sprintf(`{"prompt":"// %s\nfunc Name%d(x int) ","max_tokens":16,"temperature":1,"ignore_eos":true,"seed":%d}`, story(round*20+i%20), i%20, round*lines+i)
				bodies = append(bodies, []byte(body))
				fmt.Fprintf(&all, `{"custom_id":"%d","method":"POST","url":"/v1/completions","body":%s}`+"\n", i, body)
			}
			round++
			path := filepath.Join(b.TempDir(), "in.jsonl")
			if err := os.WriteFile(path, all.Bytes(), 0o644); err != nil {
				b.Fatal(err)
			}
			return path
		}
		b.Run(fmt.Sprintf("slots=%d/http=64", parallel), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				file()
				b.StartTimer()
				ask(b, clients, listener.URL, bodies)
			}
			b.ReportMetric(lines*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
		b.Run(fmt.Sprintf("slots=%d/batch", parallel), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				in := file()
				b.StartTimer()
				run(b, s, batch.Options{In: in, Out: in + ".out", Flight: 2 * parallel})
			}
			b.ReportMetric(lines*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}

// story returns a beginning of some 60 tokens of its own.
func story(n int) string {
	return fmt.Sprintf("%03d reads a file of bytes, checks the header, and returns an error where the reader is closed or the buffer is too short for a string of the map %d", n, n*7919)
}

// ask sends the bodies from 64 clients.
func ask(b *testing.B, c *http.Client, url string, bodies [][]byte) {
	queue := make(chan []byte)
	var work sync.WaitGroup
	for range 64 {
		work.Go(func() {
			for body := range queue {
				r, err := c.Post(url+"/v1/completions", "application/json", bytes.NewReader(body))
				if err != nil {
					b.Error(err)
					continue
				}
				var all json.RawMessage
				if err := json.NewDecoder(bufio.NewReader(r.Body)).Decode(&all); err != nil || r.StatusCode != http.StatusOK {
					b.Error(r.Status, err)
				}
				_, _ = io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
		})
	}
	for _, body := range bodies {
		queue <- body
	}
	close(queue)
	work.Wait()
}

// run runs a batch to its end.
func run(tb testing.TB, h http.Handler, o batch.Options) batch.Report {
	tb.Helper()
	b, err := batch.Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	if err := b.Run(tb.Context(), h, "a model"); err != nil {
		tb.Fatal(err)
	}
	if err := b.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Report()
}
