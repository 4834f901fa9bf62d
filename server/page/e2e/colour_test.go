package e2e

import "math"

// luminance is the relative luminance of a colour (WCAG 2.2).
func luminance(rgb []float64) float64 {
	linear := func(v float64) float64 {
		if v /= 255; v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(rgb[0]) + 0.7152*linear(rgb[1]) + 0.0722*linear(rgb[2])
}

// contrast is the contrast ratio of two colours (WCAG 2.2).
func contrast(a, b []float64) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
