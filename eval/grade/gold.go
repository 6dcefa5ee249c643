package grade

import (
	"errors"
	"fmt"
)

// CheckGold returns why no answer can be compared with a gold answer other than by its text; nil if it is
// understood. A gold answer that is not understood is an error of the data: every answer in other words would be
// wrong.
func CheckGold(gold string) error {
	gold = goldAnswer(plainCharacters(gold))
	switch {
	case gold == "":
		return errors.New("the gold answer is empty")
	case len(gold) > maxAnswer:
		return fmt.Errorf("the gold answer is longer than %d bytes", maxAnswer)
	}
	if _, ok := choiceIn(gold); ok {
		return nil
	}
	if _, half, ok := clock(gold); ok && half {
		return nil
	}
	x, err := parse(gold, true)
	if err != nil {
		if _, err2 := parse(gold, false); err2 != nil {
			return fmt.Errorf("the gold answer is not understood: %w", err)
		}
		return nil
	}
	unknown := ""
	x.has(func(n *expr) bool {
		if n.op == opUnit && !quantityOf(n.name).known {
			unknown = n.name
		}
		return unknown != ""
	})
	if unknown != "" {
		return fmt.Errorf("%q after the value of the gold answer is not a unit", shorten(unknown))
	}
	return nil
}
