package answers

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"exp/eval/grade"
)

// Tally counts verdicts by tag.
type Tally struct {
	tags   map[string]*Count
	Unread int          // rows whose gold answers our grader does not understand
	Golds  []UnreadGold // the first of them
}

// UnreadGold is a row whose gold answers our grader does not understand.
type UnreadGold struct {
	ID   json.RawMessage // of the row
	Gold string          // its first gold answer
	Err  error
}

// Count is the verdicts of the rows with one tag.
type Count struct {
	Tag                          string // "all" counts all rows
	Rows, Correct, Unsure        int
	Labelled, Agree              int // rows with expected, and those where the grader agrees
	FalsePositive, FalseNegative int
	score                        float64 // sum
	scored                       int
}

// Score is the mean share of the full score, from 0 to 1; ok is false for graders that give none.
func (c *Count) Score() (mean float64, ok bool) {
	if c.scored == 0 {
		return 0, false
	}
	return c.score / float64(c.scored), true
}

// Agreement is the share of the labelled rows where the grader agrees; ok is false if no row is labelled.
func (c *Count) Agreement() (share float64, ok bool) {
	if c.Labelled == 0 {
		return 0, false
	}
	return float64(c.Agree) / float64(c.Labelled), true
}

// unreadKept is how many rows with unread gold answers a tally keeps.
const unreadKept = 20

// Grade grades the rows of in on all cores, batch by batch, and writes the verdicts to out in the same order. It
// adds them to t and returns how many lines it has read. An error may be a *RowError, or the context's.
func Grade(ctx context.Context, in io.Reader, out io.Writer, t *Tally,
	judge func(*Row) Verdict) (lines int, err error) {
	r, w := bufio.NewReaderSize(in, 1<<16), bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for more := true; more; {
		if ctx.Err() != nil {
			return lines, ctx.Err()
		}
		var rows []Row
		if rows, lines, more, err = read(r, lines); err != nil {
			return lines, err
		}
		for i, v := range judgeAll(rows, judge) {
			if err := enc.Encode(v); err != nil {
				return lines, err
			}
			t.add(&rows[i], v)
			t.addGold(&rows[i])
		}
	}
	return lines, w.Flush()
}

func judgeAll(rows []Row, judge func(*Row) Verdict) []Verdict {
	verdicts := make([]Verdict, len(rows))
	var wg sync.WaitGroup
	threads := runtime.GOMAXPROCS(0)
	for k := range threads {
		wg.Go(func() {
			for i := k; i < len(rows); i += threads {
				verdicts[i] = judge(&rows[i])
			}
		})
	}
	wg.Wait()
	return verdicts
}

// addGold counts a row whose gold answers are not understood.
func (t *Tally) addGold(r *Row) {
	var first error
	for _, gold := range r.Gold {
		err := grade.CheckGold(gold)
		if err == nil {
			return
		}
		if first == nil {
			first = err
		}
	}
	if t.Unread++; len(t.Golds) < unreadKept {
		t.Golds = append(t.Golds, UnreadGold{r.ID, r.Gold[0], first})
	}
}

func (t *Tally) add(r *Row, v Verdict) {
	if t.tags == nil {
		t.tags = map[string]*Count{}
	}
	tags := append([]string{"all"}, r.Tags...)
	slices.Sort(tags)
	for _, tag := range slices.Compact(tags) {
		n := t.tags[tag]
		if n == nil {
			n = &Count{Tag: tag}
			t.tags[tag] = n
		}
		n.Rows++
		if v.Correct {
			n.Correct++
		}
		if !v.Sure {
			n.Unsure++
		}
		if v.Score != nil {
			n.score, n.scored = n.score+*v.Score, n.scored+1
		}
		if r.Expected == nil {
			continue
		}
		n.Labelled++
		switch {
		case *r.Expected == v.Correct:
			n.Agree++
		case v.Correct:
			n.FalsePositive++
		default:
			n.FalseNegative++
		}
	}
}

// Counts returns the counts: all rows, then the most frequent tag first. Without rows it returns none.
func (t *Tally) Counts() []*Count {
	var list []*Count
	for _, n := range t.tags {
		list = append(list, n)
	}
	slices.SortFunc(list, func(x, y *Count) int {
		switch {
		case x.Tag == "all":
			return -1
		case y.Tag == "all":
			return 1
		case x.Rows != y.Rows:
			return y.Rows - x.Rows
		}
		return strings.Compare(x.Tag, y.Tag)
	})
	return list
}
