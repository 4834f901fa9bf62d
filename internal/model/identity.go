package model

import (
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"

	"grove/internal/compute"
)

// identify sets what the model is named by. General metadata, the vocabulary and the templates are no part of it: no
// result of the forward pass depends on them.
func (l *Loader) identify() {
	var settings []string
	for _, m := range l.file.Metadata {
		if strings.HasPrefix(m.Key, l.key("")) {
			settings = append(settings, fmt.Sprintf("%q %s %q", m.Key, m.Value.Type(), fmt.Sprint(m.Value.Any())))
		}
	}
	slices.Sort(settings)
	named := fmt.Sprintf("%s %q %s %s", compute.NumericsVersion, l.info.Arch, l.rotary, settings)
	l.info.Identity = func() (string, error) {
		weights, err := l.file.Digest()
		if err == nil && l.weights.Keep { // what steps read now is what the file has now
			err = l.file.Unchanged()
		}
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%x", sha256.Sum256(append(weights[:], named...))), nil
	}
	h := sha256.New()
	io.WriteString(h, named)
	for _, t := range l.file.Tensors {
		fmt.Fprintln(h, t.Name, t.Type, t.Shape)
		first := t.Data[:min(len(t.Data), 64)]
		h.Write(first)
		if !l.weights.Keep {
			l.file.Release(first)
		}
	}
	l.info.SampleDigest = string(h.Sum(nil))
}
