package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"grove/internal/command/flags"
	"grove/internal/command/reach"
	"grove/internal/command/terminal"
)

// healthTime is how long a server may take to say how it is.
const healthTime = 5 * time.Second

// healthCommand asks a server whether it takes requests.
type healthCommand struct {
	flags.Address `set:"address=Address of the server"`
}

// Run implements the command.
func (c *healthCommand) Run() error {
	url, err := c.URL()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), healthTime)
	defer cancel()
	base, transport, err := reach.Client(url, c.TLSCert)
	if err != nil {
		return err
	}
	transport.Proxy = nil
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/health", nil)
	if err != nil {
		return err
	}
	answer, err := transport.RoundTrip(request) // without redirects
	if err != nil {
		return fmt.Errorf("health: %s does not answer: %w", url, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("health: %s is not ready: it answers %s", url, answer.Status)
	}
	_, err = fmt.Fprintf(terminal.Stdout, "%s is ready\n", url)
	return err
}
