package main

import (
	"cmp"
	"fmt"
	"strconv"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/harness/bench"
)

// writeBench writes the measurements for people.
func writeBench(p *cli.Page, b *benchmark) error {
	p.Heading("bench " + b.Suite)
	s := b.Settings
	p.Facts(
		cli.Fact{Name: "processor", Text: fmt.Sprintf("%s, %d cores", cmp.Or(b.CPU, "unknown"), b.Cores)},
		cli.Fact{Name: "engine", Text: fmt.Sprintf("%s, %s, %s (%s)", b.Backend, b.Where, b.DType, b.Class)},
		cli.Fact{Name: "program", Text: b.Build.String()},
		cli.Fact{Name: "figures", Text: fmt.Sprintf("median (least–greatest) of %d; peak share: of the median peak",
			s.Repeat)},
	)
	if b.Machine != nil {
		if err := writeBenchMachine(p, b); err != nil {
			return err
		}
	}
	if b.Folder != nil {
		if err := writeBenchFolder(p, b.Folder, s); err != nil {
			return err
		}
	}
	for i := range b.Models {
		if err := writeBenchModel(p, &b.Models[i], s); err != nil {
			return err
		}
	}
	return p.Close()
}

// writeBenchMachine writes the limits of the machine.
func writeBenchMachine(p *cli.Page, b *benchmark) error {
	p.Heading("machine")
	rows := [][]any{}
	add := func(what string, x *bench.Spread, unit string) {
		if x != nil {
			rows = append(rows, []any{what, x.Median, between(*x), unit})
		}
	}
	add("peak, 1 thread", b.Machine.PeakOne, "GFLOP/s")
	add(fmt.Sprintf("peak, %d threads", b.Threads), &b.Machine.Peak, "GFLOP/s")
	add(fmt.Sprintf("reading, %d threads", b.Threads), b.Machine.Read, "GB/s")
	return p.Table([]cli.Column{{Title: "what"}, {Title: "median"}, {Title: "range"}, {Title: "unit"}}, rows)
}

// share formats a share of the peak, nothing where the peak is not known.
func share(x float64) string {
	if x == 0 {
		return ""
	}
	return quantity.Percent(x, 0)
}

// between formats the range of a spread.
func between(s bench.Spread) string { return quantity.Short(s.Min) + "–" + quantity.Short(s.Max) }

func writeBenchModel(p *cli.Page, m *bench.ModelReport, s bench.Settings) error {
	p.Heading("model " + m.Name)
	p.Line("%d layers, width %d, heads %d/%d, ffn %d, vocabulary %d; %s weights", m.Layers, m.Width, m.Heads,
		m.KVHeads, m.FFN, m.Vocab, quantity.Count(int64(m.Weights)))
	if err := writePasses(p, m, s); err != nil {
		return err
	}
	return writeMatMuls(p, m.MatMul)
}

// writeBenchFolder writes the sampling speed of a folder's model.
func writeBenchFolder(p *cli.Page, f *bench.FolderReport, s bench.Settings) error {
	p.Heading("folder " + f.Path)
	p.Line("%s parameters, %s of %s weights, loaded in %s; prompts of %d tokens, completions of %d",
		quantity.Parameters(int64(f.Parameters)), quantity.Bytes(f.Weights), f.Stored,
		quantity.Duration(quantity.Seconds(f.Load)), s.Prompt, s.New)
	var rows [][]any
	for _, x := range f.Speeds {
		rows = append(rows, []any{x.Sequences, x.Prefill.TokensPer.Median, between(x.Prefill.TokensPer),
			share(x.Prefill.Share),
			x.Decode.TokensPer.Median, between(x.Decode.TokensPer), share(x.Decode.Share), x.Read.Median,
			quantity.Bytes(x.Decode.Memory)})
	}
	return p.Table([]cli.Column{{Title: "at once"}, {Title: "prefill tok/s"}, {Title: "range"}, {Title: "peak"},
		{Title: "decode tok/s"}, {Title: "range"}, {Title: "peak"}, {Title: "GB/s"}, {Title: "memory", Drop: 1}}, rows)
}

// writePasses writes training, log-probs and sampling, and below them the phases of a
// training step.
func writePasses(p *cli.Page, m *bench.ModelReport, s bench.Settings) error {
	var rows [][]any
	add := func(what string, x *bench.Passes) {
		rows = append(rows, []any{what, x.TokensPer.Median, between(x.TokensPer), x.GFLOPS.Median,
			share(x.Share), quantity.Bytes(x.Memory)})
	}
	batch := fmt.Sprintf("%d × %d", s.Batch, s.Length)
	if m.Train != nil {
		add("train "+batch, &m.Train.Passes)
	}
	if m.LogProb != nil {
		add("logprob "+batch, m.LogProb)
	}
	if m.Sample != nil {
		add(fmt.Sprintf("sample %d × (%d + %d)", s.Sequences, s.Prompt, s.New), m.Sample)
	}
	if len(rows) == 0 {
		return nil
	}
	columns := []cli.Column{{Title: "work"}, {Title: "tok/s"}, {Title: "range"}, {Title: "GFLOP/s"},
		{Title: "peak share"}, {Title: "memory"}}
	if err := p.Table(columns, rows); err != nil || m.Train == nil {
		return err
	}
	text := "a training step:"
	for i, f := range m.Train.Phases {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf(" %s %s", f.Name, quantity.Percent(f.Seconds.Median/m.Train.Seconds.Median, 1))
	}
	p.Line("%s", text)
	return nil
}

// writeMatMuls writes a row for each operation and shape.
func writeMatMuls(p *cli.Page, list []bench.MatMul) error {
	var rows [][]any
	for _, x := range list {
		op, roofline := x.Op, ""
		if x.Decode {
			op, roofline = "decode", share(x.RooflineShare)
		}
		rows = append(rows, []any{x.Layer, op, x.M, strconv.Itoa(x.N) + "×" + strconv.Itoa(x.K), x.GFLOPS.Median,
			between(x.GFLOPS),
			share(x.Share), x.Bytes.Median, roofline})
	}
	if len(rows) == 0 {
		return nil
	}
	return p.Table([]cli.Column{{Title: "matmul"}, {Title: "op"}, {Title: "rows"}, {Title: "weight"},
		{Title: "GFLOP/s"}, {Title: "range"},
		{Title: "peak share"}, {Title: "GB/s", Drop: 1}, {Title: "roofline"}}, rows)
}
