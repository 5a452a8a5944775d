package conversation

import (
	"context"

	"github.com/neardup/sidecar/internal/cases"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/jobs/ask"
)

// thresholdsOnly are the presets that differ in little but the threshold, which the answers find anyway.
var thresholdsOnly = map[string]bool{"default": true, "safe": true, "thorough": true}

// tryPresets judges the answered pairs under each preset that fits the rule, as searches would. It skips what it has judged before.
func (c *Conversation) tryPresets(ctx context.Context, pairs []*ask.Judged, answers []ask.Answer) error {
	present := c.Engine.Config.Indices[c.entry]
	for _, name := range config.PresetNames() {
		if name == present.Preset || thresholdsOnly[name] && (thresholdsOnly[present.Preset] || name != "default") {
			continue
		}
		entry, err := present.Under(name, c.Sketch)
		if err != nil { // it needs a field that the rule does not name
			continue
		}
		entry.Missing, entry.Cases = "compute", nil
		var untried []*ask.Judged
		for i, j := range pairs {
			if _, tried := j.Presets[name]; !tried {
				in := func(id string) config.CaseDocument { return config.CaseDocument{ID: id, Index: c.Index.Name} }
				entry.Cases = append(entry.Cases, config.Case{Same: []config.CaseDocument{in(answers[i].A), in(answers[i].B)}})
				untried = append(untried, j)
			}
		}
		engine := *c.Engine.Config
		engine.Indices = []config.Index{entry}
		results, err := cases.Run(ctx, &engine, c.Engine)
		if err != nil {
			return c.Engine.Explain(err)
		}
		for i, r := range results {
			if j := untried[i]; r.Compared {
				if j.Presets == nil {
					j.Presets = map[string]bool{}
				}
				j.Presets[name] = r.OK
			}
		}
	}
	return nil
}
