package chaos

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
)

// Index is how an index is made and read.
type Index struct {
	Name string
	// Settings and Fields are further members of its settings and of its mapping or schema. They begin with a comma.
	Settings, Fields string
	// Params and Ask are further parameters and members of the search that reads it, by which the engine shows all that it keeps of
	// a document.
	Params, Ask string
}

// Fields that engines keep beside the document, or do not show in it.
const (
	vectorField   = "vec"      // of four numbers that a float holds exactly
	binaryField   = "raw"      // bytes, with doc values
	valueField    = "value"    // doc values only
	storedField   = "kept"     // stored only
	semanticField = "semantic" // a text of which the engine has a service make an embedding
)

// embeddings is the member in which Elasticsearch shows those that it made.
const embeddings = "_inference_fields"

// Hide returns an index whose documents have fields that the engine hides or keeps apart: vectors of the engine's type, bytes, values that are not
// indexed, and with the name of an inference service texts with embeddings. Hidden makes its documents.
func Hide(in Index, vector, inference string) Index {
	in.Fields += fmt.Sprintf(`,%q:%s,%q:{"type":"binary","doc_values":true}`, vectorField, vector, binaryField)
	in.Fields += fmt.Sprintf(`,%q:{"type":"keyword","index":false},%q:{"type":"text","index":false,"store":true}`, valueField, storedField)
	in.Ask = fmt.Sprintf(`,"docvalue_fields":[%q,%q],"stored_fields":["_source",%q]`, binaryField, valueField, storedField)
	if inference != "" {
		in.Fields += fmt.Sprintf(`,%q:{"type":"semantic_text","inference_id":%q}`, semanticField, inference)
	}
	return in
}

// HideTypesense does so for a Typesense, which indexes the vector and keeps the rest as it comes.
func HideTypesense(in Index) Index {
	in.Fields += fmt.Sprintf(`,{"name":%q,"type":"float[]","num_dim":4,"optional":true}`, vectorField)
	return in
}

// Hidden returns a [Writer.More] that makes the members of a document of such an index.
func Hidden(semantic bool) func(r *rand.Rand) []string {
	return func(r *rand.Rand) []string {
		var numbers []string
		for range 4 {
			numbers = append(numbers, fmt.Sprint(float64(2*r.IntN(64)-63)/16))
		}
		list := []string{
			fmt.Sprintf(`%q:[%s]`, vectorField, strings.Join(numbers, ",")),
			fmt.Sprintf(`%q:%q`, binaryField, base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%021d", r.Uint64()))),
			fmt.Sprintf(`%q:"v%d"`, valueField, r.Uint64()),
			fmt.Sprintf(`%q:"kept %d"`, storedField, r.Uint64()),
		}
		if semantic {
			list = append(list, fmt.Sprintf(`%q:"passage %d"`, semanticField, r.Uint64()))
		}
		return list
	}
}

// apart judges what the engine keeps of a document beside it: all of it is what stands in the document.
func (v *verdict) apart(s *Stored) {
	if s.Apart == nil {
		return
	}
	members := object(s.Source)
	for _, name := range []string{binaryField, valueField, storedField} {
		var kept string
		if list := s.Apart[name]; len(list) == 1 {
			kept = canonical(list[0])
		} else if len(list) > 1 {
			kept = fmt.Sprint(len(list), " values")
		}
		want := ""
		if value, there := members[name]; there {
			want = canonical(value)
		}
		if kept != want {
			v.find(Altered, s.ID, fmt.Sprintf("%s is kept as %q, and shown as %q", name, kept, want))
		}
	}
	if text := textOf(members, semanticField); text != "" || members[embeddings] != nil {
		if why := embedded(text, members[embeddings]); why != "" {
			v.find(Altered, s.ID, fmt.Sprintf("the embedding of %q: %s: %.500s", text, why, members[embeddings]))
		}
	}
}

// embedded returns what is wrong with the embedding that the engine shows of a text.
func embedded(text string, shown json.RawMessage) string {
	var field map[string]struct {
		Inference struct {
			Chunks map[string][]struct{ Embeddings []float64 }
		}
	}
	if err := json.Unmarshal(shown, &field); err != nil {
		return "it can't be read: " + err.Error()
	}
	chunks := field[semanticField].Inference.Chunks[semanticField]
	if len(chunks) != 1 {
		return fmt.Sprintf("there are %d", len(chunks))
	}
	want, dot := embedding(text), 0.0
	if len(chunks[0].Embeddings) != len(want) {
		return "it has another length"
	}
	for i, x := range chunks[0].Embeddings {
		dot += x * want[i]
	}
	if math.Abs(dot-1) > 0.01 { // the engine may keep it as 16 bits, and two texts of other embeddings have 0.98 at most
		return fmt.Sprintf("it is that of another text, with a cosine of %.3f", dot)
	}
	return ""
}

// embedding returns the embedding of a text, one of 32.
func embedding(text string) []float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(text)) // never fails
	sin, cos := math.Sincos(float64(h.Sum32()%32) * math.Pi / 16)
	return []float64{sin, cos, 0, 0}
}

// Embed is the service that makes embeddings, in the form of OpenAI's.
func Embed(w http.ResponseWriter, r *http.Request) {
	var request struct{ Input []string }
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var list []string
	for i, text := range request.Input {
		vector, _ := json.Marshal(embedding(text)) // numbers can be
		list = append(list, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":%s}`, i, vector))
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"object":"list","data":[%s],"model":"m","usage":{"prompt_tokens":1,"total_tokens":1}}`, strings.Join(list, ","))
}

// CheckFound returns which of the hidden fields the engine finds in more or fewer documents of an index than have them.
func (s Server) CheckFound(ctx context.Context, in Index, stored []Stored) (findings []Finding, err error) {
	for _, field := range []string{vectorField, valueField, semanticField} {
		want := 0
		for i := range stored {
			if object(stored[i].Source)[field] != nil {
				want++
			}
		}
		if want == 0 {
			continue
		}
		body := fmt.Sprintf(`{"query":{"exists":{"field":%q}}}`, field)
		r := s.send(ctx, "POST", "/"+in.Name+"/_count", []byte(body), plain)
		var answer struct{ Count int }
		if err := json.Unmarshal(r.body, &answer); err != nil || r.status != http.StatusOK {
			return nil, fmt.Errorf("count %s: status %d %.300s %s", in.Name, r.status, r.body, r.why)
		}
		if answer.Count != want {
			what := Lost
			if answer.Count > want {
				what = Invented
			}
			findings = append(findings, Finding{what, in.Name, field, fmt.Sprintf("%d documents are found by it, and %d have it", answer.Count, want)})
		}
	}
	return findings, nil
}
