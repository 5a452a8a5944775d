package typesense

import (
	"strconv"
	"strings"
)

// neighbours is a search for nearest neighbours. The engine looks for k of them, and for no fewer than its page's last rank: so its list
// differs with k, which changes what the index's graph finds, as with the page. The client's own page is asked for as it is; beside it a
// list of at least the rule's neighbours is read, down to the same rank on every page. Where nothing in that folds, the client's own
// page is the answer; else the page is cut from the longer list.
type neighbours struct {
	head   string   // up to and with the vector: "field:([0.1, 0.2]"
	params []string // what follows it, each "name: value", but for k
	own    int      // the client's k

	k      int   // for which the list is read
	hits   []hit // of the client's own page
	length int   // of the client's own list
	all    int   // how many the longer list holds
	deep   bool  // the whole of it is to be read
	within bool  // the client's page ends no later: then the list ends with k
	flat   bool  // unless the engine has more without looking for more
	cut    bool  // they are all that the engine looked for: asked for a later page it has more
	// unfolded says that the client's own page is the answer.
	unfolded bool
}

// maxNeighbours bounds the client's k: all of so many ranks are read.
const maxNeighbours = 10000

// parseNeighbours takes a vector query apart, nil if it is not of the form that the engine documents, or asks for more than
// maxNeighbours.
func parseNeighbours(text string) *neighbours {
	end := strings.IndexByte(text, ']')
	tail := strings.TrimSpace(text[end+1:])
	if end < 0 || !strings.HasSuffix(tail, ")") || strings.ContainsAny(tail[:len(tail)-1], "()[]") {
		return nil
	}
	n := &neighbours{head: text[:end+1]}
	for i, param := range strings.Split(tail[:len(tail)-1], ",") {
		param = strings.TrimSpace(param)
		if i == 0 && param == "" {
			continue // the comma behind the vector
		}
		name, value, ok := strings.Cut(param, ":")
		switch {
		case !ok || i == 0:
			return nil
		case strings.TrimSpace(name) != "k":
			n.params = append(n.params, param)
			continue
		}
		k, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || k < 0 || k > maxNeighbours {
			return nil
		}
		n.own = k
	}
	return n
}

// raised returns the vector query for the list that is read.
func (n *neighbours) raised() string {
	params := append([]string{n.head}, n.params...)
	return strings.Join(append(params, "k:"+strconv.Itoa(n.k)), ", ") + ")"
}
