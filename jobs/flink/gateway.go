package flink

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Times and sizes of the talk with a gateway.
const (
	callLimit   = 30 * time.Second // for one request; none of them waits for a job
	stopLimit   = time.Minute      // for the end of a job that is being stopped
	stopPause   = 200 * time.Millisecond
	silentLimit = time.Minute // how long a gateway that went away is waited for while a job runs
	firstPoll   = 20 * time.Millisecond
	lastPoll    = time.Second
	replyLimit  = 16 << 20 // bytes of one reply; what we ask for are states and lists of jobs
)

// gateway is the REST interface of a SQL gateway, version 1, which all gateways from Flink 1.16 on speak.
type gateway struct {
	base   *url.URL
	client *http.Client
}

func newGateway(address string) (*gateway, error) {
	base, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		if _, rest, ok := strings.Cut(address, "@"); ok { // a name and a password stay hidden
			address = "…@" + rest
		}
		return nil, fmt.Errorf("gateway: %q is no address: write it as http://host:8083", address)
	}
	return &gateway{base: base, client: &http.Client{}}, nil
}

// call sends one request and decodes the reply into the value that into points to.
func (g *gateway) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	var payload io.Reader // none at all with GET: the gateway answers a GET with a body with 500
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, g.base.JoinPath("v1", path).String(), payload)
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := g.client.Do(r)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the whole address, which can hold a password
		}
		return &unreachable{g.base.Redacted(), err}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, replyLimit))
	if err != nil {
		return &unreachable{g.base.Redacted(), err}
	}
	if resp.StatusCode != http.StatusOK {
		return refusal(resp.Status, data)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("gateway %s: its reply to %s /v1/%s is not what a SQL gateway sends: give the address of Flink's SQL "+
			"gateway, port 8083 by default: %w", g.base.Redacted(), method, path, err)
	}
	return nil
}

// unreachable says that no reply came. It may pass.
type unreachable struct {
	address string
	cause   error
}

func (u *unreachable) Error() string {
	return fmt.Sprintf("gateway %s: %v: is Flink's SQL gateway running there?", u.address, u.cause)
}

func (u *unreachable) Unwrap() error { return u.cause }

// session is one of the gateway's: it holds properties and the tables that statements declare, and ends with close.
type session struct {
	g      *gateway
	handle string
}

// open opens a session of the name with these properties.
func (g *gateway) open(ctx context.Context, name string, properties map[string]string) (*session, error) {
	var reply struct{ SessionHandle string }
	body := map[string]any{"sessionName": name, "properties": properties}
	if err := g.call(ctx, http.MethodPost, "sessions", body, &reply); err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	if reply.SessionHandle == "" {
		return nil, fmt.Errorf("gateway %s: its session has no handle: give the address of Flink's SQL gateway", g.base.Redacted())
	}
	return &session{g, reply.SessionHandle}, nil
}

// close ends the session. A gateway ends it by itself after some minutes without a request.
func (s *session) close(ctx context.Context) error {
	return s.g.call(ctx, http.MethodDelete, "sessions/"+s.handle, nil, nil)
}

// execute runs one statement and waits for its end, that of its job included. Where ctx ends first the statement is cancelled; a job
// that it has started goes on: see [stop].
func (s *session) execute(ctx context.Context, statement string) (rows [][]any, err error) {
	var reply struct{ OperationHandle string }
	body := map[string]string{"statement": statement}
	if err := s.g.call(ctx, http.MethodPost, "sessions/"+s.handle+"/statements", body, &reply); err != nil {
		return nil, err
	}
	path := "sessions/" + s.handle + "/operations/" + reply.OperationHandle
	rows, err = s.rows(ctx, path)
	if err != nil && ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), callLimit)
		defer cancel()
		_ = s.g.call(late, http.MethodPost, path+"/cancel", nil, nil) // the session is closed next, which cancels as well
	}
	return rows, err
}

// rows waits for the end of an operation and reads all rows that it has to show; the error of one that failed says why. A gateway
// that can't be reached is asked again for a while: the job does not depend on it.
func (s *session) rows(ctx context.Context, path string) (rows [][]any, err error) {
	token, pause, heard := 0, firstPoll, time.Now()
	for {
		var page struct {
			ResultType string
			Results    struct{ Data []struct{ Fields []any } }
		}
		err := s.g.call(ctx, http.MethodGet, fmt.Sprintf("%s/result/%d", path, token), nil, &page)
		if _, away := errors.AsType[*unreachable](err); err != nil && (!away || ctx.Err() != nil || time.Since(heard) > silentLimit) {
			return nil, errors.Join(ctx.Err(), err)
		}
		for _, row := range page.Results.Data {
			rows = append(rows, row.Fields)
		}
		if err == nil {
			heard = time.Now()
			switch page.ResultType {
			case "PAYLOAD":
				token++
				continue
			case "NOT_READY":
			default: // EOS
				return rows, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
			pause = min(pause*3/2, lastPoll)
		}
	}
}

// running returns the ids of the jobs of the name that have not ended.
func (g *gateway) running(ctx context.Context, name string) (ids []string, err error) {
	s, err := g.open(ctx, name+"-list", nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.close(context.WithoutCancel(ctx)) }()
	return s.running(ctx, name)
}

func (s *session) running(ctx context.Context, name string) (ids []string, err error) {
	jobs, err := s.execute(ctx, "SHOW JOBS")
	if err != nil {
		return nil, fmt.Errorf("list the jobs: %w", err)
	}
	for _, job := range jobs { // id, name, state, start
		if len(job) >= 3 && job[1] == name && job[2] != "FINISHED" && job[2] != "FAILED" && job[2] != "CANCELED" {
			ids = append(ids, fmt.Sprint(job[0]))
		}
	}
	return ids, nil
}

// stop cancels the job of the name, if it runs, and waits until it has ended. It does so in a session of its own, since the
// gateway makes the statements of one session wait for each other.
func (g *gateway) stop(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	s, err := g.open(ctx, name+"-stop", nil)
	if err != nil {
		return err
	}
	defer func() { _ = s.close(ctx) }()
	for told := false; ; told = true {
		running, err := s.running(ctx, name)
		if err != nil || len(running) == 0 {
			return err
		}
		for _, job := range running {
			if _, err := s.execute(ctx, fmt.Sprintf("STOP JOB '%s'", job)); err != nil && !told {
				return fmt.Errorf("stop the job %s: %w", job, err)
			}
		}
		time.Sleep(stopPause)
	}
}
