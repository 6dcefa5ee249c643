package model

import "exp/kernels"

// taught are the scores of a teacher's K likeliest tokens at each scored row: [R,K] of the teacher itself, [R,1+K] of
// a policy, whose row begins with its target.
type taught struct {
	tokens            indexBuffer
	logProb, dLogProb kernels.Buffer
}

// TopTokens computes the K most probable tokens [R,K] at each scored row under softmax(logits/temperature), and
// their log-probs [R,K]; K is the workspace's Taught.
func (m *Model) TopTokens(ws *Workspace, temperature float64) (tokens, logProb kernels.Buffer) {
	n := ws.r * ws.cap.Taught
	tokens, logProb = ws.taught.tokens.dev.Slice(0, n), ws.taught.logProb.Slice(0, n)
	sc := kernels.Scores{LogProb: logProb, Entropy: ws.Entropy(), LSE: ws.LSE()}
	m.be.TopTokens(tokens, sc, m.scoredOutput(ws), m.output.w, m.Config.softmax(temperature))
	return tokens, logProb
}

// SetTaught tells the teacher's tokens [R,K] to the workspace of a policy, for TaughtScores.
func (ws *Workspace) SetTaught(tokens []int32) {
	K := ws.cap.Taught
	x := &ws.taught.tokens
	x.host = x.host[:0]
	for r, target := range ws.targets.host {
		x.host = append(append(x.host, target), tokens[r*K:(r+1)*K]...)
	}
	x.upload(ws.be)
}

// TaughtScores is Scores with the teacher's tokens. It returns the log-probs [R,1+K] of targets and teacher's tokens.
func (m *Model) TaughtScores(ws *Workspace, temperature float64) (logProb kernels.Buffer) {
	ws.softmax = m.Config.softmax(temperature)
	sc, tokens := ws.taughtScores()
	m.be.LogProb(sc, m.scoredOutput(ws), m.output.w, tokens, ws.softmax)
	return sc.LogProb
}

// DTaught returns the buffer for the gradient with respect to TaughtScores.
func (ws *Workspace) DTaught() kernels.Buffer {
	return ws.taught.dLogProb.Slice(0, ws.r*(1+ws.cap.Taught))
}

func (ws *Workspace) taughtScores() (sc kernels.Scores, tokens kernels.Buffer) {
	n := ws.r * (1 + ws.cap.Taught)
	return kernels.Scores{LogProb: ws.taught.logProb.Slice(0, n), Entropy: ws.Entropy(), LSE: ws.LSE()},
		ws.taught.tokens.dev.Slice(0, n)
}
