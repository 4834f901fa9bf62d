package terminal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"grove/internal/fileio"
)

// The bounds of a history.
const (
	historyMessages = 1000      // that are kept
	historyMessage  = 64 << 10  // bytes of a message; longer ones are not kept
	historyFile     = 8 << 20   // bytes at the end of a file that are read
	historyMode     = 0o600     // messages are nobody else's matter
	historyName     = "history" // in grove's directory
)

// history is a file of messages, each a line of JSON, the oldest first. Several programs may add to it. A nil history keeps
// nothing.
type history struct{ path string }

// historyPath returns the file of messages of earlier conversations: grove/history in XDG_STATE_HOME, or else in the user's
// cache directory.
func historyPath() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			return "", fmt.Errorf("history: %w; --no-history does without", err)
		}
	}
	return filepath.Join(dir, "grove", historyName), nil
}

// read returns the messages of the file, none where it does not exist. A file that has more is made shorter. An error may
// come beside messages.
func (h *history) read() ([]string, error) {
	if h == nil {
		return nil, nil
	}
	f, err := fileio.OpenRegular(h.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	if skip := info.Size() - historyFile; skip > 0 {
		_, err = f.Seek(skip, io.SeekStart)
	}
	data, err2 := io.ReadAll(io.LimitReader(f, historyFile))
	if err := errors.Join(err, err2); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	messages, damaged := parseHistory(data)
	if n := len(messages) - historyMessages; n > 0 || info.Size() > historyFile {
		messages = messages[max(0, n):]
		err = h.replace(messages)
	}
	if damaged > 0 {
		err = errors.Join(err, fmt.Errorf("history: %s: %d lines are damaged and left out", h.path, damaged))
	}
	return messages, err
}

// parseHistory returns the messages of a file, and how many of its lines are none.
func parseHistory(data []byte) (messages []string, damaged int) {
	for line := range bytes.Lines(data) {
		var m string
		if err := json.Unmarshal(line, &m); err != nil || m == "" || len(m) > historyMessage {
			damaged++
			continue
		}
		messages = append(messages, m)
	}
	return messages, damaged
}

// add adds a message. One that begins with a space is a secret, and is not kept.
func (h *history) add(message string) error {
	if h == nil || strings.TrimSpace(message) == "" || strings.HasPrefix(message, " ") || len(message) > historyMessage {
		return nil
	}
	line, err := json.Marshal(message)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(h.path), 0o755)
	}
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, historyMode)
	if err == nil {
		_, err = f.Write(append(line, '\n'))
		err = errors.Join(err, f.Chmod(historyMode), f.Close())
	}
	if err != nil {
		return fmt.Errorf("history: %w; this conversation goes on without", err)
	}
	return nil
}

// replace writes the file anew with the messages.
func (h *history) replace(messages []string) error {
	f, err := os.CreateTemp(filepath.Dir(h.path), historyName+"-*") // for its owner alone
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	w := bufio.NewWriter(f)
	e := json.NewEncoder(w)
	for _, m := range messages {
		err = errors.Join(err, e.Encode(m))
	}
	if err = errors.Join(err, w.Flush(), f.Close()); err == nil {
		err = os.Rename(f.Name(), h.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("history: %w", err)
	}
	return nil
}
