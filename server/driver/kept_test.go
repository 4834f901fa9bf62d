package driver

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestKeptBounds: streams lose their beginnings where they are longer than what is kept, and finished ones make room for those that go on.
func TestKeptBounds(t *testing.T) {
	s := &KeptStreams{}
	open := func(owner, name string) *KeptStream {
		k := &KeptStream{Name: name, set: s, owner: owner, readers: 1, cancel: func(error) {}}
		if err := s.add(k); err != nil {
			t.Fatal(err)
		}
		return k
	}
	held := func() (n int) {
		for _, k := range s.all {
			n += len(k.held)
		}
		if n != s.bytes || n > keptAll {
			t.Fatalf("%d bytes are held, %d counted, %d may be", n, s.bytes, keptAll)
		}
		return n
	}
	k := open("", "a")
	part := []byte(strings.Repeat("0123456789", 1000))
	for range 1000 { // 10 MB
		k.append(part)
	}
	if held() > keptEach || held() < keptEach-keptCut-len(part) {
		t.Errorf("%d bytes of a stream are held", held())
	}
	if _, _, err := k.behind(0); err == nil {
		t.Error("the beginning is still there")
	}
	if got, _, err := k.behind(len(part)*1000 - 15); err != nil || string(got) != "567890123456789" {
		t.Errorf("the end is %q, %v", got, err)
	}
	k.append(bytes.Repeat([]byte("a"), 5<<20))
	if n := held(); n > keptEach {
		t.Errorf("%d bytes behind a large part", n)
	}
	var all []*KeptStream
	for i := range 12 {
		o := open("bob", string(rune('a'+i)))
		o.append(bytes.Repeat([]byte("b"), keptEach))
		all = append(all, o)
		held()
	}
	for _, o := range all[:4] {
		o.end(true)
	}
	all[11].append(bytes.Repeat([]byte("c"), keptEach))
	if held(); len(all[11].held) != keptEach || s.find("bob", "a") != nil {
		t.Errorf("%d bytes of a stream that goes on; those that ended take the room", len(all[11].held))
	}
	for i := range keptNumber {
		open("eve", string(rune('a'+i)))
	}
	if err := s.add(&KeptStream{Name: "z", set: s, owner: "eve"}); err == nil {
		t.Error("a key has more streams than it may")
	}
	s.find("eve", "a").end(true)
	open("eve", "z")
	s.find("eve", "z").end(true)
	s.find("eve", "z").ended = time.Now().Add(-keptTime - time.Second)
	if s.find("eve", "z") != nil {
		t.Error("a stream is kept for ever")
	}
}
