package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"
)

// drafted is an expression: the tinted texts of the last answer.
const drafted = `[...document.querySelectorAll('article.assistant:last-child .body .draft')].map(e => e.textContent)`

// colour is an expression: a property of an element as red, green, blue.
func colour(selector, property string) string {
	return fmt.Sprintf(`getComputedStyle(document.querySelector(%s)).%s.match(/[\d.]+/g).slice(0, 3).map(Number)`, quote(selector), property)
}

// TestStream: an answer is drawn while it comes, with figures, and accepted drafts stand out.
func TestStream(t *testing.T) {
	next := make(gate)
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		s := begin(w)
		s.tell(piece{"The ", false}, piece{"old ", true}, piece{"tree", true})
		if !next.wait(r) {
			return
		}
		s.tell(piece{"", true}, piece{" \u00e9.\n", false}, piece{"\n", false}, piece{"``", false}, piece{"`go\nx <", true}, piece{"b>y\n```", false}, piece{"\nEnd", false})
		s.end()
	})
	p := visit(t, f.URL)
	p.says("#model option:checked", modelName)
	p.until("document.querySelector('#empty').checkVisibility()")
	p.until("document.querySelector('#method option[value=sam]')")
	p.run(`document.querySelector('#method').value = 'sam'; document.querySelector('#method').onchange()`)
	p.click("#configure")
	p.put("#system", "Be brief.")
	p.click("#close")
	p.send("What\nis <b>it</b>?")
	p.says("article.assistant .body", "The old tree")
	p.says(".accepted", "2 of 3 draft tokens accepted")
	p.until("!document.querySelector('#empty').checkVisibility()")
	p.says(".rate", "41.3 tokens/s")
	if got := value[[]string](p, drafted); len(got) != 1 || got[0] != "old tree" {
		t.Errorf("tinted: %q", got)
	}
	if value[string](p, "document.querySelector('#send').ariaLabel") != "Stop" {
		t.Error("the answer cannot be stopped")
	}
	plain, tinted := value[[]float64](p, colour("#log", "backgroundColor")), value[[]float64](p, colour(".body .draft", "backgroundColor"))
	if cmp.Equal(plain, tinted) {
		t.Errorf("drafts are not tinted: %v", tinted)
	}
	next <- struct{}{}
	p.answered()
	p.says("article.user .body", "What\nis <b>it</b>?")
	p.says("article.assistant pre code", "x <b>y")
	p.says("article.assistant .body p:first-child", "The old tree \u00e9.")
	p.says("article.assistant .body p:last-child", "End")
	if got, want := value[[]string](p, drafted), []string{"old tree \u00e9.", "x <"}; !cmp.Equal(got, want) {
		t.Errorf("tinted: %q, want %q", got, want)
	}
	if value[int](p, "document.querySelectorAll('article b').length") != 0 {
		t.Error("a text was read as HTML")
	}
	want := map[string]any{
		"model": modelName, "method": "sam", "temperature": 0.8, "top_k": 40.0, "top_p": 0.95, "min_p": 0.05, "max_tokens": 4096.0, "stream": true, "timings_per_token": true,
		"stream_options": map[string]any{"include_usage": true},
		"messages": []any{
			map[string]any{"role": "system", "content": "Be brief."}, map[string]any{"role": "user", "content": "What\nis <b>it</b>?"},
		},
	}
	if d := cmp.Diff(want, f.request()); d != "" {
		t.Error(d)
	}
	f.now(func() { f.answer = tells(piece{"Yes.", false}) })
	p.send("Sure?")
	p.answered()
	if got := f.request()["messages"].([]any); len(got) != 4 || got[2].(map[string]any)["content"] != "The old tree \u00e9.\n\n```go\nx <b>y\n```\nEnd" {
		t.Errorf("the conversation was sent as %v", got)
	}
}

// TestFollow: the end of an answer stays in sight, however fast it comes, until the reader looks back.
func TestFollow(t *testing.T) {
	next := make(gate)
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		s := begin(w)
		for range 2000 {
			s.tell(piece{"A line.\n\n", false})
		}
		if !next.wait(r) {
			return
		}
		s.tell(piece{"The last line.", false})
		s.end()
	})
	p := visit(t, f.URL)
	p.until("document.querySelector('#model').value")
	atEnd := `(s => s.scrollHeight - s.scrollTop - s.clientHeight < 48)(document.querySelector('#scroll'))`
	p.send("Go on")
	p.until("document.querySelectorAll('article p').length === 2000 && " + atEnd)
	next <- struct{}{}
	p.answered()
	p.until(atEnd)
	p.send("Again")
	p.until("document.querySelectorAll('article:last-child p').length === 2000")
	p.run("document.querySelector('#scroll').scrollTop = 200")
	p.until("!(" + atEnd + ") && !document.hidden")
	p.do(chromedp.Sleep(100 * time.Millisecond)) // for the event to come
	next <- struct{}{}
	p.answered()
	if got := value[float64](p, "document.querySelector('#scroll').scrollTop"); got != 200 {
		t.Errorf("what the reader looks at moved to %v", got)
	}
}

// TestStop: an answer ends where the reader stops it, on the server too, and the text so far stays.
func TestStop(t *testing.T) {
	gone := make(chan struct{}, 4)
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		begin(w).tell(piece{"So far", false})
		<-r.Context().Done()
		gone <- struct{}{}
	})
	p := visit(t, f.URL)
	p.until("document.querySelector('#model').value")
	for i, stop := range []func(){
		func() { p.click("#send") },
		func() { p.do(chromedp.KeyEvent("\u001b")) },
	} {
		p.send("Go")
		p.says("article:last-child .body", "So far")
		stop()
		p.answered()
		p.says("article:last-child .note", "Stopped.")
		select {
		case <-gone:
		case <-time.After(testTimeout):
			t.Fatal("the server was not told")
		}
		if got := value[int](p, "document.querySelectorAll('article').length"); got != 2*(i+1) {
			t.Errorf("%d turns", got)
		}
	}
	p.send("Go")
	p.says("article:last-child .body", "So far")
	p.click("nav .new") // leaves an answer under way
	<-gone
	p.until("document.querySelectorAll('article').length === 0 && !document.querySelector('.busy')")
}

// TestHistory: chats outlast a reload, can be gone back to and deleted, and are bounded.
func TestHistory(t *testing.T) {
	f := serve(t, tells(piece{"It ", false}, piece{"stays.", true}))
	p := visit(t, f.URL)
	p.until("document.querySelector('#model').value")
	p.send("First")
	p.answered()
	p.click("nav .new")
	p.until("document.querySelectorAll('article').length === 0")
	p.send("Second")
	p.answered()
	p.reload()
	p.says("article.user .body", "Second")
	p.says("article.assistant .body", "It stays.")
	p.says(".accepted", "1 of 1 draft token accepted")
	if got := value[[]string](p, drafted); len(got) != 1 || got[0] != "stays." {
		t.Errorf("tinted: %q", got)
	}
	p.click("#chats li:nth-child(2) a")
	p.says("article.user .body", "First")
	p.reload()
	p.says("article.user .body", "First")
	p.click("#chats li:nth-child(2)") // the pointer is over it: its button shows
	p.run("document.querySelector('#chats a[aria-current]').nextSibling.click()")
	p.until("document.querySelectorAll('article').length === 0 && document.querySelectorAll('#chats li').length === 1")

	p.run(`for (let i = 0; i < 70; i++) localStorage.setItem('grove.chat.old' + i, JSON.stringify({at: i, title: 'Old'}) + '\\n' + JSON.stringify({turns: [{role: 'user', runs: ['x'.repeat(60000)]}]}))`)
	for i, text := range []string{"null", "{", "[]\n{\"turns\":[{\"role\":\"x\"}]}", "{\"title\":{}}\n{\"turns\":[{\"role\":\"assistant\",\"runs\":[\"a\"],\"stats\":{\"rounds\":\"<b>\"}}]}"} {
		p.run(fmt.Sprintf(`localStorage.setItem('grove.chat.bad%d', %s); localStorage.setItem('grove.settings', %s)`, i, quote(text), quote(text)))
	}
	p.do(chromedp.Navigate(f.URL + "/#bad3"))
	p.reload()
	p.says("article .body", "a")
	p.click("nav .new")
	p.until("document.querySelector('#model').value && document.querySelectorAll('article').length === 0")
	p.send("Third")
	p.answered()
	p.until("document.querySelectorAll('#chats li').length === 50 && document.querySelector('#chats a').textContent === 'Third'")
}

// TestKey: a server that wants a key is given one, which is kept for the session; one that loads is waited for.
func TestKey(t *testing.T) {
	f := serve(t, tells(piece{"Hello.", false}))
	f.models = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			refuse(w, 401, "the API key is missing or wrong", "", "invalid_api_key")
		}
	}
	p := visit(t, f.URL)
	p.says("#trouble", "the API key is missing or wrong. Enter it here.")
	p.picture("key")
	p.put("#key", "sesame\n")
	p.says("#model option:checked", modelName)
	p.until("document.querySelector('#unlock').hidden && document.querySelector('#trouble').hidden")
	p.reload()
	p.says("#model option:checked", modelName)
	if value[bool](p, "JSON.stringify(localStorage).includes('sesame')") || !value[bool](p, "JSON.stringify(sessionStorage).includes('sesame')") {
		t.Error("the key is not kept where it should be")
	}

	var loading bool
	f.now(func() {
		f.models = func(w http.ResponseWriter, _ *http.Request) {
			if !loading {
				loading = true
				refuse(w, 503, "Loading model", "", "loading")
			}
		}
	})
	p = visit(t, f.URL)
	p.says("#trouble", "Loading model.")
	p.says("#model option:checked", modelName)
	p.until("document.querySelector('#trouble').hidden")
}

// TestNoTemplate: where a model has no chat template, the page offers plain completion and goes on with it.
func TestNoTemplate(t *testing.T) {
	f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, 400, `the model "x" has no template for conversations`, "messages", "")
	})
	f.complete = func(w http.ResponseWriter, _ *http.Request) {
		s := begin(w)
		s.plain = true
		s.tell(piece{" there", false}, piece{" was\n\n", true}, piece{"```", false})
		s.end()
	}
	p := visit(t, f.URL)
	p.until("document.querySelector('#model').value")
	p.send("Once")
	p.says(".error", `the model "x" has no template for conversations. Go on with plain completion, or start the server with a template (grove serve --chat-template chatml).`)
	p.says(".offer", "Go on with plain completion")
	p.click(".offer")
	p.says("article.assistant .body", " there was\n\n```")
	p.answered()
	if got := f.request()["prompt"]; got != "Once" {
		t.Errorf("prompt %q", got)
	}
	p.send(" a tree")
	p.answered()
	if got := f.request()["prompt"]; got != "Once there was\n\n``` a tree" {
		t.Errorf("prompt %q", got)
	}
	p.send("") // it goes on
	p.answered()
	if got := f.request()["prompt"]; got != "Once there was\n\n``` a tree there was\n\n```" {
		t.Errorf("prompt %q", got)
	}
	p.click("nav .new")
	p.until("document.querySelector('#text').placeholder === 'Begin a text'")
}

// TestPhone: nothing is wider than a phone, whatever the texts.
func TestPhone(t *testing.T) {
	f := serve(t, tells(conversation...))
	p := visit(t, f.URL, chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile))
	p.until("document.querySelector('#model').value")
	p.picture("phone-empty")
	fits := func() {
		t.Helper()
		if got := value[[]int](p, "[document.scrollingElement.scrollWidth, document.querySelector('#scroll').scrollWidth, document.querySelector('main').scrollWidth]"); got[0] > 360 || got[1] > 360 || got[2] > 360 {
			t.Errorf("the page is %v wide", got)
		}
		box := value[map[string]float64](p, "document.querySelector('#send').getBoundingClientRect().toJSON()")
		if box["right"] > 360 || box["bottom"] > 740 || box["width"] < 32 || box["height"] < 32 {
			t.Errorf("the button to send is at %v", box)
		}
	}
	fits()
	p.send("How does a tree of drafts make an answer come sooner? " + strings.Repeat("unbroken", 20))
	p.answered()
	fits()
	p.picture("phone")
	p.click("#menu")
	p.until("document.querySelector('nav').getBoundingClientRect().left === 0")
	p.picture("phone-menu")
	fits()
	p.click("nav .new")
	p.until("document.querySelector('nav').getBoundingClientRect().right <= 0 && getComputedStyle(document.querySelector('nav')).visibility === 'hidden'")
	p.click("#configure")
	p.until("document.querySelector('#settings').open")
	fits()
	p.picture("phone-settings")
}

// prefer makes the system dark or light.
func prefer(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// TestThemes: the page is as dark as the system unless told otherwise, and can be read either way.
func TestThemes(t *testing.T) {
	f := serve(t, tells(conversation...))
	for _, system := range []string{"dark", "light"} {
		p := visit(t, f.URL, prefer(system), chromedp.EmulateViewport(1180, 800))
		p.until("document.querySelector('#model').value")
		p.picture(system + "-empty")
		p.send("How does a tree of drafts make an answer come sooner?")
		p.answered()
		p.picture(system)
		check := func(theme string) {
			t.Helper()
			page := value[[]float64](p, colour("body", "backgroundColor"))
			if dark := luminance(page) < 0.2; dark != (theme == "dark") {
				t.Errorf("%s: the page is %v", theme, page)
			}
			tint := value[[]float64](p, colour(".body .draft", "backgroundColor"))
			for selector, behind := range map[string][]float64{"body": page, ".foot": page, ".body .draft": tint, ".accepted .draft": tint, "#theme": value[[]float64](p, colour("nav", "backgroundColor"))} {
				if c := contrast(value[[]float64](p, colour(selector, "color")), behind); c < 4.5 {
					t.Errorf("%s: the contrast of %s is %.2f", theme, selector, c)
				}
			}
		}
		check(system)
		p.click("#theme")
		check("light")
		p.click("#theme")
		check("dark")
		p.reload()
		check("dark")
		p.click("#theme")
		check(system)
		p.click("#configure")
		p.picture(system + "-settings")
	}
}

// conversation is an answer to look at.
var conversation = pieces("Plain decoding asks the model for ~one token~ at a time, and each time all ~of its weights~ pass through memory. " +
	"~Drafting~ uses that pass better: drafts for ~the next few tokens~ are laid out as a tree, and the model ~checks all of them~ in one step.\n\n" +
	"Drafts that are ~what the model would~ have said are kept; ~the rest is thrown~ away. The text is the same, ~bit for bit~.\n\n" +
	"```go\n~for _, node := range~ tree.Path(best) {\n\t~text = append(text,~ node.Token) // accepted, all ~of them, in~ the order in which they were drafted\n~}\n~```\n\n" +
	"How much sooner it comes depends on ~how predictable~ the text is.")

// pieces cuts a text into words; those between tildes were drafted.
func pieces(text string) (all []piece) {
	for i, part := range strings.Split(text, "~") {
		for _, word := range strings.SplitAfter(part, " ") {
			if word != "" {
				all = append(all, piece{word, i%2 == 1})
			}
		}
	}
	return all
}
