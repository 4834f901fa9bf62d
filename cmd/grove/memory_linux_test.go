package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestRouteMemory sends each route one body of 12 MB, of a text that is hostile to it, and compares the most memory that the process ever had with what one request
// may take: 64 MiB and 8 times the body. Each case is a process of its own.
func TestRouteMemory(t *testing.T) {
	if os.Getenv("GROVE_LONG") == "" {
		t.Skip("GROVE_LONG is not set: it takes minutes")
	}
	const size = 12_000_000
	fill := func(text string) string { return strings.Repeat(text, size/len(text)) }
	say := func(text string) string {
		return `{"max_tokens":1,"messages":[{"role":"user","content":"` + text + `"}]}`
	}
	many := func() string {
		one := `{"role":"user","content":"` + strings.Repeat("word ", 126) + `"},`
		return `{"max_tokens":1,"messages":[` + strings.TrimSuffix(strings.Repeat(one, 16_384), ",") + `]}`
	}
	tools := func(form string) string {
		return `{"max_tokens":1,"messages":[{"role":"user","content":"a"}],"tools":[` + strings.ReplaceAll(form, "TEXT", fill("word ")) + `]}`
	}
	bare := func(body string) string { return strings.Replace(body, `"max_tokens":1,`, "", 1) }
	function := `{"type":"function","function":{"name":"f","description":"TEXT","parameters":{"type":"object"}}}`
	for _, c := range []struct {
		name, path string
		body       func() string
		above      int // MiB that the case takes above the goal, with room for the moments of the garbage collector; 0: it keeps to it
	}{
		{"pieces", "/tokenize", func() string { return `{"with_pieces":true,"content":"` + fill("a") + `"}` }, 40},
		{"pieces of words", "/tokenize", func() string { return `{"with_pieces":true,"content":"` + fill("word ") + `"}` }, 0},
		{"special tokens", "/tokenize", func() string { return `{"content":"` + fill("<|im_end|>") + `"}` }, 0},
		{"a message", "/apply-template", func() string { return bare(say(fill("<|im_end|>"))) }, 0},
		{"a message", "/v1/chat/completions", func() string { return say(fill("<|im_end|>")) }, 0},
		{"a text", "/v1/chat/completions", func() string { return say(fill("word ")) }, 0},
		{"a text", "/v1/responses", func() string { return `{"input":"` + fill("word ") + `"}` }, 0},
		{"a text", "/v1/messages", func() string { return say(fill("word ")) }, 0},
		{"a text", "/v1/messages/count_tokens", func() string { return bare(say(fill("word "))) }, 0},
		{"a text", "/api/chat", func() string { return bare(say(fill("<|im_end|>"))) }, 0},
		{"a text", "/api/generate", func() string { return `{"prompt":"` + fill("<|im_end|>") + `"}` }, 0},
		{"a text", "/v1/completions", func() string { return `{"prompt":"` + fill("word ") + `"}` }, 0},
		{"a text", "/completion", func() string { return `{"prompt":"` + fill("<|im_end|>") + `"}` }, 0},
		{"a text", "/infill", func() string { return `{"input_prefix":"` + fill("word ") + `"}` }, 0},
		{"a text", "/v1/embeddings", func() string { return `{"input":"` + fill("word ") + `"}` }, 0},
		{"a tool", "/v1/chat/completions", func() string { return tools(function) }, 0},
		{"a tool", "/api/chat", func() string { return bare(tools(function)) }, 0},
		{"a tool", "/v1/messages", func() string { return tools(`{"name":"f","description":"TEXT","input_schema":{"type":"object"}}`) }, 30},
		{"messages", "/v1/chat/completions", many, 30},
		{"messages", "/v1/messages", many, 30},
		{"messages", "/apply-template", func() string { return bare(many()) }, 30},
		{"messages", "/api/chat", func() string { return bare(many()) }, 30},
	} {
		t.Run(strings.ReplaceAll(strings.TrimPrefix(c.path, "/"), "/", "-")+" "+c.name, func(t *testing.T) {
			s := startServer(t, "--chat-template", "chatml", "--forget")
			s.ready(t)
			idle, body := highest(t, s.cmd.Process.Pid), c.body()
			answer, err := http.Post(s.url+c.path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			begin := make([]byte, 300)
			n, _ := answer.Body.Read(begin)
			for more := make([]byte, 64<<10); err == nil; {
				_, err = answer.Body.Read(more)
			}
			answer.Body.Close()
			took, most := highest(t, s.cmd.Process.Pid), (64+c.above)<<20+8*len(body)
			t.Logf("%d MiB of %d, idle %d; body %.1f MB, status %d", took>>20, most>>20, idle>>20, float64(len(body))/1e6, answer.StatusCode)
			if took > most || answer.StatusCode != 200 && answer.StatusCode != 400 {
				t.Errorf("%d MiB, at most %d may be taken; the answer is %d %s", took>>20, most>>20, answer.StatusCode, begin[:n])
			}
			if code := s.stop(t, syscall.SIGTERM); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// highest returns the most memory that a process ever had, in bytes.
func highest(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kib, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
