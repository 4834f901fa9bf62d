package sample

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Order says whether truncation sees the model's own probabilities or the tempered ones.
type Order uint8

const (
	// TruncateFirst is the order of llama.cpp: top-n-sigma, top-k, typical-p, top-p, min-p, XTC, then temperature.
	TruncateFirst Order = iota
	// TemperFirst is the order of vLLM: temperature, min-p, top-k, then top-p. Of the stages that vLLM lacks,
	// top-n-sigma stands before min-p, typical-p before top-p, and XTC at the end. Unlike there, top-k keeps exactly k
	// tokens also where logits are equal.
	TemperFirst
)

// String returns the name of the order as options spell it.
func (o Order) String() string {
	switch o {
	case TruncateFirst:
		return "truncate-first"
	case TemperFirst:
		return "temper-first"
	}
	return fmt.Sprintf("order %d", uint8(o))
}

// stages are the names of the stages in their orders.
var stages = [...][]string{
	TruncateFirst: {"penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"},
	TemperFirst:   {"penalties", "dry", "temperature", "top_n_sigma", "min_p", "top_k", "typ_p", "top_p", "xtc"},
}

// Stages returns llama.cpp's names of the stages in the order, which is one of the above. The caller must not change them.
func (o Order) Stages() []string { return stages[o] }

// otherNames are further names that llama.cpp has for stages.
var otherNames = map[string]string{"typical_p": "typ_p", "temp": "temperature"}

// Stage returns the name by which [Order.Stages] has a stage that llama.cpp names, and whether there is one: it has two names for some.
func (o Order) Stage(name string) (stage string, known bool) {
	stage = cmp.Or(otherNames[name], name)
	return stage, slices.Contains(o.Stages(), stage)
}

// With returns the order, or where it does not take the stages the other one, which takes them; false: neither does.
func (o Order) With(names []string) (Order, bool) {
	if other := TemperFirst - o; !o.Takes(names) && other.Takes(names) {
		return other, true
	}
	return o, o.Takes(names)
}

// Takes reports whether names are some of [Order.Stages], in their order, each once.
func (o Order) Takes(names []string) bool {
	for _, name := range o.Stages() {
		if len(names) > 0 && names[0] == name {
			names = names[1:]
		}
	}
	return len(names) == 0
}

// Params say how a token is drawn. The zero value is greedy: the likeliest token, always.
type Params struct {
	// Temperature divides the logits. Below 1e-5 the likeliest token is taken, as in vLLM: of the probabilities of the
	// other tokens nothing but rounding would be left.
	Temperature float32
	// TopK keeps that many of the likeliest tokens; 0 keeps all.
	TopK int
	// TopP keeps the fewest of the likeliest tokens whose probabilities reach it together;
	// 1, or 0, keeps all. [Params.SetTopP] sets a 0 that was asked for.
	TopP float32
	// MinP keeps the tokens at least that many times as likely as the likeliest; 0 keeps all.
	MinP float32
	// Seed makes draws reproducible; see [RandomSeed].
	Seed uint64
	// Order is the order of these steps.
	Order Order

	// TypicalP keeps the fewest tokens with a surprise nearest to the entropy whose probabilities exceed it together; it
	// may remove the likeliest token. 1, or 0, keeps all.
	// Source: locally typical sampling (Meister et al. 2022).
	TypicalP float32
	// TopNSigma keeps the tokens whose logits are within that many standard deviations of the largest; 0, or less,
	// keeps all.
	TopNSigma float32
	// XTC sometimes excludes the likeliest tokens.
	XTC XTC
	// DynamicTemperature lets the temperature follow the entropy of the row.
	DynamicTemperature DynamicTemperature
	// Mirostat replaces all truncation by its own.
	Mirostat Mirostat
	// MinKeep is the number of tokens that top-p, min-p, typical-p and XTC leave, where there are as many; 0 and 1 are
	// the same.
	MinKeep int
}

// XTC excludes top choices: with the given probability, of the tokens that are at least as likely as the threshold all
// but the least likely are removed. It leaves one of the tokens that end a text where it would remove all of them. As
// in llama.cpp, a threshold above 0.5 turns it off, for no two tokens could reach it.
type XTC struct {
	Probability float32 // from 0 (off) to 1
	Threshold   float32 // from 0 to 1; llama.cpp's default is 0.1
}

func (x XTC) on() bool { return x.Probability > 0 && x.Threshold <= 0.5 }

// DynamicTemperature takes the temperature from Temperature - Range (at least 0), where one token is certain, to
// Temperature + Range, where all tokens are equally likely: in between it goes by the entropy, as a part of the largest
// possible, to the power of Exponent.
type DynamicTemperature struct {
	Range    float32 // 0: off
	Exponent float32 // 0 stands for 1
}

// Mirostat holds the surprise of the drawn tokens near Tau: the limit of truncation, at first twice Tau, changes with
// every token by Eta times the difference. With it TopK, TopP and MinP are not applied, as in llama.cpp; other
// truncation beside it is an error.
//
// Source: Basu et al. 2021.
type Mirostat struct {
	Version int     // 0 (off), 1 or 2
	Tau     float32 // bits; llama.cpp's default is 5
	Eta     float32 // llama.cpp's default is 0.1
}

// DefaultParams returns the customary settings, those of llama.cpp: temperature 0.8, top-k 40,
// top-p 0.95, min-p 0.05. The seed is 0.
func DefaultParams() Params {
	return Params{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}
}

// greedyBelow is the temperature under which sampling is greedy.
const greedyBelow = 1e-5

// Limits of settings that have no natural one.
const (
	maxTau   = 32 // bits: above the surprise of any token of any vocabulary
	maxRange = 100
)

// Greedy reports whether the parameters always take the likeliest token, whatever the seed.
func (p Params) Greedy() bool { return p.Temperature < greedyBelow && p.DynamicTemperature.Range == 0 }

// leastTopP is the TopP of which the likeliest token alone is left: those of a vocabulary are not all as unlikely.
const leastTopP = 1e-9

// SetTopP sets TopP to what somebody asks for, of which 0 leaves the likeliest token alone, as in llama.cpp, ollama and transformers: the zero value is that
// of a TopP that nobody set.
func (p *Params) SetTopP(asked float32) {
	if p.TopP = asked; asked == 0 {
		p.TopP = leastTopP
	}
}

// AskedTopP returns what [Params.SetTopP] was asked for.
func (p Params) AskedTopP() float32 {
	if p.TopP == leastTopP {
		return 0
	}
	return p.TopP
}

// must returns an error where a setting is out of range: its name, its value, and what it must be.
func must(ok bool, name string, value any, be string) error {
	if ok {
		return nil
	}
	return fmt.Errorf("sample: %s is %v; it must be %s", name, value, be)
}

// Validate returns an error that names the first parameter that is out of range, or that contradicts another, and its
// value.
func (p Params) Validate() error {
	m, upTo := p.Mirostat, fmt.Sprintf("to %d", maxRange)
	return cmp.Or( // written so that a NaN fails
		must(p.Temperature >= 0 && p.Temperature <= math.MaxFloat32, "temperature", p.Temperature, "a number from 0 up"),
		must(p.TopK >= 0, "top-k", p.TopK, "0 (off) or more"),
		must(p.TopP >= 0 && p.TopP <= 1, "top-p", p.TopP, "from 0 to 1 (1: off)"),
		must(p.MinP >= 0 && p.MinP <= 1, "min-p", p.MinP, "from 0 (off) to 1"),
		must(p.Order <= TemperFirst, "order", uint8(p.Order), "0 (truncate-first) or 1 (temper-first)"),
		must(p.TypicalP >= 0 && p.TypicalP <= 1, "typical-p", p.TypicalP, "from 0 to 1 (0 or 1: off)"),
		must(p.TopNSigma <= math.MaxFloat32, "top-n-sigma", p.TopNSigma, "a number (0 or less: off)"),
		must(p.XTC.Probability >= 0 && p.XTC.Probability <= 1, "XTC's probability", p.XTC.Probability, "from 0 (off) to 1"),
		must(p.XTC.Threshold >= 0 && p.XTC.Threshold <= 1, "XTC's threshold", p.XTC.Threshold, "from 0 to 1 (above 0.5: off)"),
		must(p.DynamicTemperature.Range >= 0 && p.DynamicTemperature.Range <= maxRange,
			"the range of the dynamic temperature", p.DynamicTemperature.Range, "from 0 (off) "+upTo),
		must(p.DynamicTemperature.Exponent >= 0 && p.DynamicTemperature.Exponent <= maxRange,
			"the exponent of the dynamic temperature", p.DynamicTemperature.Exponent, "from 0 (for 1) "+upTo),
		must(p.MinKeep >= 0, "min-keep", p.MinKeep, "0 (off) or more"),
		must(m.Version >= 0 && m.Version <= 2, "mirostat's version", m.Version, "0 (off), 1 or 2"),
		must(m.Version == 0 || m.Tau > 0 && m.Tau <= maxTau, "mirostat's tau", m.Tau, fmt.Sprintf("above 0 and at most %d bits", maxTau)),
		must(m.Version == 0 || m.Eta >= 0 && m.Eta <= 1, "mirostat's eta", m.Eta, "from 0 to 1"),
		p.validateMirostat(),
	)
}

// validateMirostat refuses mirostat beside truncation that no default turns on: whoever asks for both asks for each.
func (p Params) validateMirostat() error {
	if p.Mirostat.Version == 0 {
		return nil
	}
	for _, other := range []struct {
		name string
		on   bool
	}{
		{"typical-p", p.TypicalP > 0 && p.TypicalP < 1}, {"top-n-sigma", p.TopNSigma > 0}, {"XTC", p.XTC.on()},
		{"min-keep", p.MinKeep > 1},
	} {
		if other.on {
			return fmt.Errorf("sample: mirostat replaces truncation and cannot go with %s; turn one of them off", other.name)
		}
	}
	return nil
}

// RandomSeed returns an unpredictable seed, for requests that name none; report it, so that the
// text can be had again.
func RandomSeed() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return binary.LittleEndian.Uint64(b[:])
}
