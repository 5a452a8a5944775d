package adapters

import (
	"cmp"
	"context"
	"errors"

	"github.com/neardup/sidecar/internal/rule"
)

// Store is the I/O half of an adapter, bound to one set of credentials. All methods are safe for concurrent use. Errors carry the
// engine's own words and what to do.
type Store interface {
	// Resolve returns the concrete indices of a name (an index, alias or pattern; empty is all). One that is absent comes alone, and
	// only where it is called otherwise than the name.
	Resolve(ctx context.Context, name string) ([]Index, error)
	// Prepare declares our fields in every index of the name that lacks them, so that documents have as much room as without us, and
	// returns the indices as they are then. With create, it makes a missing index in the way the engine itself would at a first write; where the engine would declare our fields there by itself, or where that
	// is in doubt, nothing is made. An index that can't be prepared comes back with Ready false and is no error.
	Prepare(ctx context.Context, name string, create bool) ([]Index, error)
	// Scan reads the documents of one concrete index that are selected, page by page, as of one moment where the engine can. It stops
	// at the first error of the engine or of yield, which it returns unless it is [ErrEnough]. Without a rule what it reads of a document holds our fields and those that are
	// selected.
	Scan(ctx context.Context, index string, rule *rule.Rule, s Selection, yield func(Page) error) error
	// Patch stores what is wanted of documents that Scan read, and gives way to whatever happened to them since. It returns one
	// result for each document, in order; the error is for the request as a whole.
	Patch(ctx context.Context, index string, rule *rule.Rule, documents []Stored) ([]Result, error)
	// Release takes out of an index what Patch left there for further patches. It takes time of its own where ctx has ended.
	Release(ctx context.Context, index string)
}

// JobStore is a Store that jobs work on, with workers on any number of machines.
type JobStore interface {
	Store
	// Split returns the names of at least n parts of a concrete index, for [Selection], if it has as many documents: together all of
	// them, each once. Parts of one name hold the same at any time and on any machine; the last takes in documents that come later.
	// documents is how many of them the query lets through now.
	Split(ctx context.Context, index, query string, n int) (parts []string, documents int, err error)
	// Identity returns what differs between a concrete index and another of the same name, created later.
	Identity(ctx context.Context, index string) (string, error)
	// Journal returns the journal of jobs that the engine keeps, in the index that JournalIndex names.
	Journal() Journal
	JournalIndex() string
	// Remove takes the declarations of our fields out of a concrete index, as far as the engine can. note says, for an operator, what
	// stays and how to be rid of it; it is empty where nothing does.
	Remove(ctx context.Context, index string) (note string, err error)
}

// EngineStore is a Store with all that commands ask of an engine.
type EngineStore interface {
	JobStore
	Cleaner
	Inspector
	Surveyor
	// Listed returns the indices that the credentials may see, data streams as themselves and hidden ones where a rule matches them, with
	// how many documents each holds as far as the engine says.
	Listed(context.Context) ([]Listed, error)
}

// Cleaner deletes or hides documents, and puts them back. Documents come from a Scan that was not Brief, with all fields. Each method that
// writes returns one result for each document, in order; the error is for the request as a whole. [Patched] means that it was done.
type Cleaner interface {
	// Lossless returns an error with [ErrLossy] if documents of a concrete index would lose something: where they are deleted and put back,
	// or, with a field, where that is set. Any other error says that this could not be found out.
	Lossless(ctx context.Context, index, field string) error
	// Flag reports whether a concrete index declares a field at the top as a boolean that filters find and documents show.
	Flag(ctx context.Context, index, field string) (bool, error)
	// Prove deletes one document and creates it again, or, with a field, writes it again as it is. [Patched] means that it is what it was.
	// An error can mean that it is deleted.
	Prove(ctx context.Context, index, field string, document Stored, keep func(Stored) error) (Result, error)
	// Delete deletes documents, and gives way to whatever happened to them since they were read. Where the engine knows no condition, one
	// that changed just then is put back as it had become. Before that, keep stores what it had become.
	Delete(ctx context.Context, index string, documents []Stored, keep func(Stored) error) ([]Result, error)
	// Create stores documents by their ID, Routing and Source in the index with this identity. One under an id that is there stays: the
	// result is [Changed].
	Create(ctx context.Context, index, identity string, documents []Stored) ([]Result, error)
	// SetField sets one field at the top of each document to the value in JSON that is at its place, or takes it out where that is nil. It gives
	// way as Delete does; where the engine knows no condition, no other field of the document changes.
	SetField(ctx context.Context, index, field string, documents []Stored, values [][]byte) ([]Result, error)
}

// Unaddressable reports whether no URL can name the id of a document: in a path, /.. leads elsewhere.
func Unaddressable(id string) bool { return id == "." || id == ".." }

// Provisioner is a Store of an engine with index templates, ingest pipelines and mappings that fill fields.
type Provisioner interface {
	// Templates declares our fields in the templates that the rules match, unless nothing is to be written.
	Templates(ctx context.Context, rules rule.Rules, dryRun bool) ([]Template, error)
	// Pipelines returns, by index, the pipelines that change documents after they were sketched.
	Pipelines(ctx context.Context, rules rule.Rules) (map[string][]string, error)
	// Filled says, for an operator, how the mapping of an index fills fields of ours: a line each.
	Filled(ctx context.Context, index string) ([]string, error)
}

// Template is an index template that makes indices of a rule, and what became of it.
type Template struct {
	Name string
	// Ready says that it declares our field; Added that it does so as of now, or would by a run that is no dry one.
	Ready, Added bool
	// Why says, for an operator, why it is left alone.
	Why string
	// Err says why it could not be read or changed.
	Err error
}

// Index is a concrete index, whether our fields are declared in it, and what a write to the name that led to it finds.
type Index struct {
	Name string
	// As is the name that rules are matched against where that is not Name: what clients know the index as.
	As string
	// Ready says that an enriched document will be stored as meant.
	Ready bool
	// Mapped says that our field is known there, be it otherwise than we would declare it: clearing it does no harm.
	Mapped bool
	// Known says so of each field of ours that its rule stores.
	Known bool
	// Why says, for an operator, why it is not ready, or why it moves.
	Why string
	// NoWrite says that documents written to the name go to another index of it.
	NoWrite bool
	// Routed says that documents written to the name may be stored elsewhere than where their ids lead: the name has a routing, or
	// whether it has could not be found out.
	Routed bool
	// Moves says that the engine may lead the name to another index at any time, one in which our field need not be declared.
	Moves bool
	// Absent says that the index is not there: the first write would make it, declared as Ready says.
	Absent bool
	// Piped says that the engine changes what it finds there before it answers, by a setting of the index.
	Piped bool
	// Fuses, if not empty, is what the engine does with what it finds there, by such a setting, where all that it does is to make one list of several.
	Fuses string
}

// RuleName returns the name that rules are matched against.
func (i Index) RuleName() string { return cmp.Or(i.As, i.Name) }

// Rule returns the rule of the index, or nil if none matches.
func (i Index) Rule(rules rule.Rules) *rule.Rule { return rules.For(i.RuleName()) }

// Page is some documents of a scan.
type Page struct {
	// Total is how many documents the scan will yield in all, as far as the engine says; 0 if it does not.
	Total int
	// Documents are the receiver's to keep and to change.
	Documents []Stored
	// After is where a scan of the same selection goes on after this page, at any later time; empty where it can only begin again.
	After string
}

// Selection says which documents a scan reads, and how much of them. The zero value is all of all. IDs, Bands, Random and Marked do
// not go together, nor with other members but Limit, and Random with Query.
type Selection struct {
	// Part is one part of the index, as the adapter's Split names it; empty is the whole.
	Part string
	// After goes on after a page.
	After string
	// Query, in the engine's own words (a query in JSON, or a filter), narrows the scan further.
	Query string
	// Marked leaves out documents in which no field of ours is set, as far as the engine can tell: some of these may come all the same.
	Marked bool
	// IDs, if not nil, are the documents to read, in any order; what is not there does not come.
	IDs []string
	// Bands, if not nil, reads documents that hold one of the band keys.
	Bands []int64
	// Limit is how many documents are read at most; 0 is no bound.
	Limit int
	// Random reads Limit documents chosen at random.
	Random bool
	// Brief reads no text, but our fields alone and Fields; such documents can't be patched.
	Brief bool
	// Fields are to be read beside the rule's; AllFields stands for all there are.
	Fields []string
}

// ReadByID reads the documents with these ids, of each what a Selection with the fields reads, and yields them. Without ids it reads none, where a
// Selection without IDs reads all.
func ReadByID(
	ctx context.Context, store Store, index string, r *rule.Rule, ids, fields []string, yield func(Stored) error,
) error {
	if len(ids) == 0 {
		return nil
	}
	return store.Scan(ctx, index, r, Selection{IDs: ids, Fields: fields}, func(p Page) error {
		for _, d := range p.Documents {
			if err := yield(d); err != nil {
				return err
			}
		}
		return nil
	})
}

// Journal keeps the entries of jobs in the engine, where workers on any machine find them. Safe for concurrent use.
type Journal interface {
	// Append stores an entry under its number in a slot of a job, and returns false, storing nothing, if there is one under this
	// number already: of any number of workers that try, one succeeds.
	Append(ctx context.Context, job string, e Entry) (bool, error)
	// Entries returns the entries of a job that were appended before the call, in the order of their slots and numbers, or of all jobs
	// where the name is empty.
	Entries(ctx context.Context, job string) ([]Entry, error)
	// Since is Entries for one slot of a job, from a number on.
	Since(ctx context.Context, job string, slot, number int) ([]Entry, error)
	// Drop removes the entries of a slot of a job with a number below the given one, or all of the job where the slot is negative.
	Drop(ctx context.Context, job string, slot, below int) error
}

// Entry is one entry of a job.
type Entry struct {
	Job    string `json:"job"`
	Slot   int    `json:"part"` // its name in the journals of former releases
	Number int    `json:"number"`
	Data   []byte `json:"data"`
}

// Compare puts entries in the order of their jobs, slots and numbers.
func (e Entry) Compare(f Entry) int {
	return cmp.Or(cmp.Compare(e.Job, f.Job), cmp.Compare(e.Slot, f.Slot), cmp.Compare(e.Number, f.Number))
}

// Stored is a document as the engine holds it.
type Stored struct {
	ID string
	// Routing is the text that the engine chose the document's place by, where its writer gave one.
	Routing string
	// Source is the document's JSON with at least the rule's fields and our own.
	Source []byte
	// Version is the adapter's own mark of the document's state, which Patch compares.
	Version any
	// Wanted is what our fields are to hold; a field without a value is taken out. Scan leaves it nil, and such a document can't be patched.
	Wanted *rule.Ours
	// Right says that they hold it already, so that the document needs no patch.
	Right bool
}

// With returns the document as Patch takes it.
func (d Stored) With(wanted rule.Ours) Stored {
	d.Wanted = &wanted
	return d
}

// ErrEnough ends a Scan without an error, where the function that it yields pages to returns it.
var ErrEnough = errors.New("enough is read")

// ErrLossy is within the errors of Lossless that say what would be lost.
var ErrLossy = errors.New("a document could not be put back as it was")

// ErrUnwanted is the error of Patch for a document without Wanted.
var ErrUnwanted = errors.New("nothing says what our fields of a document are to hold")

// Result is what became of a patch.
type Result int

// The results of a patch.
const (
	// Patched: the sketch is stored.
	Patched Result = iota
	// Changed: the document changed since it was read; its writer's sketch stays, or a later run finds it.
	Changed
	// Gone: the document was deleted since.
	Gone
	// Refused: the engine would not take it.
	Refused
	// Busy: the engine had no room for it just now, and it may be sent again as it is.
	Busy
)

// ErrRecreated is within the errors of Patch where the index was deleted, and perhaps created again, since the documents were read.
// Nothing of the new index was changed.
var ErrRecreated = errors.New("the index was deleted, and perhaps created again, since its documents were read")

// ErrBusy is within the errors of Scan and Patch that say that the engine had no room for a request just now. A patch sent again does no
// harm, and a scan can go on after the last page.
var ErrBusy = errors.New("the engine is busy")

// AllFields in a Selection means all fields that there are.
const AllFields = "*"

// StatusOf returns the HTTP status with which an engine refused what a store's error is about; 0 if it did not.
func StatusOf(err error) int {
	var refusal interface {
		error
		HTTPStatus() int
	}
	if errors.As(err, &refusal) {
		return refusal.HTTPStatus()
	}
	return 0
}
