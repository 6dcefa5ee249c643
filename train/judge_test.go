package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exp/train/ranks"
	"exp/train/rollout"
)

// judged are completions of so many tokens, the text of each given.
func judged(tokens []int, texts string) (all []Trajectory) {
	for i, n := range tokens {
		all = append(all, Trajectory{Problem: &rollout.Problem{ID: fmt.Sprint("p", i)}, Sample: i,
			Completion: &rollout.Completion{Tokens: make([]int32, n), Text: texts[i : i+1]}})
	}
	return all
}

// By hand: the longest first, each to the rank with the least; a rank's places in order; alike ones count once.
func TestDealJudged(t *testing.T) {
	all := judged([]int{3, 9, 1, 5, 5, 2}, "abcada")
	all[2].Prompt = make([]int32, 6) // work 4, 10, 8, 6, 6, 3
	byText := func(it rollout.Item) string { return it.Completion.Text }
	for _, tt := range []struct {
		how  Judging
		size int
		want [][]int
	}{
		{Judging{}, 2, [][]int{{0, 1, 2, 3, 4, 5}, nil}},
		{Judging{Ranks: 2}, 3, [][]int{{1, 4, 5}, {0, 2, 3}, nil}}, // 10; 8; 8+6; 10+6; 14+4; 16+3
		{Judging{Ranks: 9}, 3, [][]int{{1, 5}, {0, 2}, {3, 4}}},    // 10; 8; 6; 6+6; 8+4; 10+3
		{Judging{Ranks: 2, Alike: byText}, 2, [][]int{{1, 0, 3, 5}, {2, 4}}},
		{Judging{Ranks: 3, Alike: func(rollout.Item) string { return "" }}, 3, [][]int{{0, 1, 2, 3, 4, 5}, nil, nil}},
	} {
		for _, want := range tt.want {
			slices.Sort(want)
		}
		if got := tt.how.deal(batchGrader{}, all, tt.size); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%d judge, alike %t: %v, want %v", tt.how.Ranks, tt.how.Alike != nil, got, tt.want)
		}
	}
	if got := (Judging{}).deal(graderFunc(nil), all, 4); !reflect.DeepEqual(got, [][]int{{0}, {1, 2}, {3}, {4, 5}}) {
		t.Errorf("each by itself: %v", got)
	}
}

// counting is a grader of batches with numbers that gob would change, which notes what it was asked.
type counting struct {
	asked []int
	fails error
}

func (g *counting) Components() []string { return []string{"a"} }

func (g *counting) Grade(context.Context, *rollout.Problem, *rollout.Completion) (rollout.Verdict, error) {
	return rollout.Verdict{}, errors.New("not one by one")
}

func (g *counting) GradeAll(_ context.Context, items []rollout.Item) (list []rollout.Verdict, err error) {
	zero := math.Copysign(0, -1)
	for _, it := range items {
		g.asked = append(g.asked, it.Sample)
		list = append(list, rollout.Verdict{Status: rollout.Graded, Reward: zero, Outcome: zero, Answer: it.Problem.ID,
			Components: []float64{zero}, Steps: []rollout.Step{{End: it.Sample}, {Right: zero, Reward: zero}, {Right: 0.5}}})
	}
	return list, g.fails
}

// A grader on three ranks, of which two judge: all get the verdicts of one rank, bit for bit, without a limit while they
// wait. An error of one rank is an error on all.
func TestTogether(t *testing.T) {
	all := judged([]int{3, 9, 1, 5, 5, 2}, "abcada")
	items := make([]rollout.Item, len(all))
	for i := range all {
		items[i] = itemOf(&all[i])
	}
	want, _ := new(counting).GradeAll(t.Context(), items)
	alone := &counting{}
	if g := (&Trainer{sampling: ranks.Alone{}}).Together(alone, Judging{Ranks: 3}); g != rollout.Grader(alone) {
		t.Errorf("a rank alone has %T", g)
	}
	for _, failing := range []int{-1, 0, 1} {
		graders, errs, waits := make([]*counting, 3), make([]error, 3), make([][]bool, 3)
		var done sync.WaitGroup
		for r, group := range ranks.InProcess(3) {
			graders[r] = &counting{}
			if r == failing {
				graders[r].fails = errors.New("refused")
			}
			tr := &Trainer{sampling: group, Parts: Parts{Ranks: group, Wait: func(on bool) { waits[r] = append(waits[r], on) }}}
			done.Go(func() {
				g := tr.Together(graders[r], Judging{Ranks: 2}).(rollout.BatchGrader)
				got, err := g.GradeAll(context.Background(), items)
				if errs[r] = err; err == nil && fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
					t.Errorf("rank %d: %+v, want %+v", r, got, want)
				}
				if names := rollout.ComponentNames(g); !slices.Equal(names, []string{"a"}) {
					t.Errorf("components %v", names)
				}
			})
		}
		ended := make(chan bool)
		go func() { done.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("the ranks hang")
		}
		for r, err := range errs {
			text := ""
			if failing == r {
				text = "refused"
			} else if failing >= 0 {
				text = fmt.Sprintf("rank %d: refused", failing)
			}
			if (err == nil) != (text == "") || err != nil && err.Error() != text {
				t.Errorf("rank %d fails: rank %d has %v, want %q", failing, r, err, text)
			}
			if lifted := []bool{true, false}; r != failing && !slices.Equal(waits[r], lifted) {
				t.Errorf("rank %d waits %v", r, waits[r])
			}
		}
		if n := []int{len(graders[0].asked), len(graders[1].asked), len(graders[2].asked)}; !slices.Equal(n, []int{3, 3, 0}) {
			t.Errorf("the ranks judged %v completions", n)
		}
	}
}

// Ranks that deal completions differently say so, and judge none twice.
func TestDealtDifferently(t *testing.T) {
	groups, errs := ranks.InProcess(2), make([]error, 2)
	var done sync.WaitGroup
	for r, group := range groups {
		tr := &Trainer{sampling: group, Parts: Parts{Ranks: group}}
		how := Judging{Ranks: 2}
		if r == 1 {
			how.Alike = func(rollout.Item) string { return "" }
		}
		done.Go(func() {
			errs[r] = tr.judgeBy(context.Background(), &counting{}, how, judged([]int{1, 1, 1}, "abc"), nil,
				func(err error) error { return ranks.Agree(group, err) })
		})
	}
	done.Wait()
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "the ranks dealt them differently") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}
