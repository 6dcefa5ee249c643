package endpoint

import (
	"exp/harness/openai"
	"exp/harness/prompt"
	"exp/train/generate"
	"exp/train/toolcall"
)

// restrict gives the samplers' requests the form that a request wants, if it wants one.
func (s *Server) restrict(r *openai.Request, asks []*generate.Ask) error {
	spec, err := r.Form(s.calls, prompt.Spelled(s.x.tok, s.calls.Marks), r.Chat && s.opensThoughts(r))
	if err != nil || spec == nil {
		return err
	}
	f, err := s.x.forms.Form(*spec)
	if err != nil {
		return r.BadForm(err)
	}
	for _, a := range asks {
		a.Form = f
	}
	return nil
}

// opensThoughts reports whether the prompt of a chat ends within thoughts.
func (s *Server) opensThoughts(r *openai.Request) bool {
	const tail = 16 // tokens, more than a mark of thoughts and white space have
	ids := r.Prompts[0]
	return toolcall.OpensThoughts(s.x.text(ids[max(0, len(ids)-tail):]))
}
