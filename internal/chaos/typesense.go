package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// imported sends writes of one kind in one request.
func (s Server) imported(ctx context.Context, index string, writes []*Write, as form) ([]Result, reply) {
	var b bytes.Buffer
	for _, w := range writes {
		line := w.Body
		if w.Kind == Part {
			line = withID(w.Body, w.ID)
		}
		b.Write(append(line[:len(line):len(line)], '\n'))
	}
	action := map[Kind]string{Put: "upsert", Create: "create", Part: "update", Auto: "create"}[writes[0].Kind]
	r := s.send(ctx, "POST", "/collections/"+index+"/documents/import?return_id=true&action="+action, b.Bytes(), as)
	if r.trouble != "" || r.status != http.StatusOK {
		return slices.Repeat([]Result{resultOf(r)}, len(writes)), r
	}
	answers := bytes.Split(bytes.TrimSpace(r.body), []byte("\n"))
	if len(answers) != len(writes) {
		r.trouble, r.why = Garbage, fmt.Sprintf("%d lines for %d documents: %.300s", len(answers), len(writes), r.body)
		return slices.Repeat([]Result{Result{Answer: Unknown, Why: r.why}}, len(writes)), r
	}
	list := make([]Result, len(writes))
	for i, w := range writes {
		var line struct {
			Success *bool
			ID      string
			Code    int
			Error   string
		}
		if err := json.Unmarshal(answers[i], &line); err != nil || line.Success == nil {
			r.trouble, r.why = Garbage, fmt.Sprintf("a line of an import's reply: %.300s", answers[i])
			list[i] = Result{Answer: Unknown, Why: r.why}
			continue
		}
		why := fmt.Sprintf("code %d %s", line.Code, line.Error)
		list[i] = Result{Answer: Refused, Why: why}
		switch {
		case *line.Success && w.Kind != Auto && w.Kind != Part && line.ID != "" && line.ID != w.ID:
			list[i] = Result{Answer: Left, Other: line.ID, Why: why}
		case *line.Success:
			list[i] = Result{Answer: Done, ID: line.ID, Why: why}
		case line.Code == http.StatusConflict && w.Kind == Create:
			list[i].Answer = Conflict
		case line.Code == http.StatusNotFound:
			list[i].Answer = Missing
		case line.Code >= 500:
			list[i].Answer = Unknown
		}
		if list[i].Answer == Refused || list[i].Answer == Unknown {
			r.trouble, r.why = strconv.Itoa(line.Code), "a line: "+why
		}
	}
	return list, r
}

// document sends a write by itself.
func (s Server) document(ctx context.Context, w *Write, as form) (Result, reply) {
	path := "/collections/" + w.Index + "/documents"
	method, body := "POST", w.Body
	switch w.Kind {
	case Put:
		path += "?action=upsert"
	case Part:
		method, path = "PATCH", path+"/"+w.ID
	case Delete:
		method, path, body, as = "DELETE", path+"/"+w.ID, nil, plain
	}
	r := s.send(ctx, method, path, body, as)
	if r.trouble != "" {
		return resultOf(r), r
	}
	var answer struct{ ID, Message string }
	err := json.Unmarshal(r.body, &answer)
	if err != nil || r.status < 300 && answer.ID == "" && w.Kind != Part || r.status >= 300 && answer.Message == "" {
		r.trouble, r.why = Garbage, fmt.Sprintf("status %d: %.300s", r.status, r.body)
		return Result{Answer: Unknown, Why: r.why}, r
	}
	switch {
	case r.status == http.StatusNotFound:
		return Result{Answer: Missing, Why: answer.Message}, r
	case r.status == http.StatusConflict && w.Kind == Create:
		return Result{Answer: Conflict, Why: answer.Message}, r
	case r.status >= 300:
		return Result{Answer: Refused, Why: answer.Message}, r
	case (w.Kind == Put || w.Kind == Create) && answer.ID != w.ID:
		return Result{Answer: Left, Other: answer.ID}, r
	}
	if bytes.Contains(r.body, []byte(prefix)) {
		r.trouble, r.why = Garbage, fmt.Sprintf("a field of ours in the answer to a write: %.300s", r.body)
	}
	return Result{Answer: Done, ID: answer.ID}, r
}

func (s Server) searchTypesense(ctx context.Context, index, words string, from, size int) (*Page, reply) {
	const form = "/collections/%s/documents/search?q=%s&query_by=body&page=%d&per_page=%d"
	path := fmt.Sprintf(form, index, url.QueryEscape(words), from/size+1, size)
	r := s.send(ctx, "GET", path, nil, plain)
	if r.trouble != "" {
		return nil, r
	}
	var found struct {
		Found *int
		Hits  []struct{ Document json.RawMessage }
	}
	if err := json.Unmarshal(r.body, &found); err != nil || r.status != http.StatusOK || found.Found == nil {
		r.trouble, r.why = Garbage, fmt.Sprintf("status %d of a search: %.300s", r.status, r.body)
		return nil, r
	}
	p := &Page{Index: index, Outcome: r.header.Get("Neardup"), Body: r.body}
	for _, h := range found.Hits {
		p.Hits = append(p.Hits, Stored{ID: textOf(object(h.Document), "id"), Source: h.Document})
	}
	return p, r
}

func (s Server) export(ctx context.Context, index string) (list []Stored, err error) {
	r := s.send(ctx, "GET", "/collections/"+index+"/documents/export", nil, plain)
	if r.trouble != "" || r.status != http.StatusOK {
		return nil, fmt.Errorf("read %s: status %d %s %.300s", index, r.status, r.why, r.body)
	}
	for line := range bytes.Lines(r.body) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			list = append(list, Stored{ID: textOf(object(line), "id"), Source: line})
		}
	}
	return list, nil
}
