package grade

import (
	"os"
	"strings"
	"testing"

	"exp/eval/grade/formula"
	"exp/eval/grade/latex"
)

// rightEndings end a response with the gold answer {gold}, perhaps after they drop {other}.
var rightEndings = []string{
	"Therefore, the value is $\\boxed{{gold}}$.", "\\[\\boxed{{gold}}\\]", "So the value is ${gold}$.",
	"The answer is ${gold}$.", "Answer: ${gold}$", "### Answer\n\n$${gold}$$", "<answer>${gold}$</answer>",
	"#### ${gold}$", "The answer is ${gold}$, not ${other}$.", "So the answer is ${gold}$, as required.",
	"In conclusion, the value is **${gold}$**.", "\\boxed{{other}}? No, a sign is wrong. \\boxed{{gold}}",
	"I first got ${other}$, but that was a slip. The correct answer is ${gold}$.",
	"\\boxed{{gold}}<|im_end|>\n<|im_start|>user\nand now?<|im_end|>\n<|im_start|>assistant\n\\boxed{{other}}",
	"Thus, ${gold}$ is the answer.", "$\\boxed{{gold}}$\n\nThis agrees with a numerical check.",
	"It follows that the value must be ${gold}$.", "Consequently, the value is equal to ${gold}$.",
	"We obtain ${gold}$.", "Final result: ${gold}$", "Therefore the answer is\n\\[\n{gold}.\n\\]",
	"The answer is ${gold}$ (see the figure).", "The answer is ${gold}$, which we verified above.",
	"A common mistake gives ${other}$, but the correct answer is ${gold}$.",
	"${other}$ does not satisfy the condition, so the value is ${gold}$.",
	"\\boxed{{other}}\n\nHold on, I mixed up a sign. The corrected answer is \\boxed{{gold}}.",
	"That makes the value ${gold}$.", "Overall, the value comes out as ${gold}$.",
	"From this we read off that the value is ${gold}$.", "So we end up with ${gold}$.",
	"This leaves us with ${gold}$ as the answer.", "Our final answer is therefore ${gold}$.",
	"The required value is therefore ${gold}$.", "Thus the value turns out to be ${gold}$.",
	"Therefore the value is given by ${gold}$.", "We see that the value is simply ${gold}$.",
	"Finally, the value is\n\\[ {gold}. \\]", "Final answer (simplified): ${gold}$", "FINAL ANSWER: ${gold}$",
	"Final Answer: \\({gold}\\)", "The answer is $\\mathbf{{gold}}$.", "The answer is $\\boldsymbol{{gold}}$.",
	"The answer is then ${gold}$.", "The answer is thus ${gold}$.", "The answer is, again, ${gold}$.",
	"Therefore, the answer is given by ${gold}$.", "Hence our answer: $\\boxed{{gold}}$.",
	"Conclusion: the value is ${gold}$.", "Since ${other}$ is too large, the value is ${gold}$.",
	"The choice ${other}$ violates the condition; only ${gold}$ remains, so the value is ${gold}$.",
	"Not ${other}$, but ${gold}$.", "It is ${gold}$ and not ${other}$.",
	"Hmm, ${other}$? No, that double counts. So the value is ${gold}$.",
	"\\boxed{{gold}}\n\n(Note that ${other}$ would be wrong.)",
	"\\boxed{{gold}}\n\n**Remark.** With the other sign one would get ${other}$.", "\\boxed{{gold}}</s>",
	"\\boxed{{gold}}<|endoftext|>The next problem: \\boxed{{other}}", "The answer is ${gold}$.<|eot_id|>",
	"```json\n{\"answer\": \"${gold}$\"}\n```", "<answer>\\({gold}\\)</answer>", "La respuesta es ${gold}$.",
	"Odpowiedź: ${gold}$", "따라서 정답은 ${gold}$입니다.", "最终答案：\\boxed{{gold}}", "Die Lösung ist ${gold}$.",
	"$\\boxed{{gold}}$ ✅",
	"Okay, so everything checks out. The final answer is $\\boxed{{gold}}$.", "So yes, the value is ${gold}$.",
	"Yes, the answer is ${gold}$.", "Right: the value is ${gold}$.", "Great, so the value is ${gold}$!",
	"In summary, the value is ${gold}$.", "To conclude, the value equals ${gold}$.",
	"To sum up: the value is ${gold}$.", "In short, the answer is ${gold}$.",
	"Therefore we can conclude that the value is ${gold}$.", "This tells us that the value is ${gold}$.",
	"This implies that the value is ${gold}$.", "That means the value is ${gold}$.",
	"Which means that the answer is ${gold}$.", "Thus the answer to the problem is ${gold}$.",
	"The correct answer is ${gold}$.", "The exact answer is ${gold}$.", "The only possible value is ${gold}$.",
	"Answer. ${gold}$", "ANSWER: ${gold}$.", "*Answer:* ${gold}$", "__Answer__: ${gold}$",
	"> **Answer:** ${gold}$", "- **Answer:** ${gold}$", "1. ...\n2. ...\n\nAnswer: ${gold}$",
	"### Final Answer\n\n$\\boxed{{gold}}$", "## Final Answer\nThe final answer is ${gold}$.",
	"**Final Answer**\n\\[\n\\boxed{{gold}}\n\\]", "**Final Answer**\n\nthe value: $\\boxed{{gold}}$",
	"$$\n\\boxed{{gold}}\n$$\n\nThis completes the solution.", "\\[\n\\boxed{{gold}}.\n\\]", "$\\boxed{{gold}}.$",
	"$\\boxed{\\mathrm{Answer}: {gold}}$",
	"We have two candidates, ${other}$ and ${gold}$, and only the latter is positive enough. \\boxed{{gold}}",
	"I initially wrote ${other}$; on rechecking I get $\\boxed{{gold}}$.",
	"Careful: it is ${gold}$, not ${other}$. \\boxed{{gold}}",
	"The value ${other}$ is excluded by the condition. \\boxed{{gold}}",
	"The wrong approach gives ${other}$. The right approach gives ${gold}$, so the answer is ${gold}$.",
	"Many would answer ${other}$. The answer is ${gold}$.",
	"Wait, that is not ${other}$. Recomputing, the answer is ${gold}$.",
	"\\boxed{{gold}}<|end_of_text|>\\boxed{{other}}",
	"The answer is ${gold}$.\n\nHuman: thanks, and with the other sign?\n\nAssistant: ${other}$.",
	"Entonces, la respuesta es $\\boxed{{gold}}$.", "Ainsi, la réponse est ${gold}$.",
	"Damit ist die Antwort ${gold}$.", "よって答えは $\\boxed{{gold}}$ である。",
	"The answer is $\\boxed{{gold}}$.\n\nNote that calculus is not required here.",
	"$\\boxed{{gold}}$. The other root is not needed.", "\\boxed{{gold}}. It is impossible to do better.",
	"\\boxed{{gold}}. However, it is impossible to reach ${other}$.", "\\boxed{{gold}}. This is not true in general.",
	"\\boxed{{gold}}. That was wrong in my first attempt, but now fixed.",
	"$\\boxed{{gold}}$\n\nNo smaller case works.", "\\boxed{{gold}}. But there is a faster way.",
	"The answer is ${gold}$. It is not possible to do better.",
	"The answer is ${gold}$. This is not the same as the case before.",
	"The answer is ${gold}$. This was wrong in the first draft.",
	"The answer is ${gold}$, since the other cases are impossible.", "The relative error is ${gold}$.",
	"The number of candidates is ${gold}$.", "The number of mistakes is ${gold}$.",
	"The candidates are ${other}$ and ${gold}$; only ${gold}$ works.",
}

// wrongEndings deny the gold answer, doubt it, or give another with it or in its place.
var wrongEndings = []string{
	"So the value is ${other}$.", "The answer is ${other}$, not ${gold}$.", "The answer is not ${gold}$.",
	"The answer is ${gold}$ or ${other}$.", "$\\boxed{{gold}\\text{ or }{other}}$",
	"$\\boxed{{gold}}$ or $\\boxed{{other}}$", "\\boxed{{gold}}? No, a sign is wrong. \\boxed{{other}}",
	"I first got ${gold}$, but that was a slip. The correct answer is ${other}$.",
	"<think>So the answer is \\boxed{{gold}}", "One might think that the answer is ${gold}$, but it is ${other}$.",
	"The value ${gold}$ is impossible here, so the value is ${other}$.", "$\\boxed{\\text{not }{gold}}$",
	"The answer is one of ${gold}$, ${other}$.", "It is unclear whether the value is ${gold}$.",
	"\\boxed{{gold}, {other}}", "If the answer were ${gold}$, we would get a contradiction.",
	"Is the value ${gold}$?", "It follows that the value can't be ${gold}$.",
	"It follows that the value is never ${gold}$.", "It follows that the value is different from ${gold}$.",
	"It follows that the value is anything but ${gold}$.", "Consequently, the value is either ${gold}$ or ${other}$.",
	"Consequently, the value is ${gold}$ in one case and ${other}$ in the other.",
	"The answer is ${gold}$; alternatively ${other}$.", "The answer is ${gold}$ (or ${other}$).",
	"The answer is neither ${gold}$ nor ${other}$.", "The answer is anything except ${gold}$.",
	"The answer isn't ${gold}$.", "The answer cannot be ${gold}$.", "The answer is no longer ${gold}$.",
	"The answer is not ${gold}$ but ${other}$.", "The answer is ${other}$ rather than ${gold}$.",
	"The answer would have been ${gold}$, had the sign been positive.", "The answer differs from ${gold}$.",
	"A common mistake gives ${gold}$.", "We discard ${gold}$.", "${gold}$ does not satisfy the condition.",
	"${gold}$ is not a valid answer.", "Wait, ${gold}$ is wrong.", "So the value is ${gold}$? No.",
	"Suppose the value is ${gold}$.", "I cannot tell whether the value is ${gold}$.",
	"Nothing shows that the value is ${gold}$.", "It is not true that the value is ${gold}$.",
	"I do not believe that the value is ${gold}$.", "We want to show that the value is ${gold}$.",
	"\\boxed{{gold}}\n\nThat is incorrect. The corrected answer is \\boxed{{other}}.", "\\boxed{{gold}} is not correct.",
	"\\boxed{{gold};\\ {other}}", "\\boxed{{gold}\\quad {other}}", "\\boxed{\\ne {gold}}",
	"That makes the value ${other}$.", "Overall, the value comes out as ${other}$, not ${gold}$.",
	"So we end up with ${gold}$ or ${other}$.", "So we end up with two candidates, ${gold}$ and ${other}$.",
	"This rules out ${gold}$.", "This leaves us with anything but ${gold}$.",
	"Our final answer is therefore not ${gold}$.", "Our final answer is therefore ${gold}$ or ${other}$.",
	"Thus the value turns out not to be ${gold}$.", "Thus the value turns out to be ${other}$ and not ${gold}$.",
	"Thus the value cannot equal ${gold}$.", "Thus the value does not equal ${gold}$.",
	"Thus the value $\\neq {gold}$.", "Therefore the value lies between ${gold}$ and ${other}$.",
	"Therefore the value is close to ${gold}$ but different.",
	"Therefore the value is ${gold}$ unless the sign is flipped, in which case it is ${other}$.",
	"Therefore the value is ${gold}$ only if the sign is positive; otherwise it is ${other}$.",
	"Therefore the value is ${gold}$, ${other}$, or both.", "Therefore the value is ${gold}$ plus something.",
	"Therefore the value is twice ${gold}$.", "Therefore the value is half of ${gold}$.",
	"Therefore the value is the reciprocal of ${gold}$.", "Therefore the value is the square of ${gold}$.",
	"Therefore the value is a multiple of ${gold}$.", "Therefore the value exceeds ${gold}$.",
	"Therefore the value is at least ${gold}$.", "Therefore the value is at most ${gold}$.",
	"Therefore the value is greater than ${gold}$.", "Therefore the value is less than ${gold}$.",
	"Therefore the value is roughly ${other}$.", "Therefore the value might be ${gold}$.",
	"Therefore the value may be ${gold}$ or ${other}$.",
	"Therefore the value could well be ${gold}$ or ${other}$.", "Maybe the value is ${gold}$, maybe ${other}$.",
	"Perhaps the value is ${gold}$ or ${other}$.", "I guess the value is ${gold}$ or ${other}$.",
	"Either way, the value is not ${gold}$.", "In no case is the value equal to ${gold}$.",
	"Under no circumstances is the value equal to ${gold}$.", "By no means is the value equal to ${gold}$.",
	"Hardly is the value equal to ${gold}$.", "There is no way that the value is ${gold}$.",
	"It would be wrong to say that the value is ${gold}$.",
	"It is a mistake to claim that the value is ${gold}$.", "The claim that the value is ${gold}$ is false.",
	"The book says ${gold}$, but this is an error; it is ${other}$.",
	"Contrary to the hint, the value is not ${gold}$.", "Final answer: not ${gold}$",
	"Final answer: ${gold}$ or ${other}$", "Final answer: ${gold}$, ${other}$", "Final answer: $\\neq {gold}$",
	"Final answer: ${other}$ (not ${gold}$)", "\\boxed{{gold}\\text{ or maybe }{other}}",
	"\\boxed{{gold}\\text{ xor }{other}}", "\\boxed{{gold}} is impossible.",
	"\\boxed{{gold}} fails the last condition.", "It can't be \\boxed{{gold}}.",
	"So it's \\boxed{{gold}} or \\boxed{{other}}, I'm not sure.",
	"\\boxed{\\text{between }{gold}\\text{ and }{other}}", "\\boxed{\\{{gold}, {other}\\}}", "\\boxed{> {gold}}",
	"\\boxed{{gold}\\to {other}}", "\\boxed{{gold}\\text{ is false}}", "\\boxed{\\text{all except }{gold}}",
	"<answer>${gold}$ or ${other}$</answer>", "<answer>not ${gold}$</answer>",
	"Nein, die Antwort ist nicht ${gold}$.", "Ответ не ${gold}$.", "答案不是 ${gold}$。", "答案是 ${gold}$ 或 ${other}$。",
	"Okay, so everything checks out. The final answer is $\\boxed{{other}}$.",
	"So no, the value is not ${gold}$.", "No, the answer is not ${gold}$.",
	"So the value is clearly not ${gold}$.", "So the value is certainly not ${gold}$.",
	"So the value isn't ${gold}$ after all.", "So the value is ${gold}$ or possibly ${other}$.",
	"So the value is ${gold}$ or ${other}$, depending on the sign.",
	"So the value is ${gold}$ if the sign is plus and ${other}$ if it is minus.",
	"So the value is ${gold}$ when ordered and ${other}$ when not.",
	"So the value is ${gold}$ at best, ${other}$ at worst.",
	"So the value is ${gold}$, or ${other}$, or neither.",
	"So the value is somewhere between ${gold}$ and ${other}$.",
	"So the value is not far from ${gold}$, namely ${other}$.",
	"So the value is ${other}$, although ${gold}$ looks tempting.",
	"So the value is ${other}$; the value ${gold}$ is a trap.",
	"So the value is ${other}$ (${gold}$ would be the value for the other sign).",
	"So the value is ${other}$, whereas ${gold}$ is its counterpart.", "So the value is larger than ${gold}$.",
	"So the value is smaller than ${gold}$.", "So the value must be different from ${gold}$.",
	"So the value cannot possibly be ${gold}$.", "So the value can never be ${gold}$.",
	"So the value will never be ${gold}$.", "So the value was thought to be ${gold}$, but it is ${other}$.",
	"So the value should have been ${gold}$, but it is ${other}$.",
	"So the value would be ${gold}$ if we had used the other sign.",
	"So the value used to be ${gold}$ and is now ${other}$.", "We have two candidates: ${gold}$ and ${other}$.",
	"We have several candidates: ${other}$, ${gold}$.", "Possible values: ${gold}$, ${other}$.",
	"Possible values are ${gold}$ and ${other}$.", "The candidates are ${gold}$ and ${other}$.",
	"The answer is ${gold}$ and ${other}$.", "The answer is ${gold}$ & ${other}$.",
	"The answer is ${gold}$ | ${other}$.", "The answer is ${gold}$, else ${other}$.",
	"The answer is ${gold}$, otherwise ${other}$.", "The answer is ${gold}$, I mean ${other}$.",
	"The answer is ${gold}$. No wait, ${other}$.", "The answer is ${gold}$... or is it ${other}$?",
	"The answer is ${gold}$. Just kidding, it is ${other}$.",
	"The answer is ${gold}$. Correction: the answer is ${other}$.",
	"The answer is ${gold}$.\n\nEdit: the answer is ${other}$.", "The answer is less than ${gold}$.",
	"The answer is the opposite of ${gold}$.", "The answer is everything other than ${gold}$.",
	"The answer is none of ${gold}$, ${other}$.", "The answer is unlikely to be ${gold}$.",
	"The answer has nothing to do with ${gold}$.", "The answer does not equal ${gold}$.",
	"The answer, ${gold}$, is wrong.", "The proposed answer ${gold}$ is wrong.",
	"The student's answer of ${gold}$ is incorrect.", "The hint suggests ${gold}$, which we refute.",
	"Let us see whether ${gold}$ works.", "Let us test ${gold}$.", "Now check ${gold}$:",
	"We still have to show that the value is ${gold}$, which fails.", "Thinking about ${gold}$ further, we",
	"\\boxed{{other}}", "\\boxed{{gold}\\text{ or }{other}\\text{ or both}}",
	"\\boxed{{gold}\\ \\text{and}\\ {other}}", "\\boxed{{gold} \\text{ vs } {other}}",
	"\\boxed{{gold} / {other}\\text{ (either)}}", "\\boxed{({gold}, {other})}", "\\boxed{\\text{unknown}}",
	"\\boxed{\\text{cannot be }{gold}}", "\\boxed{\\text{at most }{gold}}",
	"\\boxed{{gold}\\text{ times something}}", "\\boxed{x \\neq {gold}}", "\\boxed{{gold}}? I doubt it.",
	"\\boxed{{gold}}. No, that's wrong, I can't solve it.", "\\boxed{{gold}}\n\nThis answer is incorrect.",
	"Not \\boxed{{gold}}!", "Anything but \\boxed{{gold}}.", "Surely not \\boxed{{gold}}.",
	"La respuesta no es ${gold}$.", "La réponse n'est pas ${gold}$.", "答えは ${gold}$ ではない。", "정답은 ${gold}$이 아닙니다.",
	"La respuesta es ${gold}$ o ${other}$.", "Die Antwort ist ${gold}$ oder ${other}$.",
}

// TestMutatedResponses ends responses with a sample of the benchmarks' gold answers in words of known truth, with
// EXP_TEST_ALL=1 all of them.
func TestMutatedResponses(t *testing.T) {
	golds := benchmarkGolds(t)
	step := 60
	if os.Getenv("EXP_TEST_ALL") == "1" {
		step = 1
	}
	kinds := map[string]*tally{}
	for i := 0; i < len(golds); i += step {
		gold := goldAnswer(golds[i])
		x, err := latex.Parse(gold, true)
		if err != nil || !x.IsScalar() || x.Op == formula.Unit || x.Op == formula.Base || x.Op == formula.Text ||
			strings.ContainsAny(gold, "$=,") || strings.Contains(gold, "\\text") || strings.Contains(gold, "\\mbox") {
			continue
		}
		fill := strings.NewReplacer("{gold}", gold, "{other}", "987654")
		for _, endings := range []struct {
			right bool
			list  []string
		}{{true, rightEndings}, {false, wrongEndings}} {
			for _, ending := range endings.list {
				response := "First we simplify the expression.\n\n" + fill.Replace(ending)
				if kinds[ending] == nil {
					kinds[ending] = &tally{}
				}
				v := Response(gold, response)
				kinds[ending].add(v.Correct, endings.right)
				if v.Correct != endings.right {
					t.Logf("gold %q, %q: want %v, got %+v", gold, response, endings.right, v)
				}
			}
		}
	}
	for _, ending := range rightEndings {
		if n := kinds[ending]; n.right*10 < n.pairs*9 {
			t.Errorf("ending %q: only %d of %d right answers found", ending, n.right, n.pairs)
		}
	}
	all := logTallies(t, kinds)
	if all.pairs == 0 || all.accepted*500 > all.negatives || (all.pairs-all.right)*200 > all.pairs {
		t.Errorf("%d wrong endings accepted of %d, %d of %d verdicts right", all.accepted, all.negatives, all.right,
			all.pairs)
	}
}
