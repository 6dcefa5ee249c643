package grade

// Basis is the ground for a verdict "right"; of several grounds, the weakest (the last in this order).
type Basis uint8

const (
	// Proof: the answers are equal by mathematics or spelling. Wrong answers have this basis too.
	Proof Basis = iota
	// Convention: the answers are equal by a choice that others make otherwise: a per cent sign, a degree sign or a
	// base that only one side gives, rounding, brackets of another kind.
	Convention
	// UnitRule: only one side has words after the value, and they name a unit or the things counted.
	UnitRule
	// Guess: a step is not sure, of the comparison or of finding the answer.
	Guess
)

func (b Basis) String() string {
	return [...]string{"proof", "convention", "unit", "guess"}[b]
}

// by weakens the basis of a result "equal".
func (r result) by(b Basis) result {
	if r.equal {
		r.basis = max(r.basis, b)
	}
	return r
}

// with adds a further part of an answer: all is as sure and well founded as its weakest part.
func (r result) with(part result) result {
	r.sure = r.sure && part.sure
	return r.by(part.basis)
}

// verdict makes the verdict of a comparison with an answer as written.
func (r result) verdict(extracted string) Verdict {
	v := Verdict{Correct: r.equal, Sure: r.sure, Extracted: extracted, Reason: r.why}
	if r.equal {
		v.Basis = r.basis
	}
	if r.equal && !r.sure {
		v.Basis = Guess
	}
	return v
}
