// reject_doc.go meets constraints of which only a check is known: a function that says whether a text is the beginning
// of a legal one. No mask of the vocabulary is made. A draw tests its tokens in the order in which it prefers them and
// takes the first that passes: adaptive weighted rejection sampling (Fast Controlled Generation from Language Models
// with Adaptive Weighted Rejection Sampling, 2025). Since the noise of a draw is a function of the token, that is the
// very token that drawing from the masked logits gives.
//
// Masking token by token draws from the product of the masked distributions, not from the model's distribution given
// that the text is legal. The weight of a draw is an unbiased estimate of the probability of all legal tokens together;
// the product of the weights of a text corrects the difference where several texts are drawn and resampled by it.

package constrain
