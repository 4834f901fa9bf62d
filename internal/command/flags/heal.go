package flags

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"grove"
)

// Heal is --heal: whether the end of a prompt is healed, and how.
type Heal struct {
	How healing `name:"heal" var:"GROVE_HEAL" help:"Heal the end of the prompt, such as half a word or a blank: up to four of its last tokens are drawn anew, and the answer begins with their text. With --heal=exact the bytes of the end count alone, in whatever tokens; also before the gap of --suffix."`
}

// Put puts what the flag says into a request.
func (h Heal) Put(r *grove.Request) { r.Heal, r.HealExact = h.How == healTokens, h.How == healExact }

// healing is the way in which the end of a prompt is healed; "": none.
type healing string

// The ways.
const (
	healTokens healing = "tokens"
	healExact  healing = "exact"
)

// IsBool implements [kong.BoolMapperValue]: the flag needs no value.
func (healing) IsBool() bool { return true }

// Decode implements [kong.MapperValue].
func (h *healing) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		*h = healTokens
		return nil
	}
	switch value := fmt.Sprint(ctx.Scan.Pop().Value); strings.ToLower(value) {
	case "exact":
		*h = healExact
	case "true", "1", "yes":
		*h = healTokens
	case "false", "0", "no":
		*h = ""
	default:
		return fmt.Errorf("%.40q; it must be exact, or stand without a value", value)
	}
	return nil
}
