//go:build unix

package batch_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"grove/internal/gopher"
	"grove/server/batch"
)

// BenchmarkLines compares a batch, as grove batch runs it, with 64 clients of servers over HTTP, one of them as grove serve runs it: 600 completions of 16
// tokens, behind prompts of some 60 tokens that 20 requests share in turns, or 2,000 of 4 tokens behind short prompts. Its rounds take turns, so that what else the machine does meets all alike; figures are medians.
func BenchmarkLines(b *testing.B) {
	const rounds = 5
	for _, name := range []string{gopher.NanoName, gopher.Name} {
		for _, w := range []workload{{"short", 2000, 4, func(int) string { return "" }}, {"long", 600, 16, story}} {
			b.Run(name+"/"+w.name, func(b *testing.B) {
				few, many := served(b, name, 4), served(b, name, 16)
				http4, http16 := httptest.NewServer(few), httptest.NewServer(many)
				defer http4.Close()
				defer http16.Close()
				clients := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
				kinds := []string{"http-4-slots", "http-16-slots", "batch-4-slots", "batch-16-slots"}
				rates, costs := make([][]float64, len(kinds)), make([][]float64, len(kinds))
				for round := range rounds * b.N {
					for k := range kinds {
						in, bodies := lineFile(b, w, round*len(kinds)+k)
						began, used := time.Now(), cpu(b)
						switch k {
						case 0:
							ask(b, clients, http4.URL, bodies)
						case 1:
							ask(b, clients, http16.URL, bodies)
						case 2:
							run(b, few, batch.Options{In: in, Out: in + ".out", Flight: 8})
						case 3:
							run(b, many, batch.Options{In: in, Out: in + ".out", Flight: 32})
						}
						rates[k] = append(rates[k], float64(w.lines)/time.Since(began).Seconds())
						costs[k] = append(costs[k], 1e6*(cpu(b)-used)/float64(w.lines))
					}
				}
				for k, kind := range kinds {
					slices.Sort(rates[k])
					b.ReportMetric(rates[k][len(rates[k])/2], kind+":lines/s")
					slices.Sort(costs[k])
					b.ReportMetric(costs[k][len(costs[k])/2], kind+":cpu-µs/line")
				}
			})
		}
	}
}

// cpu returns the seconds that processors have worked for this process. Those of clients are among them.
func cpu(b *testing.B) float64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// workload is how many requests there are, and how long prompts and answers are.
type workload struct {
	name   string
	lines  int
	tokens int
	story  func(n int) string
}

// lineFile writes a batch, and returns the bodies of its requests.
func lineFile(b *testing.B, w workload, round int) (path string, bodies [][]byte) {
	var all bytes.Buffer
	for i := range w.lines {
		body := fmt.Sprintf(`{"prompt":"%sfunc Name%d(x int) ","max_tokens":%d,"ignore_eos":true,"seed":%d}`, w.story(round*20+i%20), i%20, w.tokens, round*w.lines+i)
		bodies = append(bodies, []byte(body))
		fmt.Fprintf(&all, `{"custom_id":"%d","method":"POST","url":"/v1/completions","body":%s}`+"\n", i, body)
	}
	path = filepath.Join(b.TempDir(), fmt.Sprintf("in-%d.jsonl", round))
	if err := os.WriteFile(path, all.Bytes(), 0o644); err != nil {
		b.Fatal(err)
	}
	return path, bodies
}

// story returns a beginning of some 60 tokens of its own.
func story(n int) string {
	return fmt.Sprintf(`// %03d reads a file of bytes, checks the header, and returns an error where the reader is closed or the buffer is too short for a string of the map %d\n`, n, n*7919)
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
