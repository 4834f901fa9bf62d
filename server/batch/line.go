package batch

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// refusalf returns a refusal with a formatted message.
func refusalf(code, format string, args ...any) *Refusal {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// urls are the paths that a line may name: those of the APIs, without what changes the server.
var urls = regexp.MustCompile(`^/v1/[a-z0-9_/-]{1,100}$`)

// denied are paths that change what later lines get.
var denied = []string{"/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/v1/files", "/v1/batches"}

// seeded are the paths whose requests have a seed.
var seeded = []string{"/v1/chat/completions", "/v1/completions", "/v1/responses"}

// clip returns the beginning of a text for a message.
func clip(text string) string { return strings.ToValidUTF8(text[:min(len(text), 80)], "?") }

// complete reads the body, and gives it a seed where it may have one and has none.
func (r *Request) complete() *Refusal {
	h := sha256.New()
	for _, part := range []string{r.id, r.url, string(r.body)} {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(part))) // it never fails
		_, _ = io.WriteString(h, part)
	}
	h.Sum(r.sum[:0])
	var body map[string]json.RawMessage
	if err := json.Unmarshal(r.body, &body); err != nil || body == nil {
		return refusalf("invalid_body", "body is no JSON object")
	}
	if s, ok := body["stream"]; ok && string(s) != "false" && string(s) != "null" {
		return refusalf("stream_not_supported", "body has stream; an answer of a batch comes whole: leave stream out")
	}
	r.model = body["model"]
	for _, name := range []string{"messages", "prompt", "input", "query"} {
		if r.text == nil {
			r.text = body[name]
		}
	}
	if _, has := body["seed"]; !has && slices.Contains(seeded, r.url) {
		rest := bytes.TrimPrefix(bytes.TrimSpace(r.body), []byte("{"))
		comma := ","
		if len(body) == 0 {
			comma = ""
		}
		r.body = slices.Concat(fmt.Appendf(nil, `{"seed":%d%s`, r.seed(), comma), rest)
	}
	return nil
}

// seed returns the seed of a line: a number that every JSON reader keeps.
func (r *Request) seed() uint64 { return binary.LittleEndian.Uint64(r.sum[:]) >> 11 }

// name returns a name of the line that depends on its content alone.
func (r *Request) name() string { return hex.EncodeToString(r.sum[8:20]) }

// modelName returns the name of the model that the request asks for; "": it names none.
func (r *Request) modelName() (name string) {
	_ = json.Unmarshal(r.model, &name) // the handler refuses another type
	return name
}

// compare orders requests so that those that begin alike follow each other.
func compare(a, b *Request) int {
	return cmp.Or(strings.Compare(a.url, b.url), bytes.Compare(a.model, b.model), bytes.Compare(a.text, b.text), a.index-b.index)
}

// together is how many bytes of their texts requests have in common that share what is computed of them: fewer are no page of a cache.
const together = 128

// sort orders the requests of a window. Those that begin alike stand together, so that a cache that is full still has their beginning; but the first of them stands ahead of the others by
// the requests that are under way at a time, so that these find its beginning computed, and do not all compute it themselves.
func sort(window []*Request, flight int) []*Request {
	slices.SortFunc(window, compare)
	type follower struct{ at, due int } // in the window, and the place in the order from which it may stand
	var followers []follower
	order := make([]*Request, 0, len(window))
	for next := 0; len(order) < len(window); {
		if len(followers) > 0 && (followers[0].due <= len(order) || next == len(window)) {
			order, followers = append(order, window[followers[0].at]), followers[1:]
			continue
		}
		first := window[next]
		order = append(order, first)
		for next++; next < len(window) && alike(first, window[next]); next++ {
			followers = append(followers, follower{next, len(order) - 1 + flight})
		}
	}
	return order
}

// alike reports whether two requests share what is computed of their beginnings.
func alike(a, b *Request) bool {
	n := min(len(a.text), len(b.text), together)
	return n == together && a.url == b.url && bytes.Equal(a.model, b.model) && bytes.Equal(a.text[:n], b.text[:n])
}
