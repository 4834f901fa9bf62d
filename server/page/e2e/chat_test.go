package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"
)

// press clicks the button of a name in the last article that has one.
func (p *tab) press(name string) {
	p.Helper()
	p.until("[...document.querySelectorAll('article button')].some(b => b.textContent === %s)", quote(name))
	p.run(fmt.Sprintf("[...document.querySelectorAll('article button')].findLast(b => b.textContent === %s).click()", quote(name)))
}

// turns returns the texts of the articles.
func (p *tab) turns() []string {
	p.Helper()
	return value[[]string](p, "[...document.querySelectorAll('article')].map(a => a.querySelector('.body').textContent)")
}

// same fails where the articles have other texts.
func (p *tab) same(want ...string) {
	p.Helper()
	if d := cmp.Diff(want, p.turns()); d != "" {
		p.Errorf("turns (-want +got):\n%s", d)
	}
}

// contents returns the texts of the messages of the last request.
func (f *fake) contents() (all []string) {
	for _, m := range f.request()["messages"].([]any) {
		all = append(all, m.(map[string]any)["content"].(string))
	}
	return all
}

// says answers with one text.
func says(text string) http.HandlerFunc { return tells(piece{text, false}) }

// ready opens the page of a server.
func ready(t testing.TB, f *fake) *tab {
	t.Helper()
	p := visit(t, f.URL)
	p.until("document.querySelector('#model').value && document.querySelector('#method option[value=sam]')")
	p.run("patience.second = 5")
	return p
}

// exchange sends a question and waits for an answer.
func (p *tab) exchange(f *fake, question, answer string) {
	p.Helper()
	f.now(func() { f.answer = says(answer) })
	p.send(question)
	p.answered()
}

// TestEdit: a question that is changed is answered again, what followed it goes, and can be brought back.
func TestEdit(t *testing.T) {
	f := serve(t, nil)
	p := ready(t, f)
	p.exchange(f, "First", "One")
	p.exchange(f, "Second", "Two")
	f.now(func() { f.answer = says("Changed") })
	p.run("[...document.querySelectorAll('article.user button')].find(b => b.textContent === 'Edit').click()")
	p.until("document.activeElement === document.querySelector('.edit textarea')")
	p.do(chromedp.KeyEvent(" again"))
	p.picture("edit")
	p.do(enter(0))
	p.until("document.querySelectorAll('article').length === 2")
	p.answered()
	p.same("First again", "Changed")
	if d := cmp.Diff([]string{"First again"}, f.contents()); d != "" {
		t.Error(d)
	}
	p.click("#undo")
	p.same("First", "One", "Second", "Two")
	p.reload()
	p.same("First", "One", "Second", "Two")
	p.do(chromedp.Focus(chromedp.CSS("#text")), chromedp.KeyEvent(kb.ArrowUp)) // arrow up
	p.until("document.querySelector('.edit textarea')?.value === 'Second'")
	p.do(chromedp.KeyEvent("\u001b"))
	p.same("First", "One", "Second", "Two")
	p.run("edit(chat.turns[0]); document.querySelector('.edit textarea').value = '  '; document.querySelector('.edit form, form.edit').requestSubmit()") // nothing to ask
	if value[int](p, "chat.turns.length") != 4 {
		t.Error("an empty question was taken")
	}
}

// TestRegenerate: the last answer is replaced, by the next seed where there is one, and can be brought back.
func TestRegenerate(t *testing.T) {
	f := serve(t, nil)
	p := ready(t, f)
	p.run("settings.sampling.seed = 7")
	p.exchange(f, "Q", "One")
	if f.request()["seed"] != 7.0 {
		t.Errorf("seed %v", f.request()["seed"])
	}
	f.now(func() { f.answer = says("Two") })
	p.press("Regenerate")
	p.answered()
	p.same("Q", "Two")
	if f.request()["seed"] != 8.0 || len(f.contents()) != 1 {
		t.Errorf("regenerated with %v", f.request())
	}
	p.click("#undo")
	p.same("Q", "One")
	f.now(func() {
		f.answer = func(w http.ResponseWriter, _ *http.Request) { refuse(w, 400, "no", "", "") }
	})
	p.press("Regenerate")
	p.answered()
	p.click("#undo") // an answer is not lost to an error
	p.same("Q", "One")
	p.run("again(); again(); again()") // once
	p.answered()
	p.run("running = new AbortController(); again(); goOn(); edit(chat.turns[0]); removePair(chat.turns[0]); summarise(); running = null") // not beside an answer
	if got := p.turns(); len(got) != 2 {
		t.Errorf("turns %q", got)
	}
}

// TestContinue: an answer that was cut, by its bound, by the reader or by a lost connection, goes on where it ended.
func TestContinue(t *testing.T) {
	f := serve(t, nil)
	p := ready(t, f)
	p.run("settings.most = 50")
	cut := func(w http.ResponseWriter, _ *http.Request) {
		s := begin(w)
		s.tell(piece{"- one\n- tw", false})
		s.tokens = 50
		s.endWith("length")
	}
	lost := func(w http.ResponseWriter, _ *http.Request) {
		begin(w).tell(piece{"o", true}, piece{"\n- thr", false})
		time.Sleep(50 * time.Millisecond) // what was written arrives
		panic(http.ErrAbortHandler)
	}
	f.now(func() { f.answer = cut })
	p.send("Count")
	p.answered()
	p.says("article:last-child .note", "Cut at the longest answer that the settings allow.")
	p.picture("cut")
	f.now(func() { f.answer = lost })
	p.press("Continue")
	p.until("document.querySelector('article:last-child .error')")
	p.answered()
	if got := f.request(); got["continue_final_message"] != true || got["add_generation_prompt"] != false || !cmp.Equal(f.contents(), []string{"Count", "- one\n- tw"}) {
		t.Errorf("asked with %v", got)
	}
	f.now(func() { f.answer = says("ee.") })
	p.press("Continue")
	p.until("!document.querySelector('.error')")
	p.answered()
	if got := value[[]string](p, "[...document.querySelectorAll('article:last-child li')].map(e => e.textContent)"); !cmp.Equal(got, []string{"one\n", "two\n", "three."}) && !cmp.Equal(got, []string{"one", "two", "three."}) {
		t.Errorf("the list is %q", got)
	}
	if got := value[[]string](p, drafted); !cmp.Equal(got, []string{"o"}) {
		t.Errorf("tinted: %q", got)
	}
	if n := value[int](p, "chat.turns.length"); n != 2 {
		t.Errorf("%d turns", n)
	}
	p.until("![...document.querySelectorAll('button')].some(b => b.textContent === 'Continue')")
	p.exchange(f, "Sure?", "Yes")
	if got := f.contents(); len(got) != 3 || got[1] != "- one\n- two\n- three." {
		t.Errorf("the conversation is %q", got)
	}
}

// TestDelete: a question goes with its answer, a chat goes whole, and both can be brought back.
func TestDelete(t *testing.T) {
	f := serve(t, nil)
	p := ready(t, f)
	p.exchange(f, "First", "One")
	p.exchange(f, "Second", "Two")
	p.run("[...document.querySelectorAll('article.user button')].find(b => b.textContent === 'Delete').click()")
	p.same("Second", "Two")
	p.reload()
	p.same("Second", "Two")
	p.press("Delete")
	p.same([]string{}...)
	if n := value[int](p, "chats().length"); n != 0 {
		t.Errorf("%d chats are kept", n)
	}
	p.click("#undo")
	p.same("Second", "Two")
	p.click("#more")
	p.picture("actions")
	p.click("#removeChat")
	p.until("document.querySelectorAll('article').length === 0 && chats().length === 0")
	p.click("#undo")
	p.same("Second", "Two")
	p.until("document.querySelectorAll('#chats li').length === 1")
	p.click("#more")
	p.run("$('title').value = 'A <b>title</b>'; $('title').onchange()")
	p.says("#chats a", "A <b>title</b>")
	p.reload()
	p.says("#chats a", "A <b>title</b>")
}

// TestExport: chats leave as files, and come back from them; files that are none are refused in words.
func TestExport(t *testing.T) {
	f := serve(t, nil)
	p := ready(t, f)
	dir := t.TempDir()
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
			Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir, BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
		})
		return err
	}))
	p.exchange(f, "What is *it*?", "A **tree**.\n")
	read := func(name string) string {
		t.Helper()
		for end := time.Now().Add(testTimeout); ; time.Sleep(20 * time.Millisecond) {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil && len(text) > 0 {
				return string(text)
			}
			if time.Now().After(end) {
				t.Fatalf("%s is not downloaded", name)
			}
		}
	}
	p.click("#more")
	p.click("#exportMarkdown")
	if got, want := read("what-is-it.md"), "# What is *it*?\n\n## Question\n\nWhat is *it*?\n\n## Answer\n\nA **tree**.\n"; got != want {
		t.Errorf("Markdown: %q, want %q", got, want)
	}
	p.click("#more")
	p.click("#exportJSON")
	file := read("what-is-it.json")
	p.run("forget(chats())")
	bring := func(text string) string {
		t.Helper()
		p.run("say(''); importFile(new File([" + quote(text) + "], 'x.json'))")
		p.until("!$('tell').hidden")
		return value[string](p, "$('told').textContent")
	}
	if got := bring(file); got != "1 chat was imported." {
		t.Error(got)
	}
	p.same("What is *it*?", "A tree.")
	p.until("document.querySelector('.rate')")
	p.reload()
	p.same("What is *it*?", "A tree.")
	if got := bring(`{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}, {"role": "assistant", "content": "a", "reasoning_content": "r"}]}`); got != "1 chat was imported." {
		t.Error(got)
	}
	p.same("q", "a")
	for text, want := range map[string]string{
		"":                                  "The file is no JSON of chats",
		"[1]":                               "The file is no JSON of chats",
		`{"format": "other", "version": 1}`: `The file has the format "other", version 1`,
		`{"format": "grove-chats", "version": 2}`:                                                                     `The file has the format "grove-chats", version 2`,
		`{"chats": [{"turns": []}]}`:                                                                                  "Chat 1 of the file is none",
		`{"chats": [{"turns": [{"role": "tool", "content": "x"}]}]}`:                                                  "Chat 1 of the file is none",
		`{"messages": [{"role": "user", "content": "q"}, {"role": "user"}]}`:                                          "Chat 1 of the file is none",
		`{"chats": [` + strings.Repeat(`{"messages": []},`, 50) + `{}]}`:                                              "The file has 51 chats; at most 50 are kept.",
		`{"messages": [` + strings.Repeat(`{"role":"user","content":"q"},`, 5000) + `{"role":"user","content":"q"}]}`: "Chat 1 of the file is none",
	} {
		if got := bring(text); !strings.HasPrefix(got, want) {
			t.Errorf("%.60s: %q, want %q", text, got, want)
		}
	}
	p.run("say(''); importFile({size: 20_000_001})")
	p.says("#told", "The file has 20000001 bytes; at most 20000000 are read.")
	if n := value[int](p, "chats().length"); n != 2 {
		t.Errorf("%d chats are kept", n)
	}
	p.run("$('exportAll').click()")
	if got := read("grove-chats.json"); strings.Count(got, `"turns"`) != 2 {
		t.Errorf("all chats: %q", got)
	}
}

// TestThoughts: what a model thinks is folded, timed, kept, and not sent back; it is no HTML either.
func TestThoughts(t *testing.T) {
	next := make(gate)
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		s := begin(w)
		s.think("Let me <b>", "see</b>.\n")
		if !next.wait(r) {
			return
		}
		s.tell(piece{"It ", false}, piece{"is.", true})
		s.end()
	})
	p := ready(t, f)
	p.send("Is it?")
	p.until("/^Thinking, /.test(document.querySelector('.thoughts summary')?.textContent)")
	if value[bool](p, "document.querySelector('.thoughts').open") {
		t.Error("thoughts are not folded")
	}
	p.picture("thinking")
	next <- struct{}{}
	p.answered()
	p.until("/^Thoughts, \\d/.test(document.querySelector('.thoughts summary').textContent)")
	p.says(".thought", "Let me <b>see</b>.\n")
	p.same("Is it?", "It is.")
	p.click(".thoughts summary")
	p.picture("thoughts")
	p.reload()
	p.says(".thought", "Let me <b>see</b>.\n")
	p.exchange(f, "Sure?", "Yes")
	if got := f.request()["messages"].([]any)[1]; !cmp.Equal(got, map[string]any{"role": "assistant", "content": "It is."}) {
		t.Errorf("sent back: %v", got)
	}
	p.run("settings.most = 50")
	f.now(func() { // cut while it thinks: there is no answer to go on with
		f.answer = func(w http.ResponseWriter, _ *http.Request) {
			s := begin(w)
			s.think("Hm")
			s.tokens = 50
			s.endWith("length")
		}
	})
	p.send("Really?")
	p.answered()
	f.now(func() { f.answer = says("Really.") })
	p.press("Answer again with twice the length")
	p.answered()
	if got := f.request()["max_tokens"]; got != 100.0 {
		t.Errorf("max_tokens %v", got)
	}
}

// TestContext: where the context is full, the page offers the next step: to drop turns, or a chat with a summary.
func TestContext(t *testing.T) {
	f := serve(t, nil)
	p := ready(t, f)
	for i, word := range []string{"one", "two", "three"} {
		p.exchange(f, word+strings.Repeat("?", 100), strings.Repeat("a ", 50*(i+1)))
	}
	full := func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, 400, "the prompt has 5000 tokens and the context holds 4096", "messages", "context_length_exceeded")
	}
	f.now(func() { f.answer = full })
	p.send("four")
	p.answered()
	p.says(".error", "the prompt has 5000 tokens and the context holds 4096. Drop the oldest turns, start anew with a summary, or start the server with a larger context (it holds 4096 tokens now; grove serve -c 6000).")
	p.picture("context")
	f.now(func() { f.answer = says("Four.") })
	p.press("Drop the oldest turns")
	p.until("!document.querySelector('.error')")
	p.answered()
	p.says(".border", "The model is not sent the turns above.")
	if got := f.contents(); len(got) != 3 || !strings.HasPrefix(got[0], "three") || got[2] != "four" {
		t.Errorf("sent: %.20q", got)
	}
	p.reload()
	p.says(".border", "The model is not sent the turns above.")
	p.until("document.querySelector('#method option[value=sam]')")
	f.now(func() { f.answer = full })
	p.send("five")
	p.answered()
	f.now(func() { f.answer = says("They counted.") })
	p.press("New chat with a summary")
	p.says("article.assistant .body", "They counted.")
	p.answered()
	if got := f.contents(); !strings.HasPrefix(got[len(got)-1], "Summarise our conversation") || strings.Contains(strings.Join(got, " "), "five") {
		t.Errorf("sent: %.30q", got)
	}
	if got := value[string](p, "$('text').value"); got != "five" {
		t.Errorf("the question that was not answered is %q", got)
	}
	if value[int](p, "chats().length") != 2 {
		t.Error("the old chat is gone")
	}

	p.click("nav .new")
	p.run("$('text').value = ''")
	f.now(func() { f.answer = full })
	p.send("alone")
	p.answered()
	p.until("/Shorten the question, or start the server/.test(document.querySelector('.error').textContent)")
	if got := value[[]string](p, "[...document.querySelectorAll('.offer')].map(b => b.textContent)"); !cmp.Equal(got, []string{"Try again"}) {
		t.Errorf("offered: %q", got)
	}

	f.now(func() { // an answer that ran into the end of the context
		f.answer = func(w http.ResponseWriter, _ *http.Request) {
			s := begin(w)
			s.tell(piece{"So", false})
			s.endWith("length")
		}
	})
	p.press("Try again")
	p.until("!document.querySelector('.error')")
	p.answered()
	p.says(".note", "The context is full. Start the server with a larger context (it holds 4096 tokens now; grove serve -c 6000).")
	f.now(func() { f.props = strings.Replace(f.props, "6000", "4096", 1) })
	p.run("describe().then(draw)")
	p.says(".note", "The context is full. Take a model for longer texts (this one was trained for 4096 tokens).")
}

// TestPlainContext: plain completion can go on without its oldest text.
func TestPlainContext(t *testing.T) {
	f := serve(t, nil)
	p := ready(t, f)
	full := func(w http.ResponseWriter, _ *http.Request) {
		s := begin(w)
		s.plain = true
		s.tell(piece{strings.Repeat("and\n", 25), false})
		s.endWith("length")
	}
	f.now(func() { f.complete = full })
	p.run("choosePlain(true)")
	p.send("Once " + strings.Repeat("x", 100))
	p.answered()
	p.press("Drop the oldest text")
	p.until("chat.turns.length === 3")
	p.answered()
	if got := f.request()["prompt"]; got != strings.Repeat("and\n", 25)[1:] && got != strings.Repeat("and\n", 24) {
		t.Errorf("prompt %q", got)
	}
	p.reload()
	if got := value[int](p, "chat.from"); got < 100 || got > 120 {
		t.Errorf("%d characters are left out", got)
	}
	p.run("localStorage.setItem('grove.chat.x', JSON.stringify({}) + '\\n' + JSON.stringify({plain: true, from: 9, turns: [{role: 'user', runs: ['short']}]})); turnTo('x')")
	if got := value[int](p, "chat.from"); got != 0 {
		t.Errorf("from %d of a short text", got)
	}
}

// TestBusy: the page waits for a server that is busy or loads and says so; the reader can stop that.
func TestBusy(t *testing.T) {
	f := serve(t, nil)
	p := ready(t, f)
	p.run("window.notes = []; new MutationObserver(() => { const n = document.querySelector('.note')?.textContent; if (n && n !== notes.at(-1)) notes.push(n); }).observe($('log'), {childList: true, subtree: true, characterData: true})")
	left := 3
	f.now(func() {
		f.answer = func(w http.ResponseWriter, r *http.Request) {
			if left--; left > 0 {
				w.Header().Set("Retry-After", "2")
				refuse(w, []int{503, 429}[left-1], "too many requests are in the queue", "", "queue_full")
				return
			}
			says("At last.")(w, r)
		}
	})
	p.send("Go")
	p.says("article.assistant .body", "At last.")
	p.answered()
	if got := value[[]string](p, "notes"); !cmp.Equal(got, []string{
		"too many requests are in the queue: trying again in 2 s (1 of 6)", "too many requests are in the queue: trying again in 1 s (1 of 6)",
		"too many requests are in the queue: trying again in 2 s (2 of 60)", "too many requests are in the queue: trying again in 1 s (2 of 60)",
	}) {
		t.Errorf("notes: %q", got)
	}
	if n := value[int](p, "document.querySelectorAll('.note').length"); n != 0 {
		t.Errorf("%d notes are left", n)
	}
	f.now(func() {
		f.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "1e9")
			refuse(w, 503, "Loading model", "", "loading")
		}
	})
	p.run("patience.second = 10_000")
	p.send("Go")
	p.says("article:last-child .note", "Loading model: trying again in 30 s (1 of 60)")
	p.do(chromedp.KeyEvent("\u001b"))
	p.answered()
	p.says("article:last-child .note", "Stopped.")
}

// TestMethods: methods that the model or the page cannot use are not offered; a model that is not loaded is not asked what it can do.
func TestMethods(t *testing.T) {
	f := serve(t, says("Yes"))
	p := ready(t, f)
	offered := "[...document.querySelectorAll('#method option')].map(o => (o.parentElement.label ?? '') + '|' + o.value + '|' + o.text)"
	if d := cmp.Diff([]string{
		"|auto|auto: where it pays", "|off|off: plain decoding",
		"The same text as plain decoding|lookup|lookup: Prompt lookup decoding, 2023", "The same text as plain decoding|sam|sam: SAM decoding, 2024",
		"Another text of the same distribution|sjd|sjd: Speculative Jacobi Decoding, 2024",
	}, value[[]string](p, offered)); d != "" {
		t.Error(d)
	}
	p.run("$('method').value = 'sam'; $('method').onchange()")
	p.says("#model option:last-child", "other (loads when asked)")
	if got := value[int](p, "$('model').options.length"); got != 2 { // not the encoder
		t.Errorf("%d models are offered", got)
	}
	f.now(func() {
		f.props = `{"methods": [{"name": "sam", "available": false}, {"name": 5}, null, {"name": "draft", "needs": "a draft model"}]}`
	})
	p.run("$('model').value = 'other'; $('model').onchange()")
	p.until("$('method').options.length === 2 && $('method').value === 'auto'")
	if got := value[float64](p, "model.context"); got != 0 {
		t.Errorf("a model that is not loaded has a context of %v", got)
	}
	p.send("Go")
	p.answered()
	if got := f.request(); got["model"] != "other" || got["method"] != "auto" || got["temperature"] != nil {
		t.Errorf("asked with %v", got)
	}
	for _, props := range []string{`{"methods": {}}`, `7`, `{"methods": [[]], "default_generation_settings": {"n_ctx": "<b>", "params": [1]}}`} {
		f.now(func() { f.props = props })
		p.run("$('model').value = " + quote(modelName) + "; $('model').onchange()")
		p.until("$('method').options.length === 2")
	}
}

// TestSettings: what the reader sets goes into requests, what is empty has the model's default, and what is wrong is not taken.
func TestSettings(t *testing.T) {
	f := serve(t, says("Yes"))
	p := ready(t, f)
	p.click("#configure")
	if got := value[string](p, "$('temperature').placeholder"); got != "0.8" {
		t.Errorf("the default is shown as %q", got)
	}
	set := func(id, v string) {
		t.Helper()
		p.run(fmt.Sprintf("$(%s).value = %s; $(%s).dispatchEvent(new Event('input', {bubbles: true}))", quote(id), quote(v), quote(id)))
	}
	set("temperature", "0")
	set("top_k", "7")
	set("seed", "12")
	set("most", "99")
	for id, v := range map[string]string{"top_p": "2", "min_p": "-1", "top_k": "1.5", "most": "0", "seed": "-3"} {
		set(id, v)
		p.until("$(%s).ariaInvalid === 'true' && $('wrong').textContent", quote(id))
	}
	p.picture("wrong")
	p.click("#close")
	p.click("#configure")
	p.until("$('top_k').value === '7' && $('most').value === '99'")
	p.click("#close")
	p.send("Go")
	p.answered()
	got := f.request()
	for name, want := range map[string]any{"temperature": 0.0, "top_k": 7.0, "top_p": 0.95, "min_p": 0.05, "seed": 12.0, "max_tokens": 99.0} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	p.click("#configure")
	p.click("#defaults")
	p.click("#close")
	p.send("Go")
	p.answered()
	if got := f.request(); got["temperature"] != 0.8 || got["seed"] != nil {
		t.Errorf("defaults: %v", got)
	}
	p.run(`localStorage.setItem('grove.settings', JSON.stringify({sampling: {temperature: 'hot', top_p: 9, top_k: 3, __proto__: 1, x: 2}, most: -1, theme: 'url(x)', tint: 'yes', plain: [], constructor: 'a', system: 5}))`)
	p.reload()
	if got := value[string](p, "JSON.stringify(settings)"); got != `{"model":"","method":"auto","system":"","most":4096,"sampling":{"top_k":3},"theme":"","tint":true,"plain":{}}` {
		t.Errorf("settings %s", got)
	}
}
