package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/vocab"
)

func tokenizerCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:     "tokenizer",
		Category: "Experiments",
		Usage:    "train a tokenizer on your texts, encode and decode",
		Description: "A model reads token ids, not text. Learn a vocabulary from the texts that the model will " +
			"see, or show how the tokenizer of a model folder (tokenizer.json, in Hugging Face's format) splits " +
			"a text into tokens.",
		UsageText: "exp tokenizer train train.jsonl --vocab-size 8192 --out tok # learn one from all texts " +
			"of a file\n" +
			"exp tokenizer encode tok 'What is 12+30?' # its ids and pieces\n" +
			"exp tokenizer decode tok 318 220 17 # the text of ids",
		Subcommands: []*cli.Command{
			{
				Name: "train", ArgsUsage: "FILE...", Usage: "learn a byte-level BPE from files, or from a " +
					"recipe's data",
				Description: "Starts from the 256 bytes and merges the most frequent pairs until there are " +
					"--vocab-size tokens, within the words that the pattern splits off. The result can encode " +
					"any text. FILE is JSONL, JSON, parquet, .csv or .tsv, also with .gz or .zst (--field selects " +
					"fields; default: all texts), plain text, or a recipe (.yaml): the prompts and solutions of " +
					"its training problems. The same texts give the same tokenizer, in any order. --out gets " +
					"tokenizer.json, tokenizer_config.json, special_tokens_map.json and generation_config.json.",
				UsageText: "exp tokenizer train train.jsonl --vocab-size 8192 --out tok # all texts of all rows\n" +
					"exp tokenizer train configs/stories_cpu_flowrl.yaml --vocab-size 768 # what a recipe trains " +
					"on, written to its tokenizer.path\n" +
					"exp tokenizer train qa.jsonl --field q --field a --vocab-size 4096 --out tok # two " +
					"fields\n" +
					"exp tokenizer train a.txt --vocab-size 2048 --special '<|im_end|>' --out tok # with a " +
					"token that ends a message",
				Flags: []cli.Flag{
					&cli.IntFlag{Name: "vocab-size", Usage: "make `N` tokens in all, special ones included"},
					&cli.StringFlag{Name: "out", Usage: "write to the new folder `DIR`",
						DefaultText: "tokenizer.path of a recipe"},
					&cli.BoolFlag{Name: "force", Usage: "replace the tokenizer in DIR if it has one"},
					&cli.StringSliceFlag{Name: "field", Usage: "learn from the field `NAME`; may be given again",
						DefaultText: "all texts of a row"},
					&cli.StringSliceFlag{Name: "special", Usage: "add the special token `TEXT`; may be given again"},
					&cli.StringFlag{Name: "pattern", Usage: "cut words by the regular expression `RE`",
						DefaultText: "Qwen2's, each digit by itself"},
				},
				Action: cli.WithArgs(1, -1, a.tokenizerTrain),
			},
			{
				Name: "encode", ArgsUsage: "DIR [TEXT...]", Usage: "show the ids and the pieces of a text",
				Description: "DIR has a tokenizer.json. Without TEXT it reads stdin. Text that spells a token " +
					"such as <|im_end|> becomes that token; --plain keeps it as text, as in problems and " +
					"completions.",
				UsageText: "exp tokenizer encode tok 'What is 12+30?' # a row per token\n" +
					"exp tokenizer encode models/qwen -o jsonl < prompt.txt # for programs\n" +
					"exp tokenizer encode tok 'a<|endoftext|>' --plain # no special tokens",
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "plain", Usage: "keep text that spells a special token as text"},
					&cli.BoolFlag{Name: "special", Usage: "add the special tokens of the tokenizer's own " +
						"template (BOS, EOS)"},
				},
				Action: cli.WithArgs(1, -1, a.tokenizerEncode),
			},
			{
				Name: "decode", ArgsUsage: "DIR [ID...]", Usage: "show the text of ids",
				Description: "DIR has a tokenizer.json. Without ID it reads stdin. Commas and brackets between " +
					"ids are ignored.",
				UsageText: "exp tokenizer decode tok 318 220 17 # their text, special tokens spelled out\n" +
					"exp tokenizer decode tok --skip-special < ids.txt # as graders see it",
				Flags: []cli.Flag{&cli.BoolFlag{Name: "skip-special",
					Usage: "omit special tokens, as for a grader"}},
				Action: cli.WithArgs(1, -1, a.tokenizerDecode),
			},
		},
	}
}

func (a *app) tokenizerTrain(c *cli.Context, files []string) error {
	texts := vocab.Texts{Files: files, Fields: c.StringSlice("field"),
		Load: func(file string) (*config.Resolved, error) {
			return config.Load(config.Input{File: file, User: a.userConfig(), Find: a.hubCache().Find})
		}}
	out := c.String("out")
	if out == "" {
		var err error
		if out, err = texts.Folder(); err != nil {
			return err
		}
	}
	switch {
	case !c.IsSet("vocab-size"):
		return a.Usagef("--vocab-size N is needed: how many tokens to make; 4096 to 32768 suit small models")
	case out == "":
		return a.Usagef("--out DIR is missing: where should the tokenizer go?")
	}
	for _, f := range files {
		if _, err := os.Stat(f); err != nil {
			return cli.Failf(cli.ExitNotFound, "%w", err)
		}
	}
	if _, err := os.Lstat(filepath.Join(out, "tokenizer.json")); err == nil && c.IsSet("out") && !c.Bool("force") {
		return cli.Usagef("%s has a tokenizer already: a model that was trained with it would lose it", out).
			Advise("name a new folder, or give --force to replace it")
	}
	l, err := texts.Learn(c.Context, out, vocab.Options{
		Size: c.Int("vocab-size"), Pattern: c.String("pattern"), Special: c.StringSlice("special"),
		Progress: a.trainProgress(),
	})
	a.CloseProgress()
	switch {
	case err != nil && c.Context.Err() != nil:
		return cli.Stoppedf(c.Context, "training stopped; nothing was written")
	case err != nil:
		return cli.Failf(cli.ExitUsage, "%w", err)
	}
	if err := l.Write(replaceFile); err != nil {
		return err
	}
	if n := c.Int("vocab-size"); l.VocabSize < n {
		a.Warn("only %d of %d tokens: no pair of tokens is left that occurs twice", l.VocabSize, n)
	}
	return a.Out.PrintText("exp.tokenizer.train/1", l, "%s: %d tokens, learned from %s of %d bytes; "+
		"%.2f bytes a token in the first of them\n", l.Path, l.VocabSize, quantity.Plural(int(l.Texts), "text"),
		l.Bytes, l.BytesPer)
}

// trainProgress shows the number of merges done.
func (a *app) trainProgress() func(done, of int) {
	var p term.Progress
	reading := true
	return func(done, of int) {
		if p == nil {
			p = a.Progress()
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

// openTokenizer reads the tokenizer of a folder.
func openTokenizer(path string) (vocab.Tokenizer, error) {
	t, err := vocab.Open(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return t, cli.Failf(cli.ExitNotFound, "%w", err)
	case err != nil:
		return t, cli.Failf(cli.ExitUsage, "%w", err)
	}
	return t, nil
}

// textOf joins arguments; without any it reads standard input.
func (a *app) textOf(args []string) (string, error) {
	if len(args) > 0 {
		return strings.Join(args, " "), nil
	}
	all, err := io.ReadAll(a.Stdin)
	return string(all), err
}

func (a *app) tokenizerEncode(c *cli.Context, args []string) error {
	t, err := openTokenizer(args[0])
	if err != nil {
		return err
	}
	text, err := a.textOf(args[1:])
	if err != nil {
		return err
	}
	ids, err := t.Encode(text, !c.Bool("plain"), c.Bool("special"))
	if err != nil {
		return cli.Failf(cli.ExitUsage, "%w", err)
	}
	out := cli.Table{Schema: "exp.tokenizer.encode/1", Columns: []cli.Column{
		{Key: "id", ID: true}, {Key: "piece", Text: func(v any) string { return strconv.Quote(v.(string)) }},
		{Key: "token", Wide: true}, {Key: "kind"},
	}}
	for _, id := range ids {
		out.Rows = append(out.Rows, []any{id, string(t.Piece(id)), t.Token(id), t.Kind(id)})
	}
	if err := a.Out.PrintTable(out); err != nil {
		return err
	}
	if a.Out.ForPeople() && len(ids) > 0 {
		a.Note("%s for %s", quantity.Plural(len(ids), "token"), quantity.Plural(len(text), "byte"))
	}
	return nil
}

// decoded is the result of exp tokenizer decode for programs.
type decoded struct {
	IDs  []int32 `json:"ids"`
	Text string  `json:"text"`
}

func (a *app) tokenizerDecode(c *cli.Context, args []string) error {
	t, err := openTokenizer(args[0])
	if err != nil {
		return err
	}
	words, err := a.textOf(args[1:])
	if err != nil {
		return err
	}
	d := decoded{IDs: []int32{}}
	for _, word := range strings.FieldsFunc(words, func(r rune) bool {
		return strings.ContainsRune(" \t\r\n,[]", r)
	}) {
		id, err := strconv.ParseInt(word, 10, 32)
		if err != nil || id < 0 || int(id) >= t.VocabSize() {
			return a.Usagef("%q is not an id of this vocabulary; ids go from 0 to %d", word, t.VocabSize()-1)
		}
		d.IDs = append(d.IDs, int32(id))
	}
	if d.Text = t.DecodeAll(d.IDs); c.Bool("skip-special") {
		d.Text = t.Decode(d.IDs)
	}
	return a.Out.PrintText("exp.tokenizer.decode/1", d, "%s\n", d.Text)
}
