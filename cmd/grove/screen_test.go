//go:build linux

package main

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// screen is what a terminal shows: the part of a VT100 that programs here use. Characters are grapheme clusters, as in
// the terminals that support them.
type screen struct {
	columns, rows int
	cells         [][]string // of each row; "": blank, "\x00": the second half of a wide character
	x, y          int
	full          bool // the last column was written: the next character begins a row
	gone          []string
	rest          string   // an incomplete sequence or character
	strange       []string // sequences that this terminal does not know
}

func newScreen(columns, rows int) *screen {
	s := &screen{columns: columns, rows: rows}
	s.cells = make([][]string, rows)
	for i := range s.cells {
		s.cells[i] = make([]string, columns)
	}
	return s
}

// resize changes the size as terminals do that cut lines and do not wrap them anew.
func (s *screen) resize(columns int) {
	for i, row := range s.cells {
		s.cells[i] = append(row, make([]string, max(0, columns-len(row)))...)[:columns]
	}
	s.columns, s.x, s.full = columns, min(s.x, columns-1), false
}

// lines returns the rows with text, those that have left the screen first.
func (s *screen) lines() []string {
	all := append([]string(nil), s.gone...)
	for _, row := range s.cells {
		all = append(all, rowText(row))
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

func rowText(row []string) string {
	var b strings.Builder
	for _, c := range row {
		switch c {
		case "":
			b.WriteByte(' ')
		case "\x00":
		default:
			b.WriteString(c)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// Write shows what a program writes.
func (s *screen) Write(b []byte) (int, error) {
	text := s.rest + string(b)
	s.rest = ""
	for text != "" {
		n := s.next(text)
		if n == 0 {
			s.rest = text
			break
		}
		text = text[n:]
	}
	return len(b), nil
}

// next takes a character or a sequence and returns its bytes; 0: it is incomplete.
func (s *screen) next(text string) int {
	switch text[0] {
	case '\r':
		s.x, s.full = 0, false
	case '\n':
		s.down()
	case '\b':
		s.x, s.full = max(0, s.x-1), false
	case '\a':
	case '\t':
		s.x = min(s.columns-1, (s.x/8+1)*8)
	case 0x1b:
		return s.escape(text)
	default:
		end := strings.IndexFunc(text, func(r rune) bool { return r < ' ' })
		if end < 0 {
			end = len(text)
		}
		if !utf8.FullRuneInString(text[:end]) {
			return 0
		}
		cluster, _, width, _ := uniseg.FirstGraphemeClusterInString(text[:end], -1)
		s.put(cluster, width)
		return len(cluster)
	}
	return 1
}

// put shows a character.
func (s *screen) put(cluster string, width int) {
	if width == 0 { // it belongs to the character before
		x := s.x - 1
		if s.full {
			x = s.x
		}
		for x > 0 && s.cells[s.y][x] == "\x00" {
			x--
		}
		if x >= 0 {
			s.cells[s.y][x] += cluster
		}
		return
	}
	if s.full || s.x+width > s.columns {
		s.x, s.full = 0, false
		s.down()
	}
	s.cells[s.y][s.x] = cluster
	for i := 1; i < width && s.x+i < s.columns; i++ {
		s.cells[s.y][s.x+i] = "\x00"
	}
	if s.x += width; s.x >= s.columns {
		s.x, s.full = s.columns-1, true
	}
}

// down moves to the next row.
func (s *screen) down() {
	if s.full = false; s.y < s.rows-1 {
		s.y++
		return
	}
	s.gone = append(s.gone, rowText(s.cells[0]))
	s.cells = append(s.cells[1:], make([]string, s.columns))
}

// escape obeys a sequence and returns its bytes; 0: it is incomplete.
func (s *screen) escape(text string) int {
	if len(text) < 2 {
		return 0
	}
	if text[1] != '[' {
		s.strange = append(s.strange, text[:2])
		return 2
	}
	end := strings.IndexFunc(text[2:], func(r rune) bool { return r >= '@' && r <= '~' })
	if end < 0 {
		return 0
	}
	args, kind := text[2:2+end], text[2+end]
	n, _ := strconv.Atoi(strings.SplitN(args, ";", 2)[0])
	times := max(1, n)
	wasFull := s.full
	s.full = false
	switch kind {
	case 'A':
		s.y = max(0, s.y-times)
	case 'B':
		s.y = min(s.rows-1, s.y+times)
	case 'C':
		s.x = min(s.columns-1, s.x+times)
	case 'D':
		s.x = max(0, s.x-times)
	case 'G':
		s.x = min(s.columns, times) - 1
	case 'J':
		if n == 2 {
			s.erase(0, 0, s.rows)
			break
		}
		s.erase(s.x, s.y, s.rows)
	case 'K':
		s.erase(s.x, s.y, s.y+1)
	case 'm', 'h', 'l', 'q':
		s.full = wasFull
	default:
		s.strange = append(s.strange, text[:3+end])
	}
	return 3 + end
}

// erase erases from a place to the end of the row before row end.
func (s *screen) erase(x, y, end int) {
	for ; y < end; y++ {
		clear(s.cells[y][x:])
		x = 0
	}
}
