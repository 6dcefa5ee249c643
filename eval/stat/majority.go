package stat

// Vote is the majority vote of a problem's samples.
type Vote struct {
	Value float64 `json:"value"` // 1 if the most frequent answer is correct, else 0
	Tied  float64 `json:"tied"`  // 1 if several answers tie for the most frequent, else 0
}

// MajorityVote takes the vote of all samples (Wang et al., arXiv:2203.11171 §2). answers [n] are canonical:
// equal answers form a class; the empty string is not an answer. correct [n] is per sample; the first
// sample of a class decides. On a tie the answer seen first wins, as in verl's calc_maj_val. Without
// answers the value is 0. It panics if lengths differ.
func MajorityVote(answers []string, correct []bool) Vote {
	if len(answers) != len(correct) {
		panic("stat: length mismatch")
	}
	votes := make(map[string]int)
	most := 0
	for _, a := range answers {
		if a != "" {
			votes[a]++
			most = max(most, votes[a])
		}
	}
	var v Vote
	winners := 0
	for i, a := range answers {
		if a == "" || votes[a] != most {
			continue
		}
		if winners++; winners == 1 {
			v.Value = Indicator(correct[i])
		}
		votes[a] = 0 // counted
	}
	v.Tied = Indicator(winners > 1)
	return v
}

// Indicator is 1 for true and 0 for false.
func Indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
