// Package inspect answers what a person asks of a model's files before a run: what they
// need, and which logits they give. It records nothing.
package inspect
