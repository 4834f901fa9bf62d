package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestResponses: an answer of /v1/responses is the one of the chat route, whole and as a stream.
func TestResponses(t *testing.T) {
	s := serveChat(t)
	const fields = `"instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"func main()"}]}],"max_output_tokens":20,"seed":3,"include":["message.output_text.logprobs"]`
	chat := s.post(t, "/v1/chat/completions", "{"+hello+`,"max_tokens":20,"seed":3,"logprobs":true}`)
	o := s.post(t, "/v1/responses", "{"+fields+`,"metadata":{"a":"b"}}`)
	for path, want := range map[string]any{
		"object": "response", "status": "incomplete", "incomplete_details/reason": "max_output_tokens", "error": nil, "store": true, "metadata/a": "b",
		"output/0/type": "message", "output/0/role": "assistant", "output/0/content/0/type": "output_text",
		"output/0/content/0/text": chat.at("choices/0/message/content"), "usage/output_tokens": 20.0, "usage/input_tokens": chat.at("usage/prompt_tokens"),
		"max_output_tokens": 20.0, "previous_response_id": nil, "text/format/type": "text", "truncation": "disabled",
	} {
		if got := o.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if d := cmp.Diff(chat.at("choices/0/logprobs/content"), o.at("output/0/content/0/logprobs")); d != "" {
		t.Errorf("log-probabilities:\n%s", d)
	}
	events := s.namedEvents(t, "/v1/responses", "{"+fields+`,"stream":true}`)
	var text string
	var kinds []string
	for i, e := range events {
		if kind := e["type"].(string); len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds = append(kinds, kind)
		}
		if e["sequence_number"] != float64(i) {
			t.Errorf("event %d has the number %v", i, e["sequence_number"])
		}
		if e["type"] == "response.output_text.delta" {
			text += e["delta"].(string)
		}
	}
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added", "response.output_text.delta",
		"response.output_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete",
	}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Errorf("events:\n%s", d)
	}
	if text != o.at("output/0/content/0/text") {
		t.Errorf("%q, want %q", text, o.at("output/0/content/0/text"))
	}
	last := events[len(events)-1]
	if got := last.at("response/output/0/content/0/text"); got != text || last.at("response/usage/output_tokens") != 20.0 {
		t.Errorf("the last event: %v", last)
	}
}

// namedEvents sends a request whose answer is events with names, which are their types, too.
func (s *site) namedEvents(t testing.TB, path, body string) (all []object) {
	t.Helper()
	status, text, _ := s.do(t, "POST", path, body)
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	for event := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		name, data, ok := strings.Cut(event, "\ndata: ")
		o := parse(t, data)
		if !ok || name != "event: "+o["type"].(string) {
			t.Fatalf("event %q", event)
		}
		all = append(all, o)
	}
	return all
}

// TestResponsesCalls: a call of a tool, and the conversation that goes on behind it.
func TestResponsesCalls(t *testing.T) {
	s := serveCaller(t)
	const fields = `"input":"go","temperature":0,"max_output_tokens":4,"logit_bias":{"319":100,"318":98},"presence_penalty":2,"frequency_penalty":2,` +
		`"tools":[{"type":"function","name":"look","parameters":{"type":"object"}}]`
	o := s.post(t, "/v1/responses", "{"+fields+"}")
	if o["status"] != "completed" || o.at("output/0/type") != "function_call" || o.at("output/0/arguments") != `{"at":"home"}` || o.at("output/0/name") != "look" {
		t.Errorf("%v", o)
	}
	var kinds []string
	for _, e := range s.namedEvents(t, "/v1/responses", "{"+fields+`,"stream":true}`) {
		kinds = append(kinds, strings.TrimPrefix(e["type"].(string), "response."))
	}
	want := []string{"created", "in_progress"}
	for range o["output"].([]any) {
		want = append(want, "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done")
	}
	want = append(want, "completed")
	if !slices.Equal(kinds, want) {
		t.Errorf("events %q", kinds)
	}
	id := o.at("output/0/call_id").(string)
	s.post(t, "/v1/responses", fmt.Sprintf(`{"max_output_tokens":1,"input":[{"role":"user","content":"go"},{"type":"function_call","call_id":%q,"name":"look","arguments":"{}"},{"type":"function_call_output","call_id":%q,"output":"here"}]}`, id, id))
}

// TestResponsesTools: the model reads a tool of /v1/responses as the chat route would have it.
func TestResponsesTools(t *testing.T) {
	s := serveChat(t)
	const function = `"description":"Looks.","name":"look","parameters":{"type":"object"}`
	chat := s.post(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"go"}],"max_tokens":8,"temperature":0,"tools":[{"function":{`+function+`},"type":"function"}]}`)
	o := s.post(t, "/v1/responses", `{"input":"go","max_output_tokens":8,"temperature":0,"tools":[{"type":"function",`+function+`}]}`)
	for path, want := range map[string]any{
		"usage/input_tokens": chat.at("usage/prompt_tokens"), "output/0/content/0/text": chat.at("choices/0/message/content"),
	} {
		if got := o.at(path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}

func TestResponsesRefused(t *testing.T) {
	s := serveChat(t)
	for _, tt := range []struct{ body, param, wants string }{
		{`{}`, "input", "no message"},
		{`{"input":"a","store":1}`, "store", "number"},
		{`{"input":"a","background":true,"store":false}`, "background", "store is false"},
		{`{"input":"a","background":true,"temperature":-1}`, "temperature", "-1"},
		{`{"input":"a","truncation":"middle"}`, "truncation", "auto or disabled"},
		{`{"input":"a","max_output_tokens":0}`, "max_output_tokens", "0"},
		{`{"input":"a","text":{"format":{"type":"json_schema"}}}`, "text.format", "text.format: type json_schema has no schema"},
		{`{"input":"a","text":{"format":{"type":"json_schema","name":"x","schema":{"enum":[]},"strict":true}}}`, "text.format", "text.format: #: no text satisfies the schema"},
		{`{"input":"a","tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}}`, "tool_choice", "web_search"},
		{`{"input":"a","tools":[{"type":"web_search"}],"tool_choice":"required"}`, "tool_choice", "there is no tool"},
		{`{"input":"a","tools":[{"type":"function"}]}`, "tools[0]", "with a name"},
		{`{"input":"a","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"},{"type":"custom","name":"f"}]}]}`, "tools[0].tools[1]", "two tools are called \"n__f\""},
		{`{"input":"a","tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"peg","definition":"a"}}]}`, "tools[0].format", "peg"},
		{`{"input":"a","tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"lark","definition":"start: a"}}]}`, "tools", "a"},
		{`{"input":"a","tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"regex","definition":"("}}]}`, "tools", "("},
		{`{"input":"a","tools":[{"type":"function","name":"f","parameters":{"properties":{"a":{"pattern":"("}}},"strict":true}]}`, "tools", "#/properties/a/pattern"},
		{`{"input":"a","include":["reasoning.encrypted_contents"]}`, "include", "reasoning.encrypted_content"},
		{`{"input":[{"type":"mesage","id":"r"}]}`, "input[0]", "mesage"},
		{`{"input":"a","truncation":"no","include":["message.output_text.logprob"],"timings_per_token":true}`, "include", "3 faults"},
		{`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"http://169.254.169.254/"}]}]}`, "input[0].content[0]", "input_image"},
		{`{"input":[{"role":"user","content":"a","contents":"b"}]}`, "input[0].contents", "not known"},
		{`{"input":"a","n":2}`, "n", "one answer"},
		{`{"input":"a","timings_per_token":true}`, "timings_per_token", "no place"},
	} {
		status, text, _ := s.do(t, "POST", "/v1/responses", tt.body)
		if message, _, param, _ := wantError(t, text); status != 400 || param != tt.param || !strings.Contains(message, tt.wants) {
			t.Errorf("%s: %d %s, want %q of %s", tt.body, status, text, tt.wants, tt.param)
		}
	}
}

// TestResponsesStored: a response that goes on from a stored one is the response to the whole conversation.
func TestResponsesStored(t *testing.T) {
	s := serveChat(t)
	const limits = `,"max_output_tokens":5,"temperature":0`
	first := s.post(t, "/v1/responses", `{"instructions":"Be brief.","input":"a"`+limits+`}`)
	text := first.at("output/0/content/0/text")
	second := s.post(t, "/v1/responses", fmt.Sprintf(`{"previous_response_id":%q,"input":"b"%s}`, first["id"], limits))
	whole := s.post(t, "/v1/responses", fmt.Sprintf(`{"input":[{"role":"user","content":"a"},{"role":"assistant","content":%s},{"role":"user","content":"b"}]%s}`, quoteAny(t, text), limits))
	if got, want := second.at("output/0/content/0/text"), whole.at("output/0/content/0/text"); got != want || second["previous_response_id"] != first["id"] {
		t.Errorf("%q behind a stored response, %q whole", got, want)
	}
	if got, want := second.at("usage/input_tokens"), whole.at("usage/input_tokens"); got != want {
		t.Errorf("%v tokens of a prompt behind a stored response, %v whole", got, want)
	}
	third := s.post(t, "/v1/responses", fmt.Sprintf(`{"previous_response_id":%q,"input":"c","store":false%s}`, second["id"], limits))
	if third.at("usage/input_tokens").(float64) <= second.at("usage/input_tokens").(float64) {
		t.Errorf("the third turn has %v tokens, the second %v", third["usage"], second["usage"])
	}
	path := "/v1/responses/" + first["id"].(string)
	_, shown, _ := s.do(t, "GET", path, "")
	if d := cmp.Diff(first, parse(t, shown)); d != "" {
		t.Errorf("the stored response differs:\n%s", d)
	}
	_, items, _ := s.do(t, "GET", path+"/input_items", "")
	if got := parse(t, items).at("data/0/content/0/text"); got != "a" {
		t.Errorf("input items: %s", items)
	}
	for _, tt := range []struct{ method, path, body string }{
		{"GET", "/v1/responses/" + third["id"].(string), ""}, {"GET", "/v1/responses/resp_none", ""}, {"DELETE", "/v1/responses/..%2f..", ""},
		{"POST", "/v1/responses", `{"input":"a","previous_response_id":"resp_none"}`},
		{"POST", "/v1/responses", fmt.Sprintf(`{"input":"a","previous_response_id":%q}`, third["id"])},
	} {
		if status, text, _ := s.do(t, tt.method, tt.path, tt.body); status != 404 || !strings.Contains(text, "not stored") {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, text)
		}
	}
	if status, text, _ := s.do(t, "DELETE", path, ""); status != 200 || parse(t, text)["deleted"] != true {
		t.Errorf("DELETE: %d %s", status, text)
	}
	if status, _, _ := s.do(t, "GET", path, ""); status != 404 {
		t.Errorf("a deleted response: %d", status)
	}
	s.post(t, "/v1/responses", fmt.Sprintf(`{"previous_response_id":%q,"input":"d"%s}`, second["id"], limits)) // it has the text of the deleted one
}
