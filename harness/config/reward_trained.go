package config

// TrainedReward is the kind of reward that the run's own reward model gives.
const TrainedReward = "trained"

func trainedReward() rewardKind {
	return rewardKind{name: TrainedReward,
		about:  "the reward model that this run trains from pairs of answers: reward_model",
		judges: true}
}

// Trained reports whether the run's own reward model gives the reward.
func (r *Reward) Trained() bool { return r.Kind == TrainedReward }
