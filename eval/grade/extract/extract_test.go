package extract

import (
	"strings"
	"testing"
)

// BenchmarkExtract finds the answer in 100 kB.
func BenchmarkExtract(b *testing.B) {
	line := "Then $x_1 = \\frac{a}{b}$ and so \\(y\\) is 12, the answer to part (a) is not needed.\n"
	text := strings.Repeat(line, 100_000/len(line))
	for _, tt := range []struct{ name, text string }{
		{"boxed", text + "So \\boxed{42}."}, {"phrase", text + "The answer is 42."}, {"none", text + "So it goes"},
		{"braces", strings.Repeat("{", 100_000)}, {"boxes", strings.Repeat("\\boxed{", 100_000/7)},
	} {
		b.Run("text="+tt.name, func(b *testing.B) {
			b.SetBytes(int64(len(tt.text)))
			for b.Loop() {
				FromResponse(tt.text)
			}
		})
	}
}

func TestExtract(t *testing.T) {
	for _, tt := range []struct{ response, want string }{
		{"so \\boxed{42}", "42"}, {"\\boxed{\\frac{1}{2}} is it", "\\frac{1}{2}"},
		{"\\boxed{41}. Then we see that the value is \\boxed{42}.", "42"}, {"\\boxed{41} and \\boxed{42}", "41, 42"},
		{"\\boxed{42} and \\boxed{4", "42"},
		{"\\boxed{42}\nAnswer: 41", "42"}, {"\\boxed{\\text{(B)}}", "\\text{(B)}"}, {"\\boxed{\\boxed{7}}", "7"},
		{"$\\boxed 5$", "5"},
		{"Answer: 42", "42"}, {"**Answer:** 42", "42"}, {"Answer: 41\nAnswer: 42", "42"}, {"Answer:\n42", "42"},
		{"Answer: $12$ because $a=3$", "12"}, {"Answer: 12 because $a=3$", "12"}, {"Answer: 3\\sqrt{13}",
			"3\\sqrt{13}"}, {"Answer: (1,2)", "(1,2)"}, {"Answer: `42`", "42"}, {"Answer: 42<|im_end|>", "42"},
		{"Answer: \\(42\\)", "42"},
		{"Final Answer: The final answer is $12$. I hope it is correct.", "12"},
		{"Final Answer: The volume of $ABC$ is 120. I hope it is correct.", "120"}, {"The answer is 131.", "131"},
		{"The answer is (B).", "(B)"}, {"text\n#### 1,234", "1,234"}, {"blah 5 = 5\nA: 30", "30"},
		{"<think>\\boxed{1}</think> The answer is 2", "2"}, {"<think>\\boxed{1}", ""}, {"<answer>17</answer>", "17"},
		{"<answer>\\boxed{3}</answer> rest", "3"}, {"It follows that $143^\\", ""}, {"", ""}, {"42", "42"},
		{"The answers are $1$ and $2$.", "$1$ and $2$"}, {"The answer is $x = 5$.", "x = 5"},
		{"The answer is\n\\[\n\\frac{1}{2}\n\\]", "\\frac{1}{2}"},
	} {
		if f := FromResponse(tt.response); f.Text != tt.want {
			t.Errorf("%q: got %+v, want %q", tt.response, f, tt.want)
		}
	}
}
