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
	XTC          float32  `name:"xtc-probability" placeholder:"P" var:"GROVE_XTC_PROBABILITY" help:"Probability that the likeliest tokens are excluded; 0: never."`
	XTCThreshold float32  `name:"xtc-threshold" placeholder:"P" default:"0.1" var:"GROVE_XTC_THRESHOLD" help:"Probability of tokens that --xtc-probability may exclude; above 0.5: none. Default: ${default}."`
	Repeat       float32  `name:"repeat-penalty" placeholder:"X" var:"GROVE_REPEAT_PENALTY" help:"Penalty for tokens that the text has: positive logits are divided by it, negative ones multiplied; 0 or 1: none."`
	Presence     float32  `name:"presence-penalty" placeholder:"X" var:"GROVE_PRESENCE_PENALTY" help:"Subtracted from the logits of tokens that the text has."`
	Frequency    float32  `name:"frequency-penalty" placeholder:"X" var:"GROVE_FREQUENCY_PENALTY" help:"Subtracted from the logits of tokens as often as the text has them."`
	RepeatLast   int      `name:"repeat-last-n" placeholder:"N" default:"64" var:"GROVE_REPEAT_LAST_N" help:"Tokens at the end of the text that these three penalties look at; -1: all; 0: none. Default: ${default}."`
	DRY          float32  `name:"dry-multiplier" placeholder:"X" var:"GROVE_DRY_MULTIPLIER" help:"Penalty for tokens that continue a repetition; 0: none."`
	DRYBase      float32  `name:"dry-base" placeholder:"X" default:"1.75" var:"GROVE_DRY_BASE" help:"Factor of that penalty for each further token of the repetition. Default: ${default}."`
	DRYAllowed   int      `name:"dry-allowed-length" placeholder:"N" default:"2" var:"GROVE_DRY_ALLOWED_LENGTH" help:"Tokens of a repetition from which on it is penalized. Default: ${default}."`
	DRYLast      int      `name:"dry-penalty-last-n" placeholder:"N" default:"-1" var:"GROVE_DRY_PENALTY_LAST_N" help:"Tokens at the end of the text that are looked at for repetitions; -1: all; 0: none. Default: ${default}."`
	DRYBreakers  []string `name:"dry-sequence-breaker" placeholder:"TEXT" sep:"none" var:"GROVE_DRY_SEQUENCE_BREAKER" help:"Text that interrupts repetitions; may be given several times. Without it: a line break, a colon, a quotation mark and an asterisk."`
	Range        float32  `name:"dynatemp-range" placeholder:"T" var:"GROVE_DYNATEMP_RANGE" help:"Let the temperature follow the entropy, from --temp less T to --temp plus T; 0: off."`
	Exponent     float32  `name:"dynatemp-exp" placeholder:"X" var:"GROVE_DYNATEMP_EXP" help:"Exponent of the entropy for --dynatemp-range; 0: 1."`
	Mirostat     int      `name:"mirostat" placeholder:"N" var:"GROVE_MIROSTAT" help:"Version of mirostat, 1 or 2, in place of top-k, top-p and min-p; 0: off."`
	Eta          float32  `name:"mirostat-lr" placeholder:"ETA" default:"0.1" var:"GROVE_MIROSTAT_LR" help:"Learning rate of mirostat. Default: ${default}."`
	Tau          float32  `name:"mirostat-ent" placeholder:"TAU" default:"5" var:"GROVE_MIROSTAT_ENT" help:"Surprise that mirostat aims at, in bits. Default: ${default}."`
	MinKeep      int      `name:"min-keep" placeholder:"N" var:"GROVE_MIN_KEEP" help:"Tokens that truncation leaves at least."`
	Order        string   `name:"sampling-order" enum:"llama.cpp,openai" default:"llama.cpp" var:"GROVE_SAMPLING_ORDER" help:"Order of truncation and temperature: llama.cpp (temperature last) or openai (temperature first). Default: ${default}."`
	Thinking     *int     `name:"reasoning-budget" placeholder:"N" var:"GROVE_REASONING_BUDGET" help:"Tokens that the model may think before the end of its thoughts is forced. Without it, no bound."`
}

// apply sets what the flags turn on.
func (f *Stages) apply(r *grove.Request) {
	s := &r.Sampling
	s.TypicalP, s.TopNSigma, s.MinKeep, r.Thinking = f.Typical, f.TopNSigma, f.MinKeep, f.Thinking
	if f.Order == "openai" {
		s.Order = grove.TemperFirst
	}
	if f.XTC != 0 {
		s.XTC = grove.XTC{Probability: f.XTC, Threshold: f.XTCThreshold}
	}
	s.DynamicTemperature = grove.DynamicTemperature{Range: f.Range, Exponent: f.Exponent}
	if f.Mirostat != 0 {
		s.Mirostat = grove.Mirostat{Version: f.Mirostat, Tau: f.Tau, Eta: f.Eta}
	}
	if f.RepeatLast != 0 {
		p := &r.Penalties
		p.Repeat, p.Presence, p.Frequency, p.Window, p.RepeatWindow = f.Repeat, f.Presence, f.Frequency, f.RepeatLast, f.RepeatLast
	}
	if f.DRY != 0 && f.DRYLast != 0 {
		r.Penalties.DRY = grove.DRY{Multiplier: f.DRY, Base: f.DRYBase, AllowedLength: f.DRYAllowed, Window: f.DRYLast}
	}
}

// Validate asks the library.
func (f *Stages) Validate() error {
	if f.Thinking != nil && *f.Thinking < 0 {
		return fmt.Errorf("--reasoning-budget: %d is negative; it must be 0 or more", *f.Thinking)
	}
	var r grove.Request
	f.apply(&r)
	return cmp.Or(r.Sampling.Validate(), r.Penalties.Validate(0))
}

// RequestOf is Request for an open model, which gives the tokens of --dry-sequence-breaker.
func (f *Request) RequestOf(m *grove.Model) (r grove.Request, err error) {
	if r = f.Request(); r.Penalties.DRY.Multiplier != 0 {
		r.Penalties.DRY.Breakers, err = m.Breakers(f.DRYBreakers)
	}
	return r, err
}
