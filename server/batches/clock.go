package batches

import (
	"time"
)

// mostAway bounds the time between two servers that counts.
const mostAway = time.Hour

// clock is the time, in seconds, by which files and batches expire: it runs while a server runs, and counts an hour at most of the time between two servers. So a clock of the
// machine that is set forward takes nothing from anybody.
type clock struct {
	base  int64
	start time.Time // with Go's monotonic reading
}

// reading is what is kept of a clock.
type reading struct {
	Time int64 `json:"time"` // of the clock
	Wall int64 `json:"wall"` // of the machine, then
}

// resume returns a clock that goes on where an earlier one was.
func resume(r reading, now time.Time) clock {
	away := int64(0)
	if r.Wall > 0 {
		away = min(max(0, now.Unix()-r.Wall), int64(mostAway/time.Second))
	}
	return clock{base: r.Time + away, start: now}
}

// now returns the time of the clock.
func (c clock) now() int64 { return c.base + int64(time.Since(c.start)/time.Second) }

// read returns what is to be kept.
func (c clock) read() reading { return reading{c.now(), time.Now().Unix()} }
