package paper

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteTypst(t *testing.T) {
	var out strings.Builder
	if err := WriteTypst(&out, example()); err != nil {
		t.Fatal(err)
	}
	want := `// #include this file
// two lines

#figure(
  caption: [math500: 500 problems, 16 samples each. Means over 3 seeds. ± reaches to the farther end of a 95 % interval over seeds and problems. Bold: the best mean after training. #super[\*]: differs from ppo (Holm-corrected _p_ ≤ 0.05 over 4 tests, and its interval excludes zero).],
  table(
    columns: 3,
    align: (left, center, center,),
    stroke: none,
    table.hline(),
    [], table.cell(colspan: 2, align: center)[math500],
    table.hline(start: 1, end: 3, stroke: 0.5pt),
    [], [pass\@1 (%)], [response length],
    table.hline(stroke: 0.5pt),
    [before training], [10.0], [0.1],
    table.hline(stroke: 0.5pt),
    [flow\_rl], [*30.0*#super[\*] ± 2.0], [120.0 ± 3.0],
    [grpo], [*30.0* ± 2.0], [–],
    [ppo], [20.0 ± 1.0], [99.0 ± 2.0],
    table.hline(),
  ),
) <tab-flow-rl-grpo-ppo-1>
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	r := example()
	r.Arms[0].Label = "a//b [x] #f() -- *"
	out.Reset()
	if err := WriteTypst(&out, r); err != nil {
		t.Fatal(err)
	}
	if want := `[a\/\/b \[x\] \#f() \-\- \*], `; !strings.Contains(out.String(), want) {
		t.Errorf("no %s in\n%s", want, out.String())
	}
}
