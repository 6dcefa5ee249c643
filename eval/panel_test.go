package eval

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"exp/eval/grade/extract"
	"exp/train/rollout"
)

// panelOf makes four samples of each of two problems from the answers of one column.
func panelOf(column ...rollout.Verdict) *Panel {
	p := &Panel{Problems: []rollout.Problem{{ID: "a"}, {ID: "b"}}}
	for i := range column {
		p.Samples = append(p.Samples, Sample{ProblemID: []string{"a", "b"}[i/4], K: i % 4})
	}
	p.Columns = []Column{{Grader: "g", Verdicts: column}}
	return p
}

func says(answer string, correct bool) rollout.Verdict {
	return rollout.Verdict{Status: rollout.Graded, Answer: answer, Correct: correct}
}

// Problem a answers 1/2 and 0.5, which are right, then 3 twice; b answers once.
//
//	classes  maj@4: a is a tie of 1/2 and 3, 1/2 came first, right; b is right      (1+1)/2, 1 tie of 2
//	         maj@2: a {1/2, 0.5} right, {3, 3} wrong; b {} wrong, {7} right         (½+½)/2, no tie
//	texts    maj@4: a is 3, wrong; b right                                          (0+1)/2, no tie
//	         maj@2: a {1/2, 0.5} is a tie, the first is right, {3, 3} wrong         (½+½)/2, 1 tie of 4
func TestMajority(t *testing.T) {
	column := []rollout.Verdict{
		says("\\frac12", true), says("0.5", true), says("3", false), says("3", false),
		says("", false), says("", false), says("", false), says("7", true),
	}
	for _, tt := range []struct {
		classes    bool
		maj2, maj4 [2]float64 // value, ties
	}{
		{true, [2]float64{0.5, 0}, [2]float64{1, 0.5}},
		{false, [2]float64{0.5, 0.25}, [2]float64{0.5, 0}},
	} {
		p := panelOf(column...)
		p.Columns[0].Classes = tt.classes
		s, err := p.Measure(p.Columns[0], []int{1, 2, 4}, 1)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string][2]float64{}
		for _, v := range s.Votes {
			got[v.Metric.Name] = [2]float64{v.Metric.Value, v.Ties}
		}
		if d := cmp.Diff(map[string][2]float64{"maj@2": tt.maj2, "maj@4": tt.maj4}, got); d != "" {
			t.Errorf("classes %v (-want +got)\n%s", tt.classes, d)
		}
		// pass@1: (2/4 + 1/4)/2. pass@2: a 1 - C(2,2)/C(4,2) = 5/6, b 1 - C(3,2)/C(4,2) = 1/2.
		for i, want := range []float64{0.375, 2.0 / 3, 1} {
			if m := s.Metrics[i]; m.Value < want-1e-12 || m.Value > want+1e-12 {
				t.Errorf("%s is %v, want %v", m.Name, m.Value, want)
			}
		}
	}
}

// Problems with fewer than k samples are left out of maj@k.
func TestMajorityOfFewer(t *testing.T) {
	p := panelOf(says("1", true), says("1", true), says("2", false), says("2", false), says("5", false))
	s, err := p.Measure(p.Columns[0], []int{4}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Votes) != 1 || s.Votes[0].Metric.N != 1 || s.Votes[0].Metric.Value != 1 || s.Votes[0].Ties != 1 {
		t.Errorf("%+v", s.Votes)
	}
}

func TestUnion(t *testing.T) {
	a := Column{Grader: "a", Verdicts: []rollout.Verdict{says("1", true), says("2", false), {Reason: "broke"}, says("4", false)}}
	b := Column{Grader: "b", Verdicts: []rollout.Verdict{says("x", false), says("y", true), says("z", false), says("w", false)}}
	u := Union([]Column{a, b})
	want := []rollout.Verdict{says("1", true), says("y", true), says("z", false), says("4", false)}
	if d := cmp.Diff(want, u.Verdicts); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	p := panelOf(a.Verdicts...)
	p.Columns = []Column{a, b}
	if n := p.Disagreements(); n != 2 {
		t.Errorf("%d disagreements, want 2", n)
	}
}

func TestForms(t *testing.T) {
	p := panelOf(says("1", true), says("1", false), says("1", true), says("", false))
	for i, text := range []string{"Answer: 1", "Answer: 1", "\\boxed{1}", "and so"} {
		p.Samples[i].Completion.Text = text
	}
	p.Samples[3].Completion.Finish = rollout.FinishLength
	counts, of := p.Forms()
	want := []FormCount{{extract.FormPlain, 2, []int{1}}, {extract.FormBox, 1, []int{1}}, {extract.FormTruncated, 1, []int{0}}}
	if d := cmp.Diff(want, counts); d != "" || len(of) != 4 || of[2] != extract.FormBox {
		t.Errorf("(-want +got)\n%s%v", d, of)
	}
}

// FlowRL's scripts use these settings; the top-k comes from a file of defaults that they do not mention.
func TestProtocols(t *testing.T) {
	p, err := ProtocolByName("flowrl-math")
	if err != nil {
		t.Fatal(err)
	}
	want := "n 16, temperature 0.6, top-p 0.95, top-k 50, prompt at most 2048 tokens (cut on the right), response at most 8192, bf16"
	if got := p.Settings(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	if paper, err := ProtocolByName("flowrl-math-paper"); err != nil || paper.TopK != 0 || paper.TopP != 0.95 {
		t.Errorf("%+v, %v", paper, err)
	}
	if _, err := ProtocolByName("x"); err == nil {
		t.Error("x is a protocol")
	}
}
