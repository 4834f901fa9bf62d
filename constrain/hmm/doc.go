// Package hmm looks ahead: a hidden Markov model that was distilled from a language model's texts says, for each legal
// token, how likely the text then is to end in the language of a finite automaton (Deco-G: Decoupling Task-Solving and
// Output Formatting in LLM Generation, 2025; Ctrl-G before it). Masks alone draw from the product of the masked
// distributions and so prefer beginnings behind which little is legal; the model's own distribution, given that the text
// is legal, is p(x) P(legal | text x), and the hidden Markov model estimates the second factor.
//
// [Fit] makes a [Model] of texts; [Compile] makes an [Automaton] of a machine over bytes, a vocabulary and a model;
// [NewStage] decodes with it. Without a model a stage is a mask.
//
// Tables and scores have the same bits on every processor, so that a draw that looks ahead depends on the request, the seed and the numerics
// version alone. Only [Fit] does not promise that: a model is made once, and its file is the same everywhere.
package hmm
