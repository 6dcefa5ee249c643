package rl

// BypassLoss is the loss under bypass mode; zero if the mode is off.
type BypassLoss uint8

const (
	BypassPPO       BypassLoss = 1 + iota // verl's ppo_clip: the ratio is the correction
	BypassReinforce                       // verl's reinforce: the weights are
)
