package grove_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"grove"
	"grove/internal/gopher"
)

func ExampleOpen() {
	m, err := grove.Open("internal/suite/modeltest/testdata/llama-gqa.gguf", grove.Options{Context: 256, CacheType: "f32"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	info := m.Info()
	fmt.Printf("%s: %s, %d tokens, a context of %d\n", info.Name, info.Arch, info.Vocabulary, info.Context)
	// Output:
	// random weights, seed 1: llama, 320 tokens, a context of 256
}

func ExampleModel_Generate() {
	m, err := grove.OpenBytes(gopher.Model(), grove.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	g, err := m.Generate(context.Background(), grove.Request{Prompt: "if err != nil {", MaxTokens: 16})
	if err != nil {
		log.Fatal(err)
	}
	for token, err := range g.Tokens() {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(token.Text)
	}
	fmt.Println()
	fmt.Println(g.Stats().Tokens, "tokens, finish:", g.Stats().Finish)
	// Output:
	// // error is not a valid error, but not a valid error, so we
	// 16 tokens, finish: length
}

// The same seed gives the same text, on any machine and with any number of threads.
func ExampleModel_Generate_seed() {
	m, err := grove.OpenBytes(gopher.Model(), grove.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	seed := uint64(42)
	r := grove.Request{Prompt: "package ", MaxTokens: 20, Sampling: grove.DefaultSampling(), Seed: &seed}
	var texts [2]string
	for i := range texts {
		g, err := m.Generate(context.Background(), r)
		if err != nil {
			log.Fatal(err)
		}
		if texts[i], err = g.Text(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(texts[0] == texts[1])
	// Output:
	// true
}

// An answer that is JSON by a schema.
func ExampleModel_Generate_constraint() {
	m, err := grove.OpenBytes(gopher.Model(), grove.Options{Forget: true})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	schema := `{"type": "object", "properties": {"exported": {"type": "boolean"}, "kind": {"enum": ["func", "type"]}}, "required": ["exported", "kind"], "additionalProperties": false}`
	g, err := m.Generate(context.Background(), grove.Request{
		Prompt: "func (f *File) Close() error // ", Constraint: &grove.Constraint{Schema: []byte(schema), Whitespace: "spaced"},
	})
	if err != nil {
		log.Fatal(err)
	}
	text, err := g.Text()
	if err != nil {
		log.Fatal(err)
	}
	var v struct {
		Exported bool
		Kind     string
	}
	fmt.Println(json.Unmarshal([]byte(text), &v), v.Kind == "func" || v.Kind == "type", g.Stats().Finish)
	// Output: <nil> true stop
}
