package server_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"grove/server"
	"grove/server/anthropic"
	"grove/server/driver"
	"grove/server/llamacpp"
	"grove/server/ollama"
	"grove/server/openai"
	"grove/server/wire"
)

// apis returns the routes of all APIs.
func apis() []driver.Route {
	return slices.Concat(openai.Routes(), llamacpp.Routes(), anthropic.Routes(), ollama.Routes(), openai.RerankRoutes(), openai.AdapterRoutes(""))
}

// TestRoutesDocs: docs/server.md names every route, with names of capitals for parts that vary.
func TestRoutesDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range apis() {
		for _, pattern := range r.Patterns {
			_, path, _ := strings.Cut(pattern, " ")
			part := regexp.MustCompile(`\\\{[^/]+\\\}`)
			like := part.ReplaceAllString(regexp.QuoteMeta(path), "[A-Z]+")
			if !regexp.MustCompile("(`|[A-Z] )" + like + "[`?]").Match(text) {
				t.Errorf("docs/server.md does not name %s", pattern)
			}
		}
	}
}

// bodies are routes that read a body, by their path.
func bodies(t *testing.T) map[string]any {
	all := map[string]any{}
	for _, r := range apis() {
		method, path, _ := strings.Cut(r.Patterns[0], " ")
		none := strings.HasPrefix(path, "/slots/") || path == "/lora-adapters" || path == "/v1/responses/compact" || strings.HasSuffix(path, "/cancel") || strings.HasPrefix(path, "/api/") && slices.Contains([]string{"create", "copy", "push", "blobs"}, strings.Split(path, "/")[2])
		switch {
		case r.Body != nil:
			all[method+" "+path] = r.Body
		case method == "POST" && !none:
			t.Errorf("%s has no body, whose fields have bounds", path)
		}
	}
	return all
}

// bound is what a field of a body may have at most, by its tags.
type bound struct {
	path        string       // such as messages[].content
	kind        reflect.Type // without pointers
	most, bytes int
	ranged      bool
	low, high   float64
	lowest      string
}

// boundsOf returns the bounds of the fields of a struct, and of those within them.
func boundsOf(t *testing.T, of reflect.Type, path string, outer []reflect.Type) (all []bound) {
	if slices.Contains(outer, of) { // blocks within blocks have the same fields
		return nil
	}
	outer = append(outer[:len(outer):len(outer)], of)
	for i := range of.NumField() {
		f := of.Field(i)
		if f.Anonymous {
			all = append(all, boundsOf(t, f.Type, path, outer)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			continue
		}
		b := bound{path: path + name, kind: f.Type}
		b.most, _ = strconv.Atoi(f.Tag.Get("most"))   // no tag: no bound
		b.bytes, _ = strconv.Atoi(f.Tag.Get("bytes")) // likewise
		if tag := strings.SplitN(f.Tag.Get("range"), " ", 3); len(tag) > 1 {
			var err error
			if b.low, err = strconv.ParseFloat(tag[0], 64); err != nil {
				t.Fatal(err)
			}
			b.ranged, b.high = true, math.Inf(1)
			if b.lowest = strings.Join(tag[2:], ""); tag[1] != "*" {
				if b.high, err = strconv.ParseFloat(tag[1], 64); err != nil {
					t.Fatal(err)
				}
			}
		}
		for b.kind.Kind() == reflect.Pointer {
			b.kind = b.kind.Elem()
		}
		element := b.kind
		if like, ok := reflect.Zero(b.kind).Interface().(wire.Like); ok {
			element = reflect.TypeOf(like.Like())
		}
		own := reflect.PointerTo(element).Implements(reflect.TypeFor[wire.Own]())
		if element.Kind() == reflect.Struct && !own {
			all = append(all, boundsOf(t, element, b.path+".", outer)...)
			continue
		}
		if all = append(all, b); element.Kind() == reflect.Slice && element.Elem().Kind() == reflect.Struct && !own {
			all = append(all, boundsOf(t, element.Elem(), b.path+"[].", outer)...)
		}
	}
	return all
}

// words says what a bound is.
func words(b bound) string {
	elements, text := "", ""
	if b.most > 0 {
		elements = thousands(b.most) + " elements"
		if b.kind.Kind() == reflect.Map {
			elements = thousands(b.most) + " fields"
		}
	}
	if b.bytes > 0 {
		text = thousands(b.bytes) + " bytes"
	}
	switch {
	case elements != "" && text != "":
		return elements + ", texts of " + text
	case b.ranged:
		low, high := strconv.FormatFloat(b.low, 'f', -1, 64), strconv.FormatFloat(b.high, 'f', -1, 64)
		if b.lowest != "" {
			low += " (" + b.lowest + ")"
		}
		if math.IsInf(b.high, 1) {
			return low + " or more"
		}
		return low + " to " + high
	}
	return elements + text
}

func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// TestBoundsDocs holds the table of bounds in docs/server.md to the code; with GROVE_UPDATE set, it writes the table.
func TestBoundsDocs(t *testing.T) {
	const path, mark = "../docs/server.md", "<!-- bounds -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), mark)
	_, after, closed := strings.Cut(rest, "\n<!-- end -->")
	if !ok || !closed {
		t.Fatalf("%s: no %s", path, mark)
	}
	doc := before + mark + boundsTable(t) + "\n<!-- end -->" + after
	if os.Getenv("GROVE_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if d := gocmp.Diff(string(text), doc); d != "" {
		t.Errorf("GROVE_UPDATE=1 go test -run TestBoundsDocs ./server\n%s", d)
	}
}

// boundsTable returns the table: a row for each set of routes, with its fields by their bounds. Fields without a bound of their own are left out.
func boundsTable(t *testing.T) string {
	routes := map[string]map[string][]string{} // by bound and field
	var generate []string
	all := bodies(t)
	for _, route := range slices.Sorted(maps.Keys(all)) {
		_, path, _ := strings.Cut(route, " ")
		if _, ok := all[route].(driver.Body); ok {
			generate = append(generate, path)
		}
		for _, b := range boundsOf(t, reflect.TypeOf(all[route]).Elem(), "", nil) {
			bound, name := words(b), strings.TrimPrefix(b.path, "options.") // ollama has them there
			if b.kind.Kind() == reflect.Bool || bound == "" {
				continue
			}
			if routes[bound] == nil {
				routes[bound] = map[string][]string{}
			}
			if !slices.Contains(routes[bound][name], path) {
				routes[bound][name] = append(routes[bound][name], path)
			}
		}
	}
	fields := map[string]map[string][]string{} // by routes and bound
	for bound, names := range routes {
		for name, paths := range names {
			of := "`" + strings.Join(paths, "`, `") + "`"
			if slices.Equal(paths, generate) {
				of = "all that generate"
			}
			if fields[of] == nil {
				fields[of] = map[string][]string{}
			}
			fields[of][bound] = append(fields[of][bound], name)
		}
	}
	var b strings.Builder
	b.WriteString("\n| routes | bounds of fields |\n|---|---|\n")
	for _, of := range slices.Sorted(maps.Keys(fields)) {
		var cells []string
		for bound, names := range fields[of] {
			slices.Sort(names)
			cells = append(cells, fmt.Sprintf("`%s`: %s", strings.Join(names, "`, `"), bound))
		}
		slices.Sort(cells)
		fmt.Fprintf(&b, "| %s | %s |\n", of, strings.Join(cells, "; "))
	}
	return b.String()
}

// fine are bodies of the routes to which fields are added, and elements the elements of lists; "": any.
var (
	fine = map[string]string{
		"/v1/chat/completions": `{"messages":[{"role":"user","content":"a"}],"max_tokens":1}`, "/v1/responses": `{"input":"a","max_output_tokens":1}`,
		"/v1/completions": `{"prompt":"a","max_tokens":1}`, "/completion": `{"prompt":"a","n_predict":1}`, "/infill": `{"input_prefix":"a","input_suffix":"b","n_predict":1}`,
		"/v1/messages": `{"max_tokens":1,"messages":[{"role":"user","content":"a"}]}`, "/v1/messages/count_tokens": `{"messages":[{"role":"user","content":"a"}]}`,
		"/api/chat": `{"messages":[{"role":"user","content":"a"}],"stream":false,"options":{"num_predict":1}}`, "/api/generate": `{"prompt":"a","stream":false,"options":{"num_predict":1}}`,
	}
	elements = map[string]string{
		"edits":    `{}`,
		"layers":   `0`,
		"messages": `{"role":"user","content":""}`, "/v1/responses input": `{"role":"user","content":""}`, "tools": `{"type":"function","function":{"name":"f"}}`,
		"/v1/messages tools": `{"name":"f","input_schema":{}}`, "/v1/messages/count_tokens tools": `{"name":"f","input_schema":{}}`, "/v1/responses tools": `{"type":"function","name":"f"}`,
		"content": `{"type":"text","text":""}`, "/embedding content": `"a"`, "/v1/embeddings content": `"a"`, "system": `{"type":"text","text":""}`, "summary": `{"type":"summary_text","text":""}`, "output": `{"type":"text","text":""}`, "tool_calls": `{}`, "logit_bias": `[5,1]`,
		"stop_token_ids": `5`, "tokens": `5`, "grammar_triggers": `{"type":1,"value":"a"}`, "structured_outputs": `{}`, "context": `5`, "lora": `{"id":0,"scale":1}`, "options.lora": `{"id":0,"scale":1}`, "input_extra": `{"text":""}`,
	}
)

// beyondCodes are the codes of errors of bounds.
var beyondCodes = []string{
	"array_above_max_length", "object_above_max_properties", "string_above_max_length",
	"integer_above_max_value", "integer_below_min_value", "decimal_above_max_value", "decimal_below_min_value",
}

// probe is a value at a bound, or beyond it.
type probe struct {
	value  string
	beyond bool
}

// probes returns values at and beyond the bounds of a field.
func probes(route string, b bound) (all []probe) {
	name := b.path[strings.LastIndexByte(b.path, '.')+1:]
	if b.ranged {
		step := 1.0
		if k := b.kind.Kind(); (k == reflect.Float32 || k == reflect.Float64) && b.high < 1000 {
			step = 0.001
		}
		number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
		all = append(all, probe{number(b.low), false}, probe{number(b.low - step), true})
		if !math.IsInf(b.high, 0) {
			all = append(all, probe{number(b.high), false}, probe{number(b.high + step), true})
		}
		return all
	}
	text := func(n int) string { return `"` + strings.Repeat("a", n) + `"` }
	list := func(n int, element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	object := func(n, length int) string {
		var s strings.Builder
		for i := range n {
			fmt.Fprintf(&s, `,"%0*d":"a"`, length, i)
		}
		return "{" + strings.TrimPrefix(s.String(), ",") + "}"
	}
	switch isMap := b.kind.Kind() == reflect.Map; {
	case isMap:
		return []probe{{object(b.most, 9), false}, {object(b.most+1, 9), true}, {object(1, b.bytes), false}, {object(1, b.bytes+1), true}}
	case b.most > 0:
		element := cmp.Or(elements[route+" "+name], elements[name], `"a"`)
		all = []probe{{list(b.most, element), false}, {list(b.most+1, element), true}}
		if b.bytes > 0 {
			value := list(1, text(b.bytes))
			far := list(1, text(b.bytes+1))
			if name == "logit_bias" {
				value, far = list(1, "["+text(b.bytes)+",1]"), list(1, "["+text(b.bytes+1)+",1]")
			}
			all = append(all, probe{value, false}, probe{far, true})
		}
	case b.bytes > 0:
		all = []probe{{text(b.bytes), false}, {text(b.bytes + 1), true}}
	}
	return all
}

// within puts a value at the place of a path into an object.
func within(o map[string]any, path string, value any) {
	name, rest, deeper := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[]")
	if !deeper {
		o[name] = value
		return
	}
	inner := map[string]any{}
	if list {
		o[name] = []any{inner}
	} else if at, ok := o[name].(map[string]any); ok {
		inner = at
	} else {
		o[name] = inner
	}
	if name == "content" || name == "system" {
		inner["type"] = "text"
	}
	within(inner, rest, value)
}

// blamed reports whether an error is that of the bound of a field.
func blamed(text, field string) bool {
	var e struct{ Error any }
	_ = json.Unmarshal([]byte(text), &e) // other answers have no error
	openAI, _ := e.Error.(map[string]any)
	code, has := openAI["code"].(string)
	if has || openAI["param"] != nil {
		return slices.Contains(beyondCodes, code) && strings.HasPrefix(fmt.Sprint(openAI["param"]), field)
	}
	said := fmt.Sprint(e.Error) // Anthropic's and ollama's errors have no code
	return strings.Contains(said, field) && (strings.Contains(said, "; at most") || strings.Contains(said, "more than ") || strings.Contains(said, "must be"))
}

// TestBounds: each field of each route takes a value at its bound, and refuses the one beyond with 400 and its name.
func TestBounds(t *testing.T) {
	s := serveModels(t, server.Config{AdapterDir: t.TempDir()}, source(modelName, edited(t, served(), template), options))
	checked, seen, all := 0, map[string]bool{}, bodies(t)
	for _, route := range slices.Sorted(maps.Keys(all)) {
		method, path, _ := strings.Cut(route, " ")
		for _, b := range boundsOf(t, reflect.TypeOf(all[route]).Elem(), "", nil) {
			row := strings.TrimPrefix(b.path, "options.") + words(b)
			if seen[row] && os.Getenv("GROVE_SOAK") == "" || b.most > 100_000 && os.Getenv("GROVE_LONG") == "" {
				continue // it is the same field of another route, or takes a second
			}
			seen[row] = true
			for _, p := range probes(path, b) {
				o := map[string]any{}
				if text := fine[path]; text != "" {
					o = parse(t, text)
				}
				if !p.beyond && len(p.value) > 4096 { // the bound holds while the body is decoded: the model, that is not served, is looked for after
					o["model"] = "none"
				}
				within(o, b.path, json.RawMessage(p.value))
				status, text, _ := s.do(t, method, path, quoteAny(t, o))
				if refused := status == 400 && blamed(text, strings.ReplaceAll(b.path, "[]", "[0]")); refused != p.beyond {
					t.Errorf("%s: %s of %.80s (%d bytes): beyond is %v: %d %.300s", path, b.path, p.value, len(p.value), p.beyond, status, text)
				}
				checked++
			}
		}
	}
	if checked < 250 {
		t.Errorf("%d values", checked)
	}
}

// TestToleratedDocs holds the table of docs/server.md of the fields that single routes leave out or refuse; with GROVE_UPDATE set, it writes the table.
func TestToleratedDocs(t *testing.T) {
	const path, mark = "../docs/server.md", "<!-- tolerated fields of routes -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), mark)
	_, after, closed := strings.Cut(rest, "\n<!-- end -->")
	if !ok || !closed {
		t.Fatalf("%s: no %s", path, mark)
	}
	routes := map[string][]string{} // by the rest of the row
	for route, body := range bodies(t) {
		_, route, _ = strings.Cut(route, " ")
		rows := map[string]bool{}
		toleratedIn(reflect.TypeOf(body).Elem(), "", nil, rows)
		for row := range rows {
			routes[row] = append(routes[row], "`"+route+"`")
		}
	}
	var rows []string
	for row, of := range routes {
		slices.Sort(of)
		rows = append(rows, "| "+strings.Join(slices.Compact(of), ", ")+row)
	}
	slices.Sort(rows)
	doc := before + mark + "\n| routes | fields | who sends them | values | why, or why others are refused |\n|---|---|---|---|---|\n" + strings.Join(rows, "\n") + "\n\n<!-- end -->" + after
	if os.Getenv("GROVE_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(doc), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if d := gocmp.Diff(string(text), doc); d != "" {
		t.Errorf("GROVE_UPDATE=1 go test -run TestToleratedDocs ./server\n%s", d)
	}
}

// toleratedIn adds the rows of a type and of those within it, without the routes. Messages have a table of their own.
func toleratedIn(of reflect.Type, path string, outer []reflect.Type, rows map[string]bool) {
	for {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		like, own := reflect.Zero(of).Interface().(wire.Like)
		if own {
			of = reflect.TypeOf(like.Like())
		}
		if of.Kind() != reflect.Slice {
			break
		}
		path, of = strings.TrimSuffix(path, ".")+"[].", of.Elem()
	}
	if of.Kind() != reflect.Struct || slices.Contains(outer, of) {
		return
	}
	outer = append(outer[:len(outer):len(outer)], of)
	if own, ok := reflect.New(of).Interface().(wire.Tolerant); ok {
		for _, r := range own.Tolerated() {
			if slices.Contains(wire.MessageFields, r) {
				continue
			}
			var names []string
			for name := range strings.FieldsSeq(r.Names) {
				names = append(names, "`"+strings.TrimPrefix(path, ".")+name+"`")
			}
			values := "all"
			if r.Values != "*" {
				values = "`" + strings.Join(append(strings.Fields(r.Values), "null"), "`, `") + "`"
			}
			rows[fmt.Sprintf(" | %s | %s | %s | %s |", strings.Join(names, ", "), r.Client, values, r.Reason)] = true
		}
	}
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			toleratedIn(f.Type, path, outer, rows)
		case name != "":
			toleratedIn(f.Type, path+name+".", outer, rows)
		}
	}
}
