// registry.go pulls models from ollama's registry, or from another of its form, into ollama's directory of models.
//
// The protocol is that of OCI distribution: a manifest lists layers, each a blob with a digest. The directory has ollama's
// layout: manifests/HOST/NAMESPACE/MODEL/TAG and blobs/sha256-DIGEST, so that ollama runs what grove pulled, and grove what
// ollama pulled.
//
// Projectors of images are left out, since grove reads text alone: neither their blobs nor their entries in the manifest are
// written, so that the manifest names only blobs that are there. `ollama pull` of the same name adds them.

package pull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"grove/internal/weights/ollama"
)

// The bounds of a manifest.
const (
	MaxManifestBytes = 1 << 20 // as package find reads them
	MaxLayers        = 64
	maxTokenBytes    = 64 << 10 // of the answer that has a token
)

// DefaultHost is the host of ollama's registry, DefaultNamespace that of its own models.
const (
	DefaultHost      = "registry.ollama.ai"
	DefaultNamespace = "library"
	DefaultTag       = "latest"
)

// RegistryName names a model of a registry.
type RegistryName struct{ Host, Namespace, Model, Tag string }

// The bounds of names, in bytes. The expressions do not count: an expression that does is large, and each start of a program compiles it.
const (
	maxHost = 253 // without the port
	maxPart = 80
)

var (
	hostName = regexp.MustCompile(`^([a-zA-Z0-9][a-zA-Z0-9.-]*|\[[0-9a-fA-F:]{2,45}\])(:\d{1,5})?$`)
	partName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]*$`)
)

// Check returns an error if a part of the name has another form than registries give it.
func (n RegistryName) Check() error {
	for _, part := range []string{n.Namespace, n.Model, n.Tag} {
		if len(part) > maxPart || !partName.MatchString(part) || CheckName(part) != nil {
			return fmt.Errorf("%.80q is no part of a registry's name: up to %d letters, digits, dots, hyphens and underscores", part, maxPart)
		}
	}
	if m := hostName.FindStringSubmatch(n.Host); m == nil || len(m[1]) > maxHost {
		return fmt.Errorf("%.80q is not a host", n.Host)
	}
	return nil
}

// String returns the name as ollama shows it, without the host and the namespace of its own library.
func (n RegistryName) String() string {
	text := n.Model + ":" + n.Tag
	if n.Namespace != DefaultNamespace || n.Host != DefaultHost {
		text = n.Namespace + "/" + text
	}
	if n.Host != DefaultHost {
		text = n.Host + "/" + text
	}
	return text
}

// path returns the file of the manifest.
func (n RegistryName) path() string {
	return strings.Join([]string{"manifests", n.Host, n.Namespace, n.Model, n.Tag}, "/")
}

// RegistryClient is the cache of ollama and how it is filled.
type RegistryClient struct {
	Client   *Client
	Cache    *Cache
	Insecure bool // http instead of https; for loopback hosts http is always used
}

// RegistryResult describes a model that was pulled.
type RegistryResult struct {
	Path     string // of the model's weights
	Files    []string
	Received int64 // bytes that came over the network
}

// layer is an entry of a manifest.
type layer struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
}

// The kinds of layers that matter here. All others are stored as they are.
const (
	modelLayer     = "application/vnd.ollama.image.model"
	projectorLayer = "application/vnd.ollama.image.projector"
	accepted       = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json"
)

// Pull pulls a model into the cache. The manifest is written last.
func (r *RegistryClient) Pull(ctx context.Context, n RegistryName) (result RegistryResult, err error) {
	if err := n.Check(); err != nil {
		return result, err
	}
	r.Client.Report(Event{State: Resolving, Text: n.String()})
	base := r.base(n)
	text, token, err := r.manifest(ctx, n, base)
	if err != nil {
		return result, explain(n, err)
	}
	m, err := parseRegistryHost(text)
	if err != nil {
		return result, fmt.Errorf("%s: the manifest: %w", n, err)
	}
	if m.left > 0 {
		r.Client.Report(Event{State: Note, Text: "left out, because grove reads text alone: the projector of images"})
	}
	var files []File
	for _, l := range m.blobs {
		d, _ := ParseDigest(l.Digest) // parse has checked it
		f := File{
			Name: l.Digest, URL: base.JoinPath("blobs", l.Digest).String(), Token: token, Path: "blobs/sha256-" + d.Hex(),
			Lock: ".locks/sha256-" + d.Hex() + ".lock", Size: l.Size, Digest: d,
		}
		if l.MediaType == modelLayer {
			f.Magic, result.Path = "GGUF", r.Cache.Path(f.Path)
		}
		files = append(files, f)
		result.Files = append(result.Files, r.Cache.Path(f.Path))
	}
	if result.Received, err = r.Client.FetchAll(ctx, r.Cache, files); err != nil {
		return result, explain(n, err)
	}
	r.Client.Report(Event{State: Writing})
	if err := r.Cache.Write(n.path(), m.text); err != nil {
		return result, err
	}
	result.Files = append(result.Files, r.Cache.Path(n.path()))
	if l, err := ollama.Read(r.Cache.Path(n.path())); err == nil && !l.Plain() {
		result.Path = r.Cache.Path(n.path())
	}
	return result, nil
}

// base returns the address of a model's manifests and blobs.
func (r *RegistryClient) base(n RegistryName) *url.URL {
	u := &url.URL{Scheme: "https", Host: n.Host}
	if r.Insecure || registryLoopback(n.Host) {
		u.Scheme = "http"
	}
	return u.JoinPath("v2", n.Namespace, n.Model)
}

// registryLoopback reports whether a host is this machine.
func registryLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// manifest returns the manifest, and the token that the registry asked for; "": it asked for none.
func (r *RegistryClient) manifest(ctx context.Context, n RegistryName, base *url.URL) (text []byte, token string, err error) {
	address := base.JoinPath("manifests", n.Tag).String()
	header := http.Header{"Accept": {accepted}}
	text, _, err = r.Client.Get(ctx, address, "", header, MaxManifestBytes)
	var s *StatusError
	if !errors.As(err, &s) || s.Code != http.StatusUnauthorized {
		return text, "", err
	}
	realm, asked := challenge(s.Header.Get("WWW-Authenticate"), base)
	if !asked {
		return nil, "", err
	}
	if token, err = r.anonymous(ctx, realm); err != nil {
		return nil, "", err
	}
	text, _, err = r.Client.Get(ctx, address, token, header, MaxManifestBytes)
	return text, token, err
}

var parameter = regexp.MustCompile(`([a-z]+)="([^"]*)"`)

// challenge returns the address at which a registry gives tokens to strangers. It must be of https, or on the registry's host.
func challenge(header string, base *url.URL) (*url.URL, bool) {
	rest, bearer := strings.CutPrefix(header, "Bearer ")
	if !bearer || len(header) > 4<<10 {
		return nil, false
	}
	values := map[string]string{}
	for _, m := range parameter.FindAllStringSubmatch(rest, 8) {
		values[m[1]] = m[2]
	}
	u, err := url.Parse(values["realm"])
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != base.Scheme || u.Host != base.Host) {
		return nil, false
	}
	q := u.Query()
	for _, name := range []string{"service", "scope"} {
		if values[name] != "" {
			q.Set(name, values[name])
		}
	}
	u.RawQuery = q.Encode()
	return u, true
}

// anonymous asks for the token of a stranger.
func (r *RegistryClient) anonymous(ctx context.Context, realm *url.URL) (string, error) {
	b, _, err := r.Client.Get(ctx, realm.String(), "", nil, maxTokenBytes)
	if err != nil {
		return "", err
	}
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(b, &answer); err != nil || answer.Token+answer.AccessToken == "" {
		return "", fmt.Errorf("%s gives no token", realm.Host)
	}
	if answer.Token == "" {
		answer.Token = answer.AccessToken
	}
	return answer.Token, nil
}

// manifest is what a manifest says.
type manifest struct {
	text  []byte  // to be written
	blobs []layer // the model, the other layers and the configuration, each digest once
	left  int     // projectors
}

// parseRegistryHost reads a manifest. Without projectors, its text stays as it came.
func parseRegistryHost(text []byte) (m manifest, err error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return m, err
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(fields["layers"], &raw); err != nil {
		return m, fmt.Errorf("layers: %w", err)
	}
	if len(raw) > MaxLayers {
		return m, fmt.Errorf("%d layers; at most %d are taken", len(raw), MaxLayers)
	}
	var kept []json.RawMessage
	models := 0
	for _, b := range raw {
		var l layer
		if err := json.Unmarshal(b, &l); err != nil {
			return m, fmt.Errorf("layers: %w", err)
		}
		switch l.MediaType {
		case projectorLayer:
			m.left++
			continue
		case modelLayer:
			models++
		}
		kept = append(kept, b)
		if err := m.add(l); err != nil {
			return m, err
		}
	}
	if models != 1 {
		return m, fmt.Errorf("%d layers hold weights in GGUF; grove runs models with one", models)
	}
	var config layer
	if err := json.Unmarshal(fields["config"], &config); err != nil {
		return m, fmt.Errorf("config: %w", err)
	}
	if err := m.add(config); err != nil {
		return m, err
	}
	if m.text = text; m.left > 0 {
		if fields["layers"], err = json.Marshal(kept); err == nil {
			m.text, err = json.Marshal(fields)
		}
	}
	return m, err
}

// add adds a blob.
func (m *manifest) add(l layer) error {
	if _, err := ParseDigest(l.Digest); err != nil {
		return err
	}
	if l.Size < 0 || l.Size > MaxFileBytes {
		return fmt.Errorf("%s has %d bytes; 0 to %d are taken", l.Digest, l.Size, int64(MaxFileBytes))
	}
	i := slices.IndexFunc(m.blobs, func(o layer) bool { return o.Digest == l.Digest })
	switch {
	case i < 0:
		m.blobs = append(m.blobs, l)
	case m.blobs[i].Size != l.Size:
		return fmt.Errorf("%s has %d bytes and %d bytes", l.Digest, m.blobs[i].Size, l.Size)
	}
	return nil
}

// explain returns an error that says what to do where the registry refuses a model.
func explain(n RegistryName, err error) error {
	advice := ""
	switch Status(err) {
	case http.StatusNotFound:
		advice = "; the registry has no such model or tag: check the name at https://ollama.com/library"
		if n.Host != DefaultHost {
			advice = "; the registry has no such model or tag"
		}
	case http.StatusUnauthorized, http.StatusForbidden:
		advice = "; the model is private or does not exist; grove pulls models that anyone may read"
	case http.StatusTooManyRequests:
		advice = "; too many requests: try again later"
	}
	return fmt.Errorf("%s: %w%s", n, err, advice)
}

// ParseRegistry reads a name as [RegistryName.String] writes it.
func ParseRegistry(text string) (RegistryName, error) {
	host, rest := DefaultHost, text
	if strings.Count(text, "/") > 1 {
		host, rest, _ = strings.Cut(text, "/")
	}
	return ParseOn(host, rest)
}

// ParseOn reads the name of a model on a host: name, name:tag or namespace/name:tag.
func ParseOn(host, text string) (RegistryName, error) {
	n := RegistryName{host, DefaultNamespace, text, DefaultTag}
	if namespace, model, ok := strings.Cut(text, "/"); ok {
		n.Namespace, n.Model = namespace, model
	}
	if model, tag, ok := strings.Cut(n.Model, ":"); ok {
		n.Model, n.Tag = model, tag
	}
	return n, n.Check()
}
