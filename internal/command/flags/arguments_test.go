package flags

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"grove/internal/command/exit"
)

// line of commands with flags of all kinds.
type program struct {
	Run struct {
		Subject `set:"text=The text."`
		Temp    float64 `name:"temp"`
		N       int     `name:"max-tokens" short:"n"`
		Context int     `short:"c"`
		TopK    int     `name:"top-k"`
		Session string  `name:"session"`
		JSON    bool    `name:"json" short:"j"`
		All     bool    `short:"a"`
	} `cmd:""`
	Chat struct {
		Hide bool `name:"hide-thinking"`
	} `cmd:""`
	Show  struct{} `cmd:""`
	Serve struct {
		Idle string `name:"idle"`
		Log  bool   `name:"log-requests"`
	} `cmd:"" aliases:"up"`
	Bench struct {
		Speed struct{} `cmd:""`
	} `cmd:""`
	Complete struct {
		Words []string `arg:"" optional:""`
	} `cmd:"" hidden:"" passthrough:""`
	Version struct{} `cmd:""`
}

func rewrite(t *testing.T, args string) (got, notes string, err error) {
	t.Helper()
	parser, err := kong.New(&program{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	out, err := RewriteArguments(parser.Model, func() *kong.Application { return parser.Model }, strings.Fields(args), &b)
	return strings.Join(out, " "), b.String(), err
}

func TestRewrite(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "--help"}, {"-v", "version"}, {"--version", "version"}, {"help", "--help"}, {"help run", "run --help"}, {"help bench speed", "bench speed --help"},
		{"run --temperature 1 x", "run --temp 1 x"}, {"run --temperature=1 x", "run --temp=1 x"}, {"run --top_k=4", "run --top-k=4"},
		{"run --n-predict 4 --ctx-size 8 x", "run --max-tokens 4 --context 8 x"},
		{"run -n -1 --ctx 8", "run -n -1 --context 8"}, {"run -n4 x", "run -n4 x"}, {"run -jan 4 -ngl 0", "run -jan 4"},
		{"run -ngl 0 x", "run x"}, {"run --gpu-layers=auto x", "run x"}, {"run --mlock x", "run x"}, {"run -fa on x", "run x"}, {"run -fa x", "run x"},
		{"run -b 512 x", "run x"}, {"run --batch-size=512 x", "run x"}, {"run -hf a/b x", "run --model a/b x"}, {"run -j x", "run -j x"},
		{"run -- --temperature x", "run --text-only -- --temperature x"}, {"run m -- --temperature", "run m -- --temperature"},
		{"run --temp -- -ngl 0", "run --temp --"}, // the value is --, which kong refuses
		{"up --keepalive 5m", "up --idle=5m"}, {"serve --keep-alive=-1", "serve --idle=0s"}, {"serve --keep-alive 300", "serve --idle=300s"},
		{"serve --sleep-idle-seconds 60", "serve --idle=60s"}, {"chat --hidethinking", "chat --hide-thinking"}, {"run --prompt-cache f x", "run --session f x"},
		{"serve --enable-auto-tool-choice --tool-call-parser hermes --trust-remote-code", "serve"}, {"serve -cram 0 -fit off", "serve"},
		{"serve --generation-config auto --reasoning-format deepseek", "serve"}, {"run --nowordwrap x", "run x"},
		{"serve -v", "serve --log-requests"}, {"run -v x", "run x"}, {"run --help", "run --help"}, {"run -", "run -"}, {"run --temp", "run --temp"},
		{"complete run --te", "complete run --te"}, {"complete --nosuch -- -ngl", "complete --nosuch -- -ngl"},
	} {
		got, _, err := rewrite(t, c.args)
		if err != nil || got != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.args, got, err, c.want)
		}
	}
	if _, notes, _ := rewrite(t, "run --mlock -ngl 0"); strings.Count(notes, "\n") != 1 || !strings.HasPrefix(notes, "grove: --mlock has no effect: ") {
		t.Errorf("the notes are %q", notes)
	}
}

func TestRewriteRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"walk":                           `"walk" is not a command; 'grove --help' lists the commands`,
		"rum":                            `"rum" is not a command; did you mean "run"?`,
		"bench sped":                     `"sped" is not a command; did you mean "speed"?`,
		"push x":                         `"push" is not a command: grove publishes no models`,
		"qwen3:8b":                       `to use a model: grove run qwen3:8b`,
		"--temp 1 run":                   "flags follow their command",
		"run -ngl 99":                    `--n-gpu-layers: "99": grove runs on the CPU alone`,
		"run -ngl":                       `--n-gpu-layers: "": grove runs on the CPU alone`,
		"run --lora x":                   "--lora: grove reads no adapters",
		"run --TEMP 1":                   `unknown flag --TEMP; did you mean "--temp"`,
		"run --idle 1s":                  "unknown flag --idle: grove run has none; it is a flag of grove serve",
		"run --" + long:                  "unknown flag --aaa",
		"run -Z":                         "unknown flag -Z; 'grove run --help' lists the flags",
		"run -jZ":                        "unknown flag -Z",
		"run --think x":                  "--think: --reasoning on, or off, says whether the model thinks (grove chat, grove serve)",
		"serve --temp 0.3":               "--temp: requests set it (docs/server.md)",
		"serve --generation-config vllm": `--generation-config: "vllm": requests have the defaults`,
		"serve --task embed":             `--task: "embed": a model's file says`,
		"show --template x":              "--template: grove inspect --full shows all metadata",
		"serve --keepalive":              "--keepalive: a time is missing",
		"serve --keepalive 0m":           "a model cannot close before it answers",
		"run --predict-me=1 x y":         "unknown flag --predict-me",
	} {
		got, _, err := rewrite(t, args)
		var coded *exit.Error
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &coded) || coded.Code != exit.CodeUsage {
			t.Errorf("%.40q: got %q, %v, want %q", args, got, err, want)
		}
	}
}

var long = strings.Repeat("a", 10000)

// TestTables: an alias stands for one flag, and no flag of others is in two lines for the same command.
func TestTables(t *testing.T) {
	seen := map[string][]string{}
	for _, o := range others {
		if o.why == "" || o.refused && (o.only != "" || o.takes != none) {
			t.Errorf("%s: %+v", o.names, o)
		}
		for name := range strings.FieldsSeq(o.names) {
			if slices.Contains(seen[name], o.commands) {
				t.Errorf("%s is twice among the flags of others", name)
			}
			seen[name] = append(seen[name], o.commands)
		}
	}
	for short, name := range shorts {
		if !strings.HasPrefix(short, "-") || seen[name] == nil && aliases[name] == "" && !slices.Contains([]string{"parallel", "no-repack", "seed", "file"}, name) {
			t.Errorf("%s stands for --%s, which nobody knows", short, name)
		}
	}
}

func FuzzRewrite(f *testing.F) {
	for _, seed := range []string{"run -ngl 0 x", "run -- x", "serve --keepalive=", "help --", "-", "run -n", "run --=x", "run -\xff"} {
		f.Add(seed)
	}
	parser, err := kong.New(&program{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args string) {
		words := strings.Split(args, " ")
		out, err := RewriteArguments(parser.Model, func() *kong.Application { return parser.Model }, words, &strings.Builder{})
		if err == nil && len(out) > len(words)+2 {
			t.Errorf("%q became %q", words, out)
		}
	})
}
