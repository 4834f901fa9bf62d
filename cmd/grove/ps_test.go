package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// remote runs a command against a server that answers each request with a status and a text, and returns what it writes, its
// exit code, and the request.
func remote(t *testing.T, status int, answer string, args ...string) (out string, code int, asked string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("Authorization"), body)
		w.Header().Set("Location", "http://127.0.0.1:1/")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	cmd := exec.Command("grove", append(args, "--url", s.URL)...)
	b, _ := cmd.CombinedOutput() // the exit code tells
	return strings.ReplaceAll(string(b), s.URL, "URL"), cmd.ProcessState.ExitCode(), asked
}

const twoModels = `{"object":"list","data":[
 {"id":"a","status":{"value":"loaded"},"memory_bytes":1500000000,"max_model_len":4096,"requests":{"running":2,"queued":1},"method":"auto"},
 {"id":"b\u001b[2J","status":{"value":"unloaded"},"memory_bytes":"much","meta":null,"requests":[1]}]}`

func TestPS(t *testing.T) {
	out, code, asked := remote(t, 200, twoModels, "ps", "--api-key", "k")
	want := `name   status    memory   context  running  queued  method
a      loaded    1.50 GB  4096     2        1       auto
b␛[2J  unloaded  -        -        -        -       -
`
	if code != 0 || out != want || asked != "GET /models Bearer k " {
		t.Errorf("exit code %d, %q\n%swant\n%s", code, asked, out, want)
	}
	out, code, _ = remote(t, 200, twoModels, "ps", "--json")
	want = `{"name":"a","status":"loaded","memory_bytes":1500000000,"context":4096,"running":2,"queued":1,"method":"auto"}` + "\n" +
		`{"name":"b\u001b[2J","status":"unloaded","memory_bytes":null,"context":null,"running":null,"queued":null,"method":null}` + "\n"
	if code != 0 || out != want {
		t.Errorf("exit code %d\n%swant\n%s", code, out, want)
	}
}

func TestStop(t *testing.T) {
	out, code, asked := remote(t, 200, `{"success":true}`, "stop", "a")
	if code != 0 || out != "a is closed; the next request opens it again\n" || asked != `POST /models/unload  {"model":"a"}` {
		t.Errorf("exit code %d, %q, %q", code, asked, out)
	}
}

// TestRemoteFailures: servers that refuse, redirect or answer nonsense give one line.
func TestRemoteFailures(t *testing.T) {
	for _, c := range []struct {
		status int
		answer string
		want   string
	}{
		{401, `{}`, "grove: URL/models/unload: the key is missing or wrong; --api-key or GROVE_API_KEY gives it\n"},
		{404, `{"error":{"message":"the model \"a\" is\nnot served"}}`, "grove: URL/models/unload: the server answers 404 Not Found: the model \"a\" is␊not served\n"},
		{404, `404 page not found`, "grove: URL/models/unload: the server answers 404 Not Found: it may be no server of grove's, or an older one\n"},
		{302, ``, "grove: URL/models/unload: the server answers 302 Found: it may be no server of grove's, or an older one\n"},
		{200, `<html>`, "grove: URL/models/unload: the answer is not what grove serve gives: invalid character '<' looking for beginning of value\n"},
		{200, `[1]`, "grove: URL/models/unload: the answer is not what grove serve gives: json: cannot unmarshal array into Go value of type main.object\n"},
	} {
		if out, code, _ := remote(t, c.status, c.answer, "stop", "a"); code != 1 || out != c.want {
			t.Errorf("%d %s: exit code %d, %q", c.status, c.answer, code, out)
		}
	}
	if out, code, _ := remote(t, 200, `{"data":[1]}`, "ps"); code != 1 || !strings.Contains(out, "the answer is not what grove serve gives") {
		t.Errorf("exit code %d, %q", code, out)
	}
	huge := strings.Repeat(" ", remoteBytes+1)
	if out, code, _ := remote(t, 200, huge, "ps"); code != 1 || out != "grove: URL/models: the answer has more than 16777216 bytes\n" {
		t.Errorf("exit code %d, %q", code, out)
	}
}

// TestNoServer: where no server answers, one line says how to start one.
func TestNoServer(t *testing.T) {
	for _, c := range []struct {
		args []string
		env  string
		want string
		code int
	}{
		{[]string{"ps", "--url", "http://127.0.0.1:1"}, "X=", "grove: no server answers at http://127.0.0.1:1 (connection refused); start one with 'grove serve MODEL', or name another with --url\n", 69},
		{[]string{"stop", "a"}, "GROVE_URL=127.0.0.1:1/", "grove: no server answers at http://127.0.0.1:1 (connection refused); start one with 'grove serve MODEL', or name another with --url\n", 69},
		{[]string{"ps"}, "GROVE_HOST=0.0.0.0:1", "grove: no server answers at http://127.0.0.1:1 (connection refused); start one with 'grove serve MODEL', or name another with --url\n", 69},
		{[]string{"ps"}, "GROVE_PORT=web", "grove: GROVE_PORT: \"web\" is not a port; it must be from 0 to 65535\n", 78},
		{[]string{"ps", "--url", "ftp://x"}, "X=", "grove: --url: \"ftp://x\" is not the address of a server such as http://127.0.0.1:8080\n", 2},
		{[]string{"stop"}, "X=", "grove: expected \"<model>\"; 'grove stop --help' shows the arguments\n", 2},
	} {
		cmd := exec.Command("grove", c.args...)
		cmd.Env = append(cmd.Environ(), c.env)
		out, _ := cmd.CombinedOutput() // the exit code tells
		if code := cmd.ProcessState.ExitCode(); code != c.code || string(out) != c.want {
			t.Errorf("%v: exit code %d, %q", c.args, code, out)
		}
	}
}

// FuzzReply reads hostile answers of servers: an error is one line, without what controls a terminal.
func FuzzReply(f *testing.F) {
	f.Add(200, []byte(`{"data":[{"id":"a","status":{"value":"loaded"}}]}`))
	f.Add(500, []byte(`{"error":{"message":"\u001b[2J\nx"}}`))
	f.Add(200, []byte(`[1`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		reply := &http.Response{StatusCode: status, Status: strconv.Itoa(status) + " \x1b", Body: io.NopCloser(bytes.NewReader(body))}
		var o object
		if err := read("http://localhost", reply, &o); err != nil {
			if strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%q: %q", body, err)
			}
			return
		}
		member[string](o, "a", "b")
		member[int64](o, "a")
	})
}
