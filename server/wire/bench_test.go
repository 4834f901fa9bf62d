package wire_test

import (
	"testing"

	"grove/server/wire"
)

// BenchmarkDecode decodes a small body.
func BenchmarkDecode(b *testing.B) {
	const text = `{"number":16,"ids":[1,2,3,4,5,6,7,8],"share":0.5,"text":"You are a helpful assistant.\nAnswer in one line.","parts":[{"name":"user","count":1},{"name":"assistant","count":2}],"any":{"type":"object","properties":{"a":{"type":"string"}}},"vars":{"x":"y"},"user":null,"store":true}`
	b.ReportAllocs()
	for b.Loop() {
		var into body
		if err := wire.Decode([]byte(text), &into); err != nil {
			b.Fatal(err)
		}
	}
}
