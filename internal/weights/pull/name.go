package pull

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// Kind says where a model comes from.
type Kind int

// The kinds of a [Ref].
const (
	Hub      Kind = iota + 1 // a repository of Hugging Face
	Registry                 // ollama's registry, or another of its form
	URL                      // a GGUF file at an address
)

// MaxName is the longest name in bytes.
const MaxName = 2048

// Ref is the parsed name of a model. Make it with [Parse].
type Ref struct {
	Kind  Kind
	Hub   HubModel     // of Kind Hub
	Model RegistryName // of Kind Registry
	URL   *url.URL     // of Kind URL
}

// String returns the name in its shortest form. The query of an address, which may hold a signature, is left out.
func (r Ref) String() string {
	switch r.Kind {
	case Hub:
		text := r.Hub.Repo
		if r.Hub.File != "" {
			text += "/" + r.Hub.File
		}
		if r.Hub.Tag != "" {
			text += ":" + r.Hub.Tag
		}
		return text
	case Registry:
		return r.Model.String()
	case URL:
		return (&url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: r.URL.Path}).String()
	}
	return ""
}

// Local returns the name by which package find finds the model when it was pulled.
func (r Ref) Local() string {
	if r.Kind != URL {
		return strings.TrimSuffix(r.String(), ".gguf")
	}
	return strings.TrimSuffix(path.Base(r.URL.Path), ".gguf")
}

// From returns the host from which the model is pulled, of a repository that of the variable HF_ENDPOINT, if it is set.
func (r Ref) From() string {
	switch r.Kind {
	case Hub:
		u, err := ParseEndpoint(first(os.Getenv("HF_ENDPOINT"), DefaultEndpoint))
		if err != nil {
			return "HF_ENDPOINT"
		}
		return u.Host
	case Registry:
		return r.Model.Host
	case URL:
		return r.URL.Host
	}
	return ""
}

// Parse reads the name of a model that can be pulled:
//
//   - org/name or org/name:TAG, also with hf.co/ or huggingface.co/ before it, and the address of a repository or of a file on
//     huggingface.co: a repository of Hugging Face. TAG is a part of a file's name, such as Q4_K_M;
//   - name, name:tag, library/name:tag, and ollama.com/namespace/name:tag: a model of ollama's registry;
//   - host/namespace/name:tag, where the host has a dot or a port or is localhost: a model of another registry;
//   - http:// or https:// and an address whose path ends in .gguf.
//
// The name of a file or a path is refused.
func Parse(name string) (r Ref, err error) {
	if r, err = parse(name); err != nil {
		err = fmt.Errorf("pull: %.200q: %w", name, err)
	}
	return r, err
}

func parse(name string) (Ref, error) {
	switch {
	case name == "" || len(name) > MaxName:
		return Ref{}, fmt.Errorf("it has %d bytes; a name has 1 to %d", len(name), MaxName)
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '\\' }):
		return Ref{}, errors.New("a name has no spaces, backslashes and control characters")
	case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
		return parseURL(name)
	}
	host, rest, _ := strings.Cut(name, "/")
	switch strings.ToLower(host) {
	case "hf.co", "huggingface.co", "www.huggingface.co":
		return parseHub(rest)
	case "ollama.com", "www.ollama.com", "registry.ollama.ai":
		return parseRegistry(DefaultHost, rest)
	}
	parts := strings.Split(name, "/")
	isHost := strings.ContainsAny(host, ".:") || host == "localhost"
	switch {
	case strings.HasSuffix(strings.ToLower(name), ".gguf"):
		return Ref{}, errors.New("it is the name of a file; to pull one file of a repository, write org/name:FILE without .gguf")
	case strings.ContainsAny(name[:1], "./~"), len(parts) == 1 && len(host) > 1 && host[1] == ':':
		return Ref{}, errors.New("it is a path")
	case len(parts) == 1, len(parts) == 2 && host == DefaultNamespace:
		return parseRegistry(DefaultHost, name)
	case len(parts) == 3 && isHost, len(parts) == 2 && (strings.Contains(host, ":") || host == "localhost"):
		return parseRegistry(host, rest)
	case len(parts) == 2:
		return parseHub(name)
	}
	return Ref{}, errors.New("it is no name of a model: write org/name:TAG for Hugging Face, name:tag for ollama's registry, or the address of a GGUF file")
}

// The bounds of names, in bytes. The expressions do not count: an expression that does is large, and each start of a program compiles it.
const (
	maxRepoPart = 96
	maxFileTag  = 200
)

var (
	repoPart = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]*$`)
	fileTag  = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`)
)

// parseHub reads org/name:TAG, or name:TAG for one of the few repositories without an organisation.
func parseHub(text string) (Ref, error) {
	m := HubModel{}
	repo, tag, tagged := strings.Cut(text, ":")
	parts := strings.Split(repo, "/")
	for _, part := range parts {
		if len(part) > maxRepoPart || !repoPart.MatchString(part) || strings.Contains(part, "--") || strings.Contains(part, "..") {
			return Ref{}, fmt.Errorf("%.100q is no part of a repository's name", part)
		}
	}
	if len(parts) > 2 {
		return Ref{}, fmt.Errorf("%.100q is not the name of a repository, org/name", repo)
	}
	if tagged && (len(tag) > maxFileTag || !fileTag.MatchString(tag)) {
		return Ref{}, fmt.Errorf("%.100q is not a tag such as Q4_K_M", tag)
	}
	if m.Repo, m.Tag = repo, tag; strings.EqualFold(tag, DefaultTag) {
		m.Tag = "" // as clients of ollama complete a name
	}
	return Ref{Kind: Hub, Hub: m}, nil
}

// parseRegistry reads name, name:tag and namespace/name:tag on a host.
func parseRegistry(host, text string) (Ref, error) {
	n, err := ParseOn(host, text)
	return Ref{Kind: Registry, Model: n}, err
}

// parseURL reads the address of a GGUF file, or that of a page of Hugging Face or ollama.
func parseURL(text string) (Ref, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return Ref{}, errors.New("it is not an address of HTTP")
	}
	if u.User != nil {
		return Ref{}, errors.New("an address with a user's name or password is refused")
	}
	u.Fragment = ""
	at := strings.Trim(u.Path, "/")
	switch strings.ToLower(u.Host) {
	case "hf.co", "huggingface.co", "www.huggingface.co":
		return parsePage(at)
	case "ollama.com", "www.ollama.com":
		return parseRegistry(DefaultHost, at)
	}
	file := path.Base(u.Path)
	if !strings.HasSuffix(file, ".gguf") {
		return Ref{}, errors.New("the address must be that of a GGUF file and end in .gguf")
	}
	return Ref{Kind: URL, URL: u}, CheckName(file)
}

// parsePage reads the path of a page of Hugging Face: org/name, with /blob/REVISION/FILE or /resolve/REVISION/FILE behind it for
// a file, and /tree/REVISION for a revision.
func parsePage(at string) (Ref, error) {
	parts := strings.SplitN(at, "/", 5)
	r, err := parseHub(path.Join(parts[:min(2, len(parts))]...))
	if err != nil || len(parts) <= 2 {
		return r, err
	}
	if len(parts) > 3 {
		r.Hub.Revision = parts[3]
		err = CheckName(parts[3])
	}
	kind := parts[2]
	switch {
	case err != nil:
		return r, err
	case len(parts) == 4 && kind == "tree":
		return r, nil
	case len(parts) == 5 && (kind == "blob" || kind == "resolve") && strings.HasSuffix(parts[4], ".gguf"):
		r.Hub.File = parts[4]
		return r, CheckPath(parts[4])
	}
	return r, errors.New("it is neither the address of a repository nor that of a GGUF file in one")
}
