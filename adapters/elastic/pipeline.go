package elastic

import (
	"net/url"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// A search pipeline of OpenSearch works on what is found before the client sees it. It may cut or sort the hits, and a page is filled from more hits than
// the client asks for. So a search that goes through one is left alone, unless all that it does is to make one list of those of a hybrid query. To other
// searches such a pipeline does nothing.

// reasonPipeline: the search goes through a search pipeline that may change what is found, or it is a hybrid query that goes through none.
const reasonPipeline adapters.Reason = "search_pipeline"

// piped says which search pipeline a search names. Where it names none, its indices may have one.
type piped struct {
	named bool
	// fuses says that the pipeline makes one list of those of a hybrid query, and does nothing else. One with a name is taken for such until it is looked
	// up.
	fuses bool
	name  string
}

// noPipeline is what clients name to go through no pipeline.
const noPipeline = "_none"

// readPipeline reads which pipeline the search names. It returns why the search is left alone, or nothing.
func (q *clientSearch) readPipeline() adapters.Reason {
	name, inURL := adapters.Last(q.params, "search_pipeline")
	value := jsonedit.Get(q.members, "search_pipeline")
	text, isName := jsonedit.Text(value)
	switch {
	case !inURL && value == nil:
		return ""
	case !q.d.OpenSearch, inURL && value != nil: // the engine says so
		return adapters.ReasonNotUnderstood
	case !inURL && !isName:
		if !fusesOnly(value) {
			return reasonPipeline
		}
		q.piped = piped{named: true, fuses: true}
		return ""
	case isName:
		name = text
	}
	q.piped = piped{named: true}
	if name != noPipeline {
		q.piped.fuses, q.piped.name = true, name
	}
	return ""
}

// pipelineReason returns why a search is left alone because of the pipeline that it goes through, or nothing.
func (q *clientSearch) pipelineReason() adapters.Reason {
	scope, fuses := &q.asked.Scope, q.piped.fuses
	if !q.piped.named {
		if scope.Piped {
			return reasonPipeline
		}
		fuses = scope.Fuses
	}
	if q.fused != nil && q.fused.hybrid && !fuses {
		return reasonPipeline
	}
	return ""
}

// fusesOnly reports whether all that a pipeline does is to make one list of those of a hybrid query.
func fusesOnly(pipeline []byte) bool {
	members, err := jsonedit.Members(pipeline)
	if err != nil || jsonedit.Repeated(members) {
		return false
	}
	processors, err := jsonedit.Elements(jsonedit.Get(members, "phase_results_processors"))
	more := func(m jsonedit.Member) bool {
		return !slices.Contains([]string{"phase_results_processors", "description", "version"}, m.Key) && string(m.Value) != "[]"
	}
	fuses := func(processor []byte) bool {
		kind, _ := single(processor)
		return kind == "normalization-processor" || kind == "score-ranker-processor"
	}
	return err == nil && len(processors) == 1 && fuses(processors[0]) && !slices.ContainsFunc(members, more)
}

// byPipeline is a search through a pipeline with a name, which is looked up before. It implements adapters.Ahead.
type byPipeline struct {
	q        *clientSearch
	searches *adapters.Searches // without Ahead
}

// Request implements adapters.Ahead.
func (p *byPipeline) Request() *adapters.Request {
	r := *p.q.sent
	r.Method, r.Path, r.RawQuery, r.Body, r.Ahead = "GET", pipelinePath(p.q.piped.name), "", nil, true
	return &r
}

// Searches implements adapters.Ahead.
func (p *byPipeline) Searches(reply *adapters.Reply) (*adapters.Searches, error) {
	switch {
	case reply.Status == 429 || reply.Status >= 500:
		return nil, adapters.ErrRefused
	case reply.Status != 200 || !fusesOnly(jsonedit.Lookup(reply.Body, p.q.piped.name)):
		return nil, adapters.Alone{Reason: reasonPipeline}
	}
	return p.searches, nil
}

// pipelinePath is where the engine shows a search pipeline.
func pipelinePath(name string) string { return "/_search/pipeline/" + url.PathEscape(name) }
