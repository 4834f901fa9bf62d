package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"

	"grove/internal/fileio"
	"grove/server/wire"
)

// Key is a key of the server.
type Key struct {
	Name     string // in logs, and of the folder of its sessions; "": its number in the list stands for it
	Secret   string
	Requests int // a minute; 0: no bound
	Tokens   int // a minute, of prompts and answers; 0: no bound

	Priority *int // the most urgent, lowest one that requests may ask for; nil: that of [Config]
	Operator bool // the key sees what all keys do together; keys without names always do
}

// The bounds of keys.
const (
	maxKeyFile = 1 << 20 // bytes
	maxKeys    = 10_000
	maxSecret  = 512 // bytes
	maxName    = 64  // bytes
	maxRate    = 1_000_000_000
)

// ReadKeys reads a file of keys; see [ParseKeys]. It reads at most 1 MiB.
func ReadKeys(path string) ([]Key, error) {
	text, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	return ParseKeys(path, text)
}

// ReadSecrets reads a file of keys without names, one a line, as llama.cpp has it.
func ReadSecrets(path string) (keys []Key, err error) {
	text, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if secret := strings.TrimSpace(line); secret != "" {
			keys = append(keys, Key{Secret: secret})
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: %s has no key; write one a line", ErrConfig, path)
	}
	return keys, nil
}

func readBounded(path string) ([]byte, error) {
	text, err := fileio.ReadRegular(path, maxKeyFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return text, nil
}

// Exposed reports whether every user of the machine may read a file, as its mode says; on Windows modes do not.
func Exposed(path string) bool {
	info, err := os.Stat(path)
	return runtime.GOOS != "windows" && err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0
}

// ParseKeys reads the text of a file of keys. Each line is NAME:KEY, and behind it, with commas between, limits a minute,
// requests=N/min and tokens=N/min, and rights, priority=N and operator. Empty lines and those that begin with # are skipped. Errors
// name the file and the line, never a key.
func ParseKeys(file string, text []byte) (keys []Key, err error) {
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(strings.TrimPrefix(line, "\ufeff"))
		if line == "" || line[0] == '#' {
			continue
		}
		k, err := parseKey(line)
		if err == nil {
			_, err = checkKeys([]Key{k})
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: line %d: %w", ErrConfig, file, number, err)
		}
		if keys = append(keys, k); len(keys) > maxKeys {
			break
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: %s has no key; write NAME:KEY, one a line", ErrConfig, file)
	}
	if _, err := checkKeys(keys); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, file, err)
	}
	return keys, nil
}

func parseKey(line string) (k Key, err error) {
	name, rest, found := strings.Cut(line, ":")
	if !found || name == "" {
		return k, errors.New("a line is NAME:KEY[,requests=N/min][,tokens=N/min][,priority=N][,operator]; this one has no name")
	}
	secret, limits, limited := strings.Cut(rest, ",")
	k.Name, k.Secret = strings.TrimSpace(name), strings.TrimSpace(secret)
	if k.Secret == "" {
		return k, errors.New("a line is NAME:KEY[,requests=N/min][,tokens=N/min][,priority=N][,operator]; this one has no key")
	}
	for limited {
		var limit string
		limit, limits, limited = strings.Cut(limits, ",")
		if err := k.set(strings.TrimSpace(limit)); err != nil {
			return k, err
		}
	}
	return k, nil
}

// set sets a limit or a right that is written behind a key.
func (k *Key) set(text string) error {
	what, value, valued := strings.Cut(text, "=")
	to := map[string]*int{"requests": &k.Requests, "tokens": &k.Tokens}[what]
	switch {
	case to != nil && *to != 0, what == "priority" && k.Priority != nil, what == "operator" && k.Operator:
		return fmt.Errorf("%s is there twice", what)
	case to != nil:
		digits, minutes := strings.CutSuffix(value, "/min")
		n, err := strconv.Atoi(digits)
		if !minutes || err != nil || n < 1 || n > maxRate {
			return fmt.Errorf("%s=%s; it must be from 1/min to %d/min", what, wire.Clip(value), maxRate)
		}
		*to = n
	case what == "priority":
		n, err := strconv.Atoi(value)
		if err != nil || CheckPriority(n) != nil {
			return fmt.Errorf("priority=%s; it must be from %d (the most urgent) to %d", wire.Clip(value), mostUrgent, leastUrgent)
		}
		k.Priority = &n
	case what == "operator" && !valued:
		k.Operator = true
	default: // the text may be a part of a key, which has no place in an error
		return errors.New("the text behind the key is none of requests=N/min, tokens=N/min, priority=N and operator")
	}
	return nil
}

// checkKeys returns the callers of keys. It refuses names and keys that cannot be used or are there twice. Names that differ in case
// alone are one: a folder is named after them.
func checkKeys(keys []Key) (all []*Caller, err error) {
	if len(keys) > maxKeys {
		return nil, fmt.Errorf("more than %d keys", maxKeys)
	}
	names, secrets := map[string]bool{}, map[[sha256.Size]byte]string{}
	for i, k := range keys {
		c := newCaller(k, "#"+strconv.Itoa(i+1))
		switch {
		case k.Name != "" && !isKeyName(k.Name):
			return nil, fmt.Errorf("the name of a key has something else than up to %d letters, digits, '-' and '_'", maxName) // it may be a key
		case strings.TrimSpace(k.Secret) == "":
			return nil, fmt.Errorf("the key %s is empty", c.name)
		case len(k.Secret) > maxSecret || strings.IndexFunc(k.Secret, func(c rune) bool { return c <= ' ' || c > '~' }) >= 0:
			return nil, fmt.Errorf("the key %s has more than %d bytes, a space, or a letter beyond ASCII", c.name, maxSecret)
		case names[strings.ToLower(c.name)]:
			return nil, fmt.Errorf("two keys are called %q", c.name)
		case secrets[c.sum] != "":
			return nil, fmt.Errorf("the keys %s and %s are equal", secrets[c.sum], c.name)
		}
		names[strings.ToLower(c.name)], secrets[c.sum] = true, c.name
		all = append(all, c)
	}
	return all, nil
}

func isKeyName(s string) bool {
	return len(s) <= maxName && strings.IndexFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	}) < 0
}

// SetKeys replaces the keys. What a key has used of its limits stays used where its name and limits stay. A gate that was made without
// keys takes none, and one that was made with keys takes no empty list: who may call without a key is decided once. After an error the
// old keys stay.
func (g *Gate) SetKeys(keys []Key) error {
	if (len(keys) > 0) != g.keyed {
		return fmt.Errorf("%w: whether requests need a key does not change while the server runs", ErrConfig)
	}
	all, err := checkKeys(keys)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	before := map[string]*Caller{}
	for _, c := range *g.keys.Load() {
		before[c.folder] = c
	}
	for _, c := range all {
		c.gate = g
		if old := before[c.folder]; old != nil && old.requests.equals(c.requests) && old.tokens.equals(c.tokens) {
			c.requests, c.tokens = old.requests, old.tokens
		}
	}
	g.keys.Store(&all)
	return nil
}

// Owner returns the caller whose sessions and files are in a folder; nil: there is none. "" is the folder of clients without keys.
func (g *Gate) Owner(folder string) *Caller {
	if !g.keyed {
		if folder == "" {
			return &g.anyone
		}
		return nil
	}
	for _, c := range *g.keys.Load() {
		if c.folder == folder {
			return c
		}
	}
	return nil
}

// Keyed reports whether requests must show a key.
func (g *Gate) Keyed() bool { return g.keyed }

// Caller returns the owner of the key that a request shows, or who calls a server without keys. It compares all keys, in constant time.
func (g *Gate) Caller(r *http.Request) (*Caller, error) {
	if !g.keyed {
		return &g.anyone, nil
	}
	key, err := shown(r)
	if err != nil {
		return nil, err
	}
	all := *g.keys.Load()
	sum, found := sha256.Sum256([]byte(key)), 0
	for i, c := range all {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], c.sum[:]), i+1, found)
	}
	if found == 0 {
		return nil, wire.ErrKey
	}
	return all[found-1], nil
}

// KeyHeaders are the headers that show a key: OpenAI's, Anthropic's and Azure's.
var KeyHeaders = []string{"Authorization", "X-Api-Key", "Api-Key"}

// shown returns the key that a request shows: of OpenAI's, Anthropic's or Azure's header; "": none. It refuses a header that is there
// twice, of which a proxy may have checked the other one, and another scheme than Bearer where no other header has a key.
func shown(r *http.Request) (string, error) {
	var keys []string
	other := ""
	for _, name := range KeyHeaders {
		values := r.Header.Values(name)
		if len(values) > 1 {
			return "", noKey("the header %s is there %d times; send it once", name, len(values))
		}
		if len(values) == 0 || values[0] == "" {
			continue
		}
		if name != "Authorization" {
			keys = append(keys, values[0])
			continue
		}
		scheme, key, _ := strings.Cut(values[0], " ")
		if strings.EqualFold(scheme, "Bearer") {
			keys = append(keys, strings.TrimSpace(key))
		} else {
			other = name
		}
	}
	switch {
	case len(keys) > 0:
		return keys[0], nil
	case other != "":
		return "", noKey("the header Authorization has another scheme than Bearer; send Authorization: Bearer KEY") // it may be a key, which has no place in an error
	}
	return "", nil
}

// noKey is [wire.ErrKey] with a reason.
func noKey(format string, args ...any) error {
	e := *wire.ErrKey
	e.Message = fmt.Sprintf(format, args...)
	return &e
}

// folderOf returns the name of the folder of a key's sessions. No session and no other key has that name.
func folderOf(k Key) string {
	if k.Name != "" {
		return "@" + strings.ToLower(k.Name)
	}
	sum := sha256.Sum256([]byte("grove sessions\x00" + k.Secret))
	return "@." + hex.EncodeToString(sum[:8])
}
