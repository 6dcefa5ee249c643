package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"exp/cmd/exp/term"
	"exp/eval/rows"
	"exp/harness/config"
	"exp/harness/stage"
	"exp/train/tokenizer"
)

func tokenizerCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "tokenizer",
		Category: "Experiments",
		Usage:    "make a tokenizer from your own texts, and see what one does",
		Description: "A model reads ids, not text. Learn a vocabulary from the texts that the model will see, or look at how the tokenizer of a model folder " +
			"(tokenizer.json, as Hugging Face writes it) cuts a text into tokens.",
		UsageText: "exp tokenizer train train.jsonl --vocab-size 8192 --out tok # learn one from all texts of a file\n" +
			"exp tokenizer encode tok 'What is 12+30?' # its ids and pieces\n" +
			"exp tokenizer decode tok 318 220 17 # the text of ids",
		Subcommands: []*cli.Command{
			{
				Name: "train", ArgsUsage: "FILE...", Usage: "learn a byte-level BPE from files, or from a recipe's data",
				Description: "Starts from the 256 bytes and joins the most frequent neighbours until there are --vocab-size tokens, within the words that the pattern cuts. " +
					"Any text can be encoded afterwards. FILE is JSONL, JSON or parquet (--field says which of its fields are texts; without it all are), plain text, or a recipe (.yaml): the prompts and solutions of its training problems, whether they are made or read. " +
					"The same texts give the same tokenizer, in whatever order. Writes tokenizer.json, tokenizer_config.json, special_tokens_map.json and generation_config.json to --out.",
				UsageText: "exp tokenizer train train.jsonl --vocab-size 8192 --out tok # all texts of all rows\n" +
					"exp tokenizer train configs/stories_cpu_flowrl.yaml --vocab-size 768 # what a recipe trains on, written to its tokenizer.path\n" +
					"exp tokenizer train gsm8k.jsonl --field question --field answer --vocab-size 4096 --out tok # two fields\n" +
					"exp tokenizer train book.txt --vocab-size 2048 --special '<|im_start|>' --special '<|im_end|>' --out tok # with tokens for a chat",
				Flags: []cli.Flag{
					&cli.IntFlag{Name: "vocab-size", Usage: "make `N` tokens in all, special ones included"},
					&cli.StringFlag{Name: "out", Usage: "write to the folder `DIR`, which is made", DefaultText: "tokenizer.path of a recipe"},
					&cli.StringSliceFlag{Name: "field", Usage: "learn from the field `NAME`; may be given again", DefaultText: "all texts of a row"},
					&cli.StringSliceFlag{Name: "special", Usage: "add the special token `TEXT`; may be given again"},
					&cli.StringFlag{Name: "pattern", Usage: "cut words by the regular expression `RE`", DefaultText: "Qwen2's, each digit by itself"},
				},
				Action: a.tokenizerTrain,
			},
			{
				Name: "encode", ArgsUsage: "DIR [TEXT...]", Usage: "show the ids and the pieces of a text",
				Description: "DIR has a tokenizer.json. TEXT comes from stdin if it is not given. Text that spells a token such as <|im_end|> becomes that token; --plain leaves it text, " +
					"as it is in problems and completions.",
				UsageText: "exp tokenizer encode tok 'What is 12+30?' # a row per token\n" +
					"exp tokenizer encode models/qwen -o jsonl < prompt.txt # for programs\n" +
					"exp tokenizer encode tok 'a<|endoftext|>' --plain # no special tokens",
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "plain", Usage: "text that spells an added token stays text"},
					&cli.BoolFlag{Name: "special", Usage: "put the tokens around it that the tokenizer's own template has (BOS, EOS)"},
				},
				Action: a.tokenizerEncode,
			},
			{
				Name: "decode", ArgsUsage: "DIR [ID...]", Usage: "show the text of ids",
				Description: "DIR has a tokenizer.json. Ids come from stdin if they are not given; commas and brackets between them are left out.",
				UsageText: "exp tokenizer decode tok 318 220 17 # their text, special tokens spelled out\n" +
					"exp tokenizer decode tok --skip-special < ids.txt # as graders see it",
				Flags:  []cli.Flag{&cli.BoolFlag{Name: "skip-special", Usage: "leave special tokens out, as for a grader"}},
				Action: a.tokenizerDecode,
			},
		},
	}
}

func (a *app) tokenizerTrain(c *cli.Context) error {
	files, err := positionals(c, 1, -1)
	if err != nil {
		return err
	}
	texts := trainTexts{ctx: c.Context, files: files, fields: c.StringSlice("field"), load: func(file string) (*config.Resolved, error) {
		return config.Load(config.Input{File: file, User: a.userConfig()})
	}}
	out, err := texts.folder(c.String("out"))
	switch {
	case err != nil:
		return err
	case !c.IsSet("vocab-size"):
		return usagef("--vocab-size N is needed: how many tokens to make; 4096 to 32768 suit small models").see(a.line.command())
	case out == "":
		return usagef("--out DIR is needed: where the tokenizer goes").see(a.line.command())
	}
	for _, f := range files {
		if _, err := os.Stat(f); err != nil {
			return failf(exitNotFound, "%w", err)
		}
	}
	p, err := tokenizer.Train(texts.all(), tokenizer.TrainOptions{
		VocabSize: c.Int("vocab-size"), Pattern: c.String("pattern"), Special: c.StringSlice("special"), Progress: a.trainProgress(),
	})
	a.closeProgress()
	switch {
	case texts.err != nil && c.Context.Err() != nil:
		return stoppedf(c.Context, "learning stopped; nothing is written")
	case texts.err != nil:
		return failf(exitUsage, "%w", texts.err)
	case err != nil:
		return failf(exitUsage, "%w", err)
	}
	if err := writeFolder(out, p.Files()); err != nil {
		return err
	}
	if n := c.Int("vocab-size"); p.VocabSize() < n {
		a.warn("only %d of %d tokens: no two neighbours are left that are there twice", p.VocabSize(), n)
	}
	return a.out.printDocument(trainedDocument(out, p, &texts))
}

// trained is what exp tokenizer train tells programs.
type trained struct {
	Path         string  `json:"path"`
	VocabSize    int     `json:"vocab_size"`
	Bytes        int64   `json:"bytes"`
	Texts        int64   `json:"texts"`
	BytesPer     float64 `json:"bytes_per_token"`
	Description  string  `json:"description"`
	EndID        int32   `json:"end_id"`
	SpecialCount int     `json:"special_tokens"`
}

func trainedDocument(dir string, p *tokenizer.Pipeline, t *trainTexts) document {
	d := trained{Path: dir, VocabSize: p.VocabSize(), Bytes: t.bytes, Texts: t.count, Description: p.Description(),
		EndID: p.EndIDs()[0], SpecialCount: 1 + len(p.SpecialTokens().Additional)}
	tokens, bytes := 0, 0
	for _, s := range t.sample {
		ids, err := p.Encode(s, tokenizer.Options{})
		if err == nil {
			tokens, bytes = tokens+len(ids), bytes+len(s)
		}
	}
	if tokens > 0 {
		d.BytesPer = float64(bytes) / float64(tokens)
	}
	return document{Schema: "exp.tokenizer.train/1", Data: d, Human: func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: %d tokens, learned from %d texts of %d bytes; %.2f bytes a token in the first of them\n",
			d.Path, d.VocabSize, d.Texts, d.Bytes, d.BytesPer)
		return err
	}}
}

// trainProgress shows how many merges are done.
func (a *app) trainProgress() func(done, of int) {
	var p term.Progress
	reading := true
	return func(done, of int) {
		if p == nil {
			p = a.progressDisplay()
			p.StageStart(term.Stage{Kind: "read", Unit: "MiB"})
		}
		if of == 0 {
			p.StageProgress(term.Step{Step: done >> 20})
			return
		}
		if reading {
			reading = false
			p.StageStart(term.Stage{Kind: "merge", Total: of, Unit: "merge"})
		}
		p.StageProgress(term.Step{Step: done})
	}
}

// trainTexts reads the texts of files, once.
type trainTexts struct {
	ctx    context.Context
	files  []string
	fields []string
	load   func(recipe string) (*config.Resolved, error)
	err    error
	count  int64
	bytes  int64
	sample []string // the first texts, to measure on
}

// sampleBytes is how much text is kept to measure on.
const sampleBytes = 1 << 20

func (t *trainTexts) all() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, f := range t.files {
			for text, err := range t.of(f) {
				if err == nil {
					err = t.ctx.Err()
				}
				if err != nil {
					t.err = err
					return
				}
				if text == "" {
					continue
				}
				if t.bytes < sampleBytes {
					t.sample = append(t.sample, text)
				}
				t.count++
				t.bytes += int64(len(text))
				if !yield(text) {
					return
				}
			}
		}
	}
}

// folder is where the tokenizer goes: out, or the tokenizer.path of a recipe.
func (t *trainTexts) folder(out string) (string, error) {
	for _, f := range t.files {
		if out != "" || !isRecipe(f) {
			continue
		}
		r, err := t.load(f)
		if err != nil {
			return "", err
		}
		out = r.Run.Tokenizer.Path
	}
	return out, nil
}

func isRecipe(path string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path))
}

// of yields the texts of one file.
func (t *trainTexts) of(path string) iter.Seq2[string, error] {
	if isRecipe(path) {
		r, err := t.load(path)
		if err != nil {
			return func(yield func(string, error) bool) { yield("", err) }
		}
		return stage.TrainingTexts(&r.Run)
	}
	name := strings.TrimSuffix(path, ".gz")
	if !slices.Contains([]string{".json", ".jsonl", ".ndjson", ".parquet"}, filepath.Ext(name)) {
		return plainTexts(path)
	}
	return func(yield func(string, error) bool) {
		for r, err := range rows.Read(path) {
			if err != nil {
				yield("", err)
				return
			}
			list, err := t.textsOf(r)
			if err != nil {
				yield("", err)
				return
			}
			for _, s := range list {
				if !yield(s, nil) {
					return
				}
			}
		}
	}
}

// textsOf are the texts of the wanted fields, or of all.
func (t *trainTexts) textsOf(r rows.Row) ([]string, error) {
	if len(t.fields) == 0 {
		return stringsIn(r.Fields, nil), nil
	}
	var list []string
	for _, f := range t.fields {
		v, ok := r.Value(f)
		if !ok {
			return nil, r.Errorf(f, "it is not there; fields are %s", strings.Join(slices.Sorted(maps.Keys(r.Fields)), ", "))
		}
		list = stringsIn(v, list)
	}
	return list, nil
}

// stringsIn appends all strings in a value of JSON.
func stringsIn(v any, list []string) []string {
	switch v := v.(type) {
	case string:
		return append(list, v)
	case []any:
		for _, e := range v {
			list = stringsIn(e, list)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list = stringsIn(v[key], list)
		}
	}
	return list
}

// plainTexts yields a text file in parts of some thousand lines.
func plainTexts(path string) iter.Seq2[string, error] {
	const most = 1 << 20
	return func(yield func(string, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield("", err)
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, most)
		var part []byte
		for {
			line, err := r.ReadSlice('\n')
			part = append(part, line...)
			if end := err != nil && !errors.Is(err, bufio.ErrBufferFull); end || len(part) >= most {
				if !yield(string(part), nil) {
					return
				}
				part = part[:0]
				if end {
					if !errors.Is(err, io.EOF) {
						yield("", err)
					}
					return
				}
			}
		}
	}
}

// writeFolder writes files into a folder, which is made.
func writeFolder(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		err := replaceFile(filepath.Join(dir, name), func(w io.Writer) error {
			_, err := w.Write(files[name])
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
