package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"grove/internal/text/token"
	"grove/internal/text/tokenizer"
)

//go:embed maskpeer.mjs
var maskPeerScript string

const (
	defaultPeerLimit = 10 * time.Second
	peerStart        = 60 * time.Second // until the vocabulary is loaded
	defaultPeerGrace = 5 * time.Second
	maxPeerResult    = 1 << 20 // bytes of a result, and maxPeerStep for each token
	maxPeerStep      = 32
	maxPeerGrammar   = 16 << 20 // bytes of a grammar that a converter writes
	maxPeerText      = 400      // bytes of a text of the peer's within an error
)

// MaskPeerFigures are the figures of one schema by a peer that has no masks. A text counts as accepted where all its tokens may come and it
// may end.
type MaskPeerFigures struct {
	CompileUS       float64   `json:"compile_us"`
	Tests           MaskTimes `json:"token_tests"`         // whether the text's next token may come, and the step with it
	VocabularyUS    float64   `json:"vocabulary_tests_us"` // the test of each token of the vocabulary, once, in the middle of an accepted text
	ValidAccepted   int       `json:"valid_accepted"`
	InvalidRejected int       `json:"invalid_rejected"`
	Error           string    `json:"error,omitempty"`

	refused bool // the error came before the grammar was there
}

// MaskPeerSummary is the sum over all schemas, and what the peer is.
type MaskPeerSummary struct {
	Engine    string `json:"engine"`
	Package   string `json:"package"`
	Release   string `json:"release"`
	Converter string `json:"converter"` // what made grammars of schemas
	MaskCounts
	Compile    MaskTimes `json:"compile"`
	Tests      MaskTimes `json:"token_tests"`
	Vocabulary MaskTimes `json:"vocabulary_tests"`
}

// MaskPeerOptions say what [OpenMaskPeer] runs.
type MaskPeerOptions struct {
	Package    string               // folder of the package node-llama-cpp
	Vocabulary string               // a GGUF file that has the tokenizer
	Tokenizer  *tokenizer.Tokenizer // the same
	Converter  string               // program that reads a schema and writes a grammar of llama.cpp's notation; "": the package's own converter
	Limit      time.Duration        // for each schema; 0: 10 seconds
	Node       string               // program that runs JavaScript; "": node

	grace time.Duration // for a result that says that time is up; 0: 5 seconds
}

// MaskPeer is llama.cpp, as the package node-llama-cpp packs it, in a process of its own that reads texts under grammars. A process that
// ends or does not answer in time is begun anew with the next schema. It is not safe for concurrent use.
type MaskPeer struct {
	o      MaskPeerOptions
	ctx    context.Context
	child  *peerChild
	report MaskPeerSummary
}

// peerChild is a running process.
type peerChild struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	lines  *bufio.Reader
	stderr headWriter
}

// OpenMaskPeer starts a peer. It runs until [MaskPeer.Close], or until ctx ends. Errors say what has to be installed.
func OpenMaskPeer(ctx context.Context, o MaskPeerOptions) (*MaskPeer, error) {
	if o.Limit <= 0 {
		o.Limit = defaultPeerLimit
	}
	if o.grace <= 0 {
		o.grace = defaultPeerGrace
	}
	node, err := exec.LookPath(cmp.Or(o.Node, "node"))
	if err != nil {
		return nil, errors.New("bench: llama.cpp runs by Node here: install Node 20 or later, so that the command node is found")
	}
	o.Node = node
	if o.Package, err = filepath.Abs(o.Package); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if o.Vocabulary, err = filepath.Abs(o.Vocabulary); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	p := &MaskPeer{o: o, ctx: ctx}
	if err := p.start(); err != nil {
		return nil, err
	}
	return p, nil
}

// FindMaskPeer returns the folder of the package node-llama-cpp below the first of the folders that has it, there or in node_modules.
func FindMaskPeer(folders []string) (string, error) {
	for _, dir := range folders {
		if dir == "" {
			continue
		}
		for _, found := range []string{filepath.Join(dir, "node_modules", "node-llama-cpp"), filepath.Join(dir, "node-llama-cpp")} {
			if _, err := os.Stat(filepath.Join(found, "package.json")); err == nil {
				return found, nil
			}
		}
	}
	return "", fmt.Errorf("bench: the package node-llama-cpp is not in %q; npm install --ignore-scripts --prefix DIR node-llama-cpp installs it in DIR", folders)
}

// Close ends the process.
func (p *MaskPeer) Close() error {
	p.stop()
	return nil
}

func (p *MaskPeer) stop() {
	if c := p.child; c != nil {
		p.child = nil
		c.end()
		_ = c.cmd.Wait()
	}
}

// end ends the process and lets reads and writes return, also where children of its own hold the pipes.
func (c *peerChild) end() {
	_ = c.cmd.Process.Kill()
	_ = c.in.Close()
	_ = c.out.Close()
}

// start begins a process, and reads its greetings.
func (p *MaskPeer) start() error {
	c := &peerChild{cmd: exec.CommandContext(p.ctx, p.o.Node, "--input-type=module", "--eval", maskPeerScript, p.o.Package, p.o.Vocabulary)}
	c.stderr.max = maxPeerText
	c.cmd.Stderr, c.cmd.WaitDelay = &c.stderr, time.Second // children of its own may hold the pipe
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if c.out, err = c.cmd.StdoutPipe(); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	c.lines = bufio.NewReader(c.out)
	p.child = c
	var hello struct{ Package, Release string }
	if err := p.ask(nil, &hello, peerStart, maxPeerResult); err != nil {
		return fmt.Errorf("bench: llama.cpp by %s does not start: %w", p.o.Package, err)
	}
	p.report.Engine, p.report.Package, p.report.Release = "llama.cpp", "node-llama-cpp "+cut(hello.Package, 40), cut(hello.Release, 40)
	p.report.Converter = "of node-llama-cpp"
	if p.o.Converter != "" {
		p.report.Converter = p.o.Converter
	}
	return nil
}

// ask writes a line, if there is one, and reads a line of at most limit bytes. Behind an error the process is at its end.
func (p *MaskPeer) ask(job, answer any, within time.Duration, limit int) error {
	c := p.child
	late := make(chan struct{})
	timer := time.AfterFunc(within, func() { close(late); c.end() })
	line, err := c.exchange(job, limit)
	if !timer.Stop() {
		<-late
		err = fmt.Errorf("no answer within %v", within)
	}
	if err == nil {
		if err = json.Unmarshal(line, answer); err != nil {
			err = fmt.Errorf("an answer that is not understood: %q", cut(string(line), maxPeerText))
		}
	}
	if err == nil {
		return nil
	}
	p.stop() // and so all of stderr is there
	if said := c.stderr.text(); said != "" {
		err = fmt.Errorf("%w; it says %q", err, said)
	}
	if p.ctx.Err() != nil {
		err = p.ctx.Err()
	}
	return err
}

func (c *peerChild) exchange(job any, limit int) ([]byte, error) {
	if job != nil {
		line, err := json.Marshal(job)
		if err != nil {
			return nil, err
		}
		if _, err := c.in.Write(append(line, '\n')); err != nil {
			return nil, errors.New("the process has ended")
		}
	}
	var line []byte
	for {
		part, err := c.lines.ReadSlice('\n')
		if line = append(line, part...); len(line) > limit {
			return nil, fmt.Errorf("an answer of more than %d bytes", limit)
		}
		switch {
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, errors.New("the process has ended")
		}
	}
}

// peerJob is what a process is asked: a schema, or a grammar.
type peerJob struct {
	Schema  json.RawMessage `json:"schema,omitempty"`
	Grammar *string         `json:"grammar,omitempty"`
	Texts   [][]token.ID    `json:"texts"`
	Size    int             `json:"size"` // of the vocabulary
	Limit   int64           `json:"limit_ms"`
}

type peerResult struct {
	Compile    float64   `json:"compile_us"`
	Steps      []float64 `json:"steps_us"`
	Accepted   []bool    `json:"accepted"`
	Vocabulary float64   `json:"vocabulary_us"`
	Error      string    `json:"error"`
}

// measure reads the texts of a schema. Errors of the peer are figures; those that it returns end the measurement.
func (p *MaskPeer) measure(s MaskSchema, texts []string) (MaskPeerFigures, []float64, error) {
	job := peerJob{Size: p.o.Tokenizer.Size(), Limit: p.o.Limit.Milliseconds(), Texts: [][]token.ID{}}
	limit := maxPeerResult
	for _, text := range texts {
		ids, err := p.o.Tokenizer.Encode([]token.ID{}, text, tokenizer.Options{Plain: true, Inside: true})
		if err != nil {
			return MaskPeerFigures{}, nil, err
		}
		job.Texts, limit = append(job.Texts, ids), limit+maxPeerStep*len(ids)
	}
	if p.child == nil {
		if err := p.start(); err != nil {
			return MaskPeerFigures{}, nil, err
		}
	}
	r, err := p.read(s, job, limit)
	f := MaskPeerFigures{CompileUS: r.Compile, VocabularyUS: r.Vocabulary, Tests: maskTimes(r.Steps)}
	switch {
	case p.ctx.Err() != nil:
		return f, nil, p.ctx.Err()
	case err != nil:
		f.Error, f.refused = err.Error(), p.child != nil // its end is no refusal
	case r.Error != "":
		f.Error, f.refused = cut(r.Error, maxPeerText), r.Compile == 0
	}
	for i, ok := range r.Accepted[:min(len(r.Accepted), len(texts))] {
		switch {
		case s.Tests[i].Valid && ok:
			f.ValidAccepted++
		case !s.Tests[i].Valid && !ok:
			f.InvalidRejected++
		}
	}
	return f, r.Steps, nil
}

// read converts the schema, and asks the process.
func (p *MaskPeer) read(s MaskSchema, job peerJob, limit int) (r peerResult, err error) {
	job.Schema = s.Schema
	if p.o.Converter != "" {
		text, err := p.convert(s.Schema)
		if err != nil {
			return r, err
		}
		job.Schema, job.Grammar = nil, &text
	}
	err = p.ask(job, &r, p.o.Limit+p.o.grace, limit)
	if err == nil && r.Error == "" && len(r.Accepted) != len(job.Texts) {
		p.stop()
		return peerResult{}, fmt.Errorf("an answer of %d texts, of %d", len(r.Accepted), len(job.Texts))
	}
	return r, err
}

// convert runs the converter.
func (p *MaskPeer) convert(schema []byte) (string, error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.o.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.o.Converter)
	out, said := headWriter{max: maxPeerGrammar, strict: true}, headWriter{max: maxPeerText}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = bytes.NewReader(schema), &out, &said, time.Second
	err := cmd.Run()
	switch {
	case out.more:
		return "", fmt.Errorf("converter: a grammar of more than %d bytes", maxPeerGrammar)
	case ctx.Err() != nil:
		return "", fmt.Errorf("converter: no grammar within %v", p.o.Limit)
	case err != nil:
		return "", fmt.Errorf("converter: %w; it says %q", err, said.text())
	}
	return string(out.kept), nil
}

// headWriter keeps the first bytes. It embeds no buffer, whose ReadFrom would be called in place of Write.
type headWriter struct {
	kept   []byte
	max    int
	strict bool // more is an error, which closes the pipe
	more   bool
}

// Write implements [io.Writer].
func (w *headWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.max-len(w.kept))
	w.kept = append(w.kept, b[:n]...)
	if w.more = w.more || n < len(b); w.more && w.strict {
		return n, io.ErrShortWrite
	}
	return len(b), nil
}

// text returns what was kept, without white space around it.
func (w *headWriter) text() string { return strings.TrimSpace(string(w.kept)) }

func cut(text string, most int) string { return text[:min(len(text), most)] }

// peerSum collects times over all schemas.
type peerSum struct {
	counts                     MaskCounts
	compile, tests, vocabulary []float64
}

// measure adds a schema, and puts its figures to those of grove.
func (a *peerSum) measure(p *MaskPeer, s MaskSchema, f *MaskFigures) error {
	texts, err := s.texts()
	if err != nil {
		return err
	}
	got, tests, err := p.measure(s, texts)
	if err != nil {
		return err
	}
	f.Peer = &got
	a.counts.count(got.Error, got.refused, got.InvalidRejected < f.InvalidTotal, got.ValidAccepted < f.ValidTotal)
	if got.CompileUS > 0 {
		a.compile = append(a.compile, got.CompileUS)
	}
	if got.VocabularyUS > 0 {
		a.vocabulary = append(a.vocabulary, got.VocabularyUS)
	}
	a.tests = append(a.tests, tests...)
	return nil
}

func (a *peerSum) summary(p *MaskPeer) *MaskPeerSummary {
	s := p.report
	s.MaskCounts, s.Compile, s.Tests, s.Vocabulary = a.counts, maskTimes(a.compile), maskTimes(a.tests), maskTimes(a.vocabulary)
	return &s
}

// writeText writes the summary.
func (s *MaskPeerSummary) writeText(w io.Writer) error {
	fmt.Fprintf(w, "\n%s %s (%s); grammars by the converter %s\n", s.Engine, s.Release, s.Package, s.Converter)
	s.MaskCounts.writeText(w, s.Engine+": ")
	return writeTimes(w, []namedTimes{{"compile", s.Compile}, {"test and step", s.Tests}, {"whole vocabulary", s.Vocabulary}})
}
