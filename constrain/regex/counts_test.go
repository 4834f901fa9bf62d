package regex

import "testing"

// TestCounts compares repetitions of repetitions, and repetitions side by side, with the numbers of letters that they stand for.
func TestCounts(t *testing.T) {
	const most = 30 // letters; no count below goes beyond
	s := New(Limits{})
	a := s.Literal("a")
	check := func(name string, id ID, want [most + 1]bool, counts ...int) {
		t.Helper()
		text := ""
		for n := range want {
			if got := s.Matches(id, text); got != want[n] {
				t.Fatalf("%s of %v: %d letters: %v, want %v", name, counts, n, got, want[n])
			}
			text += "a"
		}
	}
	for m := range 5 {
		for n := m; n < 7; n++ {
			for p := range 3 {
				for q := p; q < 5; q++ {
					inner := s.Repeat(a, m, n)
					nested, beside := [most + 1]bool{}, [most + 1]bool{}
					for k := p; k <= q; k++ {
						for i := m * k; i <= min(n*k, most); i++ {
							nested[i] = true
						}
					}
					for i := m + p; i <= n+q; i++ {
						beside[i] = true
					}
					check("a repetition of a repetition", s.Repeat(inner, p, q), nested, m, n, p, q)
					check("repetitions side by side", s.Concat(inner, s.Repeat(a, p, q)), beside, m, n, p, q)
				}
			}
		}
	}
}
