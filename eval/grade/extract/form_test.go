package extract

import "testing"

func TestFormOf(t *testing.T) {
	for _, tt := range []struct {
		response string
		want     Form
	}{
		{"so\nAnswer: 42", FormPlain},
		{"The answer is 42.", FormPlain},
		{"**Answer:** $42$", FormDollar},
		{"Answer: \\(42\\)", FormDollar},
		{"so \\boxed{42}.", FormBox},
		{"The final answer is $\\boxed{42}$.", FormBox},
		{"\\boxed{42}\nAnswer: 42", FormBoth},
		{"<think>\\boxed{1}</think> Answer: 42", FormPlain},
		{"<think>the answer is 42", FormTruncated},
		{"so <answer>42</answer>", FormTag},
		{"48/2 = 24\n#### 24", FormHash},
		{"forty-two, I think", FormNone},
		{"Answer:", FormNone},
		{"", FormNone},
		{"so \\boxed{4", FormTruncated},
	} {
		if got := FormOf(tt.response, false); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.response, got, tt.want)
		}
	}
	if got := FormOf("and then we", true); got != FormTruncated {
		t.Errorf("cut off: %s", got)
	}
	if got := FormOf("Answer: 3. And then", true); got != FormPlain {
		t.Errorf("an answer before the end: %s", got)
	}
}
