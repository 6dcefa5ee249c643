package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"exp/cmd/exp/cli"
	"exp/experiments/quantity"
	"exp/harness/vocab"
)

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

func (a *app) tokenizerEncode(c *cli.Context) error {
	args, err := cli.Positionals(c, 1, -1)
	if err != nil {
		return err
	}
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
		{Key: "id", ID: true}, {Key: "piece", Text: func(v any) string { return strconv.Quote(v.(string)) }}, {Key: "token", Wide: true}, {Key: "kind"},
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

// decoded is what exp tokenizer decode tells programs.
type decoded struct {
	IDs  []int32 `json:"ids"`
	Text string  `json:"text"`
}

func (a *app) tokenizerDecode(c *cli.Context) error {
	args, err := cli.Positionals(c, 1, -1)
	if err != nil {
		return err
	}
	t, err := openTokenizer(args[0])
	if err != nil {
		return err
	}
	words, err := a.textOf(args[1:])
	if err != nil {
		return err
	}
	d := decoded{IDs: []int32{}}
	for _, word := range strings.FieldsFunc(words, func(r rune) bool { return strings.ContainsRune(" \t\r\n,[]", r) }) {
		id, err := strconv.ParseInt(word, 10, 32)
		if err != nil || id < 0 || int(id) >= t.VocabSize() {
			return a.Usagef("%q is no id of this vocabulary: they go from 0 to %d", word, t.VocabSize()-1)
		}
		d.IDs = append(d.IDs, int32(id))
	}
	if d.Text = t.DecodeAll(d.IDs); c.Bool("skip-special") {
		d.Text = t.Decode(d.IDs)
	}
	return a.Out.PrintDocument(cli.Document{Schema: "exp.tokenizer.decode/1", Data: d, Human: func(w io.Writer) error {
		_, err := fmt.Fprintln(w, d.Text)
		return err
	}})
}
