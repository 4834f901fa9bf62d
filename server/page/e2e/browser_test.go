// Package e2e tests the chat page in a real browser: the Chromium that GROVE_CHROMIUM names or that is on the PATH.
// Without one, its tests skip. GROVE_SCREENSHOTS names a folder to keep pictures of the page in.
package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// testTimeout is how long a test waits for an event.
const testTimeout = 20 * time.Second

// chrome is the one browser of all tests; each has a profile of its own in it. nil: there is none.
var chrome context.Context

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "page")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("XDG_CACHE_HOME", dir); err != nil { // what models cost is measured for these tests alone
		log.Fatal(err)
	}
	path := chromium()
	if path == "" {
		return m.Run()
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(filepath.Join(dir, "profile")), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, cancel := chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		log.Printf("%s does not start: %v", path, err)
		return 1
	}
	chrome = ctx
	return m.Run()
}

func chromium() string {
	if path := os.Getenv("GROVE_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// tab is a page under test.
type tab struct {
	testing.TB
	ctx context.Context
	mu  sync.Mutex
	bad []string // what the browser complained about
}

// visit opens a page of a new profile. Exceptions and breaches of the policy fail the test.
func visit(t testing.TB, url string, before ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	if chrome == nil {
		t.Skip("no chromium is on the PATH, and GROVE_CHROMIUM names none")
	}
	p := &tab{TB: t}
	listen := func(e any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := e.(type) {
		case *runtime.EventExceptionThrown:
			p.bad = append(p.bad, fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception))
		case *cdplog.EventEntryAdded:
			if e.Entry.Source != cdplog.EntrySourceNetwork && (e.Entry.Level == cdplog.EntryLevelError || e.Entry.Source == cdplog.EntrySourceSecurity) {
				p.bad = append(p.bad, e.Entry.Text)
			}
		}
	}
	ctx, cancel := chromedp.NewContext(chrome, chromedp.WithNewBrowserContext(), chromedp.WithListener(listen))
	p.ctx = ctx
	if err := chromedp.Do(ctx); err != nil { // opens it, for as long as ctx lasts
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, text := range p.bad {
			t.Errorf("the browser says: %s", text)
		}
	})
	p.do(before...)
	p.do(chromedp.Navigate(url))
	return p
}

// do runs actions.
func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, testTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// value returns what an expression is.
func value[T any](p *tab, expression string) T {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, testTimeout)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

// run runs a statement.
func (p *tab) run(statement string) {
	p.Helper()
	p.do(chromedp.Evaluate[chromedp.Void](statement))
}

// until waits for an expression to be true.
func (p *tab) until(expression string, args ...any) {
	p.Helper()
	expression = fmt.Sprintf(expression, args...)
	for end := time.Now().Add(testTimeout); ; time.Sleep(10 * time.Millisecond) {
		if value[bool](p, "Boolean("+expression+")") {
			return
		}
		if time.Now().After(end) {
			p.Fatalf("never: %s; the page says %q", expression, value[string](p, "document.body.innerText"))
		}
	}
}

// says waits until an element's text is what is wanted.
func (p *tab) says(selector, want string) {
	p.Helper()
	p.until("document.querySelector(%s)?.textContent === %s", quote(selector), quote(want))
}

// quote returns a text as JavaScript writes it.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings can be written
	}
	return string(b)
}

// send types a text and presses Enter; lines of the text end with Shift and Enter.
func (p *tab) send(text string) {
	p.Helper()
	p.until("!document.querySelector('.busy')")
	p.do(chromedp.Focus(chromedp.CSS("#text")))
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			p.do(enter(8)) // Shift
		}
		p.do(chromedp.KeyEvent(line))
	}
	p.do(enter(0))
}

// enter presses Enter as a keyboard does: the page may keep the character from being typed.
func enter(modifiers int64) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		key := input.DispatchKeyEventParams{
			Type: "keyDown", Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13, Modifiers: modifiers,
		}
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, key)
		if err == nil {
			key.Type, key.Text = "keyUp", ""
			_, err = cdp.Call(ctx, t, input.DispatchKeyEvent, key)
		}
		return err
	})
}

// answered waits for the end of an answer.
func (p *tab) answered() {
	p.Helper()
	p.until("document.querySelector('article.assistant:last-child') && !document.querySelector('.busy')")
}

// put types a text into an element.
func (p *tab) put(selector, text string) {
	p.Helper()
	p.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// reload loads the page again.
func (p *tab) reload() {
	p.Helper()
	p.do(chromedp.Reload())
}

// click clicks, with the mouse.
func (p *tab) click(selector string) {
	p.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// picture keeps a picture of the page where they are wanted.
func (p *tab) picture(name string) {
	dir := os.Getenv("GROVE_SCREENSHOTS")
	if dir == "" {
		return
	}
	p.Helper()
	p.do(chromedp.Sleep(300 * time.Millisecond))
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		p.Fatal(err)
	}
}
