package rotary

import (
	"math"
	"testing"
)

// The expected frequencies below are computed with math's functions from the formulas as published.

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-12*math.Abs(b) }

func checkRope(t *testing.T, c Config, freq func(i int) float64, scale float64) {
	t.Helper()
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Freq) != c.Dims/2 {
		t.Fatalf("%d frequencies for %d dimensions", len(r.Freq), c.Dims)
	}
	for i, got := range r.Freq {
		if want := freq(i); !near(got, want) {
			t.Errorf("pair %d turns by %v a position; want %v", i, got, want)
		}
	}
	if !near(r.Scale, scale) {
		t.Errorf("the factor on cosine and sine is %v; want %v", r.Scale, scale)
	}
}

func TestRopePlainAndLinear(t *testing.T) {
	plain := func(base float64, dims int) func(int) float64 {
		return func(i int) float64 { return 1 / math.Pow(base, 2*float64(i)/float64(dims)) }
	}
	for _, base := range []float64{10000, 500000, 1e6} {
		for _, dims := range []int{2, 32, 64, 128} {
			c := Config{Dims: dims, Base: base}
			checkRope(t, c, plain(base, dims), 1)
			c.Scaling, c.Factor = Linear, 8
			checkRope(t, c, func(i int) float64 { return plain(base, dims)(i) / 8 }, 1)
			c.Factors = make([]float32, dims/2)
			for i := range c.Factors {
				c.Factors[i] = 1 + float32(i)/4
			}
			checkRope(t, c, func(i int) float64 { return plain(base, dims)(i) / 8 / (1 + float64(i)/4) }, 1)
		}
	}
}

// yarnPaper is equations 17 to 24 of Peng et al. 2023, with the borders of their code: the pairs that
// turn beta times within the trained context, rounded outwards.
func yarnPaper(c Config, fast, slow float64) func(i int) float64 {
	dims, base, length := float64(c.Dims), c.Base, float64(c.Context)
	border := func(turns float64) float64 {
		return dims * math.Log(length/(2*math.Pi*turns)) / (2 * math.Log(base))
	}
	low, high := math.Floor(border(fast)), math.Ceil(border(slow))
	return func(i int) float64 {
		theta := math.Pow(base, -2*float64(i)/dims)
		ramp := (float64(i) - low) / (high - low) // 0 keeps theta, 1 stretches it
		ramp = math.Min(1, math.Max(0, ramp))
		return (1-ramp)*theta + ramp*theta/c.Factor
	}
}

func TestRopeYaRN(t *testing.T) {
	c := Config{Dims: 64, Base: 10000, Scaling: YaRN, Factor: 4, Context: 4096}
	checkRope(t, c, yarnPaper(c, 32, 1), 0.1*math.Log(4)+1)

	// By hand for this one: the borders are 64 ln(4096/(64 pi)) / (2 ln 10000) = 10.46 and
	// 64 ln(4096/(2 pi)) / (2 ln 10000) = 22.51, so pairs to 10 stay and pairs from 23 on are quartered.
	r, _ := New(c)
	for i, want := range map[int]float64{
		0: 1, 10: math.Pow(10, -1.25), 23: math.Pow(10, -2.875) / 4, 31: math.Pow(10, -3.875) / 4,
		17: math.Pow(10, -2.125) * (6.0/13 + 7.0/13/4),
	} {
		if !near(r.Freq[i], want) {
			t.Errorf("pair %d turns by %v; want %v", i, r.Freq[i], want)
		}
	}

	c = Config{Dims: 128, Base: 1e6, Scaling: YaRN, Factor: 2.5, Context: 32768, BetaFast: 24, BetaSlow: 2, AttentionFactor: 0.75}
	checkRope(t, c, yarnPaper(c, 24, 2), 0.75*(0.1*math.Log(2.5)+1))

	c.Factor, c.AttentionFactor = 1, 0
	checkRope(t, c, func(i int) float64 { return math.Pow(1e6, -2*float64(i)/128) }, 1)
}

// llama31 is the function that was published with Llama 3.1.
func llama31(freq, factor, low, high, context float64) float64 {
	wavelength := 2 * math.Pi / freq
	switch {
	case wavelength < context/high:
		return freq
	case wavelength > context/low:
		return freq / factor
	}
	smooth := (context/wavelength - low) / (high - low)
	return (1-smooth)*freq/factor + smooth*freq
}

func TestRopeLlama3(t *testing.T) {
	c := Config{Dims: 128, Base: 500000, Scaling: Llama3, Factor: 8, Context: 8192, LowFreqFactor: 1, HighFreqFactor: 4}
	kept, mixed, stretched := 0, 0, 0
	checkRope(t, c, func(i int) float64 {
		f := math.Pow(500000, -2*float64(i)/128)
		want := llama31(f, 8, 1, 4, 8192)
		switch want {
		case f:
			kept++
		case f / 8:
			stretched++
		default:
			mixed++
		}
		return want
	}, 1)
	if kept == 0 || mixed == 0 || stretched == 0 {
		t.Errorf("%d pairs are kept, %d mixed and %d stretched: a branch is not tested", kept, mixed, stretched)
	}
}

// TestRopeLong: frequencies by their factors, and the temperature of LongRoPE's paper or the file's.
func TestRopeLong(t *testing.T) {
	c := Config{Dims: 64, Base: 10000, Scaling: Long, Factor: 32, Context: 4096, Factors: ones(32)}
	for i := range c.Factors {
		c.Factors[i] += float32(i) / 2
	}
	freq := func(i int) float64 { return math.Pow(10000, -2*float64(i)/64) / (1 + float64(i)/2) }
	checkRope(t, c, freq, math.Sqrt(1+math.Log(32)/math.Log(4096)))
	c.Factor = 1
	checkRope(t, c, freq, 1)
	c.Factor, c.AttentionFactor = 32, 1.25
	checkRope(t, c, freq, 1.25)
}

func TestRopeRefusals(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	good := Config{Dims: 64, Base: 10000, Factor: 4, Context: 4096, LowFreqFactor: 1, HighFreqFactor: 4}
	tests := []struct {
		name   string
		change func(c *Config)
		want   string
	}{
		{"no dimensions", func(c *Config) { c.Dims = 0 }, "rope dimension count 0 is not a positive even number"},
		{"negative dimensions", func(c *Config) { c.Dims = -2 }, "rope dimension count -2 is not a positive even number"},
		{"odd dimensions", func(c *Config) { c.Dims = 33 }, "rope dimension count 33 is not a positive even number"},
		{"base 0", func(c *Config) { c.Base = 0 }, "rope base 0 is not a positive number"},
		{"base negative", func(c *Config) { c.Base = -1 }, "rope base -1 is not a positive number"},
		{"base NaN", func(c *Config) { c.Base = nan }, "rope base NaN is not a positive number"},
		{"base infinite", func(c *Config) { c.Base = inf }, "rope base +Inf is not a positive number"},
		{"too few factors", func(c *Config) { c.Factors = make([]float32, 31) }, "31 rope factors for 32 pairs"},
		{"factor of a pair 0", func(c *Config) { c.Factors = make([]float32, 32) }, "rope factor 0 is 0, not a positive number"},
		{"factor of a pair NaN", func(c *Config) {
			c.Factors = ones(32)
			c.Factors[3] = float32(nan)
		}, "rope factor 3 is NaN, not a positive number"},
		{"factor of a pair infinite", func(c *Config) {
			c.Factors = ones(32)
			c.Factors[31] = float32(inf)
		}, "rope factor 31 is +Inf, not a positive number"},
		{"linear by 0", func(c *Config) { c.Scaling, c.Factor = Linear, 0 }, "rope scaling factor 0 is not a positive number"},
		{"linear by NaN", func(c *Config) { c.Scaling, c.Factor = Linear, nan }, "rope scaling factor NaN is not a positive number"},
		{"yarn by infinity", func(c *Config) { c.Scaling, c.Factor = YaRN, inf }, "rope scaling factor +Inf is not a positive number"},
		{"yarn without context", func(c *Config) { c.Scaling, c.Context = YaRN, 0 }, "yarn rope scaling needs the original context length"},
		{"yarn, base 1", func(c *Config) { c.Scaling, c.Base = YaRN, 1 },
			"yarn rope scaling needs a base above 1, not 1"},
		{"yarn, beta negative", func(c *Config) { c.Scaling, c.BetaFast = YaRN, -1 },
			"yarn rope scaling needs 0 < slow <= fast betas and a positive attention factor, not 1, -1 and 1"},
		{"yarn, betas reversed", func(c *Config) { c.Scaling, c.BetaFast, c.BetaSlow = YaRN, 1, 32 },
			"yarn rope scaling needs 0 < slow <= fast betas and a positive attention factor, not 32, 1 and 1"},
		{"yarn, attention factor NaN", func(c *Config) { c.Scaling, c.AttentionFactor = YaRN, nan },
			"yarn rope scaling needs 0 < slow <= fast betas and a positive attention factor, not 1, 32 and NaN"},
		{"llama3 without context", func(c *Config) { c.Scaling, c.Context = Llama3, 0 },
			"llama3 rope scaling needs the original context length and 0 < low < high frequency factors, not 0, 1, 4"},
		{"llama3, equal factors", func(c *Config) { c.Scaling, c.LowFreqFactor = Llama3, 4 },
			"llama3 rope scaling needs the original context length and 0 < low < high frequency factors, not 4096, 4, 4"},
		{"llama3, low 0", func(c *Config) { c.Scaling, c.LowFreqFactor = Llama3, 0 },
			"llama3 rope scaling needs the original context length and 0 < low < high frequency factors, not 4096, 0, 4"},
		{"llama3, high NaN", func(c *Config) { c.Scaling, c.HighFreqFactor = Llama3, nan },
			"llama3 rope scaling needs the original context length and 0 < low < high frequency factors, not 4096, 1, NaN"},
		{"unknown", func(c *Config) { c.Scaling = "ntk" }, `rope scaling "ntk" is not supported; linear, yarn, llama3 and longrope are`},
		{"longrope without context", func(c *Config) { c.Scaling, c.Context, c.Factors = Long, 0, ones(32) },
			"longrope scaling needs the original context length, factors and no negative attention factor, not 0, 32 and 0"},
		{"longrope without factors", func(c *Config) { c.Scaling = Long },
			"longrope scaling needs the original context length, factors and no negative attention factor, not 4096, 0 and 0"},
		{"longrope, attention factor NaN", func(c *Config) { c.Scaling, c.Factors, c.AttentionFactor = Long, ones(32), nan },
			"longrope scaling needs the original context length, factors and no negative attention factor, not 4096, 32 and NaN"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := good
			tt.change(&c)
			if _, err := New(c); err == nil || err.Error() != tt.want {
				t.Errorf("New: %v; want %s", err, tt.want)
			}
		})
	}
}

func ones(n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = 1
	}
	return s
}
