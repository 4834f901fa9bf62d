package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"grove/internal/machine"
	"grove/internal/par"
	"grove/internal/stat"
)

// record is the values of figures on one machine.
type record struct {
	machine map[string]string // what tells machines apart, by keys of the format of Go benchmarks
	source  string            // the program that is measured

	values  map[string]stat.Sample // by the names of figures
	sources map[string]string      // the programs that gave them
}

// machineKeys are the keys of a record's machine, in the order of a file.
var machineKeys = []string{"goos", "goarch", "cpu", "kernels", "processors", "memory"}

// newRecord returns the empty record of a program on this machine, where it uses the kernels of a name.
func newRecord(source, kernels string) *record {
	return &record{
		machine: map[string]string{
			"goos": runtime.GOOS, "goarch": runtime.GOARCH, "cpu": machine.CPU(), "kernels": kernels,
			"processors": strconv.Itoa(par.Threads()), "memory": fmt.Sprintf("%d GiB", (machine.Memory()+1<<29)>>30),
		},
		source: source, values: map[string]stat.Sample{}, sources: map[string]string{},
	}
}

func (r *record) add(f figure, value float64) {
	r.values[f.name], r.sources[f.name] = append(r.values[f.name], value), r.source
}

func (r *record) drop(figures []figure) {
	for _, f := range figures {
		delete(r.values, f.name)
	}
}

// Bounds of a record's file.
const (
	maxLine = 1 << 12
	maxFile = 1 << 20
)

// readFile reads a record from a file. Errors name it.
func readFile(path string) (*record, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	r, err := read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// read reads what [record.write] writes. Figures that are not known are left out. Errors name the line.
func read(in io.Reader) (*record, error) {
	r := &record{machine: map[string]string{}, values: map[string]stat.Sample{}, sources: map[string]string{}}
	known := map[string]figure{}
	for _, f := range allFigures() {
		known[f.name] = f
	}
	lines := bufio.NewScanner(io.LimitReader(in, maxFile))
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if source, ok := strings.CutPrefix(line, "# "); ok {
			r.source = source
		}
		if key, value, ok := strings.Cut(line, ": "); ok && slices.Contains(machineKeys, key) {
			r.machine[key] = value
		}
		if !strings.HasPrefix(line, "Benchmark") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) != 4 {
			return nil, fmt.Errorf("line %d: a benchmark needs one value and its unit: %q", n, line)
		}
		value, err := strconv.ParseFloat(fields[2], 64)
		if err != nil || !(value > 0 && value < 1e18) {
			return nil, fmt.Errorf("line %d: the value %q is not a positive number", n, fields[2])
		}
		f, ok := known[strings.TrimPrefix(fields[0], "Benchmark")]
		switch {
		case ok && f.unit != fields[3]:
			return nil, fmt.Errorf("line %d: the unit of %s is %s, not %s", n, f.name, f.unit, fields[3])
		case ok:
			r.add(f, value)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(r.values) == 0 {
		return nil, errors.New("it has no figures; -record writes such a file")
	}
	return r, nil
}

// keep adds the values of an older record to the figures that were not measured. It refuses those of another machine.
func (r *record) keep(older *record) error {
	if !maps.Equal(r.machine, older.machine) {
		return fmt.Errorf("it has figures of another machine, %v; this one is %v", older.machine, r.machine)
	}
	for name, values := range older.values {
		if _, ok := r.values[name]; !ok {
			r.values[name], r.sources[name] = values, older.sources[name]
		}
	}
	return nil
}

// write writes a record in the format of Go benchmarks: the machine, the units, and one line for each value. A comment names the program that
// gave the values below it.
func (r *record) write(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, key := range machineKeys {
		fmt.Fprintf(b, "%s: %s\n", key, r.machine[key])
	}
	for _, unit := range []string{rate, times, seconds, micros, sizes} {
		fmt.Fprintf(b, "Unit %s better=%s\n", unit, map[bool]string{true: "higher", false: "lower"}[higher(unit)])
	}
	source := ""
	for _, f := range allFigures() {
		if s := r.sources[f.name]; s != source && len(r.values[f.name]) > 0 {
			source = s
			fmt.Fprintf(b, "# %s\n", source)
		}
		for _, v := range r.values[f.name] {
			fmt.Fprintf(b, "Benchmark%s 1 %s %s\n", f.name, strconv.FormatFloat(v, 'g', 6, 64), f.unit)
		}
	}
	return b.Flush()
}

// report compares a record with another, or shows it alone.
type report struct {
	title string
	lines []line
}

// line is a figure of a report.
type line struct {
	figure
	median, spread float64
	old, ratio     float64 // 0: there is nothing to compare with
	verdict        string  // better, worse, same, or why it cannot be told
}

// A figure is better or worse where its median differs by more than leastChange, and all of at least leastTurns values agree on the direction:
// in turns each ratio of neighbours, else all pairs of an old and a new value.
const (
	leastChange = 0.03
	leastTurns  = 5
)

// compare reports a record beside an older one; nil: alone. In turns says that values of the same place were measured one behind the other.
func (r *record) compare(old *record, inTurns bool) *report {
	to := &report{title: r.source}
	same := inTurns || old != nil && maps.Equal(r.machine, old.machine)
	switch {
	case inTurns:
		to.title += ", in turns with " + old.source
	case same:
		to.title += ", beside a record of this machine"
	case old != nil:
		to.title += fmt.Sprintf(", beside a record of another machine, %v: the ratios compare machines", old.machine)
	}
	for _, f := range allFigures() {
		now := r.values[f.name]
		if len(now) == 0 {
			continue
		}
		l := line{figure: f, median: now.Median(), spread: now.Spread()}
		if old != nil && len(old.values[f.name]) > 0 {
			l.compare(now, old.values[f.name], inTurns)
			if !same {
				l.verdict = "another machine"
			}
		}
		to.lines = append(to.lines, l)
	}
	return to
}

// compare fills in the comparison with older values.
func (l *line) compare(now, old stat.Sample, inTurns bool) {
	low, high := slices.Min(now)/slices.Max(old), slices.Max(now)/slices.Min(old)
	l.old, l.ratio = old.Median(), now.Median()/old.Median()
	if inTurns {
		var ratios stat.Sample
		for i := range min(len(now), len(old)) {
			ratios = append(ratios, now[i]/old[i])
		}
		low, high, l.ratio = slices.Min(ratios), slices.Max(ratios), ratios.Median()
	}
	switch rises := low > 1 && l.ratio > 1+leastChange; {
	case min(len(now), len(old)) < leastTurns:
		l.verdict = "too few turns"
	case !rises && !(high < 1 && l.ratio < 1-leastChange):
		l.verdict = "same"
	case rises == higher(l.unit):
		l.verdict = "better"
	default:
		l.verdict = "worse"
	}
}

// worse returns an error that names the figures that are worse; nil: there are none.
func (r *report) worse() error {
	var names []string
	for _, l := range r.lines {
		if l.verdict == "worse" {
			names = append(names, l.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("worse than before: %s", strings.Join(names, ", "))
}

// write writes the report as a table.
func (r *report) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "%s\n\nfigure\tunit\tmedian\t±\told\tratio\t\n", r.title)
	for _, l := range r.lines {
		old, ratio := "-", "-"
		if l.old > 0 {
			old, ratio = fmt.Sprintf("%.4g", l.old), fmt.Sprintf("%.3f", l.ratio)
		}
		fmt.Fprintf(tw, "%s\t%s\t%.4g\t%.1f %%\t%s\t%s\t%s\n", l.name, l.unit, l.median, 100*l.spread, old, ratio, l.verdict)
	}
	return tw.Flush()
}
