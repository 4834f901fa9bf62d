package diffuse

import (
	"testing"

	"grove/internal/text/token"
)

// FuzzSettings fills a canvas by any names and options: settings are refused, or the canvas is filled within a bound of passes, or the policy that does not is named.
func FuzzSettings(f *testing.F) {
	f.Add("static:order=random", "recap:plain=1,more=3", "", "", uint8(0), uint8(3))
	f.Add("ete:f=0.5,branches=4,least=9,near=3", "prefix", "", "", uint8(4), uint8(0))
	f.Add("learned:p=0.5", "vicinity:before=1,behind=0,warm=1,every=2", "", "", uint8(3), uint8(5))
	f.Add("remdm:again=9,places=3", "dual", "", "", uint8(5), uint8(2))
	f.Add("threshold:p=0.9", "window:masks=4,active=2,every=3", "adaptive:0.1", "", uint8(4), uint8(0))
	f.Add("credit:alpha=9", "delayed:3", "adaptive", "end", uint8(0), uint8(0))
	f.Add("hierarchical", "none", "", "prophet", uint8(2), uint8(1))
	f.Fuzz(func(t *testing.T, policy, cache, blocks, early string, block, drafts uint8) {
		s := Settings{
			Length: 11, Block: int(block), Drafts: int(drafts), Policy: policy, Cache: cache, Blocks: blocks, Early: early, Mask: 0, Shift: block%2 == 1,
			Delimiters: []token.ID{3}, Ends: func(id token.ID) bool { return id == 5 }, Filter: linear{block: 11, slope: 20, bias: -14},
		}
		g, err := New([]token.ID{5, 6}, s, &random{seed: uint64(block), prompt: 2}, coin{})
		if err != nil {
			return
		}
		for steps := 0; !g.Done(); steps++ {
			if err := g.Step(t.Context()); err != nil {
				return
			}
			if steps > 200 {
				t.Fatalf("%d passes of %+v", steps, s)
			}
		}
		if got := g.Finished(); len(got) == 0 || len(got) > s.Length {
			t.Errorf("%d places of %+v", len(got), s)
		}
	})
}
