package stage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"exp/eval/rows"
	"exp/experiments/ident"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/prompt"
	"exp/train"
	"exp/train/rollout"
	"exp/train/tokenizer"
)

// recordedRow is a completion that another engine sampled, as a file of rollout.recorded has it and
// as the prepare stage keeps it.
type recordedRow struct {
	ID       string    `json:"id,omitempty"`
	Prompt   string    `json:"prompt,omitempty"`
	Text     *string   `json:"response,omitempty"`
	Tokens   []int32   `json:"tokens,omitempty"`
	LogProbs []float32 `json:"logprobs,omitempty"`
	Reward   *float64  `json:"reward,omitempty"`
	Finish   string    `json:"finish,omitempty"`
	Inserted [][2]int  `json:"inserted,omitempty"` // tokens that tools wrote, from and to
}

// recordedSource is the value of rollout.source that selects them.
const recordedSource = "recorded"

// readRecorded reads a file of recorded rollouts, JSON lines or Parquet. where holds the places of
// its rows, for errors.
//
//	id or item            the training problem, or
//	prompt                its prompt, as a text
//	response, completion  what was sampled, or
//	token_ids, tokens     its ids, the end token included; or both
//	logprobs              of each of them, or none in the whole file
//	reward, score         takes the place of the grader's
//	finish                stop, length or turns
//	inserted              the tokens that tools wrote: [from, to] or {"start": from, "end": to} for each part
//	response_mask         or for each token, 0 if a tool wrote it (also: loss_mask)
//
// These are the fields of exp samples --token-ids -o jsonl too, where tokens is a number, which is
// ignored.
func readRecorded(path string) (list []recordedRow, where []string, err error) {
	for r, err := range rows.Read(path) {
		if err != nil {
			return nil, nil, err
		}
		row, err := readRecordedRow(r)
		if err != nil {
			return nil, nil, err
		}
		if len(list) > 0 && (row.LogProbs == nil) != (list[0].LogProbs == nil) {
			return nil, nil, r.Errorf("logprobs",
				"some rows have log-probs and others have none; give them to all or to none")
		}
		list, where = append(list, row), append(where, r.Where)
	}
	if len(list) == 0 {
		return nil, nil, fmt.Errorf("%s holds no rollouts", path)
	}
	return list, where, nil
}

func readRecordedRow(r rows.Row) (row recordedRow, err error) {
	first := func(names ...string) string {
		i := slices.IndexFunc(names, func(n string) bool { return r.Has(n) })
		return names[max(i, 0)]
	}
	if name := first("id", "item"); r.Has(name) {
		if row.ID, err = r.Text(name); err != nil {
			return row, err
		}
	}
	if v, _ := r.Value("prompt"); v != nil {
		text, ok := v.(string)
		if !ok && row.ID == "" {
			return row, r.Errorf("prompt", "it is not text; name the problem by its id")
		}
		row.Prompt = text
	}
	if row.ID == "" && row.Prompt == "" {
		return row, r.Errorf("id", "%w; a row names its problem by id or prompt", rows.ErrMissing)
	}
	if name := first("response", "completion"); r.Has(name) {
		text, err := r.Text(name)
		if err != nil {
			return row, err
		}
		row.Text = &text
	}
	tokens := first("token_ids", "tokens")
	if _, count := value(r, tokens).(json.Number); !count {
		if row.Tokens, err = numbers(r, tokens, parseToken); err != nil {
			return row, err
		}
	}
	if row.Text == nil && row.Tokens == nil {
		return row, r.Errorf("response", "%w; a row has response, tokens or both", rows.ErrMissing)
	}
	if row.LogProbs, err = numbers(r, "logprobs", parseLogProb); err != nil {
		return row, err
	}
	if name := first("reward", "score"); r.Has(name) {
		x, err := r.Number(name)
		if err != nil {
			return row, err
		}
		if math.Abs(x) > math.MaxFloat32 {
			return row, r.Errorf(name, "%v is not a finite float32, the type of rewards", x)
		}
		row.Reward = &x
	}
	if r.Has("finish") {
		if row.Finish, err = finishOf(r); err != nil {
			return row, err
		}
	}
	if later, _ := value(r, "later").([]any); len(later) > 0 {
		return row, r.Errorf("later", "the row is an agent's episode of several conversations, from which recorded "+
			"rollouts cannot learn; leave it out")
	}
	row.Inserted, err = insertedOf(r)
	if err == nil && len(row.Inserted) > 0 && row.Tokens == nil {
		err = r.Errorf("inserted", "the row has no tokens, so it cannot say which ones tools wrote")
	}
	return row, err
}

// finishOf reads why a completion ended. A demonstration of another run is a completion like others here.
func finishOf(r rows.Row) (string, error) {
	name, err := r.Text("finish")
	if err != nil {
		return "", err
	}
	if name == rollout.FinishShown.String() {
		name = rollout.FinishStop.String()
	}
	if _, err := rollout.ParseFinish(name); err != nil {
		return "", r.Errorf("finish", "%w", err)
	}
	return name, nil
}

// insertedOf returns the tokens that tools wrote.
func insertedOf(r rows.Row) (list [][2]int, err error) {
	for _, name := range []string{"response_mask", "loss_mask"} {
		if !r.Has(name) {
			continue
		}
		mask, err := numbers(r, name, parseToken)
		if err != nil {
			return nil, err
		}
		for i, on := range mask {
			switch n := len(list); {
			case on != 0:
			case n > 0 && list[n-1][1] == i:
				list[n-1][1]++
			default:
				list = append(list, [2]int{i, i + 1})
			}
		}
		return list, nil
	}
	if !r.Has("inserted") {
		return nil, nil
	}
	v, ok := value(r, "inserted").([]any)
	if !ok {
		return nil, r.Errorf("inserted", "it is not a list")
	}
	for i, x := range v {
		pair, ok := x.([]any)
		if m, object := x.(map[string]any); object {
			pair, ok = []any{m["start"], m["end"]}, true
		}
		var ends [2]int
		for k := 0; ok && k < 2; k++ {
			var n int32
			if number, is := pair[min(k, len(pair)-1)].(json.Number); is && len(pair) == 2 {
				n, err = parseToken(number.String())
			} else {
				ok = false
			}
			ends[k], ok = int(n), ok && err == nil
		}
		if !ok {
			return nil, r.Errorf("inserted", `item %d is neither [from, to] nor {"start": from, "end": to}`, i+1)
		}
		list = append(list, ends)
	}
	return list, nil
}

func value(r rows.Row, path string) any { v, _ := r.Value(path); return v }

func parseToken(s string) (int32, error) {
	x, err := strconv.ParseInt(rows.Decimal(s), 10, 32)
	if err == nil && x < 0 {
		err = errors.New("below 0")
	}
	return int32(x), err
}

func parseLogProb(s string) (float32, error) {
	x, err := strconv.ParseFloat(s, 32)
	return float32(x), err
}

// numbers reads a field that is a list of numbers; nil if the field is missing.
func numbers[T int32 | float32](r rows.Row, field string, parse func(string) (T, error)) ([]T, error) {
	v := value(r, field)
	if v == nil {
		return nil, nil
	}
	list, ok := v.([]any)
	if !ok {
		return nil, r.Errorf(field, "it is not a list of numbers")
	}
	out := make([]T, len(list))
	for i, item := range list {
		n, ok := item.(json.Number)
		if !ok {
			return nil, r.Errorf(field, "item %d is not a number", i+1)
		}
		x, err := parse(n.String())
		if err != nil {
			return nil, r.Errorf(field, "item %d: %w", i+1, err)
		}
		out[i] = x
	}
	return out, nil
}

// recordedDigest covers the rows, whatever the file's layout. It also checks them, against the
// vocabulary unless p is nil.
func recordedDigest(c *config.Run, p *prompt.Prompter) (d ident.Digest, err error) {
	list, where, err := readRecorded(c.Rollout.Recorded)
	if err != nil {
		return d, err
	}
	records := ident.NewRecords()
	rewards := 0
	for i := range list {
		if p != nil {
			if _, err := list[i].completion(p.Vocabulary(), c.Rollout.MaxNewTokens, c.Rollout.Stop); err != nil {
				return d, fmt.Errorf("%s: %w", where[i], err)
			}
		}
		if list[i].Reward != nil {
			rewards++
		}
		b, err := json.Marshal(&list[i])
		if err != nil {
			return d, err
		}
		if err := records.Add(b); err != nil {
			return d, err
		}
	}
	if kind := c.Reward.Kind; rewards > 0 && kind != "task" && kind != "" {
		return d, fmt.Errorf("%s has rewards, but reward.kind is %s, which gives others; remove one of them",
			c.Rollout.Recorded, kind)
	}
	return records.Digest(), nil
}

// putRecorded stores the rows as JSON lines.
func (e *Env) putRecorded() (Output, int, error) {
	list, _, err := readRecorded(e.run().Rollout.Recorded)
	if err != nil {
		return Output{}, 0, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for i := range list {
		if err := enc.Encode(&list[i]); err != nil {
			return Output{}, 0, err
		}
	}
	o, err := e.put(RoleRollouts, "samples", b.Bytes())
	return o, len(list), err
}

// recording turns the stored rows of the problems into rollouts for the training loop. The second
// result counts rows of other problems.
func (e *Env) recording(in Inputs, tok tokenizer.Tokenizer,
	problems []rollout.Problem) (*train.Recording, int, error) {
	c := e.run().Rollout
	b, err := e.input(in, RoleRollouts)
	if err != nil {
		return nil, 0, err
	}
	byID, byPrompt := map[string]*rollout.Problem{}, map[string]*rollout.Problem{}
	twice := map[string]bool{}
	for i := range problems {
		p := &problems[i]
		twice[p.Prompt] = byPrompt[p.Prompt] != nil
		byID[p.ID], byPrompt[p.Prompt] = p, p
	}
	out := &train.Recording{Problems: map[string][]train.Recorded{}}
	others := 0
	d := json.NewDecoder(bytes.NewReader(b))
	for n := 1; ; n++ {
		var row recordedRow
		switch err := d.Decode(&row); {
		case err == io.EOF:
			return out, others, nil
		case err != nil:
			return nil, 0, err
		}
		p := byID[row.ID]
		switch {
		case row.ID == "" && twice[row.Prompt]:
			return nil, 0, fmt.Errorf("recorded rollout %d: several training problems have its prompt; name the "+
				"problem by its id", n)
		case row.ID == "":
			p = byPrompt[row.Prompt]
		case p != nil && row.Prompt != "" && row.Prompt != p.Prompt:
			return nil, 0, fmt.Errorf("recorded rollout %d: problem %s has the prompt %q in the data, but %q in the "+
				"file", n, row.ID, clipText(p.Prompt), clipText(row.Prompt))
		}
		if p == nil {
			others++
			continue
		}
		done, err := row.completion(tok, c.MaxNewTokens, c.Stop)
		if err != nil {
			return nil, 0, fmt.Errorf("recorded rollout %d: %w", n, err)
		}
		out.LogProbs = done.LogProbs != nil
		out.Problems[p.ID] = append(out.Problems[p.ID], train.Recorded{Completion: done, Reward: row.Reward})
	}
}

// checkRecorded finds problems of the run's steps with too few recorded rollouts.
func (e *Env) checkRecorded(made func(role string) (ident.Digest, bool), tok tokenizer.Tokenizer,
	problems []rollout.Problem) error {
	d, ok := made(RoleRollouts)
	if !ok {
		return nil
	}
	rec, others, err := e.recording(Inputs{RoleRollouts: d}, tok, problems)
	if err == nil {
		err = TrainConfig(e.run()).CheckRecording(rec, problems, seedFunc(e.Seed))
	}
	if err == nil {
		return nil
	}
	help := ""
	var few *train.RecordingError
	if errors.As(err, &few) {
		help = few.Hint()
		if others > 0 {
			help += "; left out: " + quantity.Plural(others, "rollout") + " of problems that are not in data.train"
		}
	}
	return config.Errors{e.Config.ErrorAt("rollout.recorded", config.CodeData, err.Error(), help)}
}

// completion checks a row against the vocabulary and fills in what it leaves out: the tokens of a
// text, the text of tokens, and how it ended. It has at most limit tokens.
//
// A text has several encodings, and a sampler may have drawn any of them: tokens need only decode
// to it. Without tokens it is encoded like a prompt, with the end token unless it ended at the
// limit or that token has no log-prob.
func (r recordedRow) completion(tok tokenizer.Tokenizer, limit int, stop []string) (c rollout.Completion, err error) {
	ends := tok.EndIDs()
	c.Tokens, c.LogProbs = r.Tokens, r.LogProbs
	if c.Tokens == nil {
		if c.Tokens, err = tok.Encode(*r.Text, tokenizer.Options{}); err != nil {
			return c, err
		}
		if r.Finish != "length" && len(c.Tokens) < limit && len(ends) > 0 &&
			(r.LogProbs == nil || len(r.LogProbs) > len(c.Tokens)) {
			c.Tokens = append(c.Tokens, ends[0])
		}
		if r.LogProbs != nil && len(r.LogProbs) != len(c.Tokens) {
			return c, fmt.Errorf("%d log-probs, but the response encodes to %d tokens: give its tokens too",
				len(r.LogProbs), len(c.Tokens))
		}
	}
	switch {
	case len(c.Tokens) == 0:
		return c, errors.New("the completion has no tokens")
	case len(c.Tokens) > limit:
		return c, fmt.Errorf("the completion has %d tokens, rollout.max_new_tokens is %d", len(c.Tokens), limit)
	case r.LogProbs != nil && len(r.LogProbs) != len(c.Tokens):
		return c, fmt.Errorf("%d log-probs for %d tokens", len(r.LogProbs), len(c.Tokens))
	}
	for i, id := range c.Tokens {
		if int(id) >= tok.VocabSize() {
			return c, fmt.Errorf("token %d is %d, the vocabulary ends at %d", i+1, id, tok.VocabSize()-1)
		}
		if i+1 < len(c.Tokens) && slices.Contains(ends, id) && !r.answered(i+1) {
			return c, fmt.Errorf("token %d, %d, ends a completion, but %d follow", i+1, id, len(c.Tokens)-i-1)
		}
	}
	ended := slices.Contains(ends, c.Tokens[len(c.Tokens)-1])
	text := c.Tokens
	if ended {
		text = text[:len(text)-1]
	}
	c.Text = tokenizer.Continue(tok, text)
	if err = r.place(&c, tok, text); err != nil {
		return c, err
	}
	cut, last := -1, 0 // a stop string ends the last turn
	if n := len(c.Inserted); n > 0 {
		last = c.Inserted[n-1].TextEnd
	}
	for _, s := range stop {
		if i := strings.Index(c.Text[last:], s); i >= 0 && (cut < 0 || last+i < cut) {
			cut = last + i
		}
	}
	whole := c.Text
	if cut >= 0 {
		c.Text = c.Text[:cut]
	}
	if r.Text != nil && *r.Text != c.Text && *r.Text != whole && *r.Text != tok.Decode(text) {
		return c, fmt.Errorf("the tokens decode to %q, the response is %q: another tokenizer?", clipText(whole),
			clipText(*r.Text))
	}
	switch {
	case r.Finish != "":
		c.Finish, err = rollout.ParseFinish(r.Finish)
	case !ended && cut < 0 && len(c.Tokens) == limit:
		c.Finish = rollout.FinishLength
	default:
		c.Finish = rollout.FinishStop
	}
	return c, err
}

// answered reports whether a tool wrote the i-th token, or some before it.
func (r recordedRow) answered(i int) bool {
	return slices.ContainsFunc(r.Inserted, func(x [2]int) bool { return x[0] <= i && i <= x[1] })
}

// place finds the inserted parts in the completion's text, which text decodes to.
func (r recordedRow) place(c *rollout.Completion, tok tokenizer.Tokenizer, text []int32) error {
	if len(r.Inserted) == 0 {
		return nil
	}
	// Pieces concatenate, as in the sampler.
	bytes := make([]int, 1, len(c.Tokens)+1)
	var b strings.Builder
	for _, id := range text {
		b.Write(tok.Piece(id))
		bytes = append(bytes, b.Len())
	}
	c.Text = b.String()
	for _, x := range r.Inserted {
		if x[0] < 0 || x[1] < x[0] || x[1] >= len(bytes) {
			return fmt.Errorf("inserted has tokens %d to %d, but %d of the response can be inserted", x[0], x[1],
				len(text))
		}
		c.Inserted = append(c.Inserted, rollout.Span{Start: x[0], End: x[1], TextStart: bytes[x[0]],
			TextEnd: bytes[x[1]]})
	}
	return c.Check()
}

// clipText shortens a text for an error.
func clipText(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	end := most
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
