package reports

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"exp/experiments/blob"
	"exp/experiments/store"
)

const (
	// pickedEach is the number of problems shown from each end of a ranking.
	pickedEach = 2
	// shownGroups is the number of different completions shown per arm.
	shownGroups = 6
	// shownRunes is the length that texts are cut to.
	shownRunes = 1200
)

// pick is a problem shown in the report, chosen by a fixed rule.
type pick struct {
	Suite   string
	Problem string
	Shares  []float64 // [arms] share of right completions, mean over seeds; NaN if none
	Rank    float64   // what it was picked by
}

// picks returns the problems of a suite to show. With two or more arms: those where the
// first arm's share of right completions is furthest above and furthest below the share
// of arm against. With one arm: those with the largest and the smallest share. Ties go to
// the alphabetically first problem.
func picks(arms []*arm, against int, suite string) []pick {
	all := ranked(arms, against, suite)
	if len(arms) == 1 {
		n := min(pickedEach, (len(all)+1)/2)
		return append(all[:n:n], all[max(n, len(all)-pickedEach):]...)
	}
	var ahead, behind []pick
	for _, p := range all {
		switch {
		case p.Rank > 0 && len(ahead) < pickedEach:
			ahead = append(ahead, p)
		case p.Rank < 0:
			behind = append(behind, p)
		}
	}
	// Ties at the lower end are alphabetical too.
	slices.SortFunc(behind, func(a, b pick) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Problem, b.Problem))
	})
	return append(ahead, behind[:min(pickedEach, len(behind))]...)
}

// ranked lists the problems that all arms were scored on, by descending rank.
func ranked(arms []*arm, against int, suite string) []pick {
	perArm := make([]map[string]float64, len(arms))
	for i, a := range arms {
		perArm[i] = shares(a, suite)
	}
	var all []pick
	for problem := range perArm[0] {
		p := pick{Suite: suite, Problem: problem}
		for _, m := range perArm {
			v, ok := m[problem]
			if !ok {
				v = math.NaN()
			}
			p.Shares = append(p.Shares, v)
		}
		p.Rank = p.Shares[0]
		if len(arms) > 1 {
			p.Rank -= p.Shares[against]
		}
		if !math.IsNaN(p.Rank) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b pick) int {
		return cmp.Or(cmp.Compare(b.Rank, a.Rank), cmp.Compare(a.Problem, b.Problem))
	})
	return all
}

// shares returns each problem's share of right completions, mean over the arm's seeds.
func shares(a *arm, suite string) map[string]float64 {
	sum, n := map[string]float64{}, map[string]float64{}
	for _, r := range a.Runs {
		for _, it := range r.scores[suite] {
			if it.Graded > 0 {
				sum[it.Problem] += it.share()
				n[it.Problem]++
			}
		}
	}
	for p := range sum {
		sum[p] /= n[p]
	}
	return sum
}

// keptText is the part of a pack record that the report shows.
type keptText struct {
	Prompt string `json:"prompt"`
	Text   string `json:"text"`
}

// problems reads the arms' answers to the picked problems.
func (s *source) problems(ctx context.Context, picked []pick) ([]problem, error) {
	packs := s.db.Blobs.NewPackReader()
	defer packs.Close()
	var out []problem
	for _, p := range picked {
		shown := problem{Title: line{styled(mono, p.Problem)}}
		for i, a := range s.arms {
			side, prompt, err := s.answers(ctx, packs, a, p)
			if err != nil {
				return nil, err
			}
			if shown.Prompt == "" {
				shown.Prompt = clipped(Visible(prompt))
				if shown.Images, err = s.embed(ctx, a.Runs[0].Run, prompt); err != nil {
					return nil, err
				}
			}
			if len(side.Groups) > 0 || !math.IsNaN(p.Shares[i]) {
				shown.Arms = append(shown.Arms, side)
			}
		}
		out = append(out, shown)
	}
	return out, nil
}

// answers groups the lowest seed's completions of a problem by text: right ones first,
// then by frequency, then in sampling order.
func (s *source) answers(ctx context.Context, packs *blob.PackReader, a *arm, p pick) (answers, string, error) {
	out := answers{Arm: a.span()}
	r := a.Runs[0]
	var samples []store.Sample
	if home := r.counted[p.Suite].Sampled.Home; home != 0 {
		var err error
		samples, err = s.db.Samples(ctx, r.ID, store.SampleQuery{Scope: "eval", Stage: home, Item: p.Problem})
		if err != nil {
			return out, "", err
		}
	}
	slices.SortFunc(samples, func(a, b store.Sample) int { return cmp.Compare(a.K, b.K) })
	type group struct {
		answerGroup
		first int
	}
	var groups []*group
	index := map[[2]string]*group{}
	right, prompt := 0, ""
	for i, smp := range samples {
		verdict := verdictWord(smp.Verdict)
		if verdict == "right" {
			right++
		}
		var kept keptText
		if smp.Ref.Pack.IsZero() {
			continue
		}
		if err := packs.Read(smp.Ref, &kept); err != nil {
			return out, "", err
		}
		prompt = kept.Prompt
		key := [2]string{verdict, kept.Text}
		if index[key] == nil {
			index[key] = &group{answerGroup{Verdict: verdict, Text: clipped(Visible(kept.Text))}, i}
			groups = append(groups, index[key])
		}
		index[key].Count++
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(order(a.Verdict), order(b.Verdict)), cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.first, b.first))
	})
	out.Right = fmt.Sprintf("seed %d: %d of %d right", r.Seed, right, len(samples))
	for _, g := range groups[:min(len(groups), shownGroups)] {
		out.Groups = append(out.Groups, g.answerGroup)
	}
	if more := len(groups) - len(out.Groups); more > 0 {
		out.More = fmt.Sprintf("and %d more different completions", more)
	}
	if len(samples) == 0 {
		out.Right, out.More = "", "no completions were kept (store.samples.eval)"
	}
	return out, prompt, nil
}

func verdictWord(v *store.Verdict) string {
	switch {
	case v == nil || !v.Graded:
		return "ungraded"
	case v.Correct:
		return "right"
	}
	return "wrong"
}

func order(verdict string) int { return slices.Index([]string{"right", "wrong", "ungraded"}, verdict) }

// clipped cuts a text to shownRunes.
func clipped(s string) string {
	r := []rune(s)
	if len(r) <= shownRunes {
		return s
	}
	return fmt.Sprintf("%s… (%d more characters)", string(r[:shownRunes]), len(r)-shownRunes)
}
