package chat

import (
	"context"
	"errors"
	"strings"
	"time"
)

// state is one rendering.
type state struct {
	ctx   context.Context
	steps int // used so far
	check int // look at ctx when steps is here
	depth int // of macro calls
	out   *strings.Builder
	vars  *Dict
	date  time.Time
	runes runeCache
}

// frame holds the variables of one call of a body; nil is no value.
type frame struct {
	slots  []Value
	parent *frame
}

const stepsPerCheck = 1024 // between two looks at the context

func (st *state) charge(n int) error {
	st.steps += n
	if st.steps > maxSteps {
		return limitErr("more than %d steps", maxSteps)
	}
	if st.steps >= st.check {
		st.check = st.steps + stepsPerCheck
		return st.ctx.Err()
	}
	return nil
}

// chargeText counts n bytes of text that are produced or searched, and refuses
// text that is too long before it is made.
func (st *state) chargeText(n int) error {
	if n > maxOutput || n < 0 {
		return limitErr("text longer than %d bytes", maxOutput)
	}
	return st.charge(n / textPerStep)
}

func (st *state) write(s string) error {
	if st.out.Len()+len(s) > maxOutput {
		return limitErr("output longer than %d bytes", maxOutput)
	}
	if err := st.charge(len(s) / textPerStep); err != nil {
		return err
	}
	st.out.WriteString(s)
	return nil
}

// capture runs body and returns what it writes. After an error the text is empty.
func (st *state) capture(body func() error) (string, error) {
	out := st.out
	st.out = &strings.Builder{}
	err := body()
	text := st.out.String()
	st.out = out
	if err != nil {
		return "", err
	}
	return text, nil
}

// chargeSlow is chargeText for work that takes many times longer than copying.
func (st *state) chargeSlow(n int) error {
	const times = 8
	if err := st.chargeText(n); err != nil {
		return err
	}
	return st.charge((times - 1) * n / textPerStep)
}

// chargeKey counts the text of a dict key, which is hashed or compared.
func (st *state) chargeKey(v Value) error {
	switch v := v.(type) {
	case Str:
		return st.charge(len(v) / textPerStep)
	case markup:
		return st.charge(len(v) / textPerStep)
	case *tuple:
		for _, x := range v.items {
			if err := st.chargeKey(x); err != nil {
				return err
			}
		}
		return st.charge(len(v.items))
	case bigInt:
		return st.charge(v.i.BitLen() / 64)
	}
	return nil
}

// lookup is d.get with its steps counted.
func (st *state) lookup(d *Dict, key Value) (Value, bool, error) {
	if err := st.chargeKey(key); err != nil {
		return nil, false, err
	}
	return d.get(key)
}

// global returns the variable of the rendering called name, nil if it has none.
func (st *state) global(name string) Value {
	if v, ok := st.vars.Get(name); ok {
		return v
	}
	if fn := globalNamed(name); fn != nil {
		return fn
	}
	return nil
}

// enter gives the variables of a scope what they begin with. The steps count, and
// the next charge looks at them.
func (st *state) enter(sc scope, f *frame) {
	st.steps += len(sc)
	for _, l := range sc {
		switch l.kind {
		case loadGlobal:
			f.slots[l.slot] = st.global(l.name)
		case loadAlias:
			f.slots[l.slot] = *f.at(l.from)
		case loadMissing:
			f.slots[l.slot] = nil
		}
	}
}

func (sc scope) leave(f *frame) {
	for _, l := range sc {
		f.slots[l.slot] = nil
	}
}

func (f *frame) at(r ref) *Value {
	for range r.up {
		f = f.parent
	}
	return &f.slots[r.slot]
}

// located is an error with the place in the template that it comes from.
type located struct {
	pos int
	err error
}

func (e *located) Error() string { return e.err.Error() }
func (e *located) Unwrap() error { return e.err }

// at gives an error its place, if it has none yet.
func at(pos int, err error) error {
	var l *located
	if err == nil || errors.As(err, &l) {
		return err
	}
	return &located{pos, err}
}
