// Command _heads trains the heads for drafting with the gophers, on the source of the Go distribution:
//
//	go run ./lab/train/heads accept -out internal/gopher/testdata/heads/accept.safetensors
//	go run ./lab/train/heads judge -out internal/gopher/testdata/heads/judge.safetensors
//
// accept trains the acceptance head of gopher-draft, by which the method draft-specdec ends its chains (SpecDec++, Huang et al. 2024); judge trains the head of
// gopher-target by which the rule judge finds draft tokens important or not (AutoJudge, Garipov et al. 2025), and measures it. The models do not
// change. States and probabilities are those of grove itself; seeds are fixed, so that a run gives the same file again.
package main

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"sync"

	"grove"
	"grove/internal/gopher"
)

func main() {
	commands := map[string]func(args []string) error{"accept": accept, "judge": judge, "lengths": lengths}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: go run ./lab/train/heads accept|judge|lengths [-h]")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "_heads:", err)
		os.Exit(1)
	}
}

// models are the target and the draft model.
type models struct{ target, draft *grove.Model }

const parallel = 4 // texts at a time

// open opens the models.
func open() (m models, err error) {
	if m.target, err = grove.Open(gopher.Name, grove.Options{Parallel: parallel, Forget: true}); err == nil {
		m.draft, err = grove.Open(gopher.DraftName, grove.Options{Parallel: parallel, Forget: true})
	}
	return m, err
}

// each calls f for 0 to n-1, some at a time, and returns the first error.
func each(n int, f func(i int) error) error {
	var group sync.WaitGroup
	errs, next := make([]error, n), make(chan int)
	for range parallel {
		group.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// flags returns the flags of a command.
func flags(name string) (f *flag.FlagSet, out *string) {
	f = flag.NewFlagSet(name, flag.ExitOnError)
	return f, f.String("out", name+".safetensors", "file to write")
}

// tensor is a tensor of F32 values.
type tensor struct {
	name  string
	shape []int
	v     []float64
}

// write writes a safetensors file with figures as its metadata.
func write(path string, figures map[string]string, tensors ...tensor) error {
	header, data := map[string]any{"__metadata__": figures}, []byte(nil)
	for _, t := range tensors {
		from := len(data)
		for _, v := range t.v {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
		}
		header[t.name] = map[string]any{"dtype": "F32", "shape": t.shape, "data_offsets": []int{from, len(data)}}
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	return os.WriteFile(path, append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), data...), 0o644)
}
