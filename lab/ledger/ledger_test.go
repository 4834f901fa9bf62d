package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grove/internal/stat"
)

// TestMain lets the program of the tests stand for grove.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test.") {
		os.Exit(grove(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// grove answers the commands of tests. A program whose name is old takes twice as long, and does not know masks.
func grove(args []string) int {
	old := filepath.Base(os.Args[0]) == "old"
	switch strings.Join(args[:min(2, len(args))], " ") {
	case "version":
		fmt.Print("grove 1.2\nrevision abc\nnumerics grove-1\nkernels  portable, of portable\nmodel    gopher\ngo1.26.0 linux/amd64\n")
	case "bench make", "bench workload":
		if err := os.WriteFile(args[len(args)-1], nil, 0o600); err != nil {
			return 1
		}
	case "bench speed":
		fmt.Printf(`{"rows":1,"logits":"all","tokens_per_second":%d}`+"\n"+`{"rows":8,"logits":"all","tokens_per_second":%d}`, map[bool]int{true: 50, false: 100}[old], 200)
	case "bench masks":
		if old {
			fmt.Fprintln(os.Stderr, "unexpected argument masks")
			return 2
		}
		fmt.Println(`{"summary":{"masks":{"mean":5},"compile":{"mean":500}}}`)
	default:
		return 3
	}
	return 0
}

// program returns the path of a program with a name.
func program(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, path); err != nil {
		t.Skip(err)
	}
	return path
}

// squeezed returns a text of the repository with one blank in place of white space.
func squeezed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// TestFigures: names are unlike, and the words that a figure stands for are in its document.
func TestFigures(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range allFigures() {
		if seen[r.name] {
			t.Errorf("%s is there twice", r.name)
		}
		seen[r.name] = true
		parts := strings.Split(r.quoted, ": ")
		text := squeezed(t, parts[0])
		for _, words := range parts[1:] {
			if !strings.Contains(text, words) {
				t.Errorf("%s: %s has no words %q", r.name, parts[0], words)
			}
		}
	}
}

// TestReadme: each figure of README.md has one in the ledger, or a reason for which it has none.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "<!-- figures -->")
	section, _, ends := strings.Cut(section, "\n    ")
	if !found || !ends {
		t.Fatal("README.md has no figures")
	}
	var figures []string
	for _, r := range allFigures() {
		figures = append(figures, r.quoted)
	}
	cells := regexp.MustCompile(`(?m)^\|(.*)\|$`).FindAllStringSubmatch(section, -1)
	if len(cells) < 3 {
		t.Fatal("README.md has no table of figures")
	}
	head := strings.Split(cells[0][1], "|")
	for _, line := range cells[2:] {
		row := strings.Split(line[1], "|")
		for i := 1; i < len(row); i++ {
			column, _, _ := strings.Cut(strings.TrimSpace(head[i]), ",")
			if want := "README.md: " + strings.TrimSpace(row[0]) + ": " + column; !slices.Contains(figures, want) {
				t.Errorf("no figure of the ledger stands for %q", want)
			}
		}
	}
	sentences := strings.Join(strings.Fields(regexp.MustCompile(`(?m)^\|.*\|$`).ReplaceAllString(section, "")), " ")
	for words := range unmeasured {
		if !strings.Contains(squeezed(t, "README.md"), words) {
			t.Errorf("README.md has no %q, which is said not to be measured", words)
		}
		sentences = strings.ReplaceAll(sentences, words, "")
	}
	for _, f := range figures {
		if words, ok := strings.CutPrefix(f, "README.md: "); ok {
			sentences = strings.ReplaceAll(sentences, words, "")
		}
	}
	if left := regexp.MustCompile(`.{0,30}(\d|\bhalf\b|\btimes\b|\btwice\b).{0,30}`).FindString(strings.ReplaceAll(sentences, "AVX-512", "")); left != "" {
		t.Errorf("README.md: %q has no figure in the ledger, and no reason for that", left)
	}
}

// TestRun measures programs that stand for grove.
func TestRun(t *testing.T) {
	now, old, dir := program(t, "now"), program(t, "old"), t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file, log := filepath.Join(dir, "figures"), write("log", "== go test: 250 s\n")
	text, other := write("text", "func main() {}\n"), write("other", "cpu: none\nBenchmarkMasks/mask 1 2 us\n")
	for _, c := range []struct{ name, args, want, err string }{
		{"alone", "-record " + file + " Gopher", "Gopher/rows1 tokens/s 100 0.0 % - -", ""},
		{"more of the file", "-record " + file + " Masks", "Masks/mask us 5 0.0 % - -", ""},
		{"beside the record", "-last " + file + " Gopher/rows1", "beside a record of this machine figure unit median ± old ratio Gopher/rows1 tokens/s 100 0.0 % 100 1.000 same", ""},
		{"beside a record of another machine", "-last " + other + " Masks", "5 0.0 % 2 2.500 another machine", ""},
		{"in turns", "-against " + old + " Gopher", "Gopher/rows1 tokens/s 100 0.0 % 50 2.000 better Gopher/rows8 tokens/s 200 0.0 % 200 1.000 same", ""},
		{"an older program that is faster", "-grove " + old + " -against " + now + " Gopher", "50 0.0 % 100 0.500 worse", "worse than before: Gopher/rows1"},
		{"too few turns", "-turns 4 -against " + old + " Gopher/rows1", "100 0.0 % 50 2.000 too few turns", ""},
		{"what the other program cannot give", "-against " + old + " Masks Gopher/rows8", "revision abc, go1.26.0 figure unit median ± old ratio Gopher/rows8", ""},
		{"nothing is left", "-against " + old + " Masks", "", "nothing was measured"},
		{"checks", "-checks " + log + " Checks/tests", "Checks/tests sec 250 0.0 % - -", ""},
		{"a log that ends early", "-checks " + log + " Checks", "", `it has no line "== all checks passed in N s"`},
		{"a figure that is not known", "Decoding", "", `there is no figure "Decoding"; -list names them`},
		{"a record that is none", "-last " + text + " Masks", "", "text: it has no figures"},
		{"into a file that is no record", "-record " + text + " Masks", "", "text: it has no figures"},
		{"into a record of another machine", "-record " + other + " Masks", "", "other: it has figures of another machine"},
		{"no program", "-against " + filepath.Join(dir, "none") + " Masks", "", "none version: "},
		{"a program that is no grove", "-against true Masks", "", "true version does not answer as grove does"},
		{"no turns", "-turns 0", "", "-turns: 0; it must be 1 or more"},
		{"two comparisons", "-last x -against y", "", "-against and -last are given"},
		{"the list", "-list", "Decode/Q8_0 tokens/s README.md: Q8_0: decode", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			args := strings.Fields(c.args)
			if !slices.Contains(args, "-grove") {
				args = append([]string{"-grove", now}, args...)
			}
			err := run(context.Background(), args, &out)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
			if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, c.want) {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
	got, err := readFile(file)
	if err != nil || len(got.values["Gopher/rows1"]) != 6 || len(got.values["Masks/mask"]) != 6 {
		t.Errorf("the record has %v, %v", got, err)
	}
}

// TestMachines: the records of machines are read, and say which these are.
func TestMachines(t *testing.T) {
	files, err := filepath.Glob("machines/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no records: %v", err)
	}
	for _, file := range files {
		r, err := readFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, key := range machineKeys {
			if r.machine[key] == "" {
				t.Errorf("%s: no %s", file, key)
			}
		}
	}
}

// TestWrite: what is written is read again.
func TestWrite(t *testing.T) {
	r := newRecord("grove 1, revision a, go1", "portable")
	decode := allFigures()[0]
	r.add(decode, 41.25)
	r.add(decode, 41.5)
	r.source = "grove 2, revision b, go2"
	r.add(size, 3e7)
	var b bytes.Buffer
	if err := r.write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"goos: ", "Unit tokens/s better=higher\n", "Unit sec better=lower\n",
		"# grove 1, revision a, go1\nBenchmarkDecode/Q8_0 1 41.25 tokens/s\nBenchmarkDecode/Q8_0 1 41.5 tokens/s\n# grove 2, revision b, go2\nBenchmarkBinary/size 1 3e+07 B\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	got, err := read(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got, cmp.AllowUnexported(record{})); diff != "" {
		t.Error(diff)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "it has no figures"},
		{"figures that are not known", "BenchmarkOther 1 2 ns/op\n", "it has no figures"},
		{"two values", "\nBenchmarkBinary/size 1 2 B 3 B/op\n", "line 2: a benchmark needs one value and its unit"},
		{"another unit", "BenchmarkBinary/size 1 2 MB\n", "line 1: the unit of Binary/size is B, not MB"},
		{"no number", "BenchmarkBinary/size 1 NaN B\n", `line 1: the value "NaN" is not a positive number`},
		{"zero", "BenchmarkBinary/size 1 0 B\n", "is not a positive number"},
		{"a long line", strings.Repeat("x", maxLine+1), "token too long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	five := func(x float64) stat.Sample { return stat.Sample{x, 1.01 * x, 0.99 * x, x, x} }
	for _, c := range []struct {
		name, unit string
		old, now   stat.Sample
		inTurns    bool
		want       string
	}{
		{"slower", rate, five(50), five(45), false, "worse"},
		{"faster", rate, five(50), five(55), false, "better"},
		{"takes longer", seconds, five(50), five(55), false, "worse"},
		{"takes less", seconds, five(50), five(45), false, "better"},
		{"a little slower", rate, five(50), five(48.9), false, "same"},
		{"values among each other", rate, stat.Sample{40, 50, 50, 50, 60}, stat.Sample{30, 40, 40, 41, 45}, false, "same"},
		{"each turn slower, though values are among each other", rate, stat.Sample{40, 50, 60, 70, 80}, stat.Sample{36, 45, 54, 63, 72}, true, "worse"},
		{"one turn faster", rate, stat.Sample{40, 50, 60, 70, 80}, stat.Sample{36, 45, 54, 63, 81}, true, "same"},
		{"few turns", rate, stat.Sample{50, 50, 50, 50}, stat.Sample{25, 25, 25, 25}, true, "too few turns"},
		{"sizes", sizes, stat.Sample{2, 2, 2, 2, 2}, stat.Sample{3, 3, 3, 3, 3}, false, "worse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := line{figure: figure{unit: c.unit}}
			l.compare(c.now, c.old, c.inTurns)
			if l.verdict != c.want {
				t.Errorf("%s, want %s", l.verdict, c.want)
			}
		})
	}
}

func TestValue(t *testing.T) {
	for _, c := range []struct {
		name, text string
		f          figure
		want       float64
		err        string
	}{
		{"the line that matches", `{"rows":1,"logits":"all","x":2}` + "\n" + `{"rows":8,"logits":"last","x":3}` + "\n" + `{"rows":8,"logits":"all","x":4}`, figure{from: "rows=8 logits=all", field: "x"}, 4, ""},
		{"inside", `{"a":1}` + "\n" + `{"summary":{"masks":{"mean":5}}}`, figure{field: "summary.masks.mean"}, 5, ""},
		{"no line", `{"rows":1,"x":2}`, figure{from: "rows=8", field: "x"}, 0, "no x above 0"},
		{"no number", `{"x":"2"}`, figure{field: "x"}, 0, "no x above 0"},
		{"zero", `{"x":0}`, figure{field: "x"}, 0, "no x above 0"},
		{"no JSON", "panic: 7\n", figure{field: "x"}, 0, `no JSON: "panic: 7`},
		{"nothing", "", figure{field: "x"}, 0, "no x above 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.f.value([]byte(c.text))
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v, %v; want %v, %q", got, err, c.want, c.err)
			}
		})
	}
}
