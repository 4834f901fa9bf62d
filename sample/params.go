package sample

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"math"
)

// Order says whether truncation sees the model's own probabilities or the tempered ones.
type Order uint8

const (
	// TruncateFirst is top-k, top-p, min-p, then temperature: the order of llama.cpp.
	TruncateFirst Order = iota
	// TemperFirst is temperature, min-p, top-k, then top-p: the order of vLLM. Unlike there,
	// top-k keeps exactly k tokens also where logits are equal.
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

// Params say how a token is drawn. The zero value is greedy: the likeliest token, always.
type Params struct {
	// Temperature divides the logits. Below 1e-5, where nothing but rounding would be left of
	// the other tokens' chances, the likeliest token is taken; so does vLLM.
	Temperature float32
	// TopK keeps that many of the likeliest tokens; 0 keeps all.
	TopK int
	// TopP keeps the fewest of the likeliest tokens whose probabilities reach it together;
	// 1, or 0, keeps all.
	TopP float32
	// MinP keeps the tokens at least that many times as likely as the likeliest; 0 keeps all.
	MinP float32
	// Seed makes draws reproducible; see [RandomSeed].
	Seed uint64
	// Order is the order of these steps.
	Order Order
}

// DefaultParams returns the customary settings, those of llama.cpp: temperature 0.8, top-k 40,
// top-p 0.95, min-p 0.05. The seed is 0.
func DefaultParams() Params {
	return Params{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}
}

// greedyBelow is the temperature under which sampling is greedy.
const greedyBelow = 1e-5

// Greedy reports whether the parameters always take the likeliest token, whatever the seed.
func (p Params) Greedy() bool { return p.Temperature < greedyBelow }

// Validate returns an error that names the first parameter out of range and its value.
func (p Params) Validate() error {
	// Written so that a NaN fails.
	if !(p.Temperature >= 0 && p.Temperature <= math.MaxFloat32) {
		return fmt.Errorf("sample: temperature is %v; it must be a number from 0 up", p.Temperature)
	}
	if p.TopK < 0 {
		return fmt.Errorf("sample: top-k is %d; it must be 0 (off) or more", p.TopK)
	}
	if !(p.TopP >= 0 && p.TopP <= 1) {
		return fmt.Errorf("sample: top-p is %v; it must be from 0 to 1 (0 or 1: off)", p.TopP)
	}
	if !(p.MinP >= 0 && p.MinP <= 1) {
		return fmt.Errorf("sample: min-p is %v; it must be from 0 (off) to 1", p.MinP)
	}
	if p.Order > TemperFirst {
		return fmt.Errorf("sample: order is %d; it must be %d (%v) or %d (%v)", uint8(p.Order),
			uint8(TruncateFirst), TruncateFirst, uint8(TemperFirst), TemperFirst)
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
