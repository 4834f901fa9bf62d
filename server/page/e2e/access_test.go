package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// everything is an answer with every kind of element.
const everything = "# Heading\n\nText `code` [link](https://b.c)\n\n|a|b|\n|-|-|\n|1|2|\n\n```go\nfunc x(a int) string { return \"a\" /* c */ + 5 }\n```\n\n- item\n\n> quote\n"

// places are the states of the page that a check of access looks at; show makes one.
var places = []struct{ name, show string }{
	{"empty", ""},
	{"answer", `settings.tint = true; chat.turns = [{role: 'user', runs: ['Q']}, {role: 'assistant', runs: [everything.slice(0, 40), everything.slice(40)], thoughts: 'x', thinking: 5, note: 'n', error: 'e', fault: 'context',
		stats: {tokens: 5, perSecond: 9, drafted: 4, accepted: 3, rounds: 2, prompt: 3}}]; draw(); for (const d of document.querySelectorAll('article details')) d.open = true; say('x', () => {})`},
	{"edit", "edit(chat.turns[0])"},
	{"actions", "draw(); $('actions').showPopover()"},
	{"settings", "$('actions').hidePopover(); fillSettings(); $('settings').showModal(); $('wrong').textContent = 'x'"},
	{"key", "$('settings').close(); unlock(); $('trouble').textContent = 'x'; $('trouble').hidden = false"},
}

// TestAccess: in every state, everything that can be used has a name and a size that a finger finds, ids are unique, headings follow each
// other, and texts stand out from what is behind them, in light and dark, wide and narrow.
func TestAccess(t *testing.T) {
	const check = `(() => {
		const wrong = [], seen = e => e.checkVisibility({opacityProperty: false, visibilityProperty: true}) && !e.closest('.unseen');
		const parse = c => { const n = c.match(/[\d.]+/g).map(Number), by = c.startsWith('color(') ? 255 : 1; return [n[0] * by, n[1] * by, n[2] * by, n[3] ?? 1]; };
		const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, w, i) => { const v = c[i] / 255; return sum + w * (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); }, 0);
		const behind = e => { const own = e ? parse(getComputedStyle(e).backgroundColor) : [255, 255, 255, 1]; if (own[3] >= 1) return own;
			const under = behind(e.parentElement); return under.map((v, i) => i < 3 ? v * (1 - own[3]) + own[i] * own[3] : 1); };
		for (const e of document.querySelectorAll('input:not([hidden]), select, textarea, button, a, summary, dialog, nav, [role=log], [role=group]')) {
			if (!(e.labels?.length || e.ariaLabel || e.getAttribute('aria-labelledby') || e.textContent.trim())) wrong.push('without a name: ' + e.outerHTML);
			const box = e.getBoundingClientRect();
			if (e.matches('button, summary, select') && seen(e) && (box.height < 24 || box.width < 24)) wrong.push('small: ' + e.outerHTML + box.height);
		}
		const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
		for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push('twice: ' + id);
		let level = 0;
		for (const h of document.querySelectorAll('main :is(h1, h2, h3, h4, h5, h6)')) {
			if (!h.checkVisibility()) continue;
			if (Number(h.localName[1]) > level + 1) wrong.push('heading: ' + h.outerHTML);
			level = Number(h.localName[1]);
		}
		const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (walk.nextNode()) {
			const e = walk.currentNode.parentElement;
			if (!walk.currentNode.data.trim() || !seen(e) || e.closest('script, noscript, option, :disabled')) continue;
			const a = light(parse(getComputedStyle(e).color)), b = light(behind(e)), c = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
			if (c < 4.5) wrong.push('contrast ' + c.toFixed(2) + ': ' + e.outerHTML.slice(0, 120));
		}
		return wrong;
	})()`
	inEveryState(t, func(p *tab, name string) {
		for _, wrong := range value[[]string](p, check) {
			p.Errorf("%s: %s", name, wrong)
		}
	})
}

// inEveryState calls f for every state of the page, in light and dark, wide and narrow.
func inEveryState(t *testing.T, f func(p *tab, name string)) {
	for _, system := range []string{"dark", "light"} {
		for _, width := range []int64{1180, 360} {
			p := visit(t, serve(t, nil).URL, prefer(system), chromedp.EmulateViewport(width, 800))
			p.until("document.querySelector('#method option[value=sam]')")
			p.run("window.everything = " + quote(everything))
			for _, place := range places {
				p.run(place.show)
				f(p, fmt.Sprintf("%s, %s, %d wide", place.name, system, width))
				p.picture(fmt.Sprintf("access-%s-%s-%d", place.name, system, width))
			}
		}
	}
}

// TestAxe runs axe-core where GROVE_AXE names its file axe.min.js: it is not part of the repository.
func TestAxe(t *testing.T) {
	name := os.Getenv("GROVE_AXE")
	if name == "" {
		t.Skip("GROVE_AXE names no axe.min.js")
	}
	source, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	inEveryState(t, func(p *tab, name string) {
		p.run(string(source))
		p.run(`window.found = null; axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})
			.then(r => { found = r.violations.flatMap(v => v.nodes.map(n => v.id + ': ' + n.html + ' ' + n.failureSummary)) })`)
		p.until("found")
		for _, wrong := range value[[]string](p, "found") {
			p.Errorf("%s: %s", name, wrong)
		}
	})
}

// TestKeyboard: a chat needs no mouse.
func TestKeyboard(t *testing.T) {
	f := serve(t, says("Yes."))
	p := ready(t, f)
	p.until("document.activeElement === $('text')")
	p.do(chromedp.KeyEvent("Is it?"), enter(8), chromedp.KeyEvent("Sure?"))
	if got := value[string](p, "$('text').value"); got != "Is it?\nSure?" {
		t.Errorf("typed %q", got)
	}
	p.do(enter(0))
	p.answered()
	reached := map[string]bool{}
	for range 60 {
		p.do(chromedp.KeyEvent(kb.Tab))
		reached[value[string](p, "document.activeElement.id || document.activeElement.textContent || document.activeElement.localName")] = true
	}
	for _, want := range []string{"model", "method", "more", "configure", "theme", "text", "send", "New chat", "Copy", "Edit", "Delete", "Regenerate", "41.3 tokens/s1 token"} {
		if !reached[want] {
			t.Errorf("the key Tab does not lead to %s: %v", want, reached)
		}
	}
	p.do(chromedp.Focus(chromedp.CSS("#more")), chromedp.KeyEvent(" "))
	p.until("$('actions').matches(':popover-open')")
	p.do(chromedp.KeyEvent("\u001b"))
	p.until("!$('actions').matches(':popover-open')")
	p.run("dispatchEvent(new KeyboardEvent('keydown', {key: 'o', altKey: true}))")
	p.until("document.querySelectorAll('article').length === 0 && document.activeElement === $('text')")
}

// TestReducedMotion: nothing moves where the reader does not want it.
func TestReducedMotion(t *testing.T) {
	next := make(gate)
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		s := begin(w)
		s.tell(piece{"A", false})
		next.wait(r)
		s.end()
	})
	p := visit(t, f.URL, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	}))
	p.until("document.querySelector('#model').value")
	p.send("Go")
	p.says("article:last-child .body", "A")
	time.Sleep(50 * time.Millisecond)
	if got := value[int](p, "document.getAnimations().length"); got != 0 {
		t.Errorf("%d animations", got)
	}
	next <- struct{}{}
	p.answered()
}
