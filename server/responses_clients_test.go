package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove/constrain/lark"
	"grove/internal/gopher"
	"grove/server"
)

// clientRequest is a request of a client as it was recorded, with texts cut short.
type clientRequest struct {
	Path, Method, Client string
	Body                 map[string]any
	Ignored              []string // what the header of the answer names
}

// TestClientsResponses: recorded requests of clients get answers.
func TestClientsResponses(t *testing.T) {
	s := serveSaying(t, "yes!")
	files, err := filepath.Glob("testdata/clients/*.json")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var c clientRequest
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !strings.HasPrefix(c.Path, "/v1/responses") && !strings.HasPrefix(c.Path, "/v1/chat") {
			continue
		}
		n++
		delete(c.Body, "model")
		if bound := "max_output_tokens"; c.Path == "/v1/responses" {
			c.Body[bound] = 2
		}
		body, err := json.Marshal(c.Body)
		if err != nil {
			t.Fatal(err)
		}
		status, answer, header := s.do(t, c.Method, c.Path, string(body))
		if d := cmp.Diff(c.Ignored, append([]string{}, header.Values("Grove-Ignored")...)); status != 200 || d != "" {
			t.Errorf("%s: %d %.300s\nignored: %s", name, status, answer, d)
		}
		if c.Body["stream"] == true && !strings.Contains(answer, "\nevent: response.incomplete\n") {
			t.Errorf("%s: the stream has no end: %.300s", name, answer)
		}
	}
	if n < 15 {
		t.Errorf("only %d requests", n)
	}
}

func (s *site) get(t testing.TB, path string) object {
	t.Helper()
	status, text, _ := s.do(t, "GET", path, "")
	if status != 200 {
		t.Fatalf("GET %s: %d %s", path, status, text)
	}
	return parse(t, text)
}

// saysOnce makes the token of [serveSaying] the answer, alone.
const saysOnce = `,"temperature":0,"max_output_tokens":4,"logit_bias":{"319":100,"318":98},"presence_penalty":2,"frequency_penalty":2`

// TestResponsesNamespace: the model calls a function of a namespace by one name; the client reads and sends both parts.
func TestResponsesNamespace(t *testing.T) {
	s := serveSaying(t, `<tool_call>{"name":"files__look","arguments":{"at":"home"}}</tool_call>`)
	const tools = `,"tools":[{"type":"function","name":"look","parameters":{"type":"object"}},{"type":"namespace","name":"files","description":"d","tools":[{"type":"function","name":"look","parameters":{"type":"object"}}]},{"type":"mcp","server_label":"x","require_approval":"never"}]`
	o := s.post(t, "/v1/responses", `{"input":"go"`+saysOnce+tools+`}`)
	want := map[string]any{"type": "function_call", "name": "look", "namespace": "files", "arguments": `{"at":"home"}`, "status": "completed"}
	for field, value := range want {
		if got := o.at("output/0/" + field); got != value {
			t.Errorf("%s is %v, want %v", field, got, value)
		}
	}
	if got := o.at("tools/2/require_approval"); got != "never" {
		t.Errorf("the answer shows the tools %v", o["tools"])
	}
	events := s.namedEvents(t, "/v1/responses", `{"input":"go","stream":true`+saysOnce+tools+`}`)
	for _, e := range events {
		if e["type"] == "response.output_item.done" && (e.at("item/name") != "look" || e.at("item/namespace") != "files") {
			t.Errorf("%v", e)
		}
	}
	history := `{"max_output_tokens":1,"input":[{"role":"user","content":"go"},{"type":"function_call","call_id":"c","name":"look","namespace":"files","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"}]}]`
	flat := strings.Replace(history, `"name":"look","namespace":"files"`, `"name":"files__look"`, 1)
	if a, b := s.post(t, "/v1/responses/input_tokens", history+"}"), s.post(t, "/v1/responses/input_tokens", flat+"}"); a["input_tokens"] != b["input_tokens"] {
		t.Errorf("%v tokens by two names, %v by one", a, b)
	}
	for choice, status := range map[string]int{
		`{"type":"function","name":"look","namespace":"files"}`: 200, `{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"x"},{"type":"function","name":"look"}]}`: 200,
		`{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"x"}]}`: 200, `{"type":"mcp","server_label":"x"}`: 400, `{"type":"function","name":"x"}`: 400,
		`{"type":"allowed_tools","mode":"required","tools":[{"type":"mcp","server_label":"x"}]}`: 400,
	} {
		if got, text, _ := s.do(t, "POST", "/v1/responses", `{"input":"go","max_output_tokens":1,"tool_choice":`+choice+tools+`}`); got != status {
			t.Errorf("%s: %d %s", choice, got, text)
		}
	}
}

// TestResponsesCustom: a custom tool takes a text, whole and in parts, and comes back in the conversation.
func TestResponsesCustom(t *testing.T) {
	s := serveSaying(t, `<tool_call>{"name":"write","arguments":{"input":"a \"b\"\n\u00e9"}}</tool_call>`)
	const text, tools = "a \"b\"\né", `,"tools":[{"type":"custom","name":"write","description":"Writes."}],"parallel_tool_calls":false`
	o := s.post(t, "/v1/responses", `{"input":"go"`+saysOnce+tools+`}`)
	if o.at("output/0/type") != "custom_tool_call" || o.at("output/0/input") != text || o.at("output/0/name") != "write" || o.at("output/0/arguments") != nil {
		t.Errorf("%v", o["output"])
	}
	var kinds []string
	var deltas string
	for _, e := range s.namedEvents(t, "/v1/responses", `{"input":"go","stream":true`+saysOnce+tools+`}`) {
		kinds = append(kinds, strings.TrimPrefix(e["type"].(string), "response."))
		if e["type"] == "response.custom_tool_call_input.delta" {
			deltas += e["delta"].(string)
		}
		if e["type"] == "response.custom_tool_call_input.done" && e["input"] != text {
			t.Errorf("%v", e)
		}
	}
	want := []string{"created", "in_progress", "output_item.added", "custom_tool_call_input.delta", "custom_tool_call_input.done", "output_item.done", "completed"}
	if !slices.Equal(kinds, want) || deltas != text {
		t.Errorf("events %q with the text %q", kinds, deltas)
	}
	id := quoteAny(t, o.at("output/0/call_id"))
	s.post(t, "/v1/responses", `{"max_output_tokens":1,"input":[{"role":"user","content":"go"},{"type":"custom_tool_call","call_id":`+id+`,"name":"write","input":"a"},{"type":"custom_tool_call_output","call_id":`+id+`,"output":"done"},
		{"type":"local_shell_call","call_id":"s","action":{"type":"exec","command":["ls"]}},{"type":"local_shell_call_output","id":"s","output":"a"}]`+tools+`}`)
}

// TestResponsesGrammar: the text of a custom tool with a grammar keeps to it, here to that by which Codex edits files.
func TestResponsesGrammar(t *testing.T) {
	s := serveChat(t)
	grammar, err := os.ReadFile("testdata/apply_patch.lark")
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for seed := range 8 {
		body := fmt.Sprintf(`{"input":"go","parallel_tool_calls":false,"seed":%d,"tool_choice":{"type":"custom","name":"ed"},"tools":[{"type":"custom","name":"ed","format":{"type":"grammar","syntax":"lark","definition":%s}}]}`,
			seed, quoteAny(t, "start: \"<\\n\" line{1,2} \">\"\nline: (\"+\" | \"-\") /.{0,5}/ \"\\n\""))
		o := s.post(t, "/v1/responses", body)
		text, _ := o.at("output/0/input").(string)
		if o["status"] == "completed" {
			whole++
		}
		if o["status"] == "completed" && !regexp.MustCompile(`^<\n([+-].{0,5}\n){1,2}>$`).MatchString(text) {
			t.Errorf("%q", text)
		}
	}
	if whole < 4 {
		t.Errorf("%d calls of 8 are whole", whole)
	}
	if _, err := lark.Parse(grammar, lark.Options{}); err != nil {
		t.Error(err)
	}
	o := s.post(t, "/v1/responses", `{"input":"go","max_output_tokens":60,"tool_choice":"required","tools":[{"type":"custom","name":"n","format":{"type":"grammar","syntax":"regex","definition":"[0-9]{3}/x"}}]}`)
	if text, _ := o.at("output/0/input").(string); len(text) != 5 || !strings.HasSuffix(text, "/x") {
		t.Errorf("%v", o["output"])
	}
	s = serveSaying(t, "yes!")
	s.post(t, "/v1/responses", fmt.Sprintf(`{"input":"go","max_output_tokens":1,"tools":[{"type":"custom","name":"n","format":{"type":"grammar","syntax":"lark","definition":%s}}]}`, quoteAny(t, string(grammar))))
}

// TestResponsesReferences: items of stored answers and of their requests stand for themselves.
func TestResponsesReferences(t *testing.T) {
	s := serveChat(t)
	first := s.post(t, "/v1/responses", `{"input":"a","max_output_tokens":3,"temperature":0}`)
	list := s.get(t, "/v1/responses/"+first["id"].(string)+"/input_items")
	reference := func(id any) string { return `{"type":"item_reference","id":` + quoteAny(t, id) + `}` }
	const count = "/v1/responses/input_tokens"
	got := s.post(t, count, `{"input":[`+reference(list.at("data/0/id"))+`,`+strings.Replace(reference(first.at("output/0/id")), `"type":"item_reference",`, "", 1)+`,{"role":"user","content":"b"}]}`)
	want := s.post(t, count, `{"previous_response_id":`+quoteAny(t, first["id"])+`,"input":"b"}`)
	if got["input_tokens"] != want["input_tokens"] || got["object"] != "response.input_tokens" {
		t.Errorf("%v by references, %v by the answer", got, want)
	}
	for _, id := range []string{"", "msg_none", "msg_-", "item_" + strings.TrimPrefix(first["id"].(string), "resp_") + "-7"} {
		status, text, _ := s.do(t, "POST", "/v1/responses", `{"input":[`+reference(id)+`]}`)
		if _, _, param, _ := wantError(t, text); status != 404 || param != "input[0]" {
			t.Errorf("%q: %d %s", id, status, text)
		}
	}
}

// TestResponsesLeftOut: items and tools that the server does without are named.
func TestResponsesLeftOut(t *testing.T) {
	s := serveChat(t)
	status, text, header := s.do(t, "POST", "/v1/responses", `{"max_output_tokens":1,"include":["web_search_call.results","anything"],"tools":[{"type":"image_generation","size":"auto","tool":1}],"input":[
		{"role":"user","content":"a","phase":"x"},{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"s"}],"encrypted_content":"gAAA"},{"type":"web_search_call","id":"w","status":"completed","action":{"type":"search","query":"q"}},
		{"type":"code_interpreter_call","id":"c","outputs":[{"type":"logs"}],"code":"1","inputs":2},{"type":"message","id":"m","status":"completed","role":"assistant","content":[{"type":"output_text","text":"b","annotations":[]}]},{"role":"user","content":"c"}]}`)
	want := []string{"include[1] anything", "tools[0] image_generation", "input[1].encrypted_content", "input[2] web_search_call", "input[3] code_interpreter_call"}
	if d := cmp.Diff(want, header.Values("Grove-Ignored")); status != 200 || d != "" {
		t.Errorf("%d %s\n%s", status, text, d)
	}
	strict := serveModels(t, server.Config{Strict: true}, source(modelName, edited(t, gopher.Model(), template), options))
	status, text, _ = strict.do(t, "POST", "/v1/responses", `{"max_output_tokens":1,"tools":[{"type":"image_generation"}],"input":[{"role":"user","content":"a"},{"type":"mcp_list_tools"}]}`)
	if status != 400 || !strings.Contains(text, "tools[0] image_generation: ") || !strings.Contains(text, "input[1] mcp_list_tools: ") {
		t.Errorf("a strict server: %d %s", status, text)
	}
}

// TestResponsesTruncation: truncation auto leaves out the oldest messages of a conversation that is too long, and no instructions.
func TestResponsesTruncation(t *testing.T) {
	s := serveChat(t)
	var items []string
	for i := range 40 {
		items = append(items, fmt.Sprintf(`{"role":"user","content":"question %d"},{"type":"function_call","call_id":"c%d","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c%d","output":"here"},{"role":"assistant","content":"answer"}`, i, i, i))
	}
	const fields = `{"instructions":"Be brief.","max_output_tokens":2,"temperature":0`
	body := fields + `,"input":[{"role":"developer","content":"Stay."},` + strings.Join(items, ",") + `,{"role":"user","content":"last"}]`
	if status, text, _ := s.do(t, "POST", "/v1/responses", body+"}"); status != 400 || !strings.Contains(text, "context_length_exceeded") {
		t.Errorf("%d %s", status, text)
	}
	status, text, header := s.do(t, "POST", "/v1/responses", body+`,"truncation":"auto"}`)
	o := parse(t, text)
	if status != 200 || o["truncation"] != "auto" || !strings.HasPrefix(header.Get("Grove-Ignored"), "truncation auto") {
		t.Fatalf("%d %s %v", status, text, header)
	}
	n := o.at("usage/input_tokens").(float64)
	for keep := 1; keep < 40; keep++ { // as many as fit, and no more
		rest := strings.Join(items[40-keep:], ",")
		count := s.post(t, "/v1/responses/input_tokens", fields+`,"input":[{"role":"developer","content":"Stay."},`+rest+`,{"role":"user","content":"last"}]}`)["input_tokens"].(float64)
		if count == n {
			return
		}
		if count > 256 {
			break
		}
	}
	t.Errorf("a prompt of %v tokens is none of a shorter conversation", n)
}

// TestResponsesThoughts: encrypted_content carries thoughts through a client that keeps nothing else of them.
func TestResponsesThoughts(t *testing.T) {
	s := serveSaying(t, "<think>hm</think>yes")
	const include = `,"include":["reasoning.encrypted_content"],"store":false`
	o := s.post(t, "/v1/responses", `{"input":"go"`+saysOnce+include+`}`)
	sealed, ok := o.at("output/0/encrypted_content").(string)
	if !ok || o.at("output/0/content/0/text") != "hm" || o.at("output/1/content/0/text") != "yes" {
		t.Fatalf("%v", o["output"])
	}
	if o := s.post(t, "/v1/responses", `{"input":"go"`+saysOnce+`}`); o.at("output/0/encrypted_content") != nil {
		t.Errorf("%v", o["output"])
	}
	count := func(reasoning string) any {
		return s.post(t, "/v1/responses/input_tokens", `{"input":[{"role":"user","content":"go"},{"type":"reasoning","id":"r","summary":[]`+reasoning+`},{"role":"assistant","content":"yes"},{"role":"user","content":"more"}]}`)["input_tokens"]
	}
	if a, b := count(`,"encrypted_content":`+quoteAny(t, sealed)), count(`,"content":[{"type":"reasoning_text","text":"hm"}]`); a != b {
		t.Errorf("%v tokens with sealed thoughts, %v with plain ones", a, b)
	}
	for _, foreign := range []string{"gAAAA", "grove1.%%", "grove1.gA==", "grove9.aG0="} {
		_, _, header := s.do(t, "POST", "/v1/responses/input_tokens", `{"input":[{"role":"user","content":"go"},{"type":"reasoning","summary":[],"encrypted_content":"`+foreign+`"}]}`)
		if got := header.Get("Grove-Ignored"); got != "input[1].encrypted_content" {
			t.Errorf("%s: %q is ignored", foreign, got)
		}
	}
}

// TestInputTokens: the tokens of a prompt are those that an answer counts.
func TestInputTokens(t *testing.T) {
	s := serveChat(t)
	for path, body := range map[string]string{"/v1/chat/completions": `{` + hello, "/v1/responses": `{"input":"func main()","instructions":"Be brief."`} {
		got := s.post(t, path+"/input_tokens", body+`}`)
		o := s.post(t, path, body+`}`)
		want := o.at("usage/prompt_tokens")
		if want == nil {
			want = o.at("usage/input_tokens")
		}
		if got["input_tokens"] != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	if status, text, _ := s.do(t, "POST", "/v1/responses/compact", `{"input":"a"}`); status != 501 || !strings.Contains(text, "compact") {
		t.Errorf("%d %s", status, text)
	}
}

// TestBackground: an answer in the background is read, followed and cancelled by its id.
func TestBackground(t *testing.T) {
	s := serveChat(t)
	wait := func(id any) object {
		for range 500 {
			if o := s.get(t, "/v1/responses/"+id.(string)); o["status"] != "queued" && o["status"] != "in_progress" {
				return o
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatal("the response does not end")
		return nil
	}
	const fields = `"input":"func main()","max_output_tokens":20,"seed":3`
	first := s.post(t, "/v1/responses", "{"+fields+`,"background":true}`)
	if first["background"] != true || first["object"] != "response" {
		t.Errorf("%v", first)
	}
	done, plain := wait(first["id"]), s.post(t, "/v1/responses", "{"+fields+`}`)
	if done.at("output/0/content/0/text") != plain.at("output/0/content/0/text") || done["status"] != plain["status"] || done.at("usage/output_tokens") != 20.0 {
		t.Errorf("%v in the background, %v else", done, plain)
	}
	s.post(t, "/v1/responses", `{"input":"b","max_output_tokens":1,"previous_response_id":`+quoteAny(t, first["id"])+`}`)

	events := s.namedEvents(t, "/v1/responses", "{"+fields+`,"background":true,"stream":true}`)
	last := events[len(events)-1]
	if last["type"] != "response.incomplete" || last.at("response/output/0/content/0/text") != plain.at("output/0/content/0/text") || events[1]["type"] != "response.queued" {
		t.Errorf("the last event: %v", last)
	}
	path := "/v1/responses/" + last.at("response/id").(string)
	_, text, _ := s.do(t, "GET", path+"?stream=true&starting_after=3", "")
	if parts := strings.Split(strings.TrimSpace(text), "\n\n"); len(parts) != len(events)-4 || !strings.Contains(parts[0], `"sequence_number":4,`) {
		t.Errorf("%d events behind the fourth, of %d: %.200s", len(parts), len(events), text)
	}
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"GET", path + "?stream=true&starting_after=x", 400}, {"GET", "/v1/responses/" + first["id"].(string) + "?stream=true", 400}, {"POST", path + "/cancel", 200},
		{"POST", "/v1/responses/" + plain["id"].(string) + "/cancel", 400}, {"POST", "/v1/responses/resp_none/cancel", 404}, {"DELETE", path, 200}, {"GET", path, 404},
	} {
		if status, text, _ := s.do(t, tt.method, tt.path, ""); status != tt.status {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, text)
		}
	}
	if status, text, _ := s.do(t, "POST", "/v1/responses", `{"input":"a","background":true,"model":"none"}`); status != 404 {
		t.Errorf("%d %s", status, text)
	}
}

// TestBackgroundCancel: cancelling ends the work, and too many answers in the background are refused.
func TestBackgroundCancel(t *testing.T) {
	s := serveSaying(t, "yes!")
	const long = `{"input":"go","background":true,"ignore_eos":true,"max_output_tokens":30000}`
	var ids []string
	for range 16 {
		ids = append(ids, s.post(t, "/v1/responses", long)["id"].(string))
	}
	if status, text, header := s.do(t, "POST", "/v1/responses", long); status != 429 || header.Get("Retry-After") == "" {
		t.Errorf("%d %s", status, text)
	}
	if status, text, _ := s.do(t, "POST", "/v1/responses", `{"input":"b","previous_response_id":"`+ids[0]+`"}`); status != 400 || !strings.Contains(text, "not completed") {
		t.Errorf("%d %s", status, text)
	}
	for i, id := range ids {
		path := "/v1/responses/" + id
		if i%2 > 0 {
			if status, text, _ := s.do(t, "DELETE", path, ""); status != 200 {
				t.Errorf("%d %s", status, text)
			}
			if status, _, _ := s.do(t, "GET", path, ""); status != 404 {
				t.Errorf("a deleted response: %d", status)
			}
			continue
		}
		if o := s.post(t, path+"/cancel", ""); o["status"] != "cancelled" || o["error"] != nil {
			t.Errorf("%v", o)
		}
		if o := s.get(t, path); o["status"] != "cancelled" {
			t.Errorf("%v", o)
		}
	}
	s.post(t, "/v1/responses", `{"input":"go","max_output_tokens":1}`)
	s.post(t, "/v1/responses", long) // the server ends it
}
