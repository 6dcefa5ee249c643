package grade

import (
	"errors"
	"fmt"

	"exp/eval/grade/extract"
	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
	"exp/eval/grade/wording"
)

// CheckGold returns why no answer can be compared with a gold answer other than by its text; nil if it is
// understood. A gold answer that is not understood is an error of the data: every answer in other words would be
// wrong.
func CheckGold(gold string) error {
	gold = goldAnswer(extract.Unfenced(latex.PlainCharacters(gold)))
	switch {
	case gold == "":
		return errors.New("the gold answer is empty")
	case len(gold) > latex.MaxAnswer:
		return fmt.Errorf("the gold answer is longer than %d bytes", latex.MaxAnswer)
	}
	if _, ok := extract.ChoiceIn(gold); ok {
		return nil
	}
	if _, half, ok := clock(gold); ok && half {
		return nil
	}
	x, err := latex.Parse(gold, true)
	if err != nil {
		if _, err2 := latex.Parse(gold, false); err2 != nil {
			return fmt.Errorf("the gold answer is not understood: %w", err)
		}
		return nil
	}
	unknown := ""
	x.Has(func(n *formula.Expr) bool {
		if n.Op == formula.Unit && !wording.QuantityOf(n.Name).Known {
			unknown = n.Name
		}
		return unknown != ""
	})
	if unknown != "" {
		return fmt.Errorf("%q after the value of the gold answer is not a unit", shorten(unknown))
	}
	return nil
}
