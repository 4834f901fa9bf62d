package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// tap is the sending half of a connection. After so many bytes it breaks, or gives nothing.
type tap struct {
	*io.PipeWriter
	left  int // bytes; below 0: any number
	stall chan struct{}
	cut   func()
	alter func([]byte) []byte
}

func (w *tap) Write(b []byte) (int, error) {
	if w.alter != nil {
		b = w.alter(bytes.Clone(b))
	}
	n := len(b)
	if w.left >= 0 && n > w.left {
		_, _ = w.PipeWriter.Write(b[:w.left])
		w.left = 0
		if w.stall != nil {
			<-w.stall
		}
		w.cut()
		return 0, io.ErrClosedPipe
	}
	w.left -= min(n, max(w.left, 0))
	_, err := w.PipeWriter.Write(b)
	return n, err
}

// connect lets a connection carry two links until it breaks. Its taps may be changed before.
func connect(near, far *Link, change func(up, down *tap)) (ofNear, ofFar error) {
	upR, upW := io.Pipe()
	downR, downW := io.Pipe()
	cut := func() {
		for _, w := range []*io.PipeWriter{upW, downW} {
			_ = w.CloseWithError(io.ErrUnexpectedEOF)
		}
		for _, r := range []*io.PipeReader{upR, downR} {
			_ = r.CloseWithError(io.ErrClosedPipe)
		}
	}
	up, down := &tap{PipeWriter: upW, left: -1, cut: cut}, &tap{PipeWriter: downW, left: -1, cut: cut}
	change(up, down)
	var both sync.WaitGroup
	nearHas, farHas := near.Received(), far.Received()
	both.Go(func() { ofNear = near.Carry(downR, up, cut, farHas) })
	both.Go(func() { ofFar = far.Carry(upR, down, cut, nearHas) })
	both.Wait()
	return ofNear, ofFar
}

func pair(c Config) (near, far *Link) {
	f := c
	f.Near, f.Ping, f.Request = false, 0, 1<<20
	c.Near = true
	return NewLink(c), NewLink(f)
}

// TestLoss sends frames in both directions while connections break at random bytes: each frame comes once, in order, whole.
func TestLoss(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			near, far := pair(Config{Window: 2000, Ping: time.Millisecond, Silence: 2 * time.Second})
			const frames = 300
			var sides sync.WaitGroup
			send := func(l *Link, kind Kind) {
				r := rand.New(rand.NewPCG(seed, uint64(kind)))
				for i := range frames {
					if kind == KindDrafts && i == 0 {
						continue // the request has its place
					}
					if err := l.Send(t.Context(), kind, binary.AppendUvarint(make([]byte, r.IntN(100)), uint64(i))); err != nil {
						t.Error(err)
						return
					}
				}
			}
			take := func(l *Link, kind Kind, from int) {
				r := rand.New(rand.NewPCG(seed, uint64(kind)))
				for i := range frames {
					if i < from {
						continue
					}
					f, err := l.Next(t.Context())
					if want := binary.AppendUvarint(make([]byte, r.IntN(100)), uint64(i)); err != nil || f.Kind != kind || !bytes.Equal(f.Payload, want) {
						t.Errorf("frame %d: %v %v, %v", i, f.Kind, f.Payload, err)
						return
					}
				}
			}
			sides.Go(func() {
				if err := near.Send(t.Context(), KindRequest, []byte("request")); err != nil {
					t.Error(err)
				}
				send(near, KindDrafts)
			})
			sides.Go(func() {
				if f, err := far.Next(t.Context()); err != nil || string(f.Payload) != "request" {
					t.Errorf("%v %v", f, err)
				}
				sides.Go(func() { send(far, KindBody) })
				take(far, KindDrafts, 1)
			})
			sides.Go(func() { take(near, KindBody, 0) })
			done := make(chan struct{})
			go func() {
				sides.Wait()
				near.Fail(nil)
				far.Fail(nil)
				close(done)
			}()
			r := rand.New(rand.NewPCG(seed, 0))
			for near.Err() == nil {
				connect(near, far, func(up, down *tap) { up.left, down.left = r.IntN(3000), r.IntN(3000) })
			}
			<-done
			if c := near.Traffic().Connections; c < 5 {
				t.Errorf("%d connections: nothing broke", c)
			}
		})
	}
}

// open makes two links of which the near one has sent a request and the far one n frames.
func open(t *testing.T, n int) (near, far *Link) {
	t.Helper()
	near, far = pair(Config{Ping: 5 * time.Millisecond, Silence: time.Second})
	if err := near.Send(t.Context(), KindRequest, []byte("request")); err != nil {
		t.Fatal(err)
	}
	go connect(near, far, func(_, _ *tap) {})
	if _, err := far.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := far.Send(t.Context(), KindBody, []byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { near.Fail(nil); far.Fail(nil) })
	return near, far
}

// marked is a byte of the payload whose frame a lie alters.
const marked = 0xaa

// altered makes links of which the far one sends a frame that is altered.
func altered(alter func(b []byte, at int) []byte) func(t *testing.T) *Link {
	return func(t *testing.T) *Link {
		near, far := pair(Config{Silence: time.Second, Request: 100})
		t.Cleanup(func() { far.Fail(nil) })
		if err := near.Send(t.Context(), KindRequest, nil); err != nil {
			t.Fatal(err)
		}
		go connect(near, far, func(_, down *tap) {
			down.alter = func(b []byte) []byte {
				if at := bytes.IndexByte(b, marked); at >= 0 {
					return alter(b, at)
				}
				return b
			}
		})
		if _, err := far.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := far.Send(t.Context(), KindBody, []byte{marked}); err != nil {
			t.Fatal(err)
		}
		return near
	}
}

// changed returns a lie that changes the byte so far from the marked one.
func changed(from int, change func(b byte) byte) func(t *testing.T) *Link {
	return altered(func(b []byte, at int) []byte { b[at+from] = change(b[at+from]); return b })
}

// another answers another request than that which came.
func another(t *testing.T) *Link {
	near, far := open(t, 0)
	far.mu.Lock()
	far.outSum = far.outSum.answer()
	far.mu.Unlock()
	if err := far.Send(t.Context(), KindBody, nil); err != nil {
		t.Fatal(err)
	}
	return near
}

// flood sends more than the near side, which takes nothing, has room for.
func flood(t *testing.T) *Link {
	near, far := open(t, 0)
	far.config.Window = 1 << 30
	for range 10 {
		if err := far.Send(t.Context(), KindBody, make([]byte, 200<<10)); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; near.Err() == nil && i < 1000; i++ {
		time.Sleep(time.Millisecond)
	}
	return near
}

// forgotten connects the near side to a far one that knows nothing of what was sent.
func forgotten(t *testing.T) *Link {
	near, _ := open(t, 3)
	for range 3 {
		if _, err := near.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := near.Drained(t.Context()); err != nil {
		t.Fatal(err)
	}
	connect(near, NewLink(Config{Request: 100}), func(_, _ *tap) {})
	if near.Err() == nil {
		t.Error("the link goes on")
	}
	return near
}

// TestLies changes what the far side sends: each lie ends the link by its error.
func TestLies(t *testing.T) {
	flipped := func(b byte) byte { return b ^ 1 }
	kind := func(k Kind) func(byte) byte { return func(byte) byte { return byte(k) } }
	for _, c := range []struct {
		name string
		lie  func(t *testing.T) *Link
		want error
	}{
		{"a byte of the payload", changed(0, flipped), ErrDigest},
		{"a byte of the sum", changed(1, flipped), ErrDigest},
		{"the kind", changed(-3, kind(KindTokens)), ErrDigest},
		{"an unknown kind", changed(-3, kind(99)), ErrFrame},
		{"a request from there", changed(-3, kind(KindRequest)), ErrFrame},
		{"frames that were never sent are acknowledged", altered(func(b []byte, _ int) []byte { return control(b, kindAck, 99) }), ErrFrame},
		{"the answer to another request", another, ErrDigest},
		{"a flood", flood, ErrFlood},
		{"a far side that has forgotten", forgotten, ErrFrame},
	} {
		t.Run(c.name, func(t *testing.T) {
			near := c.lie(t)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			var err error
			for err == nil {
				_, err = near.Next(ctx)
			}
			if !errors.Is(err, c.want) || !errors.Is(near.Err(), c.want) {
				t.Errorf("%v, and the link has %v; want %v", err, near.Err(), c.want)
			}
		})
	}
}

// TestAgain sends frames again that came, and one too early: nothing comes twice, and a new connection brings what is missing.
func TestAgain(t *testing.T) {
	near, far := pair(Config{Silence: time.Second})
	if err := near.Send(t.Context(), KindRequest, nil); err != nil {
		t.Fatal(err)
	}
	twice, early := true, true
	go func() {
		for near.Err() == nil {
			connect(near, far, func(_, down *tap) {
				down.alter = func(b []byte) []byte {
					switch {
					case bytes.Contains(b, []byte("one")) && twice:
						twice = false
						return append(b, b...)
					case bytes.Contains(b, []byte("two")) && early:
						early = false
						return nil // lost on the way
					}
					return b
				}
			})
		}
	}()
	if _, err := far.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two", "three"} {
		if err := far.Send(t.Context(), KindBody, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if text != "three" {
			time.Sleep(5 * time.Millisecond) // frames of their own
		}
	}
	for _, want := range []string{"one", "two", "three"} {
		if f, err := near.Next(t.Context()); err != nil || string(f.Payload) != want {
			t.Errorf("%q %v, want %q", f.Payload, err, want)
		}
	}
	near.Fail(nil)
	far.Fail(nil)
}

// TestSilence leaves a connection that gives nothing, and goes on with another; a peer that leaves frames unread is waited for.
func TestSilence(t *testing.T) {
	near, far := pair(Config{Silence: 50 * time.Millisecond, Ping: 10 * time.Millisecond, Window: 1000})
	if err := near.Send(t.Context(), KindRequest, nil); err != nil {
		t.Fatal(err)
	}
	far.config.Silence = time.Second // the near side is the first to see it
	stall := make(chan struct{})
	ofNear, _ := connect(near, far, func(up, down *tap) {
		up.left, up.stall = 20, stall
		down.left, down.stall = 20, stall
		time.AfterFunc(200*time.Millisecond, func() { close(stall) })
	})
	if !errors.Is(ofNear, ErrSilence) {
		t.Errorf("%v", ofNear)
	}
	go connect(near, far, func(_, _ *tap) {})
	if _, err := far.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for far.TrySend(KindBody, make([]byte, 100)) {
		sent++
	}
	if sent < 5 || sent > 10 {
		t.Errorf("%d frames of 100 bytes in a window of 1000", sent)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := far.Send(ctx, KindBody, make([]byte, 100)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	for range sent {
		if _, err := near.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := far.Send(t.Context(), KindBody, make([]byte, 100)); err != nil {
		t.Error(err)
	}
	if trip := near.Traffic().RoundTrip; trip <= 0 || trip > 20*time.Millisecond {
		t.Errorf("round trip %v", trip)
	}
	near.Fail(nil)
	far.Fail(nil)
	if err := near.Send(t.Context(), KindDrafts, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}
