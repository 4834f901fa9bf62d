package openai

import (
	"errors"
	"fmt"
	"sort"

	"grove"
	"grove/server/driver"
)

// fit adds the prompt of the conversation. Where it does not fit the context and truncation is auto, the oldest messages are left out until it
// does; instructions stay.
func (q *responsesRequest) fit(g *driver.Generation, c *chatRequest) (chat driver.Chat, err error) {
	chat, err = c.prompt(g)
	if q.Truncation == nil || *q.Truncation != "auto" || !tooLong(g, err) {
		return chat, err
	}
	all, origins := c.Messages, c.origins
	cuts := cutsOf(all)
	try := func(i int) bool {
		c.Messages, c.origins = behind(all, origins, cuts[i])
		chat, err = c.prompt(g)
		return !tooLong(g, err)
	}
	at := sort.Search(len(cuts), try)
	for i := at; i < len(cuts); i++ { // a conversation begins with a message of the user where one is left
		if all[cuts[i]].Role == "user" {
			at = i
			break
		}
	}
	if at = min(at, len(cuts)-1); at < 0 {
		return chat, err
	}
	if try(at) && err == nil {
		n := len(all) - len(c.Messages)
		g.Server.Log.InfoContext(g.R.Context(), "the oldest messages of a conversation are left out", "number", n)
		g.Ignored(fmt.Sprintf("truncation auto: %d messages", n))
	}
	return chat, err
}

// tooLong reports whether the prompt leaves no room for an answer.
func tooLong(g *driver.Generation, err error) bool {
	return errors.Is(err, grove.ErrContext) || err == nil && len(g.Prompts) > 0 && len(g.Prompts[0].PromptIDs) >= g.Model.Info.Context
}

func isInstruction(m *message) bool { return m.Role == "system" || m.Role == "developer" }

// cutsOf returns the indices at which a shorter conversation may begin: those of messages behind the first that are no instructions, and no
// outputs of calls, whose calls would be gone.
func cutsOf(all []message) (cuts []int) {
	first := true
	for i := range all {
		if isInstruction(&all[i]) {
			continue
		}
		if !first && all[i].Role != "tool" {
			cuts = append(cuts, i)
		}
		first = false
	}
	return cuts
}

// behind returns the messages from an index on, and the instructions before it.
func behind(all []message, origins []int, cut int) (rest []message, from []int) {
	for i := range all {
		if i >= cut || isInstruction(&all[i]) {
			rest, from = append(rest, all[i]), append(from, origins[i])
		}
	}
	return rest, from
}
