package capacity

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Machine has the speed of a machine, in bytes and operations a second. The names are those of grove bench speed --json, whose output is a machine.
type Machine struct {
	Name      string  `json:"name"`
	Count     int     `json:"count"`         // of such machines; 0: 1
	Memory    float64 `json:"memory"`        // bytes; 0: any
	Bandwidth float64 `json:"bandwidth"`     // of memory
	Rate      float64 `json:"multiply_adds"` // multiply-adds a second
	ReadShare float64 `json:"read_share"`    // of the bandwidth that steps reach; 0: all
	RateShare float64 `json:"rate_share"`    // of the rate that they reach; 0: all
	Network   float64 `json:"network"`       // bytes a second to other machines; 0: 1.25e9
	Latency   float64 `json:"latency"`       // seconds of a message; 0: 50e-6
}

const (
	usualNetwork = 1.25e9 // 10 Gbit/s
	usualLatency = 50e-6
	maxMachines  = 256
	maxFile      = 1 << 20
)

// Read reads a machine: JSON objects one after another, whose fields are those of one machine; objects without any count for nothing.
func Read(r io.Reader) (m Machine, err error) {
	d := json.NewDecoder(io.LimitReader(r, maxFile))
	for {
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return m, fmt.Errorf("capacity: a machine: %w", err)
		}
	}
	return m.complete()
}

// complete checks a machine and fills in what it does not say.
func (m Machine) complete() (Machine, error) {
	m.Count, m.Network, m.Latency = cmp.Or(m.Count, 1), cmp.Or(m.Network, usualNetwork), cmp.Or(m.Latency, usualLatency)
	m.ReadShare, m.RateShare = cmp.Or(m.ReadShare, 1), cmp.Or(m.RateShare, 1)
	for _, v := range []struct {
		name     string
		value    float64
		positive bool
	}{
		{"bandwidth", m.Bandwidth, true}, {"multiply_adds", m.Rate, true}, {"network", m.Network, true}, {"read_share", m.ReadShare, true},
		{"rate_share", m.RateShare, true}, {"memory", m.Memory, false}, {"latency", m.Latency, false},
	} {
		if v.value < 0 || v.positive && v.value == 0 || v.value > 1e18 {
			return m, fmt.Errorf("capacity: a machine: %s is %g; grove bench speed --json writes a machine, and lab/docs/plan.md has the fields", v.name, v.value)
		}
	}
	if m.Count < 1 || m.Count > maxMachines {
		return m, fmt.Errorf("capacity: a machine: count is %d; it must be from 1 to %d", m.Count, maxMachines)
	}
	return m, nil
}

// reads returns the bytes a second that steps read.
func (m Machine) reads() float64 { return m.Bandwidth * m.ReadShare }

// ops returns the operations a second that steps do.
func (m Machine) ops() float64 { return m.Rate * m.RateShare }

// time returns the seconds of a part of a step that reads bytes and does operations, side by side.
func (m Machine) time(bytes, ops float64) float64 { return max(bytes/m.reads(), ops/m.ops()) }

// send returns the seconds in which a machine sends bytes to another.
func (m Machine) send(bytes float64) float64 { return m.Latency + bytes/m.Network }
