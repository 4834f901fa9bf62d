// Package sample turns the logits of one row into a token.
//
// A [Chain] holds the stages and the draw of one sequence. Logit stages change the logits by the text before them:
// biases, penalties, DRY, the minimum length, the thinking budget, and any [Stage] of the caller's, in this order.
// Truncation and temperature, and the draw, follow. Two orders are customary:
//
//	[TruncateFirst] (llama.cpp)   top-n-sigma, top-k, typical-p, top-p, min-p, XTC, temperature
//	[TemperFirst] (vLLM)          temperature, top-n-sigma, min-p, top-k, typical-p, top-p, XTC
//
// With mirostat it is temperature, then mirostat. The temperature may follow the entropy of the row; in the first order
// that of the tokens which truncation kept, in the second that of all. Temperature, top-p and min-p of a whole
// vocabulary take a shorter path than the rest, which gives the same draws.
//
// A draw is the argmax of logit / temperature + Gumbel noise over the tokens that truncation keeps, which is an exact
// sample of their softmax. The noise is a pure function of seed, sample index, index and token id, and so is the number
// that decides about XTC, with a purpose of its own. A chain has a [State] for each node of a tree of drafts, which
// depends on the node's text only. So whoever computes the same logits draws the same token: a verifier that draws at
// each node of a tree and walks to the child that matches gives the tokens of plain decoding (rules N5 and N6 of
// DESIGN.md).
//
// Penalties and DRY keep their counts at a cursor that moves between the states: no call walks the whole text. DRY
// compares the places of the last token only.
package sample
