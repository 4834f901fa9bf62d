package pull

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
)

// maxManifests bounds the manifests that [RemoveRegistry] reads.
const maxManifests = 100_000

// RemoveRegistry removes a model's manifest, and the blobs that no other manifest names. If another manifest cannot be read, nothing
// is removed.
func RemoveRegistry(c *Cache, n RegistryName) (r TransferRemoved, err error) {
	if err := n.Check(); err != nil {
		return r, err
	}
	own, err := registryNamed(c, n.path())
	if err != nil {
		return r, err
	}
	walked := 0
	err = fs.WalkDir(c.Root.FS(), "manifests", func(at string, d fs.DirEntry, err error) error {
		if walked++; walked > maxManifests {
			return fmt.Errorf("%s holds more than %d files; remove the model with ollama rm", c.Path("manifests"), maxManifests)
		}
		if err != nil || d.IsDir() || at == n.path() || path.Base(at)[0] == '.' {
			return err
		}
		others, err := registryNamed(c, at)
		for digest := range others {
			delete(own, digest)
		}
		return err
	})
	if err != nil {
		return r, fmt.Errorf("nothing is removed: %w", err)
	}
	if err := r.Remove(c, n.path()); err != nil {
		return r, err
	}
	for dir := path.Dir(n.path()); dir != "manifests"; dir = path.Dir(dir) {
		if c.Root.Remove(dir) != nil {
			break // it holds other models
		}
	}
	for digest := range own {
		for _, separator := range []string{"-", ":"} { // as of 2024, and before
			if err := r.Remove(c, "blobs/sha256"+separator+digest); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// registryNamed returns the digests, without their kind, that a manifest names.
func registryNamed(c *Cache, name string) (map[string]bool, error) {
	text, err := c.Read(name, MaxManifestBytes)
	if err != nil {
		return nil, err
	}
	var m struct {
		Config layer   `json:"config"`
		Layers []layer `json:"layers"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Path(name), err)
	}
	all := map[string]bool{}
	for _, l := range append(m.Layers, m.Config) {
		if d, err := ParseDigest(l.Digest); err == nil {
			all[d.Hex()] = true // no other name can be that of a blob
		}
	}
	return all, nil
}
