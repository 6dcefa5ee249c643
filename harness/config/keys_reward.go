package config

import "time"

// Keys of the reward: of training and, where nothing else judges, of evaluations.

func rewardKeys() []Key {
	keys := []Key{
		{Path: "reward.kind", Kind: Enum, Default: is("task"),
			Words: []string{"task", "command", "judge", "model", Majority, Confidence, Likelihood},
			Help:  "what scores completions in training; of task prompts also in evaluations"},
		{Path: "reward.correct", Kind: Float, Default: is(1.0), When: ofReward("task", "majority"),
			Help: "reward of a right answer"},
		{Path: "reward.wrong", Kind: Float, Default: is(0.0), When: ofReward("task", "majority", "likelihood"),
			Help: "reward of a wrong answer; with reward.kind likelihood, of a completion without an answer"},
		{Path: "reward.format", Kind: Float, Default: sameAs("reward.wrong"), When: ofReward("task", "majority"),
			Help: "reward of a wrong answer in the right format"},
		{Path: "reward.components", Kind: String, List: true, Default: byKind("reward.components", is([]string{})), Pattern: pattern("a name of small letters, digits and _", `[a-z][a-z0-9_]*`),
			Help: "named parts of the reward, in the order in which algorithms weigh them; recorded as " +
				"reward/NAME/mean"},
		{Path: "reward.max_not_graded", Kind: Float, Default: is(0.1), Range: above(0).upTo(1), Unit: "fraction",
			Role: Nonsemantic,
			Help: "share of a step's completions that may go without a verdict; they are not trained on, and more " +
				"end the run (exit 8)"},
		{Path: "reward.retries", Kind: Int, Default: by("reward.kind", is(2), when("judge", is(6))),
			Range: between(0, 100), Role: Nonsemantic, When: ofReward("command", "judge"),
			Help: "how often to ask again about a completion after a program died or fell silent, or a server was " +
				"busy or did not answer"},
	}
	keys = append(keys, commandKeys()...)
	keys = append(keys, judgeKeys()...)
	keys = append(keys, rewardModelKeys()...)
	keys = append(keys, likelihoodKeys()...)
	for i := range keys {
		keys[i].Judges = keys[i].Path != "reward.components" // which change no score
	}
	return block([]Clause{except("task.kind", "outcomes")}, at(Train), keys)
}

func ofReward(kinds ...string) []Clause { return []Clause{only("reward.kind", kinds...)} }

func commandKeys() []Key {
	return block(ofReward("command"), at(Train), []Key{
		{Path: "reward.command", Kind: String, List: true,
			Help: "program and arguments that score completions, one JSON line in and one out for each"},
		{Path: "reward.files", Kind: String, List: true, Default: is([]string{}), Role: External,
			Help: "files and folders that the program reads in addition to those on its command line"},
		{Path: "reward.workers", Kind: Int, Default: is(1), Range: between(1, 256), Unit: "processes",
			Role: Nonsemantic,
			Help: "copies of the program that run at once"},
		{Path: "reward.batch", Kind: Int, Default: is(16), Range: between(1, 65536), Unit: "completions",
			Role: Nonsemantic,
			Help: "completions that a copy holds unanswered; it must answer them without waiting for more"},
		{Path: "reward.row_limit", Kind: Duration, Default: is(time.Minute), Range: above(0), Role: Nonsemantic,
			Help: "longest silence of the program while completions wait; then it is restarted"},
		{Path: "reward.batch_limit", Kind: Duration, Default: is(10 * time.Minute), Range: above(0), Role: Nonsemantic,
			Help: "time limit for all completions of a batch"},
		{Path: "reward.restarts", Kind: Int, Default: is(20), Range: atLeast(0), Role: Nonsemantic,
			Help: "how often copies may die or fall silent in one step before the run ends (exit 8)"},
	})
}

func judgeKeys() []Key {
	return block(ofReward("judge"), at(Train), []Key{
		{Path: "reward.judge.url", Kind: String, Pattern: pattern("a URL such as http://127.0.0.1:8000/v1", `https?://[^\s?#@]+`),
			Help: "URL of a server with OpenAI's chat completions, up to its version; /chat/completions is added"},
		{Path: "reward.judge.model", Kind: String, Pattern: pattern("a name", `.+`), Help: "model to ask the server for"},
		{Path: "reward.judge.template", Kind: String, Role: External, Pattern: pattern("a path", `.+`),
			Help: "file with the message to send; {prompt} (all messages of a chat, each under its role), " +
				"{response} and {gold} are filled in"},
		{Path: "reward.judge.pattern", Kind: String, Default: is(""), Pattern: pattern("a regular expression, or empty", `(?s).*`),
			Help: "regular expression (Go's syntax) whose first group is the score; its last match in the judge's " +
				"answer counts; empty: the answer holds a JSON object"},
		{Path: "reward.judge.field", Kind: String, Default: is("score"), Pattern: pattern("a name", `.+`),
			Help: "field of the JSON object that holds the score, if there is no pattern"},
		{Path: "reward.judge.low", Kind: Float, Null: true, Default: null(),
			Help: "lowest valid score; null: no limit"},
		{Path: "reward.judge.high", Kind: Float, Null: true, Default: null(),
			Help: "highest valid score; null: no limit"},
		{Path: "reward.judge.temperature", Kind: Float, Default: is(0.0), Range: atLeast(0),
			Help: "sampling temperature of the judge"},
		{Path: "reward.judge.max_tokens", Kind: Int, Default: is(512), Range: atLeast(1), Unit: "tokens",
			Help: "longest answer of the judge; a truncated one gives no score"},
		{Path: "reward.judge.key_env", Kind: String, Default: is(""), Pattern: pattern("the name of a variable, or empty", `[A-Za-z_][A-Za-z0-9_]*|`), Role: Nonsemantic,
			Help: "environment variable that holds the API key, which is never recorded; empty sends none"},
		{Path: "reward.judge.concurrent", Kind: Int, Default: is(4), Range: between(1, 1024), Unit: "requests",
			Role: Nonsemantic, Help: "requests in flight at once"},
		{Path: "reward.judge.rate", Kind: Float, Default: is(0.0), Range: atLeast(0), Unit: "requests per second",
			Role: Nonsemantic, Help: "requests a second; 0: no limit"},
		{Path: "reward.judge.timeout", Kind: Duration, Default: is(time.Minute), Range: above(0), Role: Nonsemantic,
			Help: "time limit of a request"},
		{Path: "reward.judge.cache", Kind: Bool, Default: is(true), Role: Nonsemantic,
			Help: "keep answers in the store by the digest of their request and send an equal request once, which " +
				"makes a judged run repeatable"},
	})
}

func rewardModelKeys() []Key {
	return block(ofReward("model"), at(Train), []Key{
		{Path: "reward.weights", Kind: String, Role: External, Pattern: pattern("a path", `.+`),
			Help: "Hugging Face folder of a sequence-classification model (Qwen2, Qwen3, Llama) with its " +
				"tokenizer, or hub:ORG/NAME@REVISION; the reward is its score at the last token"},
		{Path: "reward.text", Kind: String, Default: is("{prompt}{response}"), Pattern: pattern("a text with {response}", `(?s).*\{response\}.*`),
			Help: "text that the reward model reads unless it reads a chat; {prompt} (the texts of a chat's " +
				"messages) and {response} are filled in"},
		{Path: "reward.chat", Kind: Enum, Words: []string{Auto, None}, Default: is(Auto),
			Help: "auto: if prompts are chats, reward.text is the default and the reward model's folder has a chat " +
				"template, it reads the whole chat, completion included, in that template; none: it reads " +
				"reward.text"},
		{Path: "reward.label", Kind: Int, Default: is(0), Range: atLeast(0),
			Help: "which of the model's labels is the reward, counted from 0"},
	})
}

func likelihoodKeys() []Key {
	return block(ofReward("likelihood"), at(Train), []Key{
		{Path: "reward.likelihood.measure", Kind: Enum, Words: []string{"mean", "product", "log"}, Default: is("mean"),
			Late: true,
			Help: "mean probability of the answer's tokens, their product, which is the answer's probability, or " +
				"its logarithm"},
		{Path: "reward.likelihood.baseline", Kind: Bool, Default: is(false), Late: true,
			Help: "subtract the likelihood of the same answer without reasoning, and clip the difference to 0 to 1"},
		{Path: "reward.likelihood.learn", Kind: Float, Default: is(0.0), Range: atLeast(0), Late: true,
			Help: "weight of a term of the loss that makes reference answers likelier; if it is not 0, the policy " +
				"loss learns the reasoning alone"},
	})
}

// aboutReward returns help that does not fit on a key's help line; empty for most keys.
func aboutReward(path string) string {
	switch path {
	case "reward.kind":
		return `
  task       reward.correct, reward.wrong or reward.format, by the task's verdict
  command    a program of yours: reward.command
  judge      a language model behind an OpenAI-compatible server: reward.judge. No other
             run uses the network
  model      a sequence-classification model on our own engine: reward.weights
  majority   reward.correct for the answer that most completions of the problem have, else
             reward.format, or reward.wrong without an answer: TTRL (arXiv:2504.16084 §2).
             Answers are compared by the task's grader, without the gold answer; on a tie
             the first one wins
  confidence -entropy in nats, mean over the completion's tokens: RENT (arXiv:2505.22660)
  likelihood how likely the policy finds the gold answer in the place of the completion's own,
             after the reasoning before it (reward.likelihood), or reward.wrong if the
             completion has no such place: RLPR (arXiv:2506.18254), VeriFree
             (arXiv:2505.21493). Gold answers become training data

  With majority and confidence, gold answers serve metrics and evaluations alone. The task
  decides whether an answer is right, so accuracy, filters on acc and every evaluation mean
  the same with each kind. Only task.kind prompts has no gold answers: there the reward decides that
  too (task.prompts.pass), and scores evaluations.

  A completion that could not be scored is "not graded": it is recorded as an event, is not
  trained on, and never counts as a number; above reward.max_not_graded the run ends (exit
  8). The penalty algo.overlong applies to every kind.
`
	case "reward.likelihood.measure":
		return aboutLikelihood
	case "reward.likelihood.learn":
		return aboutLearning
	case "reward.components":
		return `
  correct  1 where the task calls the answer right, else 0
  format   1 where an answer was found, right or wrong, else 0
  score    the whole reward
  others   from the "components" in a command's answer, or the other fields of a judge's
           JSON object; each answer must have all of them
`
	case "reward.command":
		return aboutCommand
	case "reward.judge.url":
		return `
    reward:
      kind: judge
      judge: {url: http://127.0.0.1:8000/v1, model: qwen2.5-7b-instruct, template: judge.txt,
              low: 0, high: 10, key_env: JUDGE_KEY}

  with judge.txt ending, say, in: Answer with a JSON object: {"score": 0 to 10}.
  Requests that time out or get 408, 429 or 5xx are retried (reward.retries), after
  Retry-After or growing pauses; 401, 403 and 404 end the run. Answers are kept in the store.
`
	}
	return ""
}

// aboutCommand is the help of reward.command.
const aboutCommand = `
  The program is started once for each of reward.workers, in the current directory,
  with your rights and environment and without a sandbox. For every completion it reads a
  line like

    {"id": "7", "problem": "cd-12", "prompt": "…", "response": "…", "turns": 1, "gold": "…",
     "data_source": "countdown", "extra": {…}}

  and writes a line, in any order, flushed before it waits for more input:

    {"id": "7", "score": 0.5}
    {"id": "8", "score": 1, "components": {"style": 0.2, "length": 0.8}}
    {"id": "9", "error": "no unit in the question"}
    {"id": "10", "score": 0.9, "correct": true, "answer": "Oslo"}    (of task prompts)

  turns counts the policy's turns (rollout.tools). data_source is the row's, or else the task.
  extra is the problem's data; extra.columns has the columns of the data files that data.keep
  names. Of task prompts, gold is empty where the data has none. correct says whether the
  completion is right; by default task.prompts.pass decides. answer is its final answer, by
  which votes and different answers are counted; by default the whole text.

  The score may depend on this line only: reward.batch and reward.workers must not change
  it. Standard error goes to the log. A line that is not an answer, an unknown id or a second
  answer ends the run (exit 8). If the program ends or is silent for reward.row_limit, it is
  restarted and asked row by row for what is missing, reward.retries times; what it still
  does not answer is not graded.

  Program and arguments are part of the experiment, and so are the contents of the
  program and of each argument that is a file or folder; list other files that it reads
  in reward.files.

    reward: {kind: command, command: [go, run, ./configs/rewards/distance]}
`

// aboutLikelihood is the help of reward.likelihood.measure.
const aboutLikelihood = `
  The place of an answer is where the task's grader looks for it: after \boxed{, <answer>,
  Answer: or ####, the last one. The tokens before it stay as sampled; the answer and what
  closes it (}, </answer>, the end token) replace the rest. mean is of the answer's tokens
  alone, the others also of what closes it: models that write }$ or }. as one token find } alone
  unlikely, and have mean for a better measure.

    RLPR       algo: {kind: grpo}, reward.likelihood: {measure: mean, baseline: true}
    VeriFree   algo: {kind: rloo, aggregation: seq-mean-token-sum, kl: {loss_coef: 0}},
               reward.likelihood: {measure: product, learn: 1}
    JEPO       as VeriFree with measure: log and a negative reward.wrong (the bound of one
               sample, arXiv:2503.19618)

  RLPR's own baseline is of the policy before training; ours of the one that sampled.
`

// aboutLearning is the help of reward.likelihood.learn.
const aboutLearning = `
  With a likelihood f(answer | reasoning) the gradient of its expectation has two parts:
  f less a baseline times that of log p(reasoning), which is the policy loss, and the
  gradient of f itself by the answer's tokens, which is this term. With 1, an algo.advantage
  that does not divide (rloo) and algo.aggregation seq-mean-token-sum the sum is exact. The
  completion's own answer is then in no loss.
`
