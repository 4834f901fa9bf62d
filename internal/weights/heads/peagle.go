package heads

func init() { presented["peagle"] = peagle }

const (
	maxDrafts   = 64 // of a pass, as grove runs them
	usualDrafts = 8  // that the speculators library trains where nothing else is said
)

// peagle presents a head of P-EAGLE (Hui et al. 2026), as the speculators library writes it: EAGLE-3's layers, the state of mask rows, the mask token, and embeddings
// that were trained, if it has any. config.json says how many tokens a pass drafts.
func peagle(b *builder) {
	_, there := b.Weights.Tensor("embed_tokens.weight")
	trained := b.top.BoolOr("embed_requires_grad", there)
	if b.ownTable = trained && there; trained && !there {
		b.note("config.json says that the head's embeddings were trained (embed_requires_grad), and the file lacks them: the target lends its own, drafts may be worse")
	}
	eagle3(b)
	if !b.OK() {
		return
	}
	if b.check("mask_hidden", 1, 1, 3*b.width) {
		b.Values("mask_hidden.weight", "mask_hidden", []int{1, 1, 3 * b.width}, []int{3 * b.width}, nil)
	}
	b.SetCount(".mask_token_id", b.top.Count("mask_token_id", 0, max(1, b.vocab)-1))
	b.SetCount(".block_size", b.drafts())
}

// drafts returns how many tokens a pass drafts, which the proposal that is the default says.
func (b *builder) drafts() int {
	c := b.top.Sub("speculators_config")
	var methods []struct {
		Type   string `json:"proposal_type"`
		Tokens *int   `json:"speculative_tokens"`
	}
	c.Value("proposal_methods", &methods, "an array of objects")
	usual := c.TextOr("default_proposal_method", "")
	for _, m := range methods {
		if m.Tokens == nil || usual != "" && m.Type != usual {
			continue
		}
		if *m.Tokens < 2 || *m.Tokens > maxDrafts {
			c.Fail("speculative_tokens is %d; it must be from 2 to %d", *m.Tokens, maxDrafts)
		}
		return *m.Tokens
	}
	b.note("config.json does not say how many tokens a pass drafts (speculative_tokens): 8 are assumed")
	return usualDrafts
}
