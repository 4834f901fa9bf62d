package main

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"

	"grove"
	"grove/internal/command/exit"
	"grove/internal/command/flags"
	"grove/server/batch"
	"grove/server/batches"
)

// namesFile is the file of the names that clients make of models, in the directory of the state.
const namesFile = "names.json"

// State are the flags of the files and batches that a server keeps for its clients.
type State struct {
	Dir      string      `name:"state-dir" placeholder:"DIR" var:"GROVE_STATE_DIR" help:"Directory of the files and batches of clients (/v1/files, /v1/batches), and of the names that they make of models (/api/create); it is made. No other server may use it. Without it, none are kept."`
	Upload   flags.Bytes `name:"max-file-bytes" placeholder:"BYTES" default:"512MiB" var:"GROVE_MAX_FILE_BYTES" help:"Bytes of a file that a client sends. Default: ${default}."`
	MostAll  flags.Bytes `name:"max-state-bytes" placeholder:"BYTES" default:"16GiB" var:"GROVE_MAX_STATE_BYTES" help:"Bytes of all files of a key, or of all clients without keys, with the answers of batches. Default: ${default}."`
	MostOpen flags.Count `name:"max-batches" placeholder:"N" default:"100" var:"GROVE_MAX_BATCHES" help:"Batches of a key, or of all clients without keys, that have not ended. Default: ${default}."`
}

// Batches opens the files and batches of a server that has so many slots; nil: it keeps none.
func (c *State) Batches(slots int, log *slog.Logger) (*batches.Service, error) {
	if c.Dir == "" {
		return nil, nil
	}
	s, err := batches.Open(batches.Config{
		Dir: c.Dir, Upload: int64(min(c.Upload, math.MaxInt64)), Bytes: int64(min(c.MostAll, math.MaxInt64)), Open: int(c.MostOpen), Flight: batch.Flight(slots), Log: log,
	})
	if errors.Is(err, batches.ErrDamaged) {
		return nil, exit.File(fmt.Errorf("grove: --state-dir: %s", strings.TrimPrefix(err.Error(), "batches: ")))
	}
	if err != nil {
		return nil, &grove.OptionError{Err: fmt.Errorf("grove: --state-dir: %s", strings.TrimPrefix(err.Error(), "batches: "))}
	}
	return s, nil
}
