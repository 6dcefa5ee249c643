package config

import "exp/train/rl"

// Words of prefer.reference.
const (
	ReferenceStart = "start"
	ReferenceNone  = "none"
)

func preferKeys() []Key {
	on := []Clause{positive("prefer.steps")}
	single, paired := only("prefer.loss", rl.UnpairedLosses()...), except("prefer.loss", rl.UnpairedLosses()...)
	keys := []Key{
		{Path: "prefer.steps", Kind: Int, Default: is(0), Range: atLeast(0), Unit: "updates", Stages: at(Prefer),
			Help: "updates on preferences in a file (offline DPO), after sft and before reinforcement learning; 0 " +
				"skips the stage"},
	}
	keys = append(keys, block(on, at(Prefer), []Key{
		{Path: "prefer.source", Kind: String, Role: External, Stages: at(Prepare),
			Pattern: pattern("a path ending in .jsonl, .json, .csv, .tsv or .parquet, or "+
				"hub:ORG/NAME/FILE@REVISION", `hub:.+|.*\.((jsonl?|csv|tsv)(\.(gz|zst))?|parquet)`),
			Help: "pairs of answers to a prompt, chosen and rejected, or answers with a label (kto)"},
		{Path: "prefer.max_tokens", Kind: Int, Default: is(1024), Range: atLeast(0), Unit: "tokens",
			Help: "longest answer with its prompt; pairs with a longer one are left out. 0: no limit, and one that " +
				"is longer than the model's positions is an error"},
		{Path: "prefer.pairs_per_step", Kind: Int, Default: is(32), Range: atLeast(1), Unit: "pairs",
			When: []Clause{paired}, Help: "pairs per update"},
		{Path: "prefer.answers_per_step", Kind: Int, Default: is(32), Range: atLeast(2), Unit: "answers",
			When: []Clause{single},
			Help: "answers per update; kto estimates its KL divergence from them, so more make it steadier"},
	})...)
	keys = append(keys, block(on, at(Prefer), append(preferLossKeys(single, paired), Key{Path: "prefer.seed",
		Kind: Int, Default: is(0), Range: atLeast(0),
		Help: "root of the order of pairs; independent of the run's seed"}))...)
	keys = append(keys, foldedAdapters("prefer", on, Prefer)...)
	keys = append(keys, optimizer("prefer.optim", "updates", Default{}, on, Prefer)...)
	for i := range keys {
		keys[i].Late = true
	}
	return keys
}

// preferLossKeys are the settings of losses; single and paired hold for losses of single answers, and of pairs.
func preferLossKeys(single, paired Clause) []Key {
	referred := except("prefer.loss", append([]string{"orpo"}, rl.UnpairedLosses()...)...)
	return []Key{
		{Path: "prefer.loss", Kind: Enum, Default: is("sigmoid"),
			Words: append(rl.PairLosses(), rl.UnpairedLosses()...),
			Help: "loss of a pair: -log sigmoid of the margin (DPO), IPO's square, SLiC's hinge, ORPO's odds ratio, " +
				"or one that TRL has under its name; kto and apo_zero_unpaired are of single answers with a label"},
		{Path: "prefer.beta", Kind: Float, Default: is(0.1), Range: above(0),
			Help: "scale of an answer's log-ratio; smaller ones let the policy move further. In orpo the weight of " +
				"the odds ratio, lambda"},
		{Path: "prefer.reference", Kind: Enum, Words: []string{ReferenceStart, ReferenceNone},
			Default: is(ReferenceStart), When: []Clause{referred},
			Help: "policy below the ratio: the weights that the stage starts from, or none"},
		{Path: "prefer.per_token", Kind: Bool, Default: by("prefer.loss", is(false), when("ipo", is(true))),
			When: []Clause{referred},
			Help: "divide an answer's log-ratio by its tokens"},
		{Path: "prefer.smoothing", Kind: Float, Range: between(0, 0).below(0.5),
			Default: by("prefer.loss", is(0.0), when("robust", is(0.1)), when("exo_pair", is(0.001))),
			When:    []Clause{only("prefer.loss", "sigmoid", "robust", "exo_pair")},
			Help: "how probable it is that the rejected answer is the better one (conservative DPO; robust " +
				"corrects for it)"},
		{Path: "prefer.target_margin", Kind: Float, Default: is(0.0), Range: atLeast(0),
			When: []Clause{only("prefer.loss", "sigmoid")},
			Help: "subtracted from the margin, SimPO's gamma"},
		{Path: "prefer.chosen_weight", Kind: Float, Default: is(1.0), Range: above(0), When: []Clause{single},
			Help: "weight of good answers; the paper of KTO wants chosen_weight times their number to be 1 to 4/3 " +
				"of rejected_weight times the number of bad ones"},
		{Path: "prefer.rejected_weight", Kind: Float, Default: is(1.0), Range: above(0), When: []Clause{single},
			Help: "weight of bad answers"},
		{Path: "prefer.sft_weight", Kind: Float, Default: by("prefer.loss", is(0.0), when("orpo", is(1.0))),
			Range: atLeast(0), When: []Clause{paired},
			Help: "weight of the chosen answers' mean negative log-prob per token, added to the loss (RPO, ORPO)"},
	}
}

// foldedAdapters are the keys of a block with adapters that are folded into the weights at the end of a stage.
func foldedAdapters(prefix string, on []Clause, stage Stage) []Key {
	rank := prefix + ".lora.rank"
	keys := block(on, at(stage), []Key{
		{Path: rank, Kind: Int, Default: is(0), Range: between(0, 4096),
			Help: "rank of low-rank adapters (LoRA); only they learn, on frozen weights, and are folded into them " +
				"at the end; 0 trains all weights"},
	})
	return append(keys, block(append(on, positive(rank)), at(stage), append([]Key{
		{Path: prefix + ".lora.alpha", Kind: Float, Default: is(32.0), Range: above(0),
			Help: "adapters are multiplied by alpha/rank"},
		{Path: prefix + ".lora.targets", Kind: String, List: true, Default: is([]string{AllTargets}),
			Help: "linear layers with an adapter, as in train.lora.targets; or all"},
		{Path: prefix + ".lora.dropout", Kind: Float, Default: is(0.0), Range: atLeast(0).below(1), Unit: "fraction",
			Help: "dropout on the adapters' input, in updates; 0.05 is usual"},
	}, shapedAdapters(prefix)...))...)
}

func preferChecks() []check {
	return []check{
		foldsAdapter("prefer", func(r *Run) int { return r.Prefer.LoRA.Rank }),
		{[]string{"prefer.smoothing", "prefer.loss"}, func(r *Run) (string, string) {
			if r.Prefer.Loss == "exo_pair" && r.Prefer.Smoothing == 0 {
				return "prefer.smoothing is 0, and exo_pair takes its logarithm", "0.001, as without the key"
			}
			return "", ""
		}},
	}
}

// foldsAdapter refuses adapters of a block on weights that model.adapter is folded into.
func foldsAdapter(block string, rank func(r *Run) int) check {
	key := block + ".lora.rank"
	return check{[]string{key, "model.adapter", "sft.steps"}, func(r *Run) (string, string) {
		if rank(r) > 0 && r.Model.HasAdapter() && r.SFT.Steps == 0 {
			return key + ": model.adapter is folded into the weights, which adapters would freeze",
				key + ": 0 trains all weights, or name a model.base with the adapter in it"
		}
		return "", ""
	}}
}

// aboutPrefer returns help that does not fit on a key's help line; empty for most keys.
func aboutPrefer(path string) string {
	switch path {
	case "prefer.source":
		return aboutPreferSource
	case "prefer.loss":
		return aboutPreferLoss
	}
	return ""
}

const aboutPreferSource = `
  A row has TRL's columns chosen and rejected, with prompt or without. Lists of messages are
  written by the chat template, as for sft.source; texts are learned without a template, with
  data.chat: none, and an end token follows each:

    {"prompt": [{"role": "user", "content": "6*7?"}],
     "chosen": [{"role": "assistant", "content": "42"}],
     "rejected": [{"role": "assistant", "content": "43"}]}
    {"chosen": [{"role": "user", "content": "6*7?"}, {"role": "assistant", "content": "42"}],
     "rejected": [{"role": "user", "content": "6*7?"}, {"role": "assistant", "content": "43"}]}
    {"prompt": "6*7=", "chosen": "42", "rejected": "43"}
    {"chosen": "\n\nHuman: 6*7?\n\nAssistant: 42", "rejected": "\n\nHuman: 6*7?\n\nAssistant: 43"}

  Without prompt, or with one that is a text before lists, the messages that both begin with
  are the prompt. Of two texts it is what they begin with, up to the last turn of the assistant
  in it ("\n\nAssistant:"), or to the beginning of the word where they part. Optional columns
  are tools, system and id. Pairs whose answers are the same are left out, and counted.
  Messages of users may show images, as for sft.source: both sides show all of the column's.

  Learned are the tokens of the answers with their end tokens. The loss of a pair compares
  their log-probs, summed over these tokens, with prefer.reference's:

    DPO    loss: sigmoid           cDPO  smoothing: 0.1     RPO  sft_weight: 1
    IPO    loss: ipo               SLiC  loss: hinge
    SimPO  reference: none, per_token: true, beta: 2, target_margin: 1
    ORPO   loss: orpo              rDPO  loss: robust       EXO  loss: exo_pair
    NCA    loss: nca_pair          SPPO  loss: sppo_hard    BCO  loss: bco_pair
    APO    loss: apo_zero, where chosen answers are better than the model's own, or apo_down

    prefer: {steps: 200, source: pairs.parquet, max_tokens: 2048, optim: {lr: 5e-7}}

  ORPO has no reference and no stage before it: it learns the chosen answers (sft_weight: 1) and
  adds beta times -log sigmoid of the log odds ratio, of log-probs per token:

    prefer: {steps: 200, source: pairs.parquet, loss: orpo, beta: 0.1, optim: {lr: 8e-6}}

  KTO (loss: kto) learns from single answers that are good or bad, one a row, in TRL's columns
  prompt, completion and label. A file of pairs is two answers a row: chosen is good, rejected bad.

    {"prompt": [{"role": "user", "content": "6*7?"}],
     "completion": [{"role": "assistant", "content": "42"}], "label": true}
    {"prompt": "6*7=", "completion": "43", "label": false}

    prefer: {steps: 200, source: answers.jsonl, loss: kto, answers_per_step: 32, optim: {lr: 5e-7}}

  An answer's log-ratio is compared with an estimate of the KL divergence from the reference, from
  the step's answers under prompts of others. If good and bad answers differ in number, set one of
  chosen_weight and rejected_weight; exp run CONFIG --dry-run counts them and says which values the
  paper recommends. loss: apo_zero_unpaired compares with 0 instead.
`

const aboutPreferLoss = `
  An answer's reward is beta times its log-ratio to the reference; the margin of a pair is the
  reward of chosen minus the reward of rejected.

  Of pairs, with only the margin:
    sigmoid    DPO. The usual choice; smoothing for labels that may be wrong
    robust     DPO without the bias that wrong labels cause, if smoothing is their share
    ipo        pulls the margin to a half, so it does not grow without end where pairs agree
    hinge      leaves pairs alone whose margin is above 1
    exo_pair   KL divergence from the labels' distribution, in the other direction than DPO

  Of pairs, with each reward for itself: with the margin alone both answers may become less likely.
    nca_pair, bco_pair    pull chosen's reward up and rejected's down
    sppo_hard             pulls them to a half and minus a half
    apo_zero   raises chosen and lowers rejected ones: where chosen answers are better than the
               model's own
    apo_down   lowers both, rejected ones more: where the model's own are better than both

  Of pairs, without a reference:
    orpo       fine-tuning on chosen answers and an odds ratio, in place of sft and prefer

  Of single answers, each with a label (exp config explain prefer.source):
    kto        compares the reward with what other answers have; for thumbs up and down, or where
               good and bad answers are of different prompts
    apo_zero_unpaired    compares it with 0

  sft_weight adds the chosen answers' negative log-prob to every loss of pairs. docs/algorithms.md
  has the formulas and papers.
`
