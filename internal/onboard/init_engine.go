package onboard

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/server"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/internal/upstream"
)

// The environment variables with credentials, in the configuration that init writes.
const (
	userVariable     = "ENGINE_USERNAME"
	passwordVariable = "ENGINE_PASSWORD"
	keyVariable      = "ENGINE_API_KEY"
)

// survey is what init finds in an engine, and what it chooses.
type survey struct {
	options *InitOptions
	talk    *talk
	file    string // where the configuration goes
	// command is the command line up to the engine's address, for messages. passing says that the survey need not log in.
	command string
	passing bool

	engine config.Engine // as far as it is known
	admin  string
	// variables are the environment variables with credentials, nil if the engine needs none.
	variables  []string
	recognized adapters.Recognition
	store      adapters.EngineStore

	candidates []*candidate // they become rules
	skipped    []*candidate // they do not, each with the reason
	notes      []string
	// typed says that the user typed the credentials: no environment variable has them.
	typed bool
}

// errUnknownEngine means that no known engine answers.
var errUnknownEngine = errors.New("unknown engine")

// connect recognizes the engine at an address, and logs in if it needs that.
func (n *survey) connect(ctx context.Context, at string) error {
	u, err := engineURL(at)
	if err != nil {
		return err
	}
	n.engine = config.DefaultEngine()
	n.engine.Name, n.engine.URLs = "engine", []string{u.String()}
	n.engine.TLS = n.options.trust()
	err = n.recognize(ctx) // before any secret is sent: the connection may be unencrypted, and the server another one
	if err != nil && u.Scheme == "http" && ctx.Err() == nil && len(shownCertificates(ctx, u)) > 0 {
		u.Scheme = "https"
		n.engine.URLs = []string{u.String()}
		n.notes = append(n.notes, "the engine speaks TLS: it is at "+u.String())
		err = n.recognize(ctx)
	}
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown && n.talk.interactive() {
		if err = n.trust(ctx, u); err == nil {
			err = n.recognize(ctx)
		}
	}
	if err == nil {
		err = n.logIn(ctx)
	}
	if err != nil {
		return n.explain(ctx, u, err)
	}
	if n.engine.Kind = kind.OfProduct(n.recognized.Name).Name; n.engine.Kind == "" {
		return n.explain(ctx, u, errUnknownEngine)
	}
	n.engine.Name = n.engine.Kind
	return nil
}

// trust returns the section tls from the command line, with absolute file names.
func (o *InitOptions) trust() config.TLS {
	t := o.TLS
	for _, file := range []*string{&t.CAFile, &t.CertFile, &t.KeyFile} {
		if at, err := filepath.Abs(*file); *file != "" && err == nil {
			*file = at
		}
	}
	return t
}

// engineURL returns the address of an engine as a URL. A host and port alone mean http.
func engineURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	text = strings.TrimRight(text, "/")
	switch u, err := url.Parse(text); {
	case err == nil && u.User != nil:
		return nil, fmt.Errorf("the URL contains a user name, and other users can see a command line: "+
			"write %s://%s, and export %s and %s", u.Scheme, u.Host, userVariable, passwordVariable)
	default:
		return u, config.CheckURL(text)
	}
}

// logIn logs in with the credentials of the environment, or asks for some if the engine needs them.
func (n *survey) logIn(ctx context.Context) error {
	get := func(name string) config.Secret { return config.SecretOf(os.Getenv(name)) }
	user, password, key := get(userVariable), get(passwordVariable), get(keyVariable)
	switch {
	case key.IsSet():
		n.with(config.Credentials{APIKey: key}, keyVariable)
	case user.IsSet() != password.IsSet():
		return fmt.Errorf("%s and %s go together: export both or none", userVariable, passwordVariable)
	case user.IsSet():
		n.with(config.Credentials{Username: user, Password: password}, userVariable, passwordVariable)
	}
	if len(n.variables) > 0 {
		if err := n.recognize(ctx); err != nil {
			return err
		}
	}
	if n.recognized.Locked && !(n.passing && len(n.variables) == 0) {
		return n.unlock(ctx)
	}
	return nil
}

func (n *survey) with(c config.Credentials, variables ...string) {
	n.engine.Credentials, n.variables = c, variables
}

// recognize finds out which engine answers at the address.
func (n *survey) recognize(ctx context.Context) error {
	for _, k := range kind.Engines() {
		n.engine.Kind = k.Name
		o, err := upstream.Open(&n.engine)
		if err != nil {
			return err
		}
		recognized, err := upstream.Within(ctx, func(ctx context.Context) (recognized bool, err error) {
			n.recognized, recognized, err = o.Store.Recognize(ctx)
			return recognized, err
		})
		if n.store = o.Store; recognized || err != nil {
			return err
		}
	}
	return errUnknownEngine
}

// unlock asks for credentials until the engine accepts some.
func (n *survey) unlock(ctx context.Context) error {
	const tries = 3
	if !n.talk.interactive() {
		if len(n.variables) > 0 {
			return fmt.Errorf("%s does not accept the credentials in %s: correct them, and run it again",
				n.displayName(), strings.Join(n.variables, " and "))
		}
		return fmt.Errorf("%s wants credentials: %s, and run it again", n.displayName(), toExport(n.engine.Kind))
	}
	for range tries {
		if err := n.prompt(ctx); err != nil {
			return err
		}
		if err := n.recognize(ctx); err != nil || !n.recognized.Locked {
			return err
		}
		n.talk.say("%s does not accept these.", n.displayName())
	}
	return fmt.Errorf("%s accepts none of these credentials: %s, or ask its operator", n.displayName(), toExport(n.engine.Kind))
}

// displayName returns the engine's name for messages.
func (n *survey) displayName() string { return cmp.Or(n.recognized.Name, "the engine") }

// toExport says which variables to set for a kind of engine.
func toExport(name string) string {
	if kind.Of(name).KeysOnly {
		return "export " + keyVariable
	}
	return "export " + userVariable + " and " + passwordVariable + ", or " + keyVariable
}

// prompt asks for credentials.
func (n *survey) prompt(ctx context.Context) (err error) {
	n.typed = true
	const notWritten = "They are for this survey, and are not written."
	user, question := "", n.displayName()+" wants an API key. "+notWritten+"\nKey (hidden): "
	if !kind.Of(n.engine.Kind).KeysOnly {
		if user, err = n.talk.ask(ctx, n.displayName()+" wants credentials. "+notWritten+"\nUser name (empty: an API key): "); err != nil {
			return err
		}
		question = "API key (hidden): "
	}
	if user == "" {
		key, err := n.talk.secret(ctx, question)
		n.with(config.Credentials{APIKey: config.SecretOf(key)}, keyVariable)
		return err
	}
	password, err := n.talk.secret(ctx, "Password (hidden): ")
	n.with(config.Credentials{Username: config.SecretOf(user), Password: config.SecretOf(password)}, userVariable, passwordVariable)
	return err
}

// shownCertificates returns the certificates of the server at an address, nil if there are none. It sends no request.
func shownCertificates(ctx context.Context, u *url.URL) []*x509.Certificate {
	ctx, cancel := context.WithTimeout(ctx, server.ProbeTimeout)
	defer cancel()
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "443")
	}
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}} // only to read the certificates
	connection, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil
	}
	defer func() { _ = connection.Close() }() // nothing was sent
	return connection.(*tls.Conn).ConnectionState().PeerCertificates
}

// trust shows the user a certificate of an unknown authority, and saves it if the user says that it is the engine's.
func (n *survey) trust(ctx context.Context, u *url.URL) error {
	chain := shownCertificates(ctx, u)
	if len(chain) == 0 {
		return fmt.Errorf("%s shows no certificate", u)
	}
	last := chain[len(chain)-1]
	sum := sha256.Sum256(last.Raw)
	n.talk.say("The certificate of %s is signed by no authority that this machine knows:", u)
	n.talk.say("  subject  %s\n  issuer   %s\n  until    %s\n  SHA-256  %X",
		last.Subject, last.Issuer, last.NotAfter.UTC().Format(time.DateOnly), sum)
	answer, err := n.talk.ask(ctx, "Compare the last line with what the engine's operator says. Trust it from now on? [y/N] ")
	if err != nil {
		return err
	}
	if !strings.EqualFold(answer, "y") && !strings.EqualFold(answer, "yes") {
		return errors.New("the certificate is not trusted: give that of its authority with --ca-file FILE")
	}
	if n.engine.TLS.CAFile, err = saveCertificate(last, filepath.Dir(n.file)); err != nil {
		return fmt.Errorf("save the certificate: %w: give it with --ca-file FILE", err)
	}
	n.notes = append(n.notes, "the certificate is saved in "+n.engine.TLS.CAFile)
	return nil
}

// saveCertificate writes a certificate to a file in a folder, and returns the file. It keeps the certificates of other engines there.
func saveCertificate(c *x509.Certificate, folder string) (string, error) {
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	for _, name := range []string{"engine-ca.pem", fmt.Sprintf("engine-ca-%x.pem", sha256.Sum256(c.Raw))} {
		file, err := filepath.Abs(filepath.Join(folder, name))
		if err != nil {
			return "", err
		}
		if there, err := os.ReadFile(file); err == nil && !bytes.Equal(there, text) {
			continue
		}
		return file, os.WriteFile(file, text, 0o644)
	}
	return "", fmt.Errorf("files with its names exist in %s", folder)
}

// explain adds to an error of connecting what to do about it.
func (n *survey) explain(ctx context.Context, u *url.URL, err error) error {
	other := "name the engine's own address: " + n.command + " http://host:port"
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	op, network := errors.AsType[*net.OpError](err)
	switch {
	case ctx.Err() != nil:
		return terminal.ErrInterrupted
	case errors.Is(err, errUnknownEngine):
		var products []string
		for _, k := range kind.Engines() {
			products = append(products, k.Product)
		}
		return fmt.Errorf("the server at %s is not %s: %s", u, config.Either(products), other)
	case unknown:
		return fmt.Errorf("%s: this machine knows no authority that vouches for its certificate: "+
			"give that of the authority with --ca-file FILE (Elasticsearch keeps it in config/certs/http_ca.crt, OpenSearch in config/root-ca.pem), or try it out with --insecure", u)
	case network && op.Op == "dial" && !strings.Contains(err.Error(), "TLS"):
		return fmt.Errorf("no engine can be reached at %s: %w: start it, or %s (without any engine: sidecar demo)", u, err, other)
	case strings.Contains(err.Error(), "no answer within"):
		return fmt.Errorf("%s: %w: check whether it is overloaded, or %s", u, err, other)
	}
	return fmt.Errorf("%s: %w", u, err)
}
