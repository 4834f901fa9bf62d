package remote_test

import (
	"fmt"

	"grove/server/far/remote"
)

// ExampleCost predicts rounds of a far model whose step takes 50 ms, and 2 ms for each row, with drafts that take 5 ms and are accepted with probability 0.7:
// the drafts of a round, and how many times as fast it is as plain decoding there.
func ExampleCost() {
	for _, trip := range []float64{0, 0.005, 0.02, 0.05, 0.1, 10} {
		c := remote.Cost{Accept: 0.7, Draft: 0.005, Bytes: 3, RoundTrip: trip, Step: func(rows int) float64 { return 0.05 + 0.002*float64(rows) }}
		n := c.Length(16)
		fmt.Printf("%5.0f ms: %2d drafts, %.2f times\n", 1000*trip, n, c.Tokens(n)/c.Round(n)*c.Step(1))
	}
	// Output:
	//     0 ms:  3 drafts, 1.80 times
	//     5 ms:  4 drafts, 1.70 times
	//    20 ms:  4 drafts, 1.44 times
	//    50 ms:  5 drafts, 1.12 times
	//   100 ms:  6 drafts, 0.82 times
	// 10000 ms: 16 drafts, 0.02 times
}
