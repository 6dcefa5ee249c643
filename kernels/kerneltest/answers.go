package kerneltest

import "fmt"

// answers keeps what the references computed in the checks. A check asks the reference the same
// questions in the same order whatever the backend under test, until it finds a fault: inputs
// come from streams and from the reference, never from that backend. So an answer is known by
// its place among a check's.
type answers map[string]*answer

// answer holds what the reference gave for one question, and for the next.
type answer struct {
	given   bool
	results []result
	err     error
	next    *answer
}

// begin makes the reference answer a check's questions from all and add new answers to it.
func (s *subject) begin(check string, all answers) {
	key := fmt.Sprintf("%s short=%v %s", s.ref.Class(), s.short, check)
	if all[key] == nil {
		all[key] = &answer{}
	}
	s.answer = all[key]
}

// reference does f on the reference, or returns what it gave before. Nobody may write to it.
func (s *subject) reference(f func(c *call)) ([]result, error) {
	a := s.answer
	if !a.given {
		a.results, a.err = run(s.ref, f)
		a.given = true
	}
	s.pass()
	return a.results, a.err
}

// know makes results of the backend under test the answer to the next question, if that backend is the
// reference and has not answered it.
func (s *subject) know(results []result) {
	if s.itself && !s.answer.given {
		s.answer.results, s.answer.given = results, true
	}
}

// pass leaves a question out.
func (s *subject) pass() {
	if s.answer.next == nil {
		s.answer.next = &answer{}
	}
	s.answer = s.answer.next
}
