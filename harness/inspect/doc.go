// Package inspect answers questions about a model's files before a run: what they hold
// and need, what prevents their use, and which logits they give. It records nothing.
package inspect
