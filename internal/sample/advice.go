// advice.go reads what a model's file recommends for the draw of tokens.

package sample

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"grove/internal/weights/gguf"
	"grove/internal/weights/ollama"
)

// Advice has the settings that a model's file recommends for the draw of tokens: the keys general.sampling.* that llama.cpp writes, and
// the generation_config.json of a Hugging Face folder. A field that is nil is not recommended, or the file's value cannot
// be honoured. The zero value recommends nothing.
type Advice struct {
	Temperature  *float32
	TopK         *int
	TopP         *float32
	MinP         *float32
	XTC          *XTC
	Mirostat     *Mirostat
	Order        *Order
	Repeat       *float32 // [sample.Penalties].Repeat
	RepeatWindow *int     // tokens at the end of the text that penalties look at; -1: all
	Typical      *float32 // [sample.Params].TypicalP
	Presence     *float32 // [sample.Penalties].Presence
	Frequency    *float32 // [sample.Penalties].Frequency
	Stop         []string // texts that end an answer whose request names none
	MaxTokens    *int     // of an answer whose request does not say
	Seed         *uint64  // of a request without one

	// Ignored says what the file gives and is not used: a line for each key, with its value and the reason.
	Ignored []string
}

// Apply sets what is recommended, and leaves all other settings as they are.
func (a Advice) Apply(s *Params, p *Penalties) {
	put(&s.Temperature, a.Temperature)
	put(&s.TopK, a.TopK)
	if a.TopP != nil {
		s.SetTopP(*a.TopP)
	}
	put(&s.MinP, a.MinP)
	put(&s.XTC, a.XTC)
	put(&s.Mirostat, a.Mirostat)
	put(&s.Order, a.Order)
	put(&s.TypicalP, a.Typical)
	put(&p.Presence, a.Presence)
	put(&p.Frequency, a.Frequency)
	put(&p.Repeat, a.Repeat)
	put(&p.RepeatWindow, a.RepeatWindow)
	put(&p.Window, a.RepeatWindow)
}

func put[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// String returns what is recommended on one line; "" where nothing is.
func (a Advice) String() string {
	var all []string
	add := func(name string, given bool, value func() any) {
		if given {
			all = append(all, fmt.Sprint(name, " ", value()))
		}
	}
	add("temperature", a.Temperature != nil, func() any { return *a.Temperature })
	add("top-k", a.TopK != nil, func() any { return *a.TopK })
	add("top-p", a.TopP != nil, func() any { return *a.TopP })
	add("min-p", a.MinP != nil, func() any { return *a.MinP })
	add("XTC", a.XTC != nil, func() any { return fmt.Sprintf("%v at %v", a.XTC.Probability, a.XTC.Threshold) })
	add("mirostat", a.Mirostat != nil, func() any { return fmt.Sprintf("%d (%v, %v)", a.Mirostat.Version, a.Mirostat.Tau, a.Mirostat.Eta) })
	add("order", a.Order != nil, func() any { return *a.Order })
	add("repeat penalty", a.Repeat != nil, func() any { return *a.Repeat })
	add("of the last", a.RepeatWindow != nil, func() any { return *a.RepeatWindow })
	add("typical-p", a.Typical != nil, func() any { return *a.Typical })
	add("presence penalty", a.Presence != nil, func() any { return *a.Presence })
	add("frequency penalty", a.Frequency != nil, func() any { return *a.Frequency })
	add("stop", len(a.Stop) > 0, func() any { return fmt.Sprintf("%q", a.Stop) })
	add("at most", a.MaxTokens != nil, func() any { return fmt.Sprint(*a.MaxTokens, " tokens") })
	add("seed", a.Seed != nil, func() any { return *a.Seed })
	return strings.Join(all, ", ")
}

const (
	adviceKey = "general.sampling."

	// Values that llama.cpp has for keys that are missing beside others.
	adviceWindow    = 64
	adviceThreshold = 0.1
	adviceTau       = 5
	adviceEta       = 0.1

	maxIgnored = 16 // lines of Advice.Ignored; the rest is counted
)

// adviser reads the recommendations of a file.
type adviser struct {
	file    *gguf.File
	known   []string
	ignored []string
}

// ReadAdvice reads what a file recommends. A value that makes no sense is not used, and named.
func ReadAdvice(f *gguf.File) (a Advice) {
	r := &adviser{file: f}
	a.Temperature = r.float("temp", func(x float32) error { return Params{Temperature: x}.Validate() })
	a.TopK = r.int("top_k", func(n int) error { return Params{TopK: n}.Validate() })
	a.TopP = r.float("top_p", func(x float32) error { return Params{TopP: x}.Validate() })
	a.MinP = r.float("min_p", func(x float32) error { return Params{MinP: x}.Validate() })
	probability := r.float("xtc_probability", func(x float32) error { return Params{XTC: XTC{Probability: x}}.Validate() })
	threshold := r.float("xtc_threshold", func(x float32) error { return Params{XTC: XTC{Threshold: x}}.Validate() })
	if probability != nil {
		a.XTC = &XTC{Probability: *probability, Threshold: adviceThreshold}
		put(&a.XTC.Threshold, threshold)
	}
	on := func(m Mirostat) error { return Params{Mirostat: m}.Validate() }
	version := r.int("mirostat", func(n int) error { return on(Mirostat{Version: n, Tau: adviceTau, Eta: adviceEta}) })
	tau := r.float("mirostat_tau", func(x float32) error { return on(Mirostat{Version: 1, Tau: x, Eta: adviceEta}) })
	eta := r.float("mirostat_eta", func(x float32) error { return on(Mirostat{Version: 1, Tau: adviceTau, Eta: x}) })
	if version != nil && *version > 0 {
		a.Mirostat = &Mirostat{Version: *version, Tau: adviceTau, Eta: adviceEta}
		put(&a.Mirostat.Tau, tau)
		put(&a.Mirostat.Eta, eta)
	}
	a.Repeat = r.float("penalty_repeat", func(x float32) error { return (&Penalties{Repeat: x}).Validate(0) })
	a.RepeatWindow = r.int("penalty_last_n", func(n int) error {
		if n < -1 {
			return fmt.Errorf("it must be -1 (all) or more")
		}
		return nil
	})
	switch window := adviceWindow; {
	case a.RepeatWindow != nil && *a.RepeatWindow == 0: // no token is looked at
		a.Repeat, a.RepeatWindow = nil, nil
	case a.Repeat != nil && a.RepeatWindow == nil:
		a.RepeatWindow = &window
	}
	a.Typical = r.float("typical_p", func(x float32) error { return Params{TypicalP: x}.Validate() })
	a.Presence = r.float("penalty_present", func(x float32) error { return (&Penalties{Presence: x}).Validate(0) })
	a.Frequency = r.float("penalty_freq", func(x float32) error { return (&Penalties{Frequency: x}).Validate(0) })
	r.sequence(&a)
	r.rest(&a)
	r.answers(&a)
	return a
}

// answers reads what the file says of answers besides their draw, and the notes of who opened it.
func (r *adviser) answers(a *Advice) {
	var err error
	if a.Stop, _, err = r.file.Strings(ollama.KeyStop); err != nil {
		a.Ignored = append(a.Ignored, err.Error())
	}
	const most = 64 // of a request
	if n := len(a.Stop); n > most {
		a.Stop = a.Stop[:most]
		a.Ignored = append(a.Ignored, fmt.Sprintf("%d stop texts; the first %d are used", n, most))
	}
	if n, ok, err := r.file.Uint(ollama.KeyMaxTokens); err == nil && ok && n > 0 {
		a.MaxTokens = &n
	}
	if n, ok, err := r.file.Uint(ollama.KeySeed); err == nil && ok {
		a.Seed = new(uint64(n))
	}
	notes, _, err := r.file.Strings(ollama.KeyNotes)
	if err == nil {
		a.Ignored = append(a.Ignored, notes[:min(len(notes), maxIgnored)]...)
	}
}

// rest refuses what remains: values that contradict each other, and keys that are not known.
func (r *adviser) rest(a *Advice) {
	s, p := DefaultParams(), Penalties{}
	if a.Apply(&s, &p); a.Mirostat != nil && s.Validate() != nil {
		r.ignore("mirostat", a.Mirostat.Version, s.Validate())
		a.Mirostat = nil
	}
	more := 0
	for _, kv := range r.file.Metadata {
		name, ok := strings.CutPrefix(kv.Key, adviceKey)
		switch {
		case !ok || slices.Contains(r.known, name):
		case len(r.ignored) >= maxIgnored:
			more++
		default:
			r.ignored = append(r.ignored, fmt.Sprintf("%.80s is not known", kv.Key))
		}
	}
	if more > 0 {
		r.ignored = append(r.ignored, fmt.Sprintf("%d further keys are not known", more))
	}
	a.Ignored = r.ignored
}

func (r *adviser) ignore(name string, value any, why error) {
	text := strings.TrimPrefix(why.Error(), "sample: ")
	r.ignored = append(r.ignored, fmt.Sprintf("%s%s is %.80s: %s", adviceKey, name, fmt.Sprint(value), text))
}

// number returns the number of a key; false: there is none.
func (r *adviser) number(name string) (x float64, ok bool) {
	r.known = append(r.known, name)
	v, ok := r.file.Lookup(adviceKey + name)
	if !ok {
		return 0, false
	}
	if v.Kind() != gguf.Array && v.Kind() != gguf.String {
		switch n := reflect.ValueOf(v.Any()); {
		case n.CanFloat():
			return n.Float(), true
		case n.CanInt():
			return float64(n.Int()), true
		case n.CanUint():
			return float64(n.Uint()), true
		}
	}
	r.ignore(name, "a "+v.Type(), fmt.Errorf("it must be a number"))
	return 0, false
}

func (r *adviser) float(name string, check func(x float32) error) *float32 {
	x, ok := r.number(name)
	if !ok {
		return nil
	}
	v := float32(x)
	if err := check(v); err != nil {
		r.ignore(name, x, err)
		return nil
	}
	return &v
}

func (r *adviser) int(name string, check func(n int) error) *int {
	x, ok := r.number(name)
	if !ok {
		return nil
	}
	n := int(x)
	err := check(n)
	if x != math.Trunc(x) || math.Abs(x) > math.MaxInt32 { // a NaN differs from itself
		err = fmt.Errorf("it must be a whole number of 32 bits")
	}
	if err != nil {
		r.ignore(name, x, err)
		return nil
	}
	return &n
}

// sequence reads the order of the stages. A stage that is not in it is off.
func (r *adviser) sequence(a *Advice) {
	const name = "sequence"
	r.known = append(r.known, name)
	v, ok := r.file.Lookup(adviceKey + name)
	if !ok {
		return
	}
	text, _, err := r.file.String(adviceKey + name)
	if err != nil {
		r.ignore(name, "a "+v.Type(), fmt.Errorf("it must be a text"))
		return
	}
	stages := strings.Split(text, ";")
	for i, s := range stages {
		stages[i], _ = TruncateFirst.Stage(strings.TrimSpace(s)) // an order has no name that is not known
	}
	if order, ok := TruncateFirst.With(stages); ok {
		a.Order = &order
		a.only(stages)
		return
	}
	r.ignore(name, text, fmt.Errorf("the orders are %s, or %s, or parts of them", strings.Join(TruncateFirst.Stages(), ";"), strings.Join(TemperFirst.Stages(), ";")))
}

// only recommends that the stages that are not among those given are off.
func (a *Advice) only(stages []string) {
	off := func(stage string) bool { return !slices.Contains(stages, stage) }
	if off("temperature") {
		a.Temperature = new(float32(1))
	}
	if off("top_k") {
		a.TopK = new(int)
	}
	if off("top_p") {
		a.TopP = new(float32(1))
	}
	if off("min_p") {
		a.MinP = new(float32)
	}
	if off("xtc") {
		a.XTC = nil
	}
	if off("penalties") {
		a.Repeat, a.RepeatWindow = nil, nil
	}
}
