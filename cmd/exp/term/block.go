package term

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"exp/experiments/quantity"
)

// maxBlock is the height of the live block: three lines on the stage, one on the phase of its step, and the cursor's
// line.
const maxBlock = 5

const (
	nameColumn   = 12 // "eval.score  "
	statusColumn = 8  // "stopped "
	wallColumn   = 72 // where wall times end, if the line is not longer
	sparkColumns = 40 // a sparkline at its widest
	sparkAfter   = 8  // values before there is one
	indent       = "  "
)

// span is an unbreakable piece of a line.
type span struct {
	text  string
	style Style
}

// line is spans with two spaces between them, after an indent.
type line []span

func (l line) width() int {
	w := 0
	for i, s := range l {
		if i > 0 {
			w += len(indent)
		}
		w += Width(s.text)
	}
	return w
}

func (l line) paint(color bool) string {
	var out strings.Builder
	for i, s := range l {
		if i > 0 {
			out.WriteString(indent)
		}
		out.WriteString(s.style.Paint(s.text, color))
	}
	return out.String()
}

// view holds what the live block shows of a stage.
type view struct {
	stage   Stage
	step    Step
	phase   Phase
	pace    *pace
	trend   *trend
	elapsed time.Duration
	now     time.Time
}

// lines renders the view in at most height lines narrower than width. The first
// holds name, bar, speed and forecast, and on a wide terminal all metrics; on a
// narrow one the metrics take separate lines. A sparkline of the first metric takes
// the last free line, and the phase of a long step one more. A height below 1 shows none.
func (v view) lines(width, height int, s Stream) []string {
	if height < 1 {
		return nil
	}
	room := width - 1 // the last column stays empty: writing there wraps on some terminals
	doing := v.doing()
	if height < 2 {
		doing = nil
	}
	if height == maxBlock-1 || doing != nil {
		height--
	}
	head, tail := v.head(room, s.Unicode), v.tail()
	metrics := v.metrics()

	body := []line{slices.Concat(head, metrics, tail)}
	if body[0].width() > room {
		for len(tail) > 0 && slices.Concat(head, tail).width() > room {
			tail = tail[1:] // the speed goes before the forecast
		}
		body = append([]line{slices.Concat(head, tail)}, pack(metrics, room, height-1)...)
	}
	if spark := v.spark(room, s.Unicode); spark != nil && len(body) < height {
		body = append(body, spark)
	}
	if doing != nil {
		body = append(body, doing)
	}

	texts := make([]string, 0, len(body))
	for _, l := range body {
		if l.width() > room {
			texts = append(texts, Cut(l.paint(false), room, ""))
			continue
		}
		texts = append(texts, l.paint(s.Color))
	}
	return texts
}

func (v view) head(room int, unicode bool) line {
	total := v.stage.Total
	name := span{indent + Pad(v.stage.Kind, nameColumn-len(indent), false), Strong}
	if total <= 0 && v.step.Step == 0 {
		return line{name}
	}
	if total <= 0 {
		return line{name, {strconv.Itoa(v.step.Step) + " " + v.stage.unit() + "s", Plain}}
	}
	count := strconv.Itoa(total)
	done := span{Pad(strconv.Itoa(v.step.Step), len(count), true) + "/" + count, Plain}
	switch {
	case room >= 72:
		return line{name, {Bar(v.step.Step, total, 20, unicode), Accent}, done}
	case room >= 48:
		return line{name, {Bar(v.step.Step, total, 10, unicode), Accent}, done}
	}
	return line{name, done}
}

func (v view) tail() line {
	var l line
	if rate := v.pace.rate(v.now, v.stage.unit()); rate != "" {
		l = append(l, span{rate, Plain})
	}
	if eta, ok := v.pace.eta(v.now, v.stage.Total); ok {
		return append(l, span{"eta " + quantity.Remaining(eta), Plain})
	}
	return append(l, span{"elapsed " + quantity.Remaining(v.elapsed), Faint})
}

// metrics pads each value, so that the line does not wobble.
func (v view) metrics() line {
	var l line
	for _, m := range headline(v.step.Metrics) {
		l = append(l, span{Clean(m.Name) + " " + Pad(quantity.Short(m.Value), 5, false), Plain})
	}
	return l
}

// doing says what a long step is at: "sampling  34 of 64 completions"; nil for short steps.
func (v view) doing() line {
	if v.phase.Work == "" || !v.pace.long(v.now) {
		return nil
	}
	l := line{{strings.Repeat(" ", nameColumn), Plain}, {Clean(v.phase.Work), Faint}}
	if p := v.phase; p.Total > 0 {
		text := strconv.Itoa(p.Done) + " of " + strconv.Itoa(p.Total) + " " + Clean(p.Unit)
		l = append(l, span{text, Faint})
	}
	return l
}

// spark is the history of the first metric, between its first and its latest
// value; nil until there is some, and on narrow terminals.
func (v view) spark(room int, unicode bool) line {
	width := min(room-nameColumn-40, sparkColumns)
	if width < 10 || len(v.trend.points) < sparkAfter {
		return nil
	}
	return line{
		{strings.Repeat(" ", nameColumn), Plain},
		{Clean(v.trend.name), Faint},
		{quantity.Short(v.trend.first), Faint},
		{Spark(v.trend.points, width, unicode), Accent},
		{quantity.Short(v.trend.latest), Faint},
	}
}

// pack lays spans out on at most height lines of room columns, under the bar.
// Spans that do not fit are left out.
func pack(spans line, room, height int) []line {
	margin := span{strings.Repeat(" ", nameColumn), Plain}
	if room < 40 {
		margin.text = ""
	}
	var lines []line
	for _, s := range spans {
		last := len(lines) - 1
		if last >= 0 && lines[last].width()+len(indent)+Width(s.text) <= room {
			lines[last] = append(lines[last], s)
			continue
		}
		if len(lines) == height {
			break
		}
		lines = append(lines, line{margin, s})
	}
	return lines
}

func headline(m []Metric) []Metric { return m[:min(len(m), MaxMetrics)] }

func (s Stage) unit() string {
	if s.Unit == "" {
		return "step"
	}
	return s.Unit
}

// runLine is the permanent line above the stages of a run.
func runLine(r Run) line {
	text := "run " + r.ID + " (seed " + strconv.FormatInt(r.Seed, 10) + ")"
	if r.Of > 0 {
		text = "[" + strconv.Itoa(r.Index) + "/" + strconv.Itoa(r.Of) + "] " + text
	}
	return line{{Clean(text), Strong}}
}

// resultLines are the permanent lines of a stage that ended: name, status, facts,
// and the wall time at the right; one line unless the terminal is too narrow.
func resultLines(st Stage, r Result, width int) []line {
	head := line{
		{indent + Pad(Clean(st.Kind), nameColumn-len(indent), false), Plain},
		{Pad(string(r.Status), statusColumn-len(indent), false), r.Status.style()},
	}
	var more []span
	if st.Label != "" {
		more = append(more, span{Clean(st.Label), Strong})
	}
	if r.From != "" {
		more = append(more, span{"(from " + Clean(r.From) + ")", Faint})
	}
	return wrapped(head, append(more, phrases(r.Facts)...), quantity.Duration(r.Wall), width)
}

// outcomeLines are the permanent lines of a run that did not simply finish.
func outcomeLines(o Outcome, width int) []line {
	word, facts := o.Status, o.Facts
	if o.Status == Cached {
		word, facts = Done, []Fact{{Text: "nothing to execute"}}
	}
	head := line{{indent + Pad(string(word), nameColumn-len(indent), false), word.style()}}
	wall := ""
	if o.Wall != 0 {
		wall = quantity.Duration(o.Wall)
	}
	return wrapped(head, phrases(facts), wall, width)
}

func phrases(facts []Fact) []span {
	list := make([]span, len(facts))
	for i, f := range facts {
		list[i] = span{f.phrase(), Plain}
	}
	return list
}

// wrapped continues head with spans and, unless it is "", the wall time at the right. Spans that have no room go on in
// the next line, below a stage's label; on a terminal of few columns at the margin.
func wrapped(head line, spans []span, wall string, width int) []line {
	lines := []line{head}
	margin := span{strings.Repeat(" ", nameColumn+statusColumn-len(indent)), Plain}
	if width < 40 {
		margin.text = ""
	}
	add := func(s span) *line {
		last := &lines[len(lines)-1]
		if last.width()+len(indent)+Width(s.text) >= width && len(*last) > 1 {
			lines = append(lines, line{margin})
			last = &lines[len(lines)-1]
		}
		*last = append(*last, s)
		return last
	}
	for _, s := range spans {
		add(s)
	}
	if wall != "" {
		last := add(span{wall, Faint})
		s := &(*last)[len(*last)-1]
		s.text = Pad(s.text, Width(s.text)+min(wallColumn, width-1)-last.width(), true)
	}
	return lines
}

// cachedStage is a stage whose result was already stored.
type cachedStage struct {
	stage Stage
	from  string
}

// cachedLines lists consecutive cached stages in one wrapped line, with the runs that
// made them if not run itself.
func cachedLines(list []cachedStage, run string, width int) []line {
	if len(list) == 0 {
		return nil
	}
	var names, others []string
	own := 0
	for _, c := range list {
		names = append(names, stageName(c.stage))
		switch {
		case c.from == run || c.from == "":
			own++
		case !slices.Contains(others, c.from):
			others = append(others, c.from)
		}
	}
	text := strings.Join(names, ", ")
	switch {
	case len(others) > 0 && own > 0:
		text += " (partly from " + strings.Join(others, ", ") + ")"
	case len(others) > 0:
		text += " (from " + strings.Join(others, ", ") + ")"
	}
	var lines []line
	head := Pad(string(Cached), nameColumn-len(indent), false)
	for _, part := range Wrap(Clean(text), max(width-nameColumn-3, 20)) {
		lines = append(lines, line{{indent + head, Faint}, {part, Faint}})
		head = Pad("", nameColumn-len(indent), false)
	}
	return lines
}

// stageName is a stage with its label: "eval.gen test".
func stageName(st Stage) string {
	return strings.TrimRight(st.Kind+" "+st.Label, " ")
}

func (f Fact) phrase() string {
	switch {
	case f.Name == "":
		return Clean(f.Text)
	case f.Counts:
		return Clean(f.Text + " " + f.Name)
	}
	return Clean(f.Name + " " + f.Text)
}
