package kernel

import (
	"math"
	"testing"
)

// ulps returns how many units in the last place of a float32 got is away from the exact want.
func ulps(got float32, want float64) float64 {
	if float64(got) == want || math.IsNaN(want) && got != got {
		return 0
	}
	_, e := math.Frexp(want)
	unit := math.Ldexp(1, max(e-24, -149))
	return math.Abs(float64(got)-want) / unit
}

// everyFloat32 calls f for numbers all over the float32 range, specials among them.
func everyFloat32(f func(x float32)) {
	for b := uint64(0); b < 1<<32; b += 4999 {
		f(math.Float32frombits(uint32(b)))
	}
	for _, b := range []uint32{0, 1, 2, 0x7fffff, 0x800000, 0x800001, 0x3f800000, 0x3f7fffff, 0x3f800001,
		0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff, sqrtHalfBits, sqrtHalfBits - 1} {
		f(math.Float32frombits(b))
		f(math.Float32frombits(b | 1<<31))
	}
}

func TestExp32(t *testing.T) {
	worst, at := 0.0, float32(0)
	check := func(x float32) {
		got, want := Exp32(x), math.Exp(float64(x))
		switch {
		case float64(x) < -125.5*math.Ln2:
			want = 0
		case want > math.MaxFloat32:
			want = math.Inf(1)
		}
		if u := ulps(got, want); !(u <= worst) {
			worst, at = u, x
		}
	}
	everyFloat32(check)
	for x := float32(-90); x < 90; x += 0.0007 {
		check(x)
	}
	for _, x := range []float32{-86.98933, -86.9892, 88.72283, 88.72284, 88.8, 88.9, 89} {
		check(x)
		check(math.Nextafter32(x, 0))
	}
	t.Logf("worst: %.3f ulp at %v", worst, at)
	if worst > 1 {
		t.Errorf("Exp32(%v) is off by %v ulp", at, worst)
	}
}

func TestLog32(t *testing.T) {
	worst, at := 0.0, float32(0)
	check := func(x float32) {
		if u := ulps(Log32(x), math.Log(float64(x))); !(u <= worst) {
			worst, at = u, x
		}
	}
	everyFloat32(check)
	for x := float32(0.4); x < 3; x += 0x1p-18 {
		check(x)
	}
	t.Logf("worst: %.3f ulp at %v", worst, at)
	if worst > 2 {
		t.Errorf("Log32(%v) is off by %v ulp", at, worst)
	}
}

func TestTanh32(t *testing.T) {
	worst, at := 0.0, float32(0)
	check := func(x float32) {
		if u := ulps(tanh32(x), math.Tanh(float64(x))); !(u <= worst) {
			worst, at = u, x
		}
	}
	everyFloat32(check)
	for x := float32(-11); x < 11; x += 0x1p-16 {
		check(x)
	}
	t.Logf("worst: %.3f ulp at %v", worst, at)
	if worst > 3 {
		t.Errorf("tanh32(%v) is off by %v ulp", at, worst)
	}
}

func TestFloat64Functions(t *testing.T) {
	relative := func(name string, got, want, limit float64, args ...float64) {
		t.Helper()
		if !(math.Abs(got-want) <= limit*math.Abs(want)) {
			t.Fatalf("%s%v = %v, want %v", name, args, got, want)
		}
	}
	for x := -700.0; x <= 700; x += 0.0173 {
		relative("Exp64", Exp64(x), math.Exp(x), 0x1p-51, x)
	}
	for e := -1000; e <= 1000; e += 3 {
		for m := 1.0; m < 2; m += 0.013 {
			x := math.Ldexp(m, e)
			relative("Log64", Log64(x), math.Log(x), 0x1p-51, x)
		}
	}
	for x := 0.9; x < 1.1; x += 0.00001 {
		if got, want := Log64(x), math.Log(x); math.Abs(got-want) > 1e-16 {
			t.Fatalf("Log64(%v) = %v, want %v", x, got, want)
		}
	}
	for _, base := range []float64{2, 10000, 500000, 1e6, 5e6} {
		for y := -1.0; y <= 1; y += 1.0 / 128 {
			relative("Pow64", Pow64(base, y), math.Pow(base, y), 18*0x1p-52, base, y)
		}
	}
	for x := 0.0; x <= 1e7; x = x*1.0003 + 0.0013 {
		for _, a := range []float64{x, -x} {
			s, c := SinCos64(a)
			ws, wc := math.Sincos(a)
			if math.Abs(s-ws) > 1e-15 || math.Abs(c-wc) > 1e-15 {
				t.Fatalf("SinCos64(%v) = %v, %v, want %v, %v", a, s, c, ws, wc)
			}
		}
	}
}

func TestFloat64Specials(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"Exp64(0)", Exp64(0), 1},
		{"Exp64(1000)", Exp64(1000), inf},
		{"Exp64(-1000)", Exp64(-1000), 0},
		{"Exp64(-Inf)", Exp64(-inf), 0},
		{"Exp64(NaN)", Exp64(nan), nan},
		{"Log64(1)", Log64(1), 0},
		{"Pow64(10000, 0)", Pow64(10000, 0), 1},
	} {
		if c.got != c.want && c.got == c.got {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
	for _, x := range []float64{inf, nan, 2e7} {
		if s, c := SinCos64(x); s == s || c == c {
			t.Errorf("SinCos64(%v) = %v, %v, want NaNs", x, s, c)
		}
	}
}
