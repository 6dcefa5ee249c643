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
	check int // check ctx when steps reaches this
	depth int // of macro calls
	out   *strings.Builder
	top   *frame // of the template's outermost scope
	vars  *Dict
	date  time.Time
	runes runeCache
}

// frame holds the variables of one call of a body; nil means no value.
type frame struct {
	slots  []Value
	parent *frame
}

const stepsPerCheck = 1024 // between two checks of the context

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

// chargeText charges n bytes of text to be produced or searched, and refuses too long texts
// before they are made.
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

// capture runs body and returns its output. After an error the text is empty.
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

// chargeSlow is chargeText for work many times slower than copying.
func (st *state) chargeSlow(n int) error {
	const times = 8
	if err := st.chargeText(n); err != nil {
		return err
	}
	return st.charge((times - 1) * n / textPerStep)
}

// chargeKey charges the text of a dict key, which is hashed or compared.
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

// lookup is d.get with its steps charged.
func (st *state) lookup(d *Dict, key Value) (Value, bool, error) {
	if err := st.chargeKey(key); err != nil {
		return nil, false, err
	}
	return d.get(key)
}

// global returns the rendering's variable of that name, or nil.
func (st *state) global(name string) Value {
	if v, ok := st.vars.Get(name); ok {
		return v
	}
	if fn := globalNamed(name); fn != nil {
		return fn
	}
	return nil
}

// enter sets the variables of a scope to their initial values. It adds steps, which the
// next charge checks.
func (st *state) enter(sc scope, f *frame) {
	st.steps += len(sc)
	for _, l := range sc {
		switch l.kind {
		case loadGlobal:
			f.slots[l.slot] = st.global(l.name)
		case loadAlias:
			f.slots[l.slot] = *f.at(l.from)
		case loadTop:
			f.slots[l.slot] = *st.top.at(l.from)
			if f.slots[l.slot] == nil {
				f.slots[l.slot] = st.global(l.name)
			}
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

// located is an error with its place in the template.
type located struct {
	pos int
	err error
}

func (e *located) Error() string { return e.err.Error() }
func (e *located) Unwrap() error { return e.err }

// at adds a place to an error without one.
func at(pos int, err error) error {
	var l *located
	if err == nil || errors.As(err, &l) {
		return err
	}
	return &located{pos, err}
}
