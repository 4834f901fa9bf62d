// headfile.go has the flags with which a command reads drafting heads, and opens and checks what they name.

package main

import (
	"errors"
	"fmt"
	"os"

	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/internal/command/harmless"
	"grove/internal/weights/gguf"
	"grove/internal/weights/heads"
	"grove/internal/weights/quantize"
)

// HeadfileFlags say that a folder is a drafting head, and for which model it is.
type HeadfileFlags struct {
	Heads  bool   `help:"The folder, or safetensors file, is a drafting head: chimera, clover, dflash, dflare, dspark, eagle, eagle3, falcon, fspad, hydra, kangaroo, lora-drop, m2r2, medusa, peagle, ppd, specblock or transfer."`
	Target string `placeholder:"MODEL" complete:"MODEL" help:"With --heads: the model that the head drafts for, to which the head is held."`
}

// Open opens what is at path: a model, by the function model, or with --heads a head, which is to be written with the types of a mix. A head is
// checked: all values are finite, and with a target the head is one for it and smaller. What is left out or assumed of it is said on standard
// error. Errors have their exit codes.
func (f HeadfileFlags) Open(path, mix string, model func(path string) (*gguf.File, error)) (*gguf.File, error) {
	switch {
	case f.Heads:
		return f.head(path, mix)
	case f.Target != "":
		return nil, exit.With(exit.CodeUsage, errors.New("--target: it is for drafting heads; add --heads"))
	}
	file, err := model(path)
	return file, exit.File(err)
}

// head opens a head and checks it.
func (f HeadfileFlags) head(path, mix string) (head *gguf.File, err error) {
	var target *gguf.File
	if f.Target != "" {
		if target, err = (flags.Model{Path: f.Target}).File(); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, target.Close()) }()
	}
	head, err = heads.OpenFor(path, target, func(text string) { fmt.Fprintln(os.Stderr, "grove: note:", harmless.Line(text)) })
	if err != nil {
		return nil, exit.File(err)
	}
	if err = heads.Finite(head); err == nil && target != nil {
		err = size(head, target, mix)
	}
	if err != nil {
		return nil, exit.File(errors.Join(err, head.Close()))
	}
	return head, nil
}

// size refuses a head whose new file would be larger than its target's.
func size(head, target *gguf.File, mix string) error {
	job, err := quantize.New(head, mix, true) // types that may not be changed again are refused when it is written
	if err != nil {
		return err
	}
	var n int64
	for _, t := range job.Tensors() {
		n += int64(t.Bytes())
	}
	return heads.SizeFits(n, target)
}
