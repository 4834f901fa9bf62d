package capacity

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Work is a model in types of weights and of the cache, and the texts that it decodes.
type Work struct {
	Shape
	WeightBytes float64 // bytes of a weight
	CacheBytes  float64 // bytes of a value of the cache
	Depth       int     // tokens of a text
	Target      float64 // seconds that a token may take at most; 0: any
	Texts       int     // at a time; 0: as many as give the most tokens a second
}

// The strategies.
const (
	Replicas = "replicas"        // each machine has the model
	Layers   = "layers split"    // each machine has some layers; as many groups of texts as machines are on their way
	Split    = "attention apart" // some machines have the attention and the cache, others the feed-forward blocks; three groups of texts are on their way
	wire     = 2                 // bytes of a value between machines
	most     = 1 << 16           // texts at a time
	groups   = 3                 // of texts of Split
	resident = 1.05              // of the weights, for buffers
)

// Plan is a way to decode on machines, and what it gives.
type Plan struct {
	Strategy string  `json:"strategy"`
	Machines int     `json:"machines"`
	Texts    int     `json:"texts"` // at a time
	Rate     float64 `json:"tokens_per_second"`
	Token    float64 `json:"seconds_per_token"` // of one text
	Memory   float64 `json:"memory"`            // bytes of the fullest machine
	Detail   string  `json:"detail"`            // how the machines are used
	Fault    string  `json:"fault,omitempty"`   // why it cannot be done; the rest is 0 then
}

// Step returns the seconds of a step of so many texts on a machine that has the whole model.
func (w Work) Step(m Machine, rows int) float64 {
	r := float64(rows)
	return w.attention(m, r) + w.blocks(m, r, 1) + w.output(m, r)
}

// attention returns the seconds of all layers' attention.
func (w Work) attention(m Machine, rows float64) float64 {
	weights, depth := float64(w.Shape.Layers*w.Attention), float64(w.Depth)
	return m.time(weights*w.WeightBytes, rows*weights) + m.time(rows*depth*float64(w.CacheValues())*w.CacheBytes, rows*depth*float64(w.CacheOps()))
}

// blocks returns the seconds of all layers' feed-forward blocks, of which a machine has a share.
func (w Work) blocks(m Machine, rows, share float64) float64 {
	mixed := float64(w.Shape.Layers - w.DenseLayers)
	always := float64(w.DenseLayers*w.Dense) + mixed*float64(w.Shared)
	t := m.time(share*always*w.WeightBytes, share*rows*always)
	if w.Experts > 0 {
		t += m.time(share*mixed*w.touched(rows)*float64(w.Expert)*w.WeightBytes, share*rows*mixed*float64(w.Active*w.Expert))
	}
	return t
}

// output returns the seconds of the head.
func (w Work) output(m Machine, rows float64) float64 {
	return m.time(float64(w.head())*w.WeightBytes, rows*float64(w.head()))
}

// text returns the bytes of a text's cache.
func (w Work) text() float64 { return float64(w.Depth*w.CacheValues()) * w.CacheBytes }

// bytes returns the bytes of all weights.
func (w Work) bytes() float64 {
	all, _ := w.Weights()
	return float64(all) * w.WeightBytes * resident
}

// fits reports whether bytes fit a machine.
func fits(m Machine, bytes float64) bool { return m.Memory == 0 || bytes <= m.Memory }

// Plans returns the strategies on machines, the one of the most tokens a second first; those that cannot be done are the last ones. Errors: no machine,
// numbers that make no sense.
func Plans(w Work, machines []Machine) ([]Plan, error) {
	var all []Machine
	for _, m := range machines {
		for range m.Count {
			all = append(all, m)
		}
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("capacity: there is no machine; name one or more")
	case len(all) > maxMachines:
		return nil, fmt.Errorf("capacity: %d machines; at most %d", len(all), maxMachines)
	case w.Depth < 1 || w.Texts < 0 || w.Texts > most || w.Target < 0 || w.WeightBytes <= 0 || w.CacheBytes <= 0:
		return nil, fmt.Errorf("capacity: texts of %d tokens, %d at a time: both must be above 0, and at most %d texts", w.Depth, w.Texts, most)
	}
	plans := []Plan{w.replicas(all), w.pipeline(all), w.apart(all)}
	slices.SortStableFunc(plans, func(a, b Plan) int { return cmp.Compare(b.Rate, a.Rate) })
	return plans, nil
}

// best returns the plan of the number of texts that gives the most tokens a second: a plan of so many texts is made by at, and not ok
// where memory or the target does not allow it. More texts never make a token faster.
func (w Work) best(name string, at func(texts int) (p Plan, ok bool)) Plan {
	if w.Texts > 0 {
		if p, ok := at(w.Texts); ok {
			return p
		}
		return Plan{Strategy: name, Fault: fmt.Sprintf("%d texts do not fit the memory, or a token takes longer than it may", w.Texts)}
	}
	best, ok := at(1)
	if !ok {
		return Plan{Strategy: name, Fault: "one text does not fit the memory, or a token takes longer than it may"}
	}
	low, high := 1, most+1 // at(low) is ok
	for high-low > 1 {
		mid := (low + high) / 2
		if p, ok := at(mid); ok {
			low = mid
			if p.Rate > best.Rate {
				best = p
			}
		} else {
			high = mid
		}
	}
	return best
}

// meets reports whether a token takes no longer than it may.
func (w Work) meets(seconds float64) bool { return w.Target == 0 || seconds <= w.Target }

// replicas returns the plan by which each machine has the model. Machines that it does not fit are left out.
func (w Work) replicas(all []Machine) Plan {
	sum := Plan{Strategy: Replicas}
	for _, m := range all {
		p := w.share(len(all)).best(Replicas, func(texts int) (Plan, bool) {
			t := w.Step(m, texts)
			memory := w.bytes() + float64(texts)*w.text()
			return Plan{Texts: texts, Rate: float64(texts) / t, Token: t, Memory: memory}, fits(m, memory) && w.meets(t)
		})
		if p.Fault != "" {
			sum.Fault = p.Fault
			continue
		}
		sum.Machines++
		sum.Texts += p.Texts
		sum.Rate += p.Rate
		sum.Token, sum.Memory = max(sum.Token, p.Token), max(sum.Memory, p.Memory)
	}
	if sum.Machines > 0 {
		sum.Fault, sum.Detail = "", fmt.Sprintf("%d of %d machines hold the model", sum.Machines, len(all))
	}
	return sum
}

// share returns the work of one of n replicas.
func (w Work) share(n int) Work {
	if w.Texts > 0 {
		w.Texts = (w.Texts + n - 1) / n
	}
	return w
}

// pipeline returns the plan by which each machine has layers, in proportion to its speed. As many groups of texts as machines are on their way, so that
// all work; a group's values go from one to the next.
func (w Work) pipeline(all []Machine) Plan {
	n := len(all)
	if n == 1 || n > w.Shape.Layers {
		return Plan{Strategy: Layers, Fault: fmt.Sprintf("%d machines for %d layers; it needs 2 or more, and a layer for each", n, w.Shape.Layers)}
	}
	return w.best(Layers, func(texts int) (Plan, bool) {
		rows := math.Ceil(float64(texts) / float64(n))
		layers := w.divide(all, rows)
		p := Plan{Strategy: Layers, Machines: n, Texts: texts, Detail: fmt.Sprintf("layers %v", layers)}
		cycle, ok := 0.0, true
		for i, m := range all {
			part := float64(layers[i]) / float64(w.Shape.Layers)
			t := part*(w.attention(m, rows)+w.blocks(m, rows, 1)) + m.send(rows*float64(w.Width)*wire)
			if i == n-1 {
				t += w.output(m, rows)
			}
			memory := part * (w.bytes() + float64(texts)*w.text())
			cycle, p.Memory, ok = max(cycle, t), max(p.Memory, memory), ok && fits(m, memory)
		}
		p.Token = float64(n) * cycle
		p.Rate = float64(texts) / p.Token
		return p, ok && w.meets(p.Token)
	})
}

// divide returns how many layers each machine has, one at least, by the time of a step of all layers on it.
func (w Work) divide(all []Machine, rows float64) []int {
	layers, load := make([]int, len(all)), make([]float64, len(all))
	of := make([]float64, len(all)) // seconds of a layer
	for i, m := range all {
		of[i] = (w.attention(m, rows) + w.blocks(m, rows, 1)) / float64(w.Shape.Layers)
		layers[i], load[i] = 1, of[i]
	}
	load[len(all)-1] += w.output(all[len(all)-1], rows)
	for range w.Shape.Layers - len(all) {
		next := 0
		for i := range all {
			if load[i]+of[i] < load[next]+of[next] {
				next = i
			}
		}
		layers[next]++
		load[next] += of[next]
	}
	return layers
}

// apart returns the plan by which some machines have attention, cache and head, and the others a share of the feed-forward blocks each. Machines with few operations a
// byte that they read have the attention. Per layer, values go there and back; three groups of texts are on their way, so that both kinds
// of machines and the network work at a time.
func (w Work) apart(all []Machine) Plan {
	if len(all) == 1 {
		return Plan{Strategy: Split, Fault: "1 machine; it needs 2 or more"}
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Machine) int { return cmp.Compare(a.ops()/a.reads(), b.ops()/b.reads()) })
	best := Plan{Strategy: Split, Fault: "no division of the machines fits the memory and the time that a token may take"}
	for n := 1; n < len(sorted); n++ {
		if p := w.best(Split, func(texts int) (Plan, bool) { return w.divided(sorted[:n], sorted[n:], texts) }); p.Fault == "" && p.Rate > best.Rate {
			best = p
		}
	}
	return best
}

// divided returns the plan of attention on some machines and feed-forward blocks on others, and whether it can be done.
func (w Work) divided(attention, feed []Machine, texts int) (Plan, bool) {
	a, f, layers := float64(len(attention)), float64(len(feed)), float64(w.Shape.Layers)
	group := math.Ceil(float64(texts) / groups)
	rows := math.Ceil(group / a) // of a group, on a machine with attention
	p := Plan{Strategy: Split, Machines: len(attention) + len(feed), Texts: texts, Detail: fmt.Sprintf("%d with attention, %d with feed-forward blocks", len(attention), len(feed))}
	cycle, ok := 0.0, true // the seconds in which one group passes one layer
	weights := float64(w.Shape.Layers*w.Attention+w.head()) * w.WeightBytes
	if !w.Tied {
		weights += float64(w.head()) * w.WeightBytes
	}
	for _, m := range attention {
		memory := weights*resident + math.Ceil(float64(texts)/a)*w.text()
		t := (w.attention(m, rows) + w.output(m, rows)) / layers
		cycle, p.Memory, ok = max(cycle, t, m.send(rows*float64(w.Width)*wire*f)), max(p.Memory, memory), ok && fits(m, memory)
	}
	for _, m := range feed {
		memory := float64(w.Shape.feed()) * w.WeightBytes * resident / f
		cycle, p.Memory, ok = max(cycle, w.blocks(m, group, 1/f)/layers, m.send(group*float64(w.Width)*wire)), max(p.Memory, memory), ok && fits(m, memory)
	}
	p.Token = groups * layers * cycle
	p.Rate = float64(texts) / p.Token
	return p, ok && w.meets(p.Token)
}
