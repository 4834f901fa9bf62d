package driver

import (
	"net/http"
	"net/http/httptest"
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
	s := &Server{Pool: serving.NewPool(serving.Config{}), Patience: time.Minute}
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
			fits, err := x.add("", part, "")
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
	if fits, err := large.add("", make([]byte, 2*mostUnread), ""); !fits || err != nil {
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
