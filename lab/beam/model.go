package beam

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/log"

	"grove"
	"grove/internal/gopher"
	"grove/internal/weights/find"
	"grove/server"
	"grove/server/batch"
	"grove/server/serving"
)

// Model says which model workers open, and how. The zero value is the model inside the program. Answers are those of grove batch where Path, Name, Context, CacheType and
// ChatTemplate are the same; Threads, Parallel, Flight and Memory change the speed alone.
type Model struct {
	Path         string // a GGUF file, a folder or a name, as grove batch takes it, on each worker; "": the model inside the program
	Name         string // in requests; "": that of the file. Requests that name no model get it, too
	Context      int    // tokens of a text, prompt included; 0: the model's own, as memory allows
	CacheType    string // f32, f16 or q8_0; "": f16
	ChatTemplate string // a name or a Jinja file on each worker; "": the model's own
	Threads      int    // 0: one for each core that the worker may use
	Parallel     int    // texts that are computed at a time in a process; 0: 16
	Flight       int    // requests under way at a time in a process, from 1 to 4096; 0: twice Parallel
	Memory       uint64 // bytes of weights, caches and requests in a process; 0: those of the machine

	// Identity is what answers must depend on besides requests: the model and the numerics, as a worker logs them when it opens the model, and as grove batch keeps them beside
	// its output. A worker with another identity fails its bundles, so that no output mixes answers. "": any.
	Identity string
}

// parallel is how many texts are computed at a time unless a model says it, as in grove batch.
const parallel = 16

// complete returns the model with its defaults. Errors: settings out of their range.
func (m Model) complete() (Model, error) {
	m.CacheType, m.Parallel = cmp.Or(m.CacheType, "f16"), cmp.Or(m.Parallel, parallel)
	m.Flight = cmp.Or(m.Flight, batch.Flight(m.Parallel))
	name, _ := strings.CutSuffix(filepath.Base(cmp.Or(m.Path, gopher.Name)), ".gguf")
	m.Name = cmp.Or(m.Name, name)
	switch {
	case m.Parallel < 1:
		return m, fmt.Errorf("beam: parallel is %d; it must be 1 or more", m.Parallel)
	case m.Flight < 1 || m.Flight > batch.MaxFlight:
		return m, fmt.Errorf("beam: flight is %d; it must be from 1 to %d", m.Flight, batch.MaxFlight)
	case m.Context < 0 || m.Threads < 0:
		return m, fmt.Errorf("beam: context is %d and threads is %d; they must be 0 or more", m.Context, m.Threads)
	}
	_, err := grove.ParseCacheType(m.CacheType)
	return m, err
}

// opened is a model of this process.
type opened struct {
	http.Handler
	flight chan struct{} // has a value for each request under way, of all bundles
	close  func() error
}

// models are those of this process. The SDK makes several instances of a DoFn, and bundles that run at a time use one each: they share a model. It stays open until [Close],
// because the SDK tears no instance down while a worker lives.
var models struct {
	sync.Mutex
	all map[Model]*opened
}

// use returns the model, which the first caller opens while others wait. A model that cannot be opened is tried again by the next caller.
func (m Model) use(ctx context.Context) (*opened, error) {
	models.Lock()
	defer models.Unlock()
	if o := models.all[m]; o != nil {
		return o, nil
	}
	o, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	if models.all == nil {
		models.all = map[Model]*opened{}
	}
	models.all[m] = o
	return o, nil
}

// Close closes the models that pipelines opened in this process. A program that goes on behind its pipelines calls it when none runs.
func Close() (err error) {
	models.Lock()
	defer models.Unlock()
	for m, o := range models.all {
		err = errors.Join(err, o.close())
		delete(models.all, m)
	}
	return err
}

// open opens the model behind the routes of a server, as grove batch does.
func (m Model) open(ctx context.Context) (o *opened, err error) {
	s := server.New(server.Config{Config: serving.Config{Memory: m.Memory}})
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("beam: model %s: %w", m.Name, err), s.Close())
		}
	}()
	path := cmp.Or(m.Path, gopher.Name)
	if gopher.Named(path) == nil {
		if path, err = find.System().Find(path); err != nil {
			return nil, err
		}
	}
	open := func(_ context.Context, memory uint64) (*grove.Model, error) {
		return grove.Open(path, grove.Options{
			Context: m.Context, CacheType: m.CacheType, ChatTemplate: m.ChatTemplate, Threads: m.Threads, Parallel: m.Parallel, Memory: memory, Forget: true,
		})
	}
	if err := s.Add(server.Entry{Name: m.Name, Path: path, Settings: serving.Settings(m.CacheType, "template", m.ChatTemplate), Open: open}); err != nil {
		return nil, err
	}
	if err := s.Load(ctx); err != nil {
		return nil, err
	}
	identity, err := s.Identity(ctx, []string{m.Name})
	if err != nil {
		return nil, err
	}
	if m.Identity != "" && m.Identity != identity {
		return nil, fmt.Errorf("its identity is %q, and the pipeline wants %q; give all workers one file and one version of grove", identity, m.Identity)
	}
	log.Infof(ctx, "beam: opened %s", identity)
	return &opened{Handler: s, flight: make(chan struct{}, m.Flight), close: s.Close}, nil
}
