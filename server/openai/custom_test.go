package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestCustomText: the text of a custom tool's call is that which package encoding/json reads, in whatever parts the arguments come.
func TestCustomText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "é", "😀", `\n`, `\"`, `\\`, `\/`, `\u0041`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, `\ude00`, `\ud83dx`, `\ud83d\n`}), 0, 8).Draw(t, "parts")
		begin := rapid.SampledFrom([]string{`{"input":"`, ` { "input" : "`, "{\n\"input\": \""}).Draw(t, "begin")
		whole := begin + strings.Join(parts, "") + `"}`
		var want struct{ Input string }
		if err := json.Unmarshal([]byte(whole), &want); err != nil {
			t.Fatal(err)
		}
		var c customText
		got := ""
		for rest := whole; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			for n < len(rest) && rest[n]&0xC0 == 0x80 { // parts of answers are whole characters
				n++
			}
			got, rest = got+c.add(rest[:n]), rest[n:]
		}
		if got != want.Input || customInput(whole) != want.Input {
			t.Fatalf("%q is read as %q and %q, want %q", whole, got, customInput(whole), want.Input)
		}
	})
	for arguments, want := range map[string]string{`"a\n"`: "a\n", `{"patch":"a"}`: `{"patch":"a"}`, "x": "x", "": "", `{"input":"a\`: "a", `{"input":"a\u00`: "a"} {
		if got := customInput(arguments); got != want {
			t.Errorf("%q is read as %q, want %q", arguments, got, want)
		}
	}
}

func TestCustomArguments(t *testing.T) {
	const text = "a\n\"b\" <é>"
	if got := customInput(customArguments(text)); got != text {
		t.Errorf("%q", got)
	}
}
