package calls

import (
	"fmt"
	"slices"
	"strings"

	"grove/internal/text/answer"
)

// Options say which calls an answer may have.
type Options struct {
	Functions []Function
	Least     int      // calls
	Most      int      // calls; 0: as many as answers are read with
	Remarks   bool     // text may stand before the calls, or in their place where Least is 0
	Content   *Grammar // of text in their place, where Least is 0; none stands before them then. nil: see Remarks
	Tail      string   // the end of the prompt that the template wrote: the answer begins inside the thoughts that it opens
	Quiet     bool     // the model does not think
}

// Answer returns the grammar of whole answers, thoughts included, in the way of a family; f is how answers are read. Errors name the
// function and the part of its schema that the family's form cannot be held to.
func (s *Style) Answer(f answer.Format, o Options) (Grammar, error) {
	least, most := max(1, o.Least), o.Most
	if most == 0 || s.once {
		most = answer.MaxCalls
	}
	if s.once {
		most = 1
	}
	if len(o.Functions) == 0 || least > most {
		return Grammar{}, fmt.Errorf("calls: %d functions, and from %d to %d calls of them", len(o.Functions), least, most)
	}
	made, err := s.calls(o.Functions, least, most)
	switch {
	case err != nil:
		return Grammar{}, err
	case s.channels:
		return s.inChannels(made, o), nil
	}
	if s.begun != "" && strings.HasSuffix(o.Tail, s.begun) {
		made = made.behind(s.begun)
	}
	free := Any(f.Marks()...)
	free.NotFirst, free.NotLast = s.bare, s.notLast
	switch {
	case o.Content != nil && o.Least == 0:
		made = One(made, *o.Content)
	case !o.Remarks && o.Least == 0:
		made = Maybe(made)
	case o.Remarks && o.Least == 0 && s.bare != "": // calls begin the answer, or there are none
		made = One(made, free)
	case o.Remarks && o.Least == 0:
		made = All(free, Maybe(made))
	case o.Remarks && s.bare == "":
		made = All(free, made)
	}
	return Behind(f, o.Tail, made, o.Quiet), nil
}

// behind returns the grammar without the text that it begins with, which the prompt has.
func (g Grammar) behind(begun string) Grammar {
	switch {
	case g.Kind <= Marker:
		g.Text = strings.TrimPrefix(g.Text, begun)
	case g.Kind == Seq:
		g.Of = slices.Clone(g.Of)
		g.Of[0] = g.Of[0].behind(begun)
	case g.Kind == Repeat && g.Min > 0: // the first is without
		rest := g
		rest.Min, rest.Max = g.Min-1, max(g.Max-1, -1)
		return All(g.Of[0].behind(begun), rest)
	case g.Kind == Alt:
		g.Of = slices.Clone(g.Of)
		for i := range g.Of {
			g.Of[i] = g.Of[i].behind(begun)
		}
	}
	return g
}

// The marks of gpt-oss.
const (
	channel = "<|channel|>"
	message = "<|message|>"
)

// bodyEnds are the marks that end the body of a message of gpt-oss.
var bodyEnds = []string{"<|end|>", "<|return|>", "<|call|>", "<|start|>", channel}

// Behind returns the grammar of an answer whose content keeps to a grammar: thoughts may come before it where the family marks them
// and quiet is false. Those that the prompt's tail opens are ended first.
func Behind(f answer.Format, tail string, content Grammar, quiet bool) Grammar {
	if f.Channels() {
		if strings.HasSuffix(strings.TrimSpace(tail), message) {
			return content
		}
		final := All(Mark(channel+"final"), Maybe(Mark(" <|constrain|>json")), Mark(message), content)
		return All(analysis(quiet), final)
	}
	for _, d := range f.Dropped() {
		content = All(Maybe(Mark(d)), content)
	}
	if m, ok := f.Inside(tail); ok {
		return All(Any(m.End), Mark(m.End), blanks(), content)
	}
	var before []Grammar
	for _, m := range f.Thoughts() {
		if strings.HasSuffix(strings.TrimRight(tail, " \t\r\n"), m.End) {
			return content
		}
		before = append(before, All(Mark(m.Begin), Any(m.End), Mark(m.End), blanks()))
	}
	if quiet || len(before) == 0 {
		return content
	}
	return All(Maybe(One(before...)), content)
}

// analysis returns the grammar of the thoughts of gpt-oss, which may be left out.
func analysis(quiet bool) Grammar {
	if quiet {
		return Grammar{Kind: Seq}
	}
	return Maybe(All(Mark(channel+"analysis"+message), Any(bodyEnds...), Mark("<|end|><|start|>assistant")))
}

// inChannels returns the grammar of an answer of gpt-oss that has calls, or an answer where it may.
func (s *Style) inChannels(made Grammar, o Options) Grammar {
	final := Any(bodyEnds...)
	if o.Content != nil {
		final = *o.Content
	}
	if o.Least == 0 && (o.Remarks || o.Content != nil) {
		made = One(made, All(Mark(channel+"final"+message), final))
	}
	return All(analysis(o.Quiet), made)
}
