package sample

import "sync"

// ahead lets the stages that are [Preparer] work beside a step of the model.
type ahead struct {
	stages []int // their places
	states []State
	work   sync.WaitGroup
}

// Prepares reports whether [Chain.Prepare] has work to do.
func (c *Chain) Prepares() bool { return len(c.ahead.stages) > 0 }

// Prepare lets stages compute what the draws behind states take, on a goroutine of its own. Until [Chain.Wait] has returned no other
// method is called.
func (c *Chain) Prepare(states ...State) {
	if !c.Prepares() {
		return
	}
	c.ahead.states = append(c.ahead.states[:0], states...)
	c.ahead.work.Add(1)
	go c.prepare()
}

func (c *Chain) prepare() {
	defer c.ahead.work.Done()
	defer func() { _ = recover() }() // Apply of the same state panics where that can be reported
	for _, s := range c.ahead.states {
		for _, i := range c.ahead.stages {
			c.stages[i].(Preparer).Prepare(c.state(s, i))
		}
	}
}

// Wait returns when all is prepared.
func (c *Chain) Wait() { c.ahead.work.Wait() }
