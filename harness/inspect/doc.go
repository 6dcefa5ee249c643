// Package inspect answers what a person asks of a model's files before a run: what they
// hold and need, what stops them, and which logits they give. It records nothing.
package inspect
