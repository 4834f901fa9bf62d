// hub.go pulls models from Hugging Face's hub, or from a mirror of it, into its cache.
//
// The cache has the layout of huggingface_hub: models--ORG--NAME/blobs holds the contents, named by their hash, and
// snapshots/COMMIT the names of the files, as links to blobs. refs/main names the commit. Other programs find what grove
// pulled, and grove finds what they pulled.

package pull

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// The bounds of a listing.
const (
	MaxListBytes = 16 << 20 // of a page
	MaxPages     = 20
	MaxFiles     = 20_000 // of a repository
	MaxPulled    = 2_000  // files that one pull takes
)

// DefaultEndpoint is the address of the hub.
const DefaultEndpoint = "https://huggingface.co"

// HubClient is a hub and a cache of it.
type HubClient struct {
	Client   *Client
	Cache    *Cache
	Endpoint *url.URL
	Token    string // sent to the host of Endpoint alone; "": none
}

// ParseEndpoint reads the address of a hub.
func ParseEndpoint(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("HF_ENDPOINT: %.80q is not the address of a hub, such as %s", text, DefaultEndpoint)
	}
	return u, nil
}

// HubModel names what to pull of a repository.
type HubModel struct {
	Repo     string // org/name
	Revision string // a branch, tag or commit; "": main
	Tag      string // a part of the file's name, such as Q4_K_M; "": see [Choose]
	File     string // the path of a file in the repository; "": the tag decides
}

// HubResult describes a model that was pulled.
type HubResult struct {
	Path     string   // for opening: the first file, or the folder
	Files    []string // all files, in the snapshot
	Received int64    // bytes that came over the network
}

// entry is a file of a repository as the hub lists it.
type entry struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Size int64  `json:"size"`
	OID  string `json:"oid"`
	LFS  *struct {
		OID  string `json:"oid"`
		Size int64  `json:"size"`
	} `json:"lfs"`
}

// Pull pulls a model into the cache. Errors say what to do where the hub refuses.
func (h *HubClient) Pull(ctx context.Context, m HubModel) (r HubResult, err error) {
	if m.Revision == "" {
		m.Revision = "main"
	}
	h.Client.Report(Event{State: Resolving, Text: m.Repo})
	commit, err := h.commit(ctx, m)
	if err != nil {
		return r, h.explain(m, err)
	}
	entries, err := h.list(ctx, m.Repo, commit)
	if err != nil {
		return r, h.explain(m, err)
	}
	c, err := choose(entries, m)
	if err != nil {
		return r, err
	}
	for _, note := range c.notes {
		h.Client.Report(Event{State: Note, Text: note})
	}
	files, err := h.files(m.Repo, commit, c.files)
	if err != nil {
		return r, err
	}
	if r.Received, err = h.Client.FetchAll(ctx, h.Cache, files); err != nil {
		return r, h.explain(m, err)
	}
	h.Client.Report(Event{State: Writing})
	if err := h.link(m, commit, entries, c.files); err != nil {
		return r, err
	}
	snapshot := directory(m.Repo) + "/snapshots/" + commit
	for _, e := range c.files {
		r.Files = append(r.Files, h.Cache.Path(snapshot+"/"+e.Path))
	}
	if r.Path = r.Files[0]; c.folder {
		r.Path = h.Cache.Path(snapshot)
	}
	return r, nil
}

// directory returns the directory of a repository in the cache.
func directory(repo string) string { return "models--" + strings.ReplaceAll(repo, "/", "--") }

var commitName = regexp.MustCompile(`^[0-9a-f]+$`)

// commit asks for the commit of a revision.
func (h *HubClient) commit(ctx context.Context, m HubModel) (string, error) {
	address := h.Endpoint.JoinPath("api/models", m.Repo, "revision", url.PathEscape(m.Revision)).String()
	b, _, err := h.Client.Get(ctx, address, h.Token, nil, MaxListBytes)
	if err != nil {
		return "", err
	}
	var answer struct {
		SHA string `json:"sha"`
	}
	if err := json.Unmarshal(b, &answer); err != nil || len(answer.SHA) < 40 || len(answer.SHA) > 64 || !commitName.MatchString(answer.SHA) {
		return "", fmt.Errorf("%s names no commit of %s: it sends %.80q", h.Endpoint.Host, m.Repo, b)
	}
	return answer.SHA, nil
}

// list returns the files of a commit.
func (h *HubClient) list(ctx context.Context, repo, commit string) (all []entry, err error) {
	next := h.Endpoint.JoinPath("api/models", repo, "tree", commit)
	next.RawQuery = "recursive=true"
	for range MaxPages {
		b, header, err := h.Client.Get(ctx, next.String(), h.Token, nil, MaxListBytes)
		if err != nil {
			return nil, err
		}
		var page []entry
		if err := json.Unmarshal(b, &page); err != nil {
			return nil, fmt.Errorf("%s sends no list of files: %w", h.Endpoint.Host, err)
		}
		if all = append(all, page...); len(all) > MaxFiles {
			return nil, fmt.Errorf("%s has more than %d files", repo, MaxFiles)
		}
		link := nextPage(header)
		if link == "" {
			for i := range all {
				if lfs := all[i].LFS; lfs != nil {
					all[i].Size = lfs.Size // where an endpoint gives the size of the pointer
				}
			}
			return all, nil
		}
		follow, err := next.Parse(link)
		if err != nil || follow.Host != next.Host || follow.Scheme != next.Scheme {
			return nil, fmt.Errorf("%s continues its list of files elsewhere, at %.80q", next.Host, link)
		}
		next = follow
	}
	return nil, fmt.Errorf("%s has a list of more than %d pages", repo, MaxPages)
}

var linkHeader = regexp.MustCompile(`<([^<>]+)>;\s*rel="next"`)

// nextPage returns the address of the next page of a list; "": there is none.
func nextPage(header http.Header) string {
	if m := linkHeader.FindStringSubmatch(header.Get("Link")); m != nil {
		return m[1]
	}
	return ""
}

// digest returns the hash of a file, and the name of its content in the cache.
func (e *entry) digest() (d Digest, err error) {
	if e.LFS != nil {
		d, err = ParseDigest("sha256:" + strings.TrimPrefix(e.LFS.OID, "sha256:"))
	} else {
		d, err = ParseGit(e.OID)
	}
	if err == nil && (e.Size < 0 || e.Size > MaxFileBytes) {
		err = fmt.Errorf("%d bytes", e.Size)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", e.Path, err)
	}
	return d, err
}

// files returns the downloads of entries, each content once.
func (h *HubClient) files(repo, commit string, entries []entry) (all []File, err error) {
	if len(entries) > MaxPulled {
		return nil, fmt.Errorf("%s: %d files are chosen; at most %d are pulled", repo, len(entries), MaxPulled)
	}
	dir, seen := directory(repo), map[string]bool{}
	for _, e := range entries {
		if err := CheckPath(e.Path); err != nil {
			return nil, fmt.Errorf("%s: %w", repo, err)
		}
		d, err := e.digest()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", repo, err)
		}
		if seen[d.Hex()] {
			continue
		}
		seen[d.Hex()] = true
		address := h.Endpoint.JoinPath(repo, "resolve", commit)
		for part := range strings.SplitSeq(e.Path, "/") {
			address = address.JoinPath(url.PathEscape(part))
		}
		all = append(all, File{
			Name: e.Path, URL: address.String(),
			Token: h.Token, Path: dir + "/blobs/" + d.Hex(), Lock: ".locks/" + dir + "/" + d.Hex() + ".lock", Size: e.Size, Digest: d,
		})
	}
	return all, nil
}

// link writes the snapshot: the files that were pulled, and those whose contents earlier pulls left. The branch is written
// last, so that readers find a whole snapshot.
func (h *HubClient) link(m HubModel, commit string, entries, pulled []entry) error {
	dir := directory(m.Repo)
	for _, e := range entries {
		d, err := e.digest()
		if err != nil || CheckPath(e.Path) != nil {
			continue // it was not pulled
		}
		blob := dir + "/blobs/" + d.Hex()
		info, err := h.Cache.Root.Lstat(blob)
		there := err == nil && info.Mode().IsRegular() && info.Size() == e.Size
		if !there && slices.ContainsFunc(pulled, func(p entry) bool { return p.Path == e.Path }) {
			return fmt.Errorf("%s was removed while it was pulled", h.Cache.Path(blob))
		}
		if !there {
			continue
		}
		if err := h.Cache.Link(blob, dir+"/snapshots/"+commit+"/"+e.Path); err != nil {
			return err
		}
	}
	if m.Revision == commit {
		return nil
	}
	ref := dir + "/refs/" + m.Revision
	if now, err := h.Cache.Read(ref, 1<<10); err == nil && bytes.Equal(now, []byte(commit)) {
		return nil
	}
	return h.Cache.Write(ref, []byte(commit))
}

// explain returns an error that says what to do where the hub refuses a model.
func (h *HubClient) explain(m HubModel, err error) error {
	var s *StatusError
	if !errors.As(err, &s) {
		return fmt.Errorf("%s: %w", m.Repo, err)
	}
	page := h.Endpoint.JoinPath(m.Repo).String()
	advice := ""
	switch code := s.Header.Get("X-Error-Code"); {
	case code == "GatedRepo" && h.Token == "":
		advice = "the model is gated: accept its terms at " + page + ", and set HF_TOKEN to a token of your account"
	case code == "GatedRepo", s.Code == http.StatusForbidden:
		advice = "your token has no access: if the model is gated, accept its terms at " + page
	case code == "RevisionNotFound":
		advice = "the repository has no revision " + m.Revision
	case s.Code == http.StatusUnauthorized && h.Token == "":
		advice = "there is no such repository, or it is private: check the name, or set HF_TOKEN to a token that may read it"
	case s.Code == http.StatusUnauthorized:
		advice = "the hub refuses the token: check HF_TOKEN, or the file that huggingface-cli login wrote"
	case s.Code == http.StatusNotFound:
		advice = "there is no such repository or revision: check the name"
	case s.Code == http.StatusTooManyRequests:
		advice = "too many requests: try again later; a token in HF_TOKEN has higher limits"
	default:
		return fmt.Errorf("%s: %w", m.Repo, err)
	}
	return fmt.Errorf("%s: %w; %s", m.Repo, err, advice)
}
