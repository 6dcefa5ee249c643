package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"exp/cmd/exp/cli"
	"exp/cmd/exp/term"
	"exp/harness/config"
	"exp/harness/endpoint"
)

func chatCommand(a *app) *cli.Command {
	return &cli.Command{
		Name:      "chat",
		Category:  "Results",
		Usage:     "talk to a model in the terminal, or ask it one question",
		ArgsUsage: "RUN | FOLDER [QUESTION]",
		Description: "Answers come token by token, and the conversation is kept, in the model's chat template; a " +
			"model without one continues each line as a text by itself. Ctrl-C stops an answer, and a second one, " +
			"or Ctrl-D, ends. A line that ends with a backslash goes on in the next; a line of \"\"\" begins and " +
			"ends a text of many. Lines that begin with / are commands: " + chatCommandList() + "; /help explains " +
			"them. /logprobs shows each token of the last answer with its log-prob and the likeliest others; " +
			"/problem asks a problem of the run's test set and shows the right answer and the grader's verdict. " +
			"/image and --image show image files to a model of text and images, before the text of the question, " +
			"and /video and --video folders of frames or GIF animations to one that reads videos.\n" +
			"With QUESTION, prints the answer alone and ends; - reads the question from stdin. Without it, each " +
			"line of a pipe is a question or a command, and the first error ends the program.\n" + aboutModels + "\n" +
			"Answers are drawn as exp endpoint draws them: the same seed and settings give the same answer. Each " +
			"answer's seed is shown, so any can be had again.",
		UsageText: strings.Join([]string{
			"exp chat @last # the newest run",
			"exp chat @last@50 'What is 17*3?' --seed 1 # its answer after step 50, in a script",
			"exp chat weights/qwen2.5-0.5b --system 'Be brief.' --temperature 0.7",
			"exp chat weights/qwen2.5-vl-3b 'How many cats?' --image cats.png # about an image",
			"exp chat hub:Qwen/Qwen2.5-0.5B-Instruct@main - --json < question.txt # with tokens and log-probs",
		}, "\n"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "system", Usage: "begin with the system message `TEXT`",
				DefaultText: "the run's, or the template's own"},
			&cli.StringSliceFlag{Name: "image", Usage: "show the image in `FILE` with the first question (PNG, " +
				"JPEG, WebP, GIF, BMP)"},
			&cli.StringSliceFlag{Name: "video", Usage: "show the video whose frames are in the folder `DIR`, or a " +
				"GIF animation, with the first question"},
			&cli.Float64Flag{Name: "temperature", Value: 1, Usage: "sample at temperature `T`, 0 for greedy"},
			&cli.Float64Flag{Name: "top-p", Value: 1, Usage: "sample from the likeliest tokens of total probability " +
				"`P`"},
			&cli.IntFlag{Name: "top-k", Usage: "sample from the `K` likeliest tokens, 0 for all"},
			&cli.Float64Flag{Name: "min-p", Usage: "sample from tokens at least `P` times as likely as the likeliest"},
			&cli.Float64Flag{Name: "repetition-penalty", Value: 1, Usage: "divide the positive logits of tokens " +
				"that the prompt or the answer has by `X`, and multiply negative ones; 1 is off"},
			&cli.Float64Flag{Name: "presence-penalty", Usage: "lower the logits of tokens that the " +
				"answer has by `X`"},
			&cli.Float64Flag{Name: "frequency-penalty", Usage: "lower a token's logit by `X` each time that the " +
				"answer has it"},
			&cli.IntFlag{Name: "min-tokens", Usage: "an answer does not end before `N` tokens"},
			&cli.Int64Flag{Name: "seed", Usage: "seed `N` of every answer", DefaultText: "a random one for each"},
			&cli.IntFlag{Name: "max-tokens", Aliases: []string{"max-new-tokens"},
				Usage:       "an answer has at most `N` tokens",
				DefaultText: "as many as fit"},
		}, modelFlags()...),
		BashComplete: a.completesRuns(1, true, modelCandidates),
		Action:       cli.WithArgs(1, 2, a.chat),
	}
}

// topShown is how many of the likeliest tokens /logprobs shows.
const topShown = 5

// chat asks one question, or talks.
func (a *app) chat(c *cli.Context, args []string) error {
	sampling := chatSampling(c, endpoint.Sampling{Temperature: 1, TopP: 1})
	if err := sampling.Check(); err != nil {
		return a.Usagef("--%w", err)
	}
	if c.IsSet("max-tokens") && sampling.New < 1 {
		return a.Usagef("--max-tokens %d: it must be at least 1", sampling.New)
	}
	question, single, err := a.chatQuestion(args)
	if err != nil {
		return err
	}
	// One conversation needs one sequence; more would take memory.
	x, closed, err := a.openModel(c, args[0], config.Value{Path: "rollout.max_sequences", Value: 1, From: "exp chat"})
	if err != nil {
		return err
	}
	defer closed()
	system := x.config.Run.Data.System
	if c.IsSet("system") {
		system = c.String("system")
	}
	if !x.Chats() && c.String("system") != "" {
		return a.Usagef("--system: %s has no chat template, and so no system message", x.name)
	}
	images, err := a.readImages(x, c.StringSlice("image"))
	if err != nil {
		return err
	}
	videos, err := a.readVideos(x, c.StringSlice("video"))
	if err != nil {
		return err
	}
	images = append(images, videos...)
	talk := x.NewConversation(system, chatSampling(c, x.Sampling()))
	if single {
		return a.answerOnce(c.Context, talk, x.name, question, images)
	}
	s := newChatSession(a, c.Context, x, talk)
	s.images = images
	return s.run()
}

// chatSampling returns how answers are drawn: as flags say, and else as by default.
func chatSampling(c *cli.Context, s endpoint.Sampling) endpoint.Sampling {
	for name, to := range map[string]*float64{"temperature": &s.Temperature, "top-p": &s.TopP, "min-p": &s.MinP,
		"repetition-penalty": &s.Penalties.Repetition, "presence-penalty": &s.Penalties.Presence,
		"frequency-penalty": &s.Penalties.Frequency} {
		if c.IsSet(name) {
			*to = c.Float64(name)
		}
	}
	if c.IsSet("top-k") {
		s.TopK = c.Int("top-k")
	}
	s.New, s.Least = c.Int("max-tokens"), c.Int("min-tokens")
	if c.IsSet("seed") {
		seed := c.Int64("seed")
		s.Seed = &seed
	}
	return s
}

// chatQuestion returns the only question; single is false if there is a conversation instead.
func (a *app) chatQuestion(args []string) (question string, single bool, err error) {
	switch {
	case len(args) == 1 && !a.Out.ForPeople():
		return "", false, a.Usagef("a conversation is for people: -o %s needs a QUESTION, or - to read it from stdin",
			a.Out.Format)
	case len(args) == 1:
		return "", false, nil
	case args[1] == "-":
		b, err := io.ReadAll(a.Stdin)
		if err != nil {
			return "", false, err
		}
		question = strings.TrimSuffix(string(b), "\n")
	default:
		question = args[1]
	}
	if question == "" {
		return "", false, a.Usagef("the question is empty")
	}
	return question, true, nil
}

// oneAnswer is the schema exp.chat/1.
type oneAnswer struct {
	Model    string   `json:"model"`
	Question string   `json:"question"`
	Images   []string `json:"images,omitempty"` // their names, <image 448×336 sha256:ab12cd34>
	endpoint.Answer
}

// answerOnce prints the answer to one question: for people while it is sampled, for programs with its tokens.
func (a *app) answerOnce(ctx context.Context, talk *endpoint.Conversation, model, question string,
	images []endpoint.Image) error {
	people := a.Out.ForPeople()
	talk.Sampling.Scored = !people
	text := a.newAnswerText()
	answer, err := talk.Ask(ctx, question, func(piece string) error {
		if !people {
			return nil
		}
		return text.write(piece)
	}, images...)
	if people && text.begun {
		err = errors.Join(err, text.end())
	}
	switch {
	case ctx.Err() != nil:
		return cli.Stoppedf(ctx, "the answer was stopped")
	case err != nil:
		return chatFailure(err, false)
	case !people:
		said := oneAnswer{Model: model, Question: question, Answer: answer}
		for _, im := range images {
			said.Images = append(said.Images, im.Name)
		}
		return a.Out.PrintDocument(cli.Document{Schema: "exp.chat/1", Data: said})
	case answer.Finish == "length":
		a.Note("cut after %d tokens", answer.New)
	}
	return nil
}

// answerText writes an answer to stdout while it is sampled.
type answerText struct {
	w     io.Writer
	clean bool // a terminal must not obey the model
	begun bool
	line  bool // the text ends with a line
}

func (a *app) newAnswerText() *answerText { return &answerText{w: a.Out.W, clean: a.Out.Stream.TTY} }

func (t *answerText) write(piece string) error {
	t.begun, t.line = true, strings.HasSuffix(piece, "\n")
	if t.clean {
		piece = term.CleanLines(piece)
	}
	_, err := io.WriteString(t.w, piece)
	return err
}

// end ends the last line.
func (t *answerText) end() error {
	if t.line {
		return nil
	}
	_, err := fmt.Fprintln(t.w)
	return err
}

// chatFailure words an error about a question.
func chatFailure(err error, talking bool) error {
	var long *endpoint.LengthError
	var bad *endpoint.QuestionError
	switch {
	case errors.As(err, &bad):
		return cli.Failf(cli.ExitUsage, "%w", err)
	case !errors.As(err, &long):
		return err
	}
	what, help := "the question", "shorten it"
	if talking {
		what, help = "the conversation", "/undo takes the last question back, /reset starts over"
	}
	return cli.Failf(cli.ExitUsage, "%s has %d tokens: with %d for the answer they are more than the %d that the "+
		"model reads here", what, long.Prompt, long.New, long.Context).
		Advise(help + "; --context N reads more, if the model has the positions")
}
