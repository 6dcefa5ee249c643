package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"exp/cmd/exp/cli"
	"exp/eval/grade"
	"exp/eval/grade/extract"
	"exp/eval/grade/peer"
	"exp/eval/task"
	"exp/experiments/store"
	"exp/harness/vocab"
)

func gradeCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "grade",
		Category: "Results",
		Usage:    "grade answers in a file, without a model",
		Description: "Reads JSON rows with id, gold, and prediction (an answer) or response (a whole output; " +
			"also prediction with kind \"response\"), and writes a row for each: id, correct, sure, extracted, " +
			"reason. If rows have expected and tags, it prints how often the grader agrees, by tag. The graders " +
			"are " + strings.Join(peer.Names(), ", ") + "; exp is our own, the others reproduce other programs, " +
			"including their mistakes. Without --out the rows go to stdout and the agreement to stderr. " +
			"--audit RUN reads the verdicts that gave a run's rewards and lists, by form and over steps, right " +
			"answers that rest on a convention, on words taken for a unit or on a step that is not sure, answers " +
			"where the run's graders (and --grader) disagree, and verdicts that the same grader does not give " +
			"today: rewards that a policy may learn to earn without being right.",
		UsageText: strings.Join([]string{
			"exp grade --in answers.jsonl --out verdicts.jsonl # with our own grader",
			"exp grade --grader math_dapo --in answers.jsonl > verdicts.jsonl # as verl would",
			"exp grade --in labelled.jsonl --out /dev/null --json # agreement only, for programs: exp.grade/1",
			"exp grade --audit @last # which right answers of a run deserve a look",
			"exp grade --audit @last --grader prime -o json # with another grader's disagreements",
		}, "\n"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "grader", Value: "exp", Usage: "grade with `NAME`"},
			&cli.StringFlag{Name: "audit", Usage: "audit the recorded completions of `RUN`"},
			&cli.StringFlag{Name: "in", Usage: "read rows from `FILE`, - for stdin"},
			&cli.StringFlag{Name: "out", Usage: "write verdicts to `FILE`", DefaultText: "stdout"},
			&cli.StringFlag{Name: "tokenizer", Usage: "end answers at special tokens of the tokenizer in `FOLDER`"},
			&cli.BoolFlag{Name: "strict", Usage: "count unsure verdicts as wrong"},
		},
		BashComplete: a.Completes(func(_ *cli.Context, w cli.Word) []cli.Candidate {
			if w.Flag != "grader" {
				return nil
			}
			var list []cli.Candidate
			for _, g := range peer.All() {
				list = append(list, cli.Candidate{Text: g.Name, Note: g.About})
			}
			return list
		}),
		Action: cli.WithArgs(0, 0, func(c *cli.Context, _ []string) error {
			if c.IsSet("audit") {
				return cli.With(a.opener(false), func(db *store.DB) error { return a.auditRun(c, db) })
			}
			return a.grade(c)
		}),
	}
}

// gradeRow is a row of input.
type gradeRow struct {
	ID         json.RawMessage `json:"id"`
	Gold       goldAnswers     `json:"gold"`
	Prediction *string         `json:"prediction"`
	Response   *string         `json:"response"`
	Kind       string          `json:"kind"`
	Expected   *bool           `json:"expected"`
	Tags       []string        `json:"tags"`
}

// goldAnswers is a text, a number, or a list of them; any one is right.
type goldAnswers []string

func (g *goldAnswers) UnmarshalJSON(data []byte) error {
	list := []json.RawMessage{data}
	if data[0] == '[' {
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
	}
	for _, raw := range list {
		var s string
		switch {
		case raw[0] == '"':
			if err := json.Unmarshal(raw, &s); err != nil {
				return err
			}
		case raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9':
			s = string(raw)
		default:
			return errors.New("gold is not a text, a number or a list of them")
		}
		*g = append(*g, s)
	}
	return nil
}

// gradeVerdict is a row of output.
type gradeVerdict struct {
	ID        json.RawMessage `json:"id"`
	Correct   bool            `json:"correct"`
	Sure      bool            `json:"sure"`
	Extracted string          `json:"extracted"`
	Reason    string          `json:"reason"`
}

// judge grades one row; the first matching gold answer counts.
func (r *gradeRow) judge(g peer.Grader, strict bool) gradeVerdict {
	var v grade.Verdict
	for _, gold := range r.Gold {
		var w grade.Verdict
		switch {
		case r.Response != nil:
			w = g.Response(gold, *r.Response)
		case r.Kind == "response":
			w = g.Response(gold, *r.Prediction)
		default:
			w = g.Answer(gold, *r.Prediction)
		}
		if strict && !w.Sure {
			w.Correct = false
		}
		if v.Reason == "" || w.Correct {
			v = w
		}
		if v.Correct {
			break
		}
	}
	return gradeVerdict{r.ID, v.Correct, v.Sure, v.Extracted, v.Reason}
}

func (a *app) grade(c *cli.Context) error {
	g, err := peer.ByName(c.String("grader"))
	if err != nil {
		return a.Usagef("--grader: %w", err)
	}
	if c.String("in") == "" {
		return a.Usagef("--in FILE is missing: which rows to grade?")
	}
	if g, err = a.endTurns(g, c.String("tokenizer")); err != nil {
		return err
	}
	in, err := a.openRows(c.String("in"))
	if err != nil {
		return err
	}
	defer in.Close()

	var t tally
	write := func(w io.Writer) error {
		return gradeRows(c.Context, in, w, &t, func(r *gradeRow) gradeVerdict { return r.judge(g, c.Bool("strict")) })
	}
	o := a.Out
	if path := c.String("out"); path != "" {
		err = replaceFile(path, write)
	} else {
		err = write(a.Stdout)
		o.W, o.Stream = a.Stderr, a.Stream(a.Stderr)
	}
	if err != nil {
		var line *rowError
		if errors.As(err, &line) {
			f := cli.Failf(cli.ExitUsage, "%s: %w", c.String("in"), err)
			f.Help = `a row is {"id": …, "gold": …, "prediction" or "response": …}`
			return f
		}
		return err
	}
	if t.rows["all"] == nil {
		a.Warn("%s has no rows", c.String("in"))
	}
	if len(t.golds) > 0 && task.OwnGrader(g.Name) {
		a.Warn("our grader does not understand %d gold answers and compares them as texts", t.unread)
		for _, line := range t.golds {
			a.Warn("  %s", line)
		}
	}
	return o.PrintTable(t.table())
}

// endTurns returns our grader with texts cut at the special tokens of the tokenizer in dir.
func (a *app) endTurns(g peer.Grader, dir string) (peer.Grader, error) {
	switch {
	case dir == "":
		return g, nil
	case !task.OwnGrader(g.Name):
		return g, a.Usagef("--tokenizer: %s reads whole texts, as its source does", g.Name)
	}
	special, err := vocab.SpecialTexts(dir)
	if err != nil {
		return g, cli.Failf(cli.ExitNotFound, "--tokenizer: %w", err)
	}
	turns, response, answer := extract.NewTurns(special), g.Response, g.Answer
	g.Response = func(gold, s string) grade.Verdict { return response(gold, turns.First(s)) }
	g.Answer = func(gold, s string) grade.Verdict { return answer(gold, turns.First(s)) }
	return g, nil
}

func (a *app) openRows(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(a.Stdin), nil
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, cli.Failf(cli.ExitNotFound, "--in: %w", err)
	}
	return f, err
}

// replaceFile writes to a temporary name and renames, so that a failure leaves the old
// file. Anything but a plain file, such as /dev/null, is written directly.
func replaceFile(path string, write func(io.Writer) error) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write %s: no such folder %s", path, filepath.Dir(path))
	}
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(write(f), f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// rowError is a row that cannot be graded.
type rowError struct {
	line int
	err  error
}

func (e *rowError) Error() string { return fmt.Sprintf("line %d: %v", e.line, e.err) }
func (e *rowError) Unwrap() error { return e.err }

// gradeBatch is how many rows are in memory at a time.
const gradeBatch = 512

// gradeRows grades on all cores, batch by batch; verdicts keep the order of the rows.
func gradeRows(ctx context.Context, in io.Reader, out io.Writer, t *tally, judge func(*gradeRow) gradeVerdict) error {
	r, w := bufio.NewReaderSize(in, 1<<16), bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for line, more := 0, true; more; {
		if ctx.Err() != nil {
			return cli.Stoppedf(ctx, "grading stopped after %d rows", line)
		}
		var rows []gradeRow
		var err error
		if rows, line, more, err = readRows(r, line); err != nil {
			return err
		}
		verdicts := make([]gradeVerdict, len(rows))
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
		for i, v := range verdicts {
			if err := enc.Encode(v); err != nil {
				return err
			}
			t.add(&rows[i], v)
			t.addGold(&rows[i])
		}
	}
	return w.Flush()
}

// readRows reads up to gradeBatch rows after line, skipping blank lines.
func readRows(r *bufio.Reader, line int) (rows []gradeRow, last int, more bool, err error) {
	for len(rows) < gradeBatch {
		text, err := r.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, line, false, err
		}
		line++
		if text = bytes.TrimSpace(text); len(text) > 0 {
			var row gradeRow
			if err := json.Unmarshal(text, &row); err != nil {
				return nil, line, false, &rowError{line, err}
			}
			switch {
			case len(row.Gold) == 0:
				return nil, line, false, &rowError{line, errors.New("no gold")}
			case row.Prediction == nil && row.Response == nil:
				return nil, line, false, &rowError{line, errors.New("neither prediction nor response")}
			case len(row.ID) == 0:
				row.ID = json.RawMessage("null")
			}
			rows = append(rows, row)
		}
		if err == io.EOF {
			return rows, line, false, nil
		}
	}
	return rows, line, true, nil
}

// tally counts verdicts by tag.
type tally struct {
	rows   map[string]*gradeCount
	unread int      // rows whose gold answers our grader does not understand
	golds  []string // the first of them, and why
}

// addGold counts a row whose gold answers are not understood.
func (t *tally) addGold(r *gradeRow) {
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
	if t.unread++; len(t.golds) < shownGolds {
		t.golds = append(t.golds, fmt.Sprintf("row %s: gold %q: %v", r.ID, r.Gold[0], first))
	}
}

type gradeCount struct{ n, correct, unsure, expected, agree, falsePositive, falseNegative int }

func (t *tally) add(r *gradeRow, v gradeVerdict) {
	if t.rows == nil {
		t.rows = map[string]*gradeCount{}
	}
	tags := append([]string{"all"}, r.Tags...)
	slices.Sort(tags)
	for _, tag := range slices.Compact(tags) {
		n := t.rows[tag]
		if n == nil {
			n = &gradeCount{}
			t.rows[tag] = n
		}
		n.n++
		if v.Correct {
			n.correct++
		}
		if !v.Sure {
			n.unsure++
		}
		if r.Expected == nil {
			continue
		}
		n.expected++
		switch {
		case *r.Expected == v.Correct:
			n.agree++
		case v.Correct:
			n.falsePositive++
		default:
			n.falseNegative++
		}
	}
}

// table has one row per tag, the most frequent first. Agreement counts rows with expected.
func (t *tally) table() cli.Table {
	out := cli.Table{Schema: "exp.grade/1", Columns: []cli.Column{
		{Key: "tag", ID: true}, {Key: "rows"}, {Key: "correct"}, {Key: "unsure"}, {Key: "labelled"}, {Key: "agree"},
		{Key: "agreement", Digits: 4}, {Key: "false_positives", Title: "false +"},
		{Key: "false_negatives", Title: "false -"},
	}}
	var tags []string
	for tag := range t.rows {
		tags = append(tags, tag)
	}
	slices.SortFunc(tags, func(x, y string) int {
		switch {
		case x == "all":
			return -1
		case y == "all":
			return 1
		case t.rows[x].n != t.rows[y].n:
			return t.rows[y].n - t.rows[x].n
		}
		return strings.Compare(x, y)
	})
	for _, tag := range tags {
		n := t.rows[tag]
		var share any
		if n.expected > 0 {
			share = float64(n.agree) / float64(n.expected)
		}
		out.Rows = append(out.Rows, []any{tag, n.n, n.correct, n.unsure, n.expected, n.agree, share, n.falsePositive,
			n.falseNegative})
	}
	return out
}
