package forecast

import (
	"cmp"
	"fmt"

	"exp/experiments/quantity"
	"exp/harness/config"
	"exp/harness/device"
	"exp/harness/stage"
	"exp/train/model"
	"exp/train/tensor"
)

// SharingError says why ranks cannot share the work of a configuration.
type SharingError struct{ problem, do string }

func (e *SharingError) Error() string { return e.problem }

// Hint says what to change.
func (e *SharingError) Hint() string { return e.do }

// learners returns how many of n ranks learn at the same time in some stage, and what they are called.
func learners(c *config.Run, n int) (count int, who string) {
	switch count = stage.Learners(c, n).Ranks; {
	case count == n:
		return n, "every rank"
	case c.LearnsFirst():
		return n, "in " + tuningName(c) + " every rank"
	}
	return count, "every rank that learns"
}

// worksFirst reports whether all ranks work together in a stage before training.
func worksFirst(c *config.Run) bool { return c.LearnsFirst() || c.Data.PassRate.Samples > 0 }

// tuningName names the first stage before training in which all ranks work together.
func tuningName(c *config.Run) string {
	switch {
	case c.SFT.Steps > 0:
		return "SFT (sft.steps)"
	case c.RewardModel.Steps > 0:
		return "training of the reward model (reward_model.steps)"
	case c.Prefer.Steps == 0:
		return "measuring pass rates (data.pass_rate.samples)"
	}
	return "learning from preferences (prefer.steps)"
}

// checkSlices returns an error if n ranks cannot all have a slice that need one.
func checkSlices(c *config.Run, n int) error {
	t, slices := c.Compute.TensorParallel, c.Train.Slices
	count, who := learners(c, n)
	if count/t <= slices {
		return nil
	}
	if t > 1 {
		who = fmt.Sprintf("every group of %d ranks (compute.tensor_parallel)", t)
	}
	return &SharingError{fmt.Sprintf("--ranks %d: %s has %s (train.slices), and %s needs one", n, c.Name,
		quantity.Plural(slices, "slice"), who),
		fmt.Sprintf("--ranks %d is the most; a larger compute.tensor_parallel lets more share the run, and so does "+
			"train.slices, which makes another run", slices*t+n-count)}
}

// CheckRanks returns an error if the work of a configuration cannot be cut for n ranks.
func CheckRanks(r *config.Resolved, n int) error {
	c := &r.Run
	if err := checkSamplers(c, n); err != nil {
		return err
	}
	if err := checkMultiples(c, n); err != nil {
		return err
	}
	if err := checkSlices(c, n); err != nil {
		return err
	}
	t := c.Compute.TensorParallel
	count, who := learners(c, n)
	if count > t && c.Compute.Offload == config.OffloadAll && device.UsesGPU(c) {
		return fmt.Errorf("--ranks %d: %s has compute.offload: all, but %s exchanges gradients, which must lie "+
			"in its GPU's memory; set it to moments or auto", n, c.Name, who)
	}
	arch, err := architectureOf(c, 0)
	if err != nil {
		return nil // what it lacks is said elsewhere
	}
	for _, x := range products(c) {
		if err := tensor.Check(x.key, arch, x.ranks); err != nil {
			return &SharingError{fmt.Sprintf("--ranks %d: %s: %v", n, c.Name, err),
				fmt.Sprintf("%s: %d is the most for this model and these ranks", x.key, mostTensor(c, arch, x.key, n))}
		}
	}
	for _, x := range teachersOf(c) {
		if !x.known {
			continue
		}
		if err := tensor.Check(tensorKey, x.arch, c.Compute.TensorParallel); err != nil {
			return &SharingError{fmt.Sprintf("--ranks %d: %s: the teacher %s: %v", n, c.Name, x.name, err),
				tensorKey + ": 1, or another teacher"}
		}
	}
	return nil
}

// mostTensor returns the largest value of a key that asks n ranks to share products of this model.
func mostTensor(c *config.Run, arch model.Config, key string, n int) int {
	fits := func(value int) bool {
		other := *c
		if key == rolloutTensorKey {
			other.Compute.RolloutTensor = value
		} else {
			other.Compute.TensorParallel = value
		}
		return multiples(&other, n) && checkSlices(&other, n) == nil && tensor.Check(key, arch, value) == nil
	}
	for value := n; value > 1; value-- {
		if fits(value) {
			return value
		}
	}
	return 1
}

// Keys of the numbers of ranks that share products.
const (
	tensorKey        = "compute.tensor_parallel"
	rolloutTensorKey = "compute.rollout_tensor_parallel"
)

// shared is a number of ranks that share products.
type shared struct {
	key   string
	ranks int
}

// products returns how many ranks share the products of training and of sampling.
func products(c *config.Run) [2]shared {
	sampling := shared{rolloutTensorKey, c.Compute.RolloutTensor}
	train := shared{tensorKey, c.Compute.TensorParallel}
	if sampling.ranks == 0 {
		sampling = train
	}
	return [2]shared{train, sampling}
}

// multiples reports whether n ranks make whole groups that share products.
func multiples(c *config.Run, n int) bool {
	list, learn := products(c), stage.Learners(c, n).Ranks
	if learn == n {
		return n%list[0].ranks == 0 && n%list[1].ranks == 0
	}
	return learn%list[0].ranks == 0 && (n-learn)%list[1].ranks == 0 && (!worksFirst(c) || n%list[0].ranks == 0)
}

// checkMultiples returns an error if n ranks make no whole groups that share products.
func checkMultiples(c *config.Run, n int) error {
	if multiples(c, n) {
		return nil
	}
	list := products(c)
	check := func(count int, x shared, who string) error {
		if count%x.ranks == 0 {
			return nil
		}
		return &SharingError{fmt.Sprintf("--ranks %d: %s has %s: %d, and %s must be a multiple", n, c.Name, x.key,
			x.ranks, who), nextRanks(c, n, x)}
	}
	learn := stage.Learners(c, n).Ranks
	if learn == n {
		return cmp.Or(check(n, list[0], "ranks"), check(n, list[1], "ranks"))
	}
	if worksFirst(c) {
		if err := check(n, list[0], "in "+tuningName(c)+" all ranks"); err != nil {
			return err
		}
	}
	return cmp.Or(check(learn, list[0], fmt.Sprintf("the number of ranks that learn (%d)", learn)),
		check(n-learn, list[1], fmt.Sprintf("compute.rollout_ranks: %d", n-learn)))
}

// nextRanks says which number of ranks near n makes whole groups, and a smaller x if none does.
func nextRanks(c *config.Run, n int, x shared) string {
	other, list := *c, products(c)
	samplers, add := &other.Compute.RolloutRanks, ""
	if stage.Learners(c, n).Ranks < n && *samplers%list[1].ranks != 0 {
		*samplers = roundUp(*samplers, list[1].ranks)
		add = fmt.Sprintf(" with compute.rollout_ranks: %d", *samplers)
	}
	fits := func(n int) bool {
		return n > *samplers && multiples(&other, n) && checkSlices(&other, n) == nil
	}
	most := n + list[0].ranks*list[1].ranks + *samplers
	for m := n + 1; m <= most; m++ {
		if fits(m) {
			return fmt.Sprintf("--ranks %d%s fits", m, add)
		}
	}
	for m := n - 1; m > 1; m-- {
		if fits(m) {
			return fmt.Sprintf("--ranks %d%s fits", m, add)
		}
	}
	return fmt.Sprintf("make %s smaller", x.key)
}

// checkSamplers returns an error if compute.rollout_ranks of n ranks cannot only sample.
func checkSamplers(c *config.Run, n int) error {
	k := c.Compute.RolloutRanks
	text := ""
	switch {
	case k == 0 || n == 1:
		return nil
	case k >= n:
		text = fmt.Sprintf("no rank of %d learns", n)
	case c.Algo.ReferenceEvery > 0 && stage.TrainConfig(c).SamplersNeedReference():
		text = "algo.filter_groups.metric seq_final_reward reads the reference policy where it samples, which " +
			"algo.reference_every renews where it learns"
	case stage.TrainConfig(c).Tracks():
		text = fmt.Sprintf("%s chooses problems by values that ranks that only sample do not have", c.Algo.Advantage)
	case c.Rollout.Staleness == 0:
		text = "ranks that only sample do so ahead of the others, and rollout.staleness is 0; set it to 1 or " +
			"more, which makes another run"
	default:
		return nil
	}
	return fmt.Errorf("--ranks %d: %s has compute.rollout_ranks: %d, but %s", n, c.Name, k, text)
}
