package far_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"grove/server/far"
)

// BenchmarkFar measures answers of 100 tokens of gopher-target behind a link: without drafts, with those of gopher-draft, and with one draft a
// round trip. The figures of a benchmark are tokens a second, steps of the far server a token, and bytes a token that the link takes besides the answer.
func BenchmarkFar(b *testing.B) {
	options.Eager = false
	defer func() { options.Eager = true }()
	target := farServer(b)
	const tokens = 100
	for _, delay := range []time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond} {
		for _, mode := range []struct {
			name   string
			config far.Config
		}{
			{"off", far.Config{Wait: -1}}, {"auto", far.Config{}}, {"wait", far.Config{Wait: 2 * time.Second}}, {"one", far.Config{Wait: 2 * time.Second, Drafts: 1}},
		} {
			b.Run(fmt.Sprintf("%v/%s", delay, mode.name), func(b *testing.B) {
				l := &link{address: target, delay: delay}
				mode.config.URL = l.listen(b)
				near, p := nearServer(b, mode.config)
				method := "far"
				if mode.name == "off" {
					method = "off"
				}
				body := func(i int) string {
					return fmt.Sprintf(`{"prompt":%q,"max_tokens":%d,"temperature":0,"ignore_eos":true,"method":%q}`,
						[]string{"func main() {", "package server\n", "// Read reads", "if err != nil {"}[i%4], tokens, method)
				}
				ask(b, near, "/v1/completions", body(0)) // which measures the link
				before, rounds, all := p.Totals(), 0, 0
				b.ResetTimer()
				for i := range b.N {
					status, _, text := ask(b, near, "/v1/completions", body(i))
					var a struct {
						Usage struct {
							CompletionTokens int `json:"completion_tokens"`
						}
						Timings struct{ Rounds int }
					}
					if err := json.Unmarshal([]byte(text), &a); err != nil || status != http.StatusOK {
						b.Fatal(status, text)
					}
					all, rounds = all+a.Usage.CompletionTokens, rounds+a.Timings.Rounds
				}
				b.StopTimer()
				f := p.Totals()
				if method == "off" {
					rounds = all
				}
				b.ReportMetric(float64(all)/b.Elapsed().Seconds(), "tokens/s")
				b.ReportMetric(float64(rounds)/float64(all), "steps/token")
				b.ReportMetric(float64(f.Sent-before.Sent)/float64(all), "up-B/token")
				b.ReportMetric(float64(f.Received-before.Received-f.Body+before.Body)/float64(all), "down-B/token")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
