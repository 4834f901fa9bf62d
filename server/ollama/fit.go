package ollama

import (
	"cmp"
	"errors"
	"fmt"
	"sort"

	"grove"
	"grove/server/driver"
	"grove/server/structured"
	"grove/server/wire"
)

// ask makes a request with the prompt of a conversation the one of the generation. Where the prompt is too long it drops the oldest messages, as
// ollama does, unless truncate is false.
func (q *chatRequest) ask(g *driver.Generation, r grove.Request, c *driver.Chat, format *structured.Form) error {
	most := q.Options.context(g.Model)
	p, err := c.Prompt(g.R.Context(), g.Model)
	if err == nil && len(p.Tokens) > most {
		err = &grove.PromptError{Tokens: len(p.Tokens), Context: most}
	}
	if errors.Is(err, grove.ErrContext) {
		if q.Truncate != nil && !*q.Truncate {
			return q.tooLong(err, "and truncate is false")
		}
		var dropped int
		if p, dropped = drop(g, c, most); dropped == 0 {
			return q.tooLong(err, "without any message that could be dropped, too")
		}
		g.Server.Log.WarnContext(g.R.Context(), "messages are dropped from a prompt that is too long", "number", dropped, "messages", len(q.Messages), "context", most)
		g.Ignored(fmt.Sprintf("messages:%d", dropped))
		err = nil
	}
	if err != nil {
		return err
	}
	if most < g.Model.Info.Context {
		r.MaxTokens = min(cmp.Or(r.MaxTokens, most), max(1, most-len(p.Tokens)))
	}
	return g.AskPrompt(r, c, p, format, nil)
}

// bound holds a prompt that is no conversation, and its answer, to the context that the request asks for.
func (q *common) bound(g *driver.Generation, r *grove.Request) error {
	most := q.Options.context(g.Model)
	if n := len(r.PromptIDs); n > most {
		return q.tooLong(&grove.PromptError{Tokens: n, Context: most}, "and a prompt is not cut")
	}
	if most < g.Model.Info.Context {
		r.MaxTokens = min(cmp.Or(r.MaxTokens, most), max(1, most-len(r.PromptIDs)))
	}
	return nil
}

// tooLong returns the answer to a request whose prompt does not fit.
func (q *common) tooLong(err error, why string) error {
	e := *wire.ErrorOf(err)
	if e.Param, e.Message = "prompt", e.Message+", "+why; q.Options.Context != nil {
		e.Param = "num_ctx"
	}
	return &e
}

// drop drops the oldest messages of a conversation, but none of the system and not the last one, until its prompt has no more tokens than most, and
// returns that and how many it dropped; 0: no prompt is short enough. What is left begins with a question where one is short enough, and never
// with the result of a call that is dropped.
func drop(g *driver.Generation, c *driver.Chat, most int) (p grove.ChatPrompt, dropped int) {
	all := c.Messages
	defer func() { c.Most = 0 }()
	c.Most = most
	fits := func(cut int) bool {
		c.Messages, c.Origins = nil, nil
		for i, m := range all {
			if i >= cut || isSystem(m.Role) {
				c.Messages, c.Origins = append(c.Messages, m), append(c.Origins, i)
			}
		}
		var err error
		p, err = c.Prompt(g.R.Context(), g.Model)
		return err == nil && len(p.Tokens) <= most
	}
	var questions, others []int
	for i, m := range all[1:] {
		switch m.Role {
		case "user":
			questions = append(questions, i+1)
		case "tool":
		default:
			others = append(others, i+1)
		}
	}
	for _, cuts := range [][]int{questions, others} {
		at := sort.Search(len(cuts), func(i int) bool { return fits(cuts[i]) })
		if at < len(cuts) && fits(cuts[at]) {
			return p, len(all) - len(c.Messages)
		}
	}
	c.Messages, c.Origins = all, nil
	return p, 0
}

func isSystem(role string) bool { return role == "system" || role == "developer" }
