package terminal

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// keys stands between a terminal and the line editor. To the editor it passes keys, with glyphs for characters, and a
// pasted text as characters without any key among them: its line ends do not end the line. To the terminal it passes the
// output of the editor with what the glyphs stand for. It answers the editor's question for the place of the cursor, which
// is at the beginning of a line: terminals that do not answer would stop the editor. Read and Write may be called at the
// same time.
type keys struct {
	from   io.Reader
	to     io.Writer
	glyphs *glyphs

	mu      sync.Mutex
	ready   []byte // for the editor
	pending []byte // from the terminal, incomplete
	pasting bool
	last    string // the character that the editor got last; "": something else
}

// The sequences that a terminal and the editor exchange.
var (
	pasteBegin = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
	askPlace   = []byte("\x1b[6n")
	placeOne   = []byte("\x1b[1;1R")
)

// plainer makes the output of the editor fit for a terminal in raw mode, without the question, and its search plainer and
// shorter, for narrow terminals.
var plainer = strings.NewReplacer(
	string(askPlace), "", "\n", "\r\n", "failing bck-i-search: ", "not found: ", "failing fwd-i-search: ", "not found: ",
	"bck-i-search: ", "search: ", "fwd-i-search: ", "search on: ",
)

const (
	pasteOn  = "\x1b[?2004h" // the terminal marks what is pasted
	pasteOff = "\x1b[?2004l"
	erase    = "\x7f"
)

// Read implements [io.Reader] for the editor.
func (k *keys) Read(p []byte) (int, error) {
	chunk := make([]byte, 4096)
	for {
		k.mu.Lock()
		n := copy(p, k.ready)
		k.ready = k.ready[n:]
		k.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		n, err := k.from.Read(chunk)
		k.mu.Lock()
		k.pending = append(k.pending, chunk[:n]...)
		for k.take() {
		}
		none := len(k.ready) == 0
		k.mu.Unlock()
		if err != nil && none {
			return 0, err
		}
	}
}

// Write implements [io.Writer] for the editor.
func (k *keys) Write(p []byte) (int, error) {
	k.mu.Lock()
	asked := bytes.Count(p, askPlace)
	for range asked {
		k.ready = append(k.ready, placeOne...)
	}
	output := plainer.Replace(k.glyphs.show(string(p)))
	k.mu.Unlock()
	_, err := io.WriteString(k.to, output)
	return len(p), err
}

// take passes on a key, or a run of characters, and reports whether there was one.
func (k *keys) take() bool {
	b := k.pending
	if len(b) == 0 {
		return false
	}
	if k.pasting {
		return k.takePaste()
	}
	switch {
	case bytes.HasPrefix(b, pasteBegin):
		k.pasting, k.pending = true, b[len(pasteBegin):]
		return true
	case b[0] == 0x1b:
		n := sequence(b)
		if n == 0 {
			return false
		}
		k.pass(b[:n])
		k.pending = b[n:]
		return true
	case b[0] < ' ' || b[0] == 0x7f:
		k.pass(b[:1])
		k.pending = b[1:]
		return true
	}
	n := bytes.IndexFunc(b, func(r rune) bool { return r < ' ' || r == 0x7f })
	if n < 0 {
		n = whole(b)
	}
	k.characters(string(b[:n]))
	k.pending = b[n:]
	return n > 0
}

// takePaste passes on what has come of a pasted text.
func (k *keys) takePaste() bool {
	text, rest, ended := bytes.Cut(k.pending, pasteEnd)
	if !ended {
		n := whole(k.pending)
		for i := max(0, n-len(pasteEnd)+1); i < n; i++ { // the mark may have come in part; so may a line end
			if bytes.HasPrefix(pasteEnd, k.pending[i:]) {
				n = i
			}
		}
		if n > 0 && k.pending[n-1] == '\r' {
			n--
		}
		text, rest = k.pending[:n], k.pending[n:]
	}
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
	k.characters(string(text))
	k.pending, k.pasting = rest, !ended
	return ended
}

// pass passes on a key as it is.
func (k *keys) pass(key []byte) { k.ready, k.last = append(k.ready, key...), "" }

// characters passes on the glyphs of a text. A mark that belongs to the character before makes another of it.
func (k *keys) characters(text string) {
	if text == "" {
		return
	}
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if first, _, _, _ := uniseg.FirstGraphemeClusterInString(k.last+text, -1); k.last != "" && len(first) > len(k.last) {
		k.ready = append(k.ready, erase...)
		text = k.last + text
	}
	k.ready = append(k.ready, string(k.glyphs.of(text))...)
	for state := -1; text != ""; {
		k.last, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
	}
	if glyphs := k.glyphs.of(k.last); len(glyphs) != 1 {
		k.last = "" // the stand-ins are used up
	}
}

// whole returns the length of the characters of a text that have come completely.
func whole(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if start := len(b) - n; utf8.RuneStart(b[start]) {
			if !utf8.FullRune(b[start:]) {
				return start
			}
			break
		}
	}
	return len(b)
}

// sequence returns the length of the escape sequence at the beginning of b; 0: it has not come completely.
func sequence(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	at := 1
	if b[at] == 0x1b { // with Alt
		at++
	}
	if at < len(b) && b[at] != '[' && b[at] != 'O' {
		return at + 1
	}
	for at++; at < len(b); at++ {
		if b[at] != ';' && (b[at] < '0' || b[at] > '9') {
			return at + 1
		}
	}
	return 0
}
