package front_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"grove"
	"grove/internal/gopher"
	"grove/internal/text/tokenizer"
	"grove/method/datastore"
)

// TestDatastore: a model drafts from the datastore of its tokenizer, gives the text of plain decoding, and refuses another's.
func TestDatastore(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		t.Helper()
		f, err := grove.OpenFile(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		words, err := tokenizer.FromGGUF(f)
		if err != nil {
			t.Fatal(err)
		}
		m := open(t, name, grove.Options{Forget: true, Threads: 1})
		r := request(2)
		r.Method = grove.MethodOff
		answer, _ := generate(t, m, r)
		b := datastore.NewBuilder(words)
		for _, text := range []string{r.Prompt, answer.text(), r.Prompt + answer.text()} {
			ids, err := words.Encode(nil, text, tokenizer.Options{Plain: true})
			if err == nil {
				err = b.Add(ids)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, filepath.Base(name)+".store")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(b.Write(file), file.Close()); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write(gopher.Name)
	m := open(t, gopher.Name, grove.Options{Datastore: path, Eager: true, Forget: true, Threads: 1})
	r := request(2)
	r.Method = grove.MethodOff
	want, _ := generate(t, m, r)
	r.Method = "rest"
	got, st := generate(t, m, r)
	if got.text() != want.text() || st.Drafting.Accepted == 0 {
		t.Errorf("%d drafts accepted; the text is\n%s\nand not\n%s", st.Drafting.Accepted, got.text(), want.text())
	}
	if !slices.Contains(m.Files(), path) {
		t.Errorf("the datastore is none of the files %v", m.Files())
	}
	for _, i := range m.Methods() {
		if i.Name == "rest" && !i.Available {
			t.Errorf("rest: %s", i.Reason)
		}
	}
	if _, err := grove.Open(goldenModel, threaded(grove.Options{Datastore: path})); err == nil || !strings.Contains(err.Error(), path+": its tokens are of another tokenizer") {
		t.Errorf("a datastore of another tokenizer: %v", err)
	}
}
