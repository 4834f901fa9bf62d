package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// options say what is measured.
type options struct {
	program string
	against string   // another program, which takes turns with it; "": none
	names   []string // of figures, or what they begin with before a slash; none: all
	turns   int      // at least 1
	models  string   // folder for what commands read and write
	checks  string   // file with what .ci/run printed; "": the figures of checks are left out
	note    io.Writer
}

const (
	commandTime = 10 * time.Minute
	startTime   = time.Minute // of a server
	maxOutput   = 4 << 20     // bytes of a command's output
	maxMessage  = 400         // bytes of a command's error within an error
)

// measure measures the figures of the program and, where there is one, of the other program. It fails where a figure is not known, where a
// program is no grove, and where no figure is left. Figures that one of the programs cannot give are left out, with a note.
func measure(ctx context.Context, o options) (now, against *record, err error) {
	for _, name := range o.names {
		if len(chosen(allFigures(), []string{name})) == 0 {
			return nil, nil, fmt.Errorf("there is no figure %q; -list names them", name)
		}
	}
	if o.models, err = filepath.Abs(o.models); err == nil {
		err = os.MkdirAll(o.models, 0o700)
	}
	if err != nil {
		return nil, nil, err
	}
	r := runner{options: o, ctx: ctx}
	for _, program := range []string{o.program, o.against} {
		if program == "" {
			continue
		}
		of, err := r.describe(program)
		if err != nil {
			return nil, nil, err
		}
		r.programs, r.records = append(r.programs, program), append(r.records, of)
	}
	for _, p := range probes {
		p.figures = chosen(p.figures, o.names)
		if len(p.figures) == 0 {
			continue
		}
		if err := r.probe(p); err != nil {
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			fmt.Fprintf(o.note, "ledger: left out: %s: %v\n", p.names(), err)
		}
	}
	for i, program := range r.programs {
		if s, err := os.Stat(program); err == nil && wanted(size.name, o.names) {
			for range o.turns {
				r.records[i].add(size, float64(s.Size()))
			}
		}
	}
	if err := r.records[0].addChecks(o); err != nil {
		return nil, nil, err
	}
	switch {
	case len(r.records[0].values) == 0:
		return nil, nil, errors.New("nothing was measured: each figure was left out")
	case o.against == "":
		return r.records[0], nil, nil
	}
	return r.records[0], r.records[1], nil
}

// addChecks adds the times that .ci/run printed.
func (r *record) addChecks(o options) error {
	if o.checks == "" {
		return nil
	}
	text, err := os.ReadFile(o.checks)
	if err != nil {
		return err
	}
	for _, f := range chosen(checks, o.names) {
		m := regexp.MustCompile("(?m)^" + f.from + `(\d+)` + f.field).FindSubmatch(text)
		if m == nil {
			return fmt.Errorf("%s: it has no line %q; .ci/run prints it", o.checks, f.from+"N s")
		}
		n, _ := strconv.ParseFloat(string(m[1]), 64) // of digits
		r.add(f, n)
	}
	return nil
}

// runner runs commands of one or two programs.
type runner struct {
	options
	ctx      context.Context
	programs []string
	records  []*record // of each program
}

// describe asks a program what it is, and returns its empty record.
func (r *runner) describe(program string) (*record, error) {
	text, err := r.run(program, []string{"version"})
	if err != nil {
		return nil, err
	}
	m := regexp.MustCompile(`(?s)^grove (\S+)\nrevision (\S+)\n.*\nkernels +([^, ]+),.*\n(go\S+) `).FindSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%s version does not answer as grove does", program)
	}
	return newRecord(fmt.Sprintf("grove %s, revision %s, %s", m[1], m[2], m[4]), string(m[3])), nil
}

// probe measures the figures of a command by the programs in turns. Behind an error none of them has values.
func (r *runner) probe(p probe) error {
	args, err := r.fill(p.args)
	for turn := 0; err == nil && turn < r.turns; turn++ {
		for k := range r.programs {
			i := (k + turn) % len(r.programs) // each is as often the first
			values, failed := r.values(p, r.programs[i], args)
			if err = failed; err != nil {
				break
			}
			for j, v := range values {
				r.records[i].add(p.figures[j], v)
			}
		}
	}
	if err != nil {
		for _, of := range r.records {
			of.drop(p.figures)
		}
	}
	return err
}

// placeholder is an argument that stands for a file.
var placeholder = regexp.MustCompile(`^\{([\w.-]+)\}$`)

// fill makes the files that arguments name, and puts their paths there.
func (r *runner) fill(args string) (filled []string, err error) {
	for _, arg := range strings.Fields(args) {
		if m := placeholder.FindStringSubmatch(arg); m != nil && m[1] != "out" {
			if arg, err = r.file(m[1]); err != nil {
				return nil, err
			}
		}
		filled = append(filled, arg)
	}
	return filled, nil
}

// file returns the path of a file that commands read. It makes the file where it is not there.
func (r *runner) file(name string) (path string, err error) {
	path = filepath.Join(r.models, name)
	if name == "schemas" {
		return path, os.WriteFile(path, schemas, 0o600)
	}
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	command := []string{"bench", "workload", path}
	if at := strings.LastIndexByte(name, '-'); at >= 0 {
		command = []string{"bench", "make", "--shape", name[:at], "--type", name[at+1:], path}
	}
	_, err = r.run(r.program, command)
	return path, err
}

// values runs a command of a program once and returns the values of its figures.
func (r *runner) values(p probe, program string, args []string) ([]float64, error) {
	out, addr := filepath.Join(r.models, "out"), ""
	if err := os.RemoveAll(out); err != nil {
		return nil, err
	}
	if p.serve != "" {
		s, err := r.serve(program, p.serve)
		if err != nil {
			return nil, err
		}
		defer s.end()
		addr, program = s.addr, r.program // the servers of both are asked by the same client
	}
	filled := make([]string, len(args))
	for i, arg := range args {
		filled[i] = strings.NewReplacer("{out}", out, "{addr}", addr).Replace(arg)
	}
	start := time.Now()
	text, err := r.run(program, filled)
	took := time.Since(start).Seconds()
	if err == nil && strings.Contains(p.args, "{out}") {
		text, err = os.ReadFile(out)
	}
	if err != nil {
		return nil, err
	}
	values := make([]float64, len(p.figures))
	for i, f := range p.figures {
		if values[i] = took; f.field == "" {
			continue
		}
		if values[i], err = f.value(text); err != nil {
			return nil, fmt.Errorf("%s %s: %w", program, strings.Join(filled, " "), err)
		}
	}
	return values, nil
}

// value reads a figure out of lines of JSON.
func (f figure) value(text []byte) (float64, error) {
	for line := range strings.Lines(string(text)) {
		var all map[string]any
		if json.Unmarshal([]byte(line), &all) != nil {
			return 0, fmt.Errorf("its output is no JSON: %.60q", line)
		}
		matches := true
		for member := range strings.FieldsSeq(f.from) {
			name, value, _ := strings.Cut(member, "=")
			matches = matches && fmt.Sprint(all[name]) == value
		}
		var at any = all
		for name := range strings.SplitSeq(f.field, ".") {
			object, _ := at.(map[string]any)
			at = object[name]
		}
		if value, ok := at.(float64); ok && matches && value > 0 {
			return value, nil
		}
	}
	return 0, fmt.Errorf("its output has no %s above 0 where %q", f.field, f.from)
}

// command prepares a command. The user's settings take no part, and what grove keeps on disk is apart for each program.
func (r *runner) command(ctx context.Context, program string, args []string) *exec.Cmd {
	c := exec.CommandContext(ctx, program, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GROVE_") || strings.HasPrefix(v, "GROVE_KERNELS=") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "XDG_CACHE_HOME="+filepath.Join(r.models, "cache", regexp.MustCompile(`\W+`).ReplaceAllString(program, "-")))
	c.WaitDelay = time.Second
	return c
}

// run runs a command and returns its output.
func (r *runner) run(program string, args []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(r.ctx, commandTime)
	defer cancel()
	c := r.command(ctx, program, args)
	out, said := head{most: maxOutput}, head{most: maxMessage}
	c.Stdout, c.Stderr = &out, &said
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w; it says %q", program, strings.Join(args, " "), errors.Join(ctx.Err(), err), strings.TrimSpace(string(said.kept)))
	}
	return out.kept, nil
}

// head keeps the first bytes of an output.
type head struct {
	kept []byte
	most int
}

// Write implements [io.Writer].
func (h *head) Write(b []byte) (int, error) {
	h.kept = append(h.kept, b[:min(len(b), h.most-len(h.kept))]...)
	return len(b), nil
}

// server is a server that runs until end is called.
type server struct {
	addr string
	end  func()
}

// serve starts a server and waits until it answers.
func (r *runner) serve(program, command string) (*server, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{addr: free.Addr().String()}
	if err := free.Close(); err != nil {
		return nil, err
	}
	args, err := r.fill(strings.ReplaceAll(command, "{addr}", s.addr))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(r.ctx, commandTime)
	c := r.command(ctx, program, args)
	if err := c.Start(); err != nil {
		cancel()
		return nil, err
	}
	ended := make(chan struct{})
	go func() { err = c.Wait(); close(ended) }()
	s.end = func() { cancel(); <-ended }
	for start := time.Now(); time.Since(start) < startTime; {
		if answer, err := http.Get("http://" + s.addr + "/health"); err == nil {
			if err := answer.Body.Close(); err == nil && answer.StatusCode == http.StatusOK {
				return s, nil
			}
		}
		select {
		case <-ended:
			cancel()
			return nil, fmt.Errorf("%s %s: the server ends: %w", program, strings.Join(args, " "), errors.Join(r.ctx.Err(), err))
		case <-time.After(50 * time.Millisecond):
		}
	}
	s.end()
	return nil, fmt.Errorf("%s %s: no server answers at %s within %v", program, strings.Join(args, " "), s.addr, startTime)
}
