package driver

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grove/server/serving"
)

// held is a connection whose client takes nothing until it is opened.
type held struct {
	*httptest.ResponseRecorder
	open chan struct{}
}

// Write implements [io.Writer].
func (h *held) Write(b []byte) (int, error) {
	<-h.open
	return h.ResponseRecorder.Write(b)
}

// TestUnread: what waits for clients is bounded for each stream and for all together, the least is there for each, and a part of any size
// is sent where no other waits.
func TestUnread(t *testing.T) {
	s := &Server{Pool: serving.NewPool(serving.Config{}), WriteTimeout: time.Minute}
	part := make([]byte, 1<<10)
	var streams []*Stream
	var open []chan struct{}
	stream := func() *Stream {
		h := &held{httptest.NewRecorder(), make(chan struct{})}
		x := NewStream(&Request{Server: s, W: h, R: httptest.NewRequest(http.MethodPost, "/", nil)}, Lines)
		x.begin()
		streams, open = append(streams, x), append(open, h.open)
		return x
	}
	fill := func(x *Stream) (bytes int) {
		for {
			fits, err := x.add(part)
			if err != nil {
				t.Fatal(err)
			}
			if !fits {
				return bytes
			}
			bytes += len(part)
		}
	}
	var got []int
	for range 2 {
		got = append(got, fill(stream()))
	}
	s.unread.Add(allUnread) // of many other streams
	got = append(got, fill(stream()))
	if diff := cmp.Diff([]int{mostUnread, mostUnread, leastUnread}, got); diff != "" {
		t.Error(diff)
	}
	large := stream()
	if fits, err := large.add(make([]byte, 2*mostUnread)); !fits || err != nil {
		t.Errorf("a part larger than what may wait: %v %v", fits, err)
	}
	for i, x := range streams {
		close(open[i])
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := s.unread.Load(); n != allUnread {
		t.Errorf("%d bytes are counted of streams that have ended", n-allUnread)
	}
}

// sink is a connection whose client takes everything at once.
type sink struct{ header http.Header }

func (s sink) Header() http.Header              { return s.header }
func (sink) WriteHeader(int)                    {}
func (sink) Write(b []byte) (int, error)        { return len(b), nil }
func (sink) FlushError() error                  { return nil }
func (sink) SetWriteDeadline(_ time.Time) error { return nil }

// TestPartsAllocateNothing: a part of a stream whose client keeps up costs no memory beside that of its text.
func TestPartsAllocateNothing(t *testing.T) {
	s := &Server{Pool: serving.NewPool(serving.Config{}), WriteTimeout: time.Minute}
	x := NewStream(&Request{Server: s, W: sink{http.Header{}}, R: httptest.NewRequest(http.MethodPost, "/", nil)}, Events)
	body := make([]byte, 300)
	part := func() {
		if err := x.write(body); err != nil {
			t.Fatal(err)
		}
		for s.unread.Load() > 0 {
			runtime.Gosched()
		}
	}
	for range 100 {
		part()
	}
	if n := testing.AllocsPerRun(1000, part); n > 0 {
		t.Errorf("%v allocations for a part", n)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}
