package pretoken

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/runes"
	"golang.org/x/text/unicode/norm"
)

// Space is the space of SentencePiece, U+2581.
const Space = "\u2581"

// Bert is the normalisation of BERT (Devlin et al. 2018), as in Hugging Face's tokenizers. (llama.cpp removes all marks, not only
// \p{Mn}, and the vowels of Hangul.)
type Bert struct {
	Clean      bool // white space becomes spaces; control characters and U+FFFD go
	Ideographs bool // a space goes before and after each
	Accents    bool // they are taken off
	Lower      bool
}

// Normalize returns the text normalised.
func (b Bert) Normalize(text string) string {
	text = strings.Map(b.replace, text)
	if b.Ideographs {
		text = spaceIdeographs(text)
	}
	if b.Accents && !isASCII(text) {
		text = runes.Remove(runes.In(unicode.Mn)).String(norm.NFD.String(text))
	}
	if b.Lower {
		text = Lowercase(text)
	}
	return text
}

func (b Bert) replace(r rune) rune {
	switch {
	case !b.Clean:
	case r == '\t' || r == '\n' || r == '\r':
		return ' '
	case r == utf8.RuneError || unicode.Is(unicode.C, r):
		return -1
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}

// spaceIdeographs puts a space before and after each character of the blocks that BERT lists.
func spaceIdeographs(text string) string {
	if isASCII(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if r >= firstHan && ideographs(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

var ideographs = ranges("\u4E00-\u9FFF\u3400-\u4DBF\U00020000-\U0002A6DF\U0002A700-\U0002B73F\U0002B740-\U0002B81F" +
	"\U0002B920-\U0002CEAF\uF900-\uFAFF\U0002F800-\U0002FA1F")

// Lowercase maps each character by itself, so a final sigma is like any other.
func Lowercase(text string) string {
	if strings.ContainsRune(text, 'İ') {
		text = strings.ReplaceAll(text, "İ", "i\u0307") // the only character that becomes two
	}
	return strings.ToLower(text)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// StripAccents removes \p{M}.
func StripAccents(text string) string { return runes.Remove(runes.In(unicode.M)).String(text) }

var manySpaces = regexp.MustCompile(" {2,}")

// ReplaceSpaces replaces each run of two or more spaces by the same text.
func ReplaceSpaces(text, by string) string { return manySpaces.ReplaceAllLiteralString(text, by) }

// SpaceBefore puts a space before text that does not begin with one.
func SpaceBefore(text string) string {
	if text == "" || text[0] == ' ' {
		return text
	}
	return " " + text
}

// SpaceFields puts one space before each word and removes other white space.
func SpaceFields(text string) string {
	var b strings.Builder
	b.Grow(len(text) + 1)
	for word := range strings.FieldsSeq(text) {
		b.WriteString(SpaceBefore(strings.ReplaceAll(word, Space, " ")))
	}
	return b.String()
}
