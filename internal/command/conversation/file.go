package conversation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"grove"
	"grove/internal/fileio"
	"grove/internal/text/chat"
)

// saved is the file of a conversation.
type saved struct {
	Model    string          `json:"model"`
	Messages []grove.Message `json:"messages"`
}

// save writes the conversation to a file.
func (c *Conversation) save(path string) error {
	if path == "" {
		return errors.New("/save: a file name is missing")
	}
	err := fileio.Check(path, c.Model.Files()...)
	if err == nil {
		err = c.write(path)
	}
	if err != nil {
		return fmt.Errorf("/save: %w", err)
	}
	c.note("%d messages in %s", len(c.all()), path)
	return nil
}

// write writes the file of the conversation.
func (c *Conversation) write(path string) error {
	return fileio.WriteAtomic(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(saved{c.Model.Info().Name, slices.Clip(c.all())})
	})
}

// load continues a conversation that was saved. On error the present one stays.
func (c *Conversation) load(path string) error {
	if path == "" {
		return errors.New("/load: a file name is missing")
	}
	data, err := fileio.ReadRegular(path, mostBytes)
	if err != nil {
		return fmt.Errorf("/load: %w", err)
	}
	var file saved
	if err := json.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("/load: %s: %w", path, err)
	}
	messages, system := file.Messages, ""
	for i, m := range messages {
		if !slices.Contains(chat.Roles, m.Role) {
			return fmt.Errorf("/load: %s: message %d has the role %.40q; it must be one of %s", path, i+1, m.Role, strings.Join(chat.Roles, ", "))
		}
	}
	if len(messages) > 0 && messages[0].Role == "system" {
		system, messages = messages[0].Content, messages[1:]
	}
	if len(messages) == 0 {
		return fmt.Errorf("/load: %s has no messages besides the system message", path)
	}
	c.messages, c.System = messages, system
	c.note("%d messages from %s", len(c.all()), path)
	return nil
}

// mostBytes is the size of the largest conversation that is loaded.
const mostBytes = 64 << 20
