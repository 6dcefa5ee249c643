package generate

import "exp/train/model"

// statePool hands out the slots of the states of linear attention. Each prompt with pages and each
// completion that runs or waits for a reply has one; models without such layers have no slots. Unlike pages,
// slots are not shared: a completion starts with a copy of its prompt's state, the last one with the state
// itself.
type statePool struct {
	free   []int32
	slots  int
	copies []int32 // pairs of slots to copy before the next step
}

const noState = -1

// stateSlots returns the number of slots for models of configuration c: each running completion has one,
// and so has a prompt; another is free when a completion starts.
func (o Options) stateSlots(c model.Config) int {
	if !c.Recurrent() {
		return 0
	}
	return o.MaxSequences + 2
}

// reset takes all slots back.
func (p *statePool) reset() {
	p.free, p.copies = p.free[:0], p.copies[:0]
	for i := p.slots - 1; i >= 0; i-- {
		p.free = append(p.free, int32(i))
	}
}

// exist reports whether the model has states.
func (p *statePool) exist() bool { return p.slots > 0 }

// short reports whether a slot is wanted and none is free.
func (p *statePool) short() bool { return p.exist() && len(p.free) == 0 }

// take returns a free slot, or noState without states.
func (p *statePool) take() int32 {
	if !p.exist() {
		return noState
	}
	id := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	return id
}

// drop takes a slot back and clears the name.
func (p *statePool) drop(id *int32) {
	if p.exist() && *id != noState {
		p.free = append(p.free, *id)
	}
	*id = noState
}

// start gives q the state at the end of pr, which hands over its own if no later completion needs it.
func (p *statePool) start(pr *prompt, q *sequence, last bool) {
	if !p.exist() {
		return
	}
	if last {
		q.state, pr.state = pr.state, noState
		return
	}
	q.state = p.take()
	if pr.shared() > 0 { // else q computes the first token
		p.copies = append(p.copies, pr.state, q.state)
	}
}
