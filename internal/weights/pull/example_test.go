package pull_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"time"

	"grove"
	"grove/internal/gopher"
	"grove/internal/weights/find"
	"grove/internal/weights/pull"
)

// A program pulls a model by its name and opens it. A server of this machine takes the place of a public one here, and a
// temporary directory that of the caches.
func ExampleRun() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(gopher.Named(gopher.NanoName)))
	}))
	defer server.Close()
	home, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)

	ref, err := pull.Parse(server.URL + "/nano.gguf") // or "org/repo:Q4_K_M", "llama3.2:3b", ...
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := pull.Run(context.Background(), ref, pull.Options{
		Store: find.New(func(string) string { return "" }, home, "linux"), // without it, the caches of this machine
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := grove.Open(got.Path, grove.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	fmt.Println(m.Info().Name)
	// Output: gopher-nano
}
