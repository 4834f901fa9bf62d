package score

import "grove/internal/text/token"

// Entry is a continuation as reports and answers write it.
type Entry struct {
	Index         int          `json:"index"`
	Text          string       `json:"text"`
	Logprob       float64      `json:"logprob"`
	Greedy        bool         `json:"greedy"`
	Tokens        int          `json:"tokens"`
	Characters    int          `json:"characters"`
	Bytes         int          `json:"bytes"`
	Scores        Figures      `json:"scores"`
	TokenLogprobs []TokenEntry `json:"token_logprobs,omitempty"`
}

// TokenEntry is a token of a continuation.
type TokenEntry struct {
	ID      token.ID `json:"id"`
	Token   string   `json:"token"`
	Logprob float32  `json:"logprob"`
	Greedy  bool     `json:"greedy"`
}

// Figures are values by normalisation.
type Figures struct {
	Plain      float64  `json:"acc"`
	Characters float64  `json:"acc_norm"`
	Bytes      float64  `json:"acc_bytes"`
	Tokens     float64  `json:"acc_tokens"`
	Mutual     *float64 `json:"acc_mutual_info,omitempty"`
}

// Places are places of continuations by normalisation.
type Places struct {
	Plain      int  `json:"acc"`
	Characters int  `json:"acc_norm"`
	Bytes      int  `json:"acc_bytes"`
	Tokens     int  `json:"acc_tokens"`
	Mutual     *int `json:"acc_mutual_info,omitempty"`
}

// Entries returns continuations as they are written. piece, where it is not nil, gives the text of a token: the tokens are written too.
func Entries(all []Continuation, piece func(id token.ID) string) []Entry {
	entries := make([]Entry, len(all))
	for i := range all {
		c := &all[i]
		e := Entry{Index: i, Text: c.Text, Logprob: c.Logprob, Greedy: c.Greedy, Tokens: len(c.Tokens), Characters: c.Characters(), Bytes: c.Bytes()}
		e.Scores = Figures{Plain: c.Logprob, Characters: c.Score(Characters), Bytes: c.Score(Bytes), Tokens: c.Score(Tokens)}
		if c.Unconditional != nil {
			mutual := c.Score(Mutual)
			e.Scores.Mutual = &mutual
		}
		for _, t := range c.Tokens {
			if piece != nil {
				e.TokenLogprobs = append(e.TokenLogprobs, TokenEntry{t.ID, piece(t.ID), t.Logprob, t.Greedy})
			}
		}
		entries[i] = e
	}
	return entries
}

// BestPlaces returns the place of the best continuation by each normalisation.
func BestPlaces(all []Continuation) Places {
	p := Places{Best(all, Plain), Best(all, Characters), Best(all, Bytes), Best(all, Tokens), nil}
	if len(all) > 0 && all[0].Unconditional != nil {
		mutual := Best(all, Mutual)
		p.Mutual = &mutual
	}
	return p
}
