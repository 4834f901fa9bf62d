package main

import (
	"errors"
	"strings"
	"time"

	"grove"
	"grove/server/far"
)

// verifier are the flags of a server that drafts for another one, and of the other one.
type verifier struct {
	Verifier      string        `name:"verifier" placeholder:"URL" var:"GROVE_VERIFIER" help:"Pass requests on to the grove server at URL, which has --take-drafts, and draft for it by the model here; the texts are those of the other server."`
	VerifierKey   string        `name:"verifier-key" placeholder:"KEY" var:"GROVE_VERIFIER_KEY" help:"Key that the verifier asks for."`
	VerifierModel string        `name:"verifier-model" placeholder:"NAME" var:"GROVE_VERIFIER_MODEL" help:"Name of the verifier's model, or the beginning of the digest of its weights; another one is an error. Without it, any, as long as it stays the same."`
	VerifierWait  time.Duration `name:"verifier-wait" placeholder:"TIME" var:"GROVE_VERIFIER_WAIT" help:"Time that a step of the verifier waits for drafts, 2s at most. Without it, as long as waiting pays."`
	Fallback      bool          `name:"verifier-fallback" var:"GROVE_VERIFIER_FALLBACK" help:"Answer requests by the model here where the verifier cannot be reached; the header Grove-Answered-By says so."`
	TakeDrafts    bool          `name:"take-drafts" var:"GROVE_TAKE_DRAFTS" help:"Answer the requests of servers that name this one as their --verifier, over HTTP/2, and verify their drafts."`
}

// proxy returns what passes requests on; nil: nothing does.
func (v *verifier) proxy() (*far.Proxy, error) {
	if v.Verifier == "" {
		for flag, given := range map[string]bool{
			"--verifier-key": v.VerifierKey != "", "--verifier-model": v.VerifierModel != "", "--verifier-wait": v.VerifierWait != 0, "--verifier-fallback": v.Fallback,
		} {
			if given {
				return nil, &grove.OptionError{Err: errors.New("grove: " + flag + ": it needs --verifier URL")}
			}
		}
		return nil, nil
	}
	p, err := far.NewProxy(far.Config{URL: v.Verifier, Key: v.VerifierKey, Model: v.VerifierModel, Wait: v.VerifierWait, Fallback: v.Fallback})
	if err != nil {
		return nil, &grove.OptionError{Err: errors.New("grove: --verifier: " + strings.TrimPrefix(err.Error(), far.ErrConfig.Error()+": "))}
	}
	return p, nil
}
