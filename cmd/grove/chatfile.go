package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"grove"
	"grove/internal/atomicfile"
	"grove/text/chat"
)

// savedChat is what /save writes.
type savedChat struct {
	Model    string          `json:"model"`
	Messages []grove.Message `json:"messages"`
}

// save writes the conversation.
func (l *chatLoop) save(path string) error {
	if path == "" {
		return errors.New("/save: no file is named")
	}
	err := atomicfile.Write(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(savedChat{l.model.Info().Name, slices.Clip(l.all())})
	})
	if err != nil {
		return fmt.Errorf("/save: %w", err)
	}
	l.note("%d messages in %s", len(l.all()), path)
	return nil
}

// load goes on with a conversation that was saved. On error the present one stays as it is.
func (l *chatLoop) load(path string) error {
	if path == "" {
		return errors.New("/load: no file is named")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("/load: %w", err)
	}
	var saved savedChat
	if err := json.Unmarshal(data, &saved); err != nil {
		return fmt.Errorf("/load: %s: %w", path, err)
	}
	messages, system := saved.Messages, ""
	for i, m := range messages {
		if !slices.Contains(chat.Roles, m.Role) {
			return fmt.Errorf("/load: %s: message %d has the role %.40q; known are %s", path, i+1, m.Role, strings.Join(chat.Roles, ", "))
		}
	}
	if len(messages) > 0 && messages[0].Role == "system" {
		system, messages = messages[0].Content, messages[1:]
	}
	if len(messages) == 0 {
		return fmt.Errorf("/load: %s holds no messages", path)
	}
	l.messages, l.system = messages, system
	l.note("%d messages from %s", len(l.all()), path)
	return nil
}
