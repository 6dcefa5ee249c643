// Package kerneltest is the conformance suite of kernels.Backend: Test holds any
// backend against kernels/ref, Bench measures every operation under one name.
//
// Backends of numerics class "cpu/fma" must give the bits of ref.New[float32], of
// class "cpu/bf16" ref.NewMixed's, of class "matrix/16x25" ref.NewMatrix's; others are
// compared within the tolerances of tolerance.go, each with its reason. Whatever the class,
// the suite also checks laws that need no reference:
//
//   - an operation writes its outputs and nothing else, and reads its inputs and
//     nothing else: every buffer is a view between two bands of NaN;
//   - a row's result depends on that row alone: any subset of the rows in any
//     order, one row by itself, or rows next to others full of NaN and Inf give the
//     same bits;
//   - a prefill, a prefill in chunks and decode steps from pages of any size give
//     the same bits;
//   - a parameter gradient is the same in one call as in several that are cut
//     where gradient blocks end;
//   - Sample draws from the distribution that it scores.
//
// Thread counts and instruction sets are the caller's: it calls Suite.Test once per
// variant. The suite checks neither speed nor the panics of wrong arguments, and
// a NaN that is computed may have any sign and payload.
package kerneltest

import (
	"testing"

	"exp/kernels"
	"exp/kernels/ref"
)

// Suite runs the checks on variants of a backend. What the reference computes for the first
// variant serves the others. It is used by one goroutine at a time.
type Suite struct {
	// Small leaves out the large shapes, as -short does. They are for backends that compute in
	// blocks.
	Small   bool
	answers answers
}

// NewSuite returns a Suite whose reference has computed nothing yet.
func NewSuite() *Suite { return &Suite{answers: answers{}} }

// Test runs the suite on the backend that open returns.
func (suite *Suite) Test(t *testing.T, open func() kernels.Backend) {
	s := newSubject(open(), suite.Small || testing.Short())
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			if err := s.check(c, suite.answers); err != nil {
				t.Error(err)
			}
		})
	}
}

// subject is a backend under test, and the reference.
type subject struct {
	b      kernels.Backend
	ref    kernels.Backend
	answer *answer // of the reference to the next question
	exact  bool    // compare bits
	itself bool    // b is the reference, so its results are the answers
	short  bool
}

func newSubject(b kernels.Backend, short bool) *subject {
	for _, r := range []kernels.Backend{ref.New[float32](), ref.NewMixed(), ref.NewMatrix()} {
		if b.Class() == r.Class() {
			return &subject{b: b, ref: r, exact: true, short: short}
		}
	}
	return &subject{b: b, ref: ref.New[float32](), short: short}
}

// check is one test of a backend. run returns the first thing it finds wrong.
type check struct {
	name string
	run  func(s *subject) error
}

// check runs c; the reference answers from known.
func (s *subject) check(c check, known answers) error {
	s.begin(c.name, known)
	return c.run(s)
}

func checks() []check {
	var all []check
	for _, list := range [][]check{
		memoryChecks(), linearChecks(), frozenChecks(), normChecks(), sequenceChecks(), attentionChecks(),
		outputChecks(), sampleChecks(), updateChecks(), gateChecks(), columnChecks(), expertChecks(),
		sinkChecks(), xieluChecks(), latentChecks(), recurrenceChecks(), flushedChecks(),
	} {
		all = append(all, list...)
	}
	return all
}
