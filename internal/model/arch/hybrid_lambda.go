package arch

import (
	"fmt"

	"grove/internal/kernel"
	"grove/internal/model"
)

// loadLambda returns the part of the second softmax that differential attention takes from the first (Ye et al. 2024, section 2.1): exp(q1.k1)
// - exp(q2.k2) + first, by four vectors of n values that the layer has, and first, 0.8 - 0.6 exp(-0.3 layer). A part that is not finite
// is an error.
func loadLambda(l *model.Loader, layer, n int) (first, lambda float32) {
	exponent := func(pair string) (sum float64) {
		q, k := l.Vector(fmt.Sprintf("blk.%d.attn_lambda_q%s.weight", layer, pair), n), l.Vector(fmt.Sprintf("blk.%d.attn_lambda_k%s.weight", layer, pair), n)
		for i := range min(q.Len(), k.Len()) {
			sum += float64(float64(q.F[i]) * float64(k.F[i]))
		}
		return sum
	}
	begin := 0.8 - float64(0.6*kernel.Exp64(float64(-0.3*float64(layer))))
	lambda = float32(kernel.Exp64(exponent("1")) - kernel.Exp64(exponent("2")) + begin)
	if l.OK() && !(lambda-lambda == 0) {
		l.Fail("blk.%d: the part of the second softmax, by attn_lambda_q1, k1, q2 and k2, is %v; it must be finite", layer, lambda)
	}
	return float32(begin), lambda
}
