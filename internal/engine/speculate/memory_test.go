package speculate

import "testing"

// TestFit holds the choice to a search of all sizes, for bytes that grow with each part of a size in their own way.
func TestFit(t *testing.T) {
	most := MemorySize{Drafts: 5, Context: 7*MemoryPage - 20, Texts: 4}
	for name, bytes := range map[string]func(MemorySize) int{
		"every part counts":    func(s MemorySize) int { return s.Texts * (100*s.Drafts + s.Context) },
		"contexts are shared":  func(s MemorySize) int { return 1000*s.Texts*s.Drafts + 3*s.Context },
		"drafts cost nothing":  func(s MemorySize) int { return s.Texts * s.Context },
		"fewer texts are less": func(s MemorySize) int { return 10*s.Texts*s.Context + s.Texts },
		"context costs little": func(s MemorySize) int { return s.Texts*s.Drafts*500 + s.Context/100 },
	} {
		for budget := 0; budget < bytes(most)*11/10; budget += 1 + bytes(most)/97 {
			want, some := MemorySize{}, false
			for texts := range most.Texts {
				for drafts := range most.Drafts {
					for context := MemoryPage; context < most.Context+MemoryPage; context += MemoryPage {
						s := MemorySize{drafts + 1, min(context, most.Context), texts + 1}
						if bytes(s) > budget {
							continue
						}
						if w, best := s.worth(most), want.worth(most); !some || w > best || w == best && bytes(s) < bytes(want) {
							want, some = s, true
						}
					}
				}
			}
			got, ok := MemoryFit(budget, most, bytes)
			if ok != some || got.worth(most) != want.worth(most) || ok && bytes(got) > bytes(want) {
				t.Errorf("%s, %d bytes: %+v %v, want %+v %v", name, budget, got, ok, want, some)
			}
		}
	}
}
