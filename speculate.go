package grove

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"grove/engine"
	"grove/method"
)

// The names of [Request.Method] that stand for no method of their own.
const (
	MethodAuto = "auto" // every exact method that the model allows, each used where it pays
	MethodOff  = "off"  // plain decoding
)

// draftings opens methods when they are first asked for, once for each combination.
type draftings struct {
	mu   sync.Mutex
	open map[string]*engine.Drafting
}

// parseMethods returns the methods that a list of names stands for, none for plain decoding; auto tells that
// methods whose needs are not met may be left out.
func parseMethods(list string) (infos []method.Info, auto bool, err error) {
	switch list {
	case "", MethodAuto:
		for _, i := range method.All() {
			if i.Auto {
				infos = append(infos, i)
			}
		}
		return infos, true, nil
	case MethodOff:
		return nil, false, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		i, err := method.Find(strings.TrimSpace(name))
		if err != nil {
			return nil, false, err
		}
		for _, has := range infos {
			if has.Name == i.Name {
				return nil, false, fmt.Errorf("grove: method %s is named twice", i.Name)
			}
		}
		infos = append(infos, i)
	}
	return infos, false, nil
}

// drafting returns the methods that a list stands for, opened; nil for plain decoding.
func (m *Model) drafting(ctx context.Context, list string) (*engine.Drafting, error) {
	infos, auto, err := parseMethods(list)
	if err != nil || len(infos) == 0 {
		return nil, err
	}
	if auto {
		list = MethodAuto
	}
	m.methods.mu.Lock()
	defer m.methods.mu.Unlock()
	if d, ok := m.methods.open[list]; ok {
		return d, nil
	}
	d, err := m.engine.OpenDrafting(ctx, infos, nil)
	if err != nil {
		return nil, err
	}
	if m.methods.open == nil {
		m.methods.open = map[string]*engine.Drafting{}
	}
	m.methods.open[list] = d
	return d, nil
}
