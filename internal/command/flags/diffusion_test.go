package flags_test

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"grove"
	"grove/internal/command/flags"
)

// TestDiffusion reads the flags of a canvas: each refuses what its setting cannot be, by the flag's name.
func TestDiffusion(t *testing.T) {
	for args, want := range map[string]string{
		"--steps=0":              `--steps: "0"; it must be a number from 1 up`,
		"--steps=-3":             `--steps: "-3"; it must be a number from 1 up`,
		"--steps=many":           `--steps: "many"`,
		"--block=-1":             "--block: -1 is negative",
		"--canvas-drafts=-1":     "--canvas-drafts: -1 is negative",
		"--policy=treshold":      `--policy: grove: diffuse: policy "treshold" is not known`,
		"--policy=threshold:p=7": "--policy: grove: diffuse: policy threshold: p is \"7\"",
		"--canvas-cache=tripel":  `--canvas-cache: grove: diffuse: cache "tripel" is not known`,
		"--blocks=adaptive:2":    `--blocks: grove: diffuse: blocks "adaptive:2"`,
		"--early=soon":           `--early: grove: diffuse: early "soon" is not known`,
		"":                       "",
		"--steps=4 --block=8 --policy=threshold:p=0.9 --canvas-cache=prefix --blocks=adaptive --early=end": "",
	} {
		t.Run(args, func(t *testing.T) {
			var f struct{ flags.Diffusion }
			k, err := kong.New(&f)
			if err != nil {
				t.Fatal(err)
			}
			_, err = flags.ParseArguments(k, strings.Fields(args))
			switch got := f.Setting(); {
			case want != "":
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %s", err, want)
				}
			case err != nil:
				t.Error(err)
			case args == "":
				if got != nil {
					t.Errorf("settings %+v", got)
				}
			default:
				all := &grove.Diffusion{Steps: 4, Block: 8, Policy: "threshold:p=0.9", Cache: "prefix", Blocks: "adaptive", Early: "end"}
				if diff := cmp.Diff(all, got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}
