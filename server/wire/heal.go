package wire

import "github.com/go-json-experiment/json/jsontext"

// heal is the way in which the end of a prompt is healed: false, true, or "exact".
type heal int

// The ways.
const (
	healTokens heal = iota + 1
	healExact
)

// ReadJSON implements [Own].
func (h *heal) ReadJSON(r *Reader) error {
	if *h = 0; r.Kind() != jsontext.KindString {
		var on bool
		err := r.Into(&on)
		if on {
			*h = healTokens
		}
		return err
	}
	how, err := r.Text()
	if err == nil && how != "exact" {
		err = r.Refuse("%q is not known; it must be true, false or \"exact\"", Clip(how))
	}
	*h = healExact
	return err
}
