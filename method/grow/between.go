package grow

const (
	deepestBetween = 64   // drafts of a chain that [Between] ends, at most
	keepBetween    = 0.95 // what each chain leaves of the past
)

// Between is the [Stop] of DEL (2025). It ends a chain at a depth, and behind a draft whose probability is below the mean of the average ones of
// accepted and of rejected drafts.
type Between struct {
	Depth            int // of the next chain, 64 at most
	Judged, Accepted int // drafts of the last chain that was compared with the text; the owner may clear them

	p    [deepestBetween]float32   // of the chain's drafts
	sure [2]struct{ p, n float32 } // sums over the drafts that were rejected, and over those that were accepted
}

// Begin implements [Stop].
func (s *Between) Begin() {
	s.Judged = 0
	clear(s.sure[:])
}

// Ends implements [Stop].
func (s *Between) Ends(d ChainDraft) bool {
	s.p[d.Depth-1] = d.P
	return d.Depth >= s.Depth || d.P < s.least()
}

// least returns the mean between the average probabilities of rejected and accepted drafts; 0 where one of them is not known, or probabilities
// do not tell the two apart.
func (s *Between) least() float32 {
	rejected, accepted := &s.sure[0], &s.sure[1]
	if rejected.n == 0 || accepted.n == 0 || rejected.p/rejected.n >= accepted.p/accepted.n {
		return 0
	}
	return (rejected.p/rejected.n + accepted.p/accepted.n) / 2
}

// Followed implements [Stop].
func (s *Between) Followed(_, judged, accepted int) {
	s.Judged, s.Accepted = judged, accepted
	for i := range s.sure {
		s.sure[i].p, s.sure[i].n = keepBetween*s.sure[i].p, keepBetween*s.sure[i].n
	}
	for i, p := range s.p[:judged] {
		at := &s.sure[0]
		if i < accepted {
			at = &s.sure[1]
		}
		at.p, at.n = at.p+p, at.n+1
	}
}
