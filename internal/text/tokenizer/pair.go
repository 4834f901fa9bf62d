package tokenizer

import (
	"fmt"
	"strings"

	"grove/internal/text/token"
)

// The places of the texts in a form of pairs.
const (
	queryPlace    = "{query}"
	documentPlace = "{document}"
)

// EncodePair returns the ids of a query and a document as rerankers read them. form is the file's text for pairs, which holds {query} and
// {document}; special tokens written in it are parsed, and tokens that begin and end a text are not added. Without one, "", these tokens stand
// around both texts, with the token that separates texts between where the file asks for it. Special tokens written in the query and the
// document are plain text, unlike in llama.cpp. check is asked now and then whether to go on, with the number of
// ids so far; its error ends the work. Errors: a form without one of the
// places, those of [Tokenizer.Encode].
func (t *Tokenizer) EncodePair(query, document, form string, check func(ids int) error) (ids []token.ID, err error) {
	add := func(text string, o Options) {
		if err == nil {
			o.Part = func(part []token.ID) error {
				ids = append(ids, part...)
				return check(len(ids))
			}
			_, err = t.Encode(nil, text, o)
		}
	}
	if form != "" {
		var literal []Span
		if form, literal, err = fill(form, query, document); err == nil {
			add(form, Options{Literal: literal})
		}
		return ids, err
	}
	ids = append(ids, t.begin...)
	add(query, Options{Plain: true})
	ids = append(append(ids, t.end...), t.between...)
	add(document, Options{Plain: true})
	return append(ids, t.end...), err
}

// fill puts both texts into their places, and returns the spans that hold them.
func fill(form, query, document string) (string, []Span, error) {
	for _, place := range []string{queryPlace, documentPlace} {
		if !strings.Contains(form, place) {
			return "", nil, fmt.Errorf("tokenizer: the text for pairs (tokenizer.chat_template.rerank) has no %s", place)
		}
	}
	var b strings.Builder
	var literal []Span
	for form != "" {
		at, size, text := len(form), 0, ""
		if i := strings.Index(form, queryPlace); i >= 0 {
			at, size, text = i, len(queryPlace), query
		}
		if i := strings.Index(form, documentPlace); i >= 0 && i < at {
			at, size, text = i, len(documentPlace), document
		}
		b.WriteString(form[:at])
		if text != "" {
			literal = append(literal, Span{b.Len(), b.Len() + len(text)})
			b.WriteString(text)
		}
		form = form[at+size:]
	}
	return b.String(), literal, nil
}
