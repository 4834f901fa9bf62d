package flags

import (
	"cmp"
	"fmt"

	"grove"
)

// Stages says how the stages of a draw work that are off by default.
type Stages struct {
	Typical      float32  `name:"typical" placeholder:"P" var:"GROVE_TYPICAL" help:"Draw from the tokens whose surprise is nearest to the mean and whose probabilities sum to P; 0 or 1: all."`
	TopNSigma    float32  `name:"top-nsigma" placeholder:"N" var:"GROVE_TOP_NSIGMA" help:"Draw from tokens with logits within N standard deviations of the largest; 0: all."`
	XTC          *float32 `name:"xtc-probability" placeholder:"P" var:"GROVE_XTC_PROBABILITY" help:"Probability that the likeliest tokens are excluded; 0: never. Without it, the model's own, or 0."`
	XTCThreshold *float32 `name:"xtc-threshold" placeholder:"P" var:"GROVE_XTC_THRESHOLD" help:"Probability of tokens that --xtc-probability may exclude; above 0.5: none. Without it, the model's own, or 0.1."`
	Repeat       *float32 `name:"repeat-penalty" placeholder:"X" var:"GROVE_REPEAT_PENALTY" help:"Penalty for tokens that the text has: positive logits are divided by it, negative ones multiplied; 0 or 1: none. Without it, the model's own, or none."`
	Presence     float32  `name:"presence-penalty" placeholder:"X" var:"GROVE_PRESENCE_PENALTY" help:"Subtracted from the logits of tokens that the text has."`
	Frequency    float32  `name:"frequency-penalty" placeholder:"X" var:"GROVE_FREQUENCY_PENALTY" help:"Subtracted from the logits of tokens as often as the text has them."`
	RepeatLast   *int     `name:"repeat-last-n" placeholder:"N" var:"GROVE_REPEAT_LAST_N" help:"Tokens at the end of the text that these three penalties look at; -1: all; 0: none. Without it, the model's own, or 64."`
	DRY          float32  `name:"dry-multiplier" placeholder:"X" var:"GROVE_DRY_MULTIPLIER" help:"Penalty for tokens that continue a repetition; 0: none."`
	DRYBase      float32  `name:"dry-base" placeholder:"X" default:"1.75" var:"GROVE_DRY_BASE" help:"Factor of that penalty for each further token of the repetition. Default: ${default}."`
	DRYAllowed   int      `name:"dry-allowed-length" placeholder:"N" default:"2" var:"GROVE_DRY_ALLOWED_LENGTH" help:"Tokens of a repetition from which on it is penalized. Default: ${default}."`
	DRYLast      int      `name:"dry-penalty-last-n" placeholder:"N" default:"-1" var:"GROVE_DRY_PENALTY_LAST_N" help:"Tokens at the end of the text that are looked at for repetitions; -1: all; 0: none. Default: ${default}."`
	DRYBreakers  []string `name:"dry-sequence-breaker" placeholder:"TEXT" sep:"none" var:"GROVE_DRY_SEQUENCE_BREAKER" help:"Text that interrupts repetitions; may be given several times. Without it: a line break, a colon, a quotation mark and an asterisk."`
	Range        float32  `name:"dynatemp-range" placeholder:"T" var:"GROVE_DYNATEMP_RANGE" help:"Let the temperature follow the entropy, from --temp less T to --temp plus T; 0: off."`
	Exponent     float32  `name:"dynatemp-exp" placeholder:"X" var:"GROVE_DYNATEMP_EXP" help:"Exponent of the entropy for --dynatemp-range; 0: 1."`
	Mirostat     *int     `name:"mirostat" placeholder:"N" var:"GROVE_MIROSTAT" help:"Version of mirostat, 1 or 2, in place of top-k, top-p and min-p; 0: off. Without it, the model's own, or off."`
	Eta          *float32 `name:"mirostat-lr" placeholder:"ETA" var:"GROVE_MIROSTAT_LR" help:"Learning rate of mirostat. Without it, the model's own, or 0.1."`
	Tau          *float32 `name:"mirostat-ent" placeholder:"TAU" var:"GROVE_MIROSTAT_ENT" help:"Surprise that mirostat aims at, in bits. Without it, the model's own, or 5."`
	MinKeep      int      `name:"min-keep" placeholder:"N" var:"GROVE_MIN_KEEP" help:"Tokens that truncation leaves at least."`
	Order        *string  `name:"sampling-order" enum:"llama.cpp,openai" var:"GROVE_SAMPLING_ORDER" help:"Order of truncation and temperature: llama.cpp (temperature last) or openai (temperature first). Without it, the model's own, or llama.cpp."`
	Thinking     *int     `name:"reasoning-budget" placeholder:"N" var:"GROVE_REASONING_BUDGET" help:"Tokens that the model may think before the end of its thoughts is forced. Without it, no bound."`
	Message      string   `name:"reasoning-budget-message" placeholder:"TEXT" help:"Text before an end of thoughts that --reasoning-budget forces."`
	Least        int      `name:"reasoning-least" placeholder:"N" var:"GROVE_REASONING_LEAST" help:"Tokens that the model thinks at least: an end of its thoughts before them is replaced by --reasoning-wait; 0: none is."`
	Extensions   int      `name:"reasoning-extensions" placeholder:"N" help:"Ends of thoughts that are replaced at most; 0: as many as --reasoning-least asks for."`
	Wait         string   `name:"reasoning-wait" placeholder:"TEXT" help:"Text that replaces an end of thoughts. Without it, Wait."`
}

// apply sets what the flags turn on or off.
func (f *Stages) apply(r *grove.Request) {
	s, p := &r.Sampling, &r.Penalties
	s.TypicalP, s.TopNSigma, s.MinKeep, r.Thinking = f.Typical, f.TopNSigma, f.MinKeep, f.Thinking
	r.Thoughts = grove.Thoughts{Message: f.Message, Least: f.Least, Extensions: f.Extensions, Wait: f.Wait}
	if f.Order != nil {
		s.Order = map[string]grove.Order{"llama.cpp": grove.TruncateFirst, "openai": grove.TemperFirst}[*f.Order]
	}
	s.XTC.Threshold = cmp.Or(s.XTC.Threshold, 0.1)
	set(&s.XTC.Probability, f.XTC)
	set(&s.XTC.Threshold, f.XTCThreshold)
	if s.XTC.Probability == 0 {
		s.XTC = grove.XTC{}
	}
	s.DynamicTemperature = grove.DynamicTemperature{Range: f.Range, Exponent: f.Exponent}
	s.Mirostat.Tau, s.Mirostat.Eta = cmp.Or(s.Mirostat.Tau, 5), cmp.Or(s.Mirostat.Eta, 0.1)
	set(&s.Mirostat.Version, f.Mirostat)
	set(&s.Mirostat.Tau, f.Tau)
	set(&s.Mirostat.Eta, f.Eta)
	if s.Mirostat.Version == 0 {
		s.Mirostat = grove.Mirostat{}
	}
	set(&p.Repeat, f.Repeat)
	p.Presence, p.Frequency = f.Presence, f.Frequency
	last := cmp.Or(p.RepeatWindow, 64)
	set(&last, f.RepeatLast)
	p.Window, p.RepeatWindow = last, last
	if last == 0 {
		p.Repeat, p.Presence, p.Frequency = 0, 0, 0
	}
	if f.DRY != 0 && f.DRYLast != 0 {
		p.DRY = grove.DRY{Multiplier: f.DRY, Base: f.DRYBase, AllowedLength: f.DRYAllowed, Window: f.DRYLast}
	}
}

// Valid asks the library.
func (f *Stages) Valid() error {
	if f.Thinking != nil && *f.Thinking < 0 {
		return fmt.Errorf("--reasoning-budget: %d is negative; it must be 0 or more", *f.Thinking)
	}
	var r grove.Request
	f.apply(&r)
	return cmp.Or(r.Sampling.Validate(), r.Penalties.Validate(0), r.Thoughts.Check(r.Thinking))
}
