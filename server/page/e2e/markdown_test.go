package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// drawn is an expression: the HTML of a text of Markdown that came whole, and of the same text that came character by character.
func drawn(text string) string {
	return fmt.Sprintf(`(() => {
		const whole = make('div'), slow = make('div'), text = %s;
		const w = new Writer(whole, false); w.add(text, false); w.draw(true);
		const s = new Writer(slow, false); for (const c of text) { s.add(c, false); s.draw(false); } s.draw(true);
		return [whole.innerHTML, slow.innerHTML];
	})()`, quote(text))
}

func link(href, text string) string {
	return fmt.Sprintf(`<a href="%s" title="%s" target="_blank" rel="noopener noreferrer nofollow">%s</a>`, href, href, text)
}

// TestMarkdown: Markdown becomes elements, and a text that comes piece by piece looks in the end as if it had come at once.
func TestMarkdown(t *testing.T) {
	p := visit(t, serve(t, nil).URL)
	code := func(language, inside string) string {
		return `<div class="code"><div class="bar"><span>` + language + `</span><button type="button" aria-label="Copy code">Copy</button></div><pre tabindex="0" role="group" aria-label="Code"><code>` + inside + `</code></pre></div>`
	}
	for name, c := range map[string]struct{ text, want string }{
		"paragraphs": {"a\nb\n\nc", "<p>a\nb</p><p>c</p>"},
		"emphasis":   {"**a** *b* ~~c~~ `d<`", "<p><strong>a</strong> <em>b</em> <del>c</del> <code>d&lt;</code></p>"},
		"headings":   {"# a\n\n###### b", "<h2>a</h2><h6>b</h6>"},
		"lists":      {"- a\n  - b\n- [x] c\n\n3. d\n4. e", "<ul><li>a<ul><li>b</li></ul></li><li>\u2611 c</li></ul><ol start=\"3\"><li>d</li><li>e</li></ol>"},
		"quote":      {"> a\n> b", "<blockquote><p>a\nb</p></blockquote>"},
		"rule":       {"a\n\n---\n\nb", "<p>a</p><hr><p>b</p>"},
		"table":      {"|a|b|\n|-|-:|\n|1<br>2|`3`|", `<div class="table" tabindex="0" role="group" aria-label="Table"><table><thead><tr><th scope="col">a</th><th scope="col" class="right">b</th></tr></thead><tbody><tr><td>1<br>2</td><td class="right"><code>3</code></td></tr></tbody></table></div>`},
		"links":      {"[a](https://x.y/z) http://b.c <d@e.f>", "<p>" + link("https://x.y/z", "a") + " " + link("http://b.c/", "http://b.c") + " " + link("mailto:d@e.f", "d@e.f") + "</p>"},
		"entities":   {"&lt;b&gt; &amp; &#8364; &#xe9; &nope; &constructor; &#x110000;", "<p>&lt;b&gt; &amp; \u20ac \u00e9 &amp;nope; &amp;constructor; \ufffd</p>"},
		"escapes":    {`\*a\* \<b\>`, "<p>*a* &lt;b&gt;</p>"},
		"code":       {"```go\nfor {}\n```", code("go", `<span class="h-keyword">for</span> {}`)},
		"no fence":   {"    a\n", code("", "a")},
		"open fence": {"```\na", code("", "a")},
		"unknown":    {"```constructor x=\"<b>\"\na\n```", code("constructor", "a")},
		"reference":  {"[a]\n\nb\n\n[a]: https://x.y", "<p>" + link("https://x.y/", "a") + "</p><p>b</p>"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &tab{TB: t, ctx: p.ctx}
			got := value[[]string](p, drawn(c.text))
			if d := cmp.Diff(c.want, got[0]); d != "" {
				t.Errorf("whole (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.want, got[1]); d != "" && name != "reference" { // a paragraph that is drawn does not wait for a definition
				t.Errorf("by characters (-want +got):\n%s", d)
			}
		})
	}
}

// hostile are texts of a model that try to become more than text.
var hostile = []string{
	`<script>window.hit = 1</script>`,
	`<img src=/leak onerror="window.hit = 1">`,
	`<svg onload="window.hit = 1"><style>body { display: none }</style></svg>`,
	`<iframe srcdoc="<script>parent.hit = 1</script>"></iframe>`,
	`<a href="javascript:window.hit=1">x</a><form action=/leak><input name=q></form>`,
	`<meta http-equiv=refresh content="0;url=/leak"><base href=/leak/><link rel=stylesheet href=/leak>`,
	"[x](javascript:window.hit=1)", "[x](JaVaScRiPt:window.hit=1)", "[x](\u0001javascript:window.hit=1)", "[x](java&#10;script:window.hit=1)",
	"[x](data:text/html;base64,PHNjcmlwdD4=)", "[x](vbscript:x)", "[x](blob:http://x/y)", "[x](file:///etc/passwd)", "[x](//leak)", "[x](/leak)",
	"![x](/leak)", "![x](http://127.0.0.1:1/leak?secret)", "![x][1]\n\n[1]: javascript:window.hit=1", "<javascript:window.hit=1>",
	"[x](https://a.b/\" onclick=\"window.hit=1)", "[a](<https://x.y/\"><img src=/leak>)", "`<img src=/leak>`",
	"```html\n<script>window.hit = 1</script><img src=/leak onerror=window.hit=1>\n```", "```<img/src=/leak>\nx\n```", "```\"><script>\nx",
	"|<img src=/leak>|\n|-|\n|<script>window.hit=1</script>|", "# <b onclick=window.hit=1>x</b>", "&lt;script&gt;window.hit=1&lt;/script&gt;",
	"<!-- --!><script>window.hit=1</script>", "<![CDATA[<script>window.hit=1</script>]]>", "<math><mtext></table><img src=/leak></mtext></math>",
}

// TestHostileMarkdown: no text of a model becomes HTML, runs, or loads anything; links lead to the web and to mail alone.
func TestHostileMarkdown(t *testing.T) {
	var all []piece
	for _, text := range hostile {
		all = append(all, piece{text, false}, piece{"\n\n", false})
	}
	f := serve(t, tells(all...))
	p := visit(t, f.URL)
	p.until("document.querySelector('#model').value")
	p.send("Go")
	p.answered()
	p.do() // what was begun has come
	time.Sleep(200 * time.Millisecond)
	p.check()
	for i, text := range hostile { // each by itself
		p.run(fmt.Sprintf(`{ const e = make('div', {className: 'body'}); const w = new Writer(e, false); w.add(%s, true); w.draw(true); document.querySelector('.body').append(e); }`, quote(text)))
		if got := value[string](p, "document.querySelector('.body').lastChild.textContent"); got == "" {
			t.Errorf("text %d is not shown", i)
		}
	}
	time.Sleep(200 * time.Millisecond)
	p.check()
	if got := f.strays(); len(got) != 0 {
		t.Errorf("the page asked for %q", got)
	}
}

// check fails where the text of an answer has become more than text.
func (p *tab) check() {
	p.Helper()
	if value[bool](p, "'hit' in window") {
		p.Error("a script of the model ran")
	}
	const allowed = "p pre code span div button a strong em del blockquote ul ol li table thead tbody tr th td br hr h2 h3 h4 h5 h6"
	if got := value[[]string](p, fmt.Sprintf(`[...document.querySelectorAll('article .body *')].filter(e => !%s.includes(e.localName)
		|| [...e.attributes].some(a => !['class', 'href', 'title', 'target', 'rel', 'tabindex', 'role', 'aria-label', 'type', 'scope', 'start'].includes(a.name))).map(e => e.outerHTML)`, quote(allowed)+".split(' ')")); len(got) != 0 {
		p.Errorf("elements of the model: %q", got)
	}
	if got := value[[]string](p, `[...document.querySelectorAll('article .body a')].filter(a => !/^(https?|mailto):/.test(a.href) || !a.rel.includes('noopener') || a.target !== '_blank').map(a => a.outerHTML)`); len(got) != 0 {
		p.Errorf("links of the model: %q", got)
	}
}

// TestLongMarkdown: what takes a parser long, or overflows its stack, is shown within a bound of time, with every character.
func TestLongMarkdown(t *testing.T) {
	p := visit(t, serve(t, nil).URL)
	const n = 60_000
	for _, text := range []string{"> ", ">", "[", "*", "*a ", "_a_", "`", "`a ``b ", "![", "<", "<a ", "<!--", "- ", "|", "&", "\\", "[a](", "~~a", "# ", "**_*", "1. ", "**a", "- a\n  ", "a|b\n-|-\n", "[a]: b\n", "```go\n", "\n", "\t", "```\n```\n", "\u202e", "\u0000", "a\n\n", "a\n\n" + strings.Repeat("> ", 8000) + "\n\n", "```\n```\n" + strings.Repeat(">", 9000)} {
		t.Run(fmt.Sprintf("%.9q", text), func(t *testing.T) {
			p := &tab{TB: t, ctx: p.ctx}
			source := fmt.Sprintf("%s.repeat(%d)", quote(text), n/len(text))
			got := value[float64](p, fmt.Sprintf(`(() => { const w = new Writer(make('div'), false), began = performance.now(); w.add(%s, false); w.draw(true);
				return w.kept === w.source.length ? performance.now() - began : -1; })()`, source))
			if got < 0 || got > 15000 { // other work may share the machine
				t.Errorf("%.0f ms", got)
			}
		})
	}
	long := strings.Repeat("line of text\n", 3000)
	for name, c := range map[string]struct {
		text string
		want int // characters
	}{
		"code": {"a\n\n```go\n" + long + "```\n\nb", len("a") + len("goCopy") + len(long) + len("b")}, "paragraph": {long + "\n" + long, 2 * len(long)}, "list": {"- a\n" + strings.Repeat("- b\n", 10_000), 0},
	} {
		got := value[int](p, fmt.Sprintf(`(() => { const e = make('div'), w = new Writer(e, false); w.add(%s, false); w.draw(true); return e.textContent.length; })()`, quote(c.text)))
		if c.want != 0 && (got < c.want-5 || got > c.want+5) || got < 10_000 {
			t.Errorf("%s: %d characters are shown, want %d", name, got, c.want)
		}
	}
}

// TestTint: the characters that were drafted are tinted through every kind of markup.
func TestTint(t *testing.T) {
	p := visit(t, serve(t, nil).URL)
	for text, want := range map[string][]string{
		"a ~b~ c":                                {"b"},
		"**a~b** c~ d":                           {"b", " c"},
		"- x\n  - ~y~\n\n> > ~q~ r":              {"y", "q"},
		"[a](https://a.b/a) ~a~":                 {"a"},
		"|a|b|\n|-|-|\n|~1|2~|":                  {"1", "2"},
		"```go\n~go~ x\n```":                     {"go"},
		"1. a\n\n   ```\n   a\n   ~a~\n   ```\n": {"a"},
		"`~c~` \\*~d~":                           {"c", "d"},
	} {
		var add strings.Builder
		for i, part := range strings.Split(text, "~") {
			fmt.Fprintf(&add, "w.add(%s, %t);", quote(part), i%2 == 1)
		}
		got := value[[]string](p, fmt.Sprintf(`(() => { const e = make('div'), w = new Writer(e, false); %s w.draw(true); return [...e.querySelectorAll('.draft')].map(d => d.textContent); })()`, add.String()))
		if !cmp.Equal(got, want) {
			t.Errorf("%q: tinted %q, want %q", text, got, want)
		}
	}
}
