package scan

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"grove"
	"grove/internal/text/token"
)

// Report is the result of a scan.
type Report struct {
	Model      string      `json:"model"`
	Vocabulary int         `json:"vocabulary"`
	RankBy     int         `json:"rank_by"`      // tokens that the scores are of
	Median     float64     `json:"median_score"` // of all tokens of the vocabulary
	Candidates []Candidate `json:"candidates"`   // in the order of their scores, the highest first
}

// Candidate is a forced token that the model goes on from with certainty.
type Candidate struct {
	ID    token.ID `json:"id"`
	Token string   `json:"token"` // the text of the forced token
	Score float64  `json:"score"` // see [Score]

	Text      string     `json:"text"`      // the forced token and what follows
	IDs       []token.ID `json:"ids"`       // what follows
	Certainty float64    `json:"certainty"` // mean probability of what follows, up to where it begins to repeat itself
	Sure      int        `json:"sure"`      // tokens that follow before one is less likely than [Unsure], or repeats what was there
	Ended     bool       `json:"ended"`     // the text ends by itself
	Loop      *Loop      `json:"loop"`      // nil: it does not repeat itself
}

// Unsure is the probability below which a model is not sure of a token.
const Unsure = 0.5

// candidate describes a forced token with what follows it.
func candidate(id token.ID, drawn []grove.SampledToken, score float64) Candidate {
	c := Candidate{ID: id, Score: score}
	for _, d := range drawn {
		c.IDs = append(c.IDs, d.ID)
	}
	c.Loop = FindLoop(c.IDs)
	once := drawn
	if c.Loop != nil {
		once = drawn[:c.Loop.Start+c.Loop.Period]
	}
	c.Certainty = sum(once) / float64(max(len(once), 1))
	for c.Sure < len(once) && sum(once[c.Sure:c.Sure+1]) >= Unsure {
		c.Sure++
	}
	return c
}

// describe gives a candidate its texts.
func (s *scanner) describe(c *Candidate, drawn []grove.SampledToken) error {
	piece, err := s.m.Piece(c.ID)
	if err != nil {
		return err
	}
	c.Token = string(piece)
	c.Ended = len(drawn) > 0 && s.m.Ends(drawn[len(drawn)-1])
	c.Text, err = s.m.Detokenize(append([]token.ID{c.ID}, c.IDs...))
	return err
}

// WriteJSON writes the report as one object.
func (r *Report) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// shownText is how many bytes of a text are shown.
const shownText = 60

// WriteText writes the report as a table.
func (r *Report) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%d first tokens, ranked by the mean probability of %d more; the median is %.5f\n\n", r.Vocabulary, r.RankBy, r.Median)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RANK\tSCORE\tTOKEN\tID\tCERTAINTY\tSURE\tEND\tTEXT")
	for i, c := range r.Candidates {
		end := "-"
		if c.Loop != nil {
			end = fmt.Sprintf("loop of %d", c.Loop.Period)
		} else if c.Ended {
			end = "end"
		}
		fmt.Fprintf(t, "%d\t%.5f\t%s\t%d\t%.5f\t%d\t%s\t%s\n", i+1, c.Score, quote(c.Token), c.ID, c.Certainty, c.Sure, end, quote(c.Text))
	}
	return t.Flush()
}

// quote returns the beginning of a text, in quotes.
func quote(text string) string {
	if len(text) > shownText {
		return strconv.Quote(text[:shownText]) + "..."
	}
	return strconv.Quote(text)
}
