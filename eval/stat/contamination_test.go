package stat

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func numbered(prefix string, from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "%s%d ", prefix, i)
	}
	return b.String()
}

func TestContamination(t *testing.T) {
	const template = "Solve the following math problem step by step and put the final answer on a line of its own: "
	texts := []string{
		"What is 3 + 4?",                                // 0: in training, with other spaces
		"What is 3 - 4?",                                // 1: not
		template + numbered("a", 0, 30),                 // 2: all of its words, with another beginning
		template + numbered("b", 0, 30),                 // 3: the template alone
		template + numbered("c", 0, 30),                 // 4: a third of its runs
		"Give a common phrase: " + numbered("p", 0, 13), // 5: a phrase of many training problems
	}
	c := NewContamination(texts)
	c.Train("What is\n3 + 4?")
	c.Train("Please answer. " + numbered("a", 0, 30))
	c.Train(template + "something else")
	c.Train(numbered("c", 0, 18))
	for i := range 20 {
		c.Train(fmt.Sprint(i, " ", numbered("p", 0, 13)))
	}
	same, similar := c.Found()
	if !slices.Equal(same, []int{0}) || !slices.Equal(similar, []int{2}) {
		t.Errorf("same %v, similar %v", same, similar)
	}
	if same, similar := NewContamination(nil).Found(); same != nil || similar != nil {
		t.Errorf("without texts: %v, %v", same, similar)
	}
}
