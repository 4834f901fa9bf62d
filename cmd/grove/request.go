package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"grove"
)

// requestFlags are those of commands that open a model and have it write: which model, how it is opened, and how
// it writes.
type requestFlags struct {
	modelFlag

	Temp       temperature `placeholder:"T" default:"0.8" var:"GROVE_TEMP" help:"Temperature; 0 takes the likeliest token each time. Default: ${default}."`
	TopK       topK        `placeholder:"K" default:"40" var:"GROVE_TOP_K" help:"Draw from the K likeliest tokens; 0: all. Default: ${default}."`
	TopP       topP        `placeholder:"P" default:"0.95" var:"GROVE_TOP_P" help:"Draw from the likeliest tokens that have probability P together; 1: all. Default: ${default}."`
	MinP       minP        `placeholder:"P" default:"0.05" var:"GROVE_MIN_P" help:"Draw from tokens at least P times as likely as the likeliest; 0: all. Default: ${default}."`
	Seed       *uint64     `placeholder:"S" var:"GROVE_SEED" help:"Seed that makes a text reproducible; without it, one is drawn and reported."`
	Stop       []string    `placeholder:"TEXT" sep:"none" var:"GROVE_STOP" help:"End before this text; may be given several times."`
	Context    count       `short:"c" placeholder:"N" var:"GROVE_CONTEXT" help:"Tokens of the text, prompt included; 0: the model's own, 4096 at most."`
	Threads    count       `short:"t" placeholder:"N" var:"GROVE_THREADS" help:"Threads; 0: one for each core that may be used."`
	CacheType  cacheType   `placeholder:"TYPE" default:"f16" var:"GROVE_CACHE_TYPE" help:"Type of cached keys and values: f32, f16 or q8_0. Default: ${default}."`
	NoRepack   bool        `var:"GROVE_NO_REPACK" help:"Read weights where the file has them: less memory while loading, slower, the same text."`
	Method     methodNames `placeholder:"NAMES" default:"auto" var:"GROVE_METHOD" help:"How several tokens a step are drafted: auto, off, or names with commas between (see grove methods). Default: ${default}."`
	Accept     acceptRule  `placeholder:"RULE" default:"exact" var:"GROVE_ACCEPT" help:"How guesses become text: exact, by the method's own rule, or typical, those that are likely enough (lossy). Default: ${default}."`
	Draft      string      `placeholder:"FILE" var:"GROVE_DRAFT" help:"GGUF file of a smaller model, to draft with; best with the same vocabulary."`
	DraftVocab count       `placeholder:"N" var:"GROVE_DRAFT_VOCAB" help:"Tokens that the draft model considers, the most frequent ones; 0: all. The answer is the same."`
}

// Validate refuses a stop string that is everywhere.
func (f *requestFlags) Validate() error {
	if slices.Contains(f.Stop, "") {
		return errors.New("--stop: the text is empty")
	}
	return nil
}

// openModel opens the model for one text at a time, whose conversations are by a template, and says what it drafts with.
func (f *requestFlags) openModel(template string) (*grove.Model, error) {
	m, err := f.open(grove.Options{
		Context: int(f.Context), CacheType: string(f.CacheType), Threads: int(f.Threads), Parallel: 1,
		NoRepack: f.NoRepack, Draft: f.Draft, DraftVocab: int(f.DraftVocab), ChatTemplate: template,
	})
	if err != nil {
		return nil, err
	}
	if d := m.Info().Draft; d != "" {
		fmt.Fprintln(os.Stderr, "grove: draft:", d)
	}
	return m, nil
}

// request returns what the flags ask for, without a prompt.
func (f *requestFlags) request() grove.Request {
	return grove.Request{
		Seed: f.Seed, Stop: f.Stop, Method: string(f.Method), Accept: string(f.Accept),
		Sampling: grove.Sampling{
			Temperature: float32(f.Temp), TopK: int(f.TopK), TopP: float32(f.TopP), MinP: float32(f.MinP),
		},
	}
}
