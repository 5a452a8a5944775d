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

// The environment variables that hold credentials, as a configuration that init writes names them.
const (
	userVariable     = "ENGINE_USERNAME"
	passwordVariable = "ENGINE_PASSWORD"
	keyVariable      = "ENGINE_API_KEY"
)

// survey is what init finds out about an engine, and what it chooses.
type survey struct {
	options *InitOptions
	talk    *talk
	file    string // where the configuration goes

	engine config.Engine // as far as it is known
	admin  string
	// variables are those that the configuration takes credentials from, nil where the engine wants none.
	variables  []string
	recognized adapters.Recognition
	store      adapters.EngineStore

	candidates []*candidate // what to make rules of
	skipped    []*candidate // what not, each with the reason
	notes      []string
	// typed says that the credentials were typed, and are in no environment.
	typed bool
}

// errUnknownEngine says that nothing we know answers.
var errUnknownEngine = errors.New("no engine of ours")

// connect finds out what the engine at an address is, and logs in where it wants that.
func (n *survey) connect(ctx context.Context, at string) error {
	u, err := engineURL(at)
	if err != nil {
		return err
	}
	n.engine = config.DefaultEngine()
	n.engine.Name, n.engine.URLs = "engine", []string{u.String()}
	n.engine.TLS = n.options.trust()
	err = n.recognize(ctx) // before any secret goes there: it may go in clear, and to who knows whom
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
		return explain(ctx, u, err)
	}
	if n.engine.Kind = kind.OfProduct(n.recognized.Name).Name; n.engine.Kind == "" {
		return explain(ctx, u, errUnknownEngine)
	}
	n.engine.Name = n.engine.Kind
	return nil
}

// trust returns what the command line says of certificates, with files that are found from anywhere.
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
		return nil, fmt.Errorf("the URL holds a user name, and what stands in a command line is seen by others: "+
			"write %s://%s, and export %s and %s", u.Scheme, u.Host, userVariable, passwordVariable)
	default:
		return u, config.CheckURL(text)
	}
}

// logIn shows the engine the credentials of the environment, and asks for others where it wants some.
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
	if n.recognized.Locked {
		return n.unlock(ctx)
	}
	return nil
}

func (n *survey) with(c config.Credentials, variables ...string) {
	n.engine.Credentials, n.variables = c, variables
}

// recognize asks what answers at the engine's address.
func (n *survey) recognize(ctx context.Context) error {
	for _, k := range kind.Engines() {
		n.engine.Kind = k.Name
		o, err := upstream.Open(&n.engine)
		if err != nil {
			return err
		}
		ours, err := within(ctx, func(ctx context.Context) (ours bool, err error) {
			n.recognized, ours, err = o.Store.Recognize(ctx)
			return ours, err
		})
		if n.store = o.Store; ours || err != nil {
			return err
		}
	}
	return errUnknownEngine
}

// unlock asks for credentials until the engine takes some.
func (n *survey) unlock(ctx context.Context) error {
	const tries = 3
	if !n.talk.interactive() {
		if len(n.variables) > 0 {
			return fmt.Errorf("%s does not take the credentials in %s: correct them, and run it again",
				n.called(), strings.Join(n.variables, " and "))
		}
		return fmt.Errorf("%s wants credentials: %s, and run it again", n.called(), toExport(n.engine.Kind))
	}
	for range tries {
		if err := n.prompt(ctx); err != nil {
			return err
		}
		if err := n.recognize(ctx); err != nil || !n.recognized.Locked {
			return err
		}
		n.talk.say("%s does not take these.", n.called())
	}
	return fmt.Errorf("%s takes none of these credentials: %s, or ask who runs it", n.called(), toExport(n.engine.Kind))
}

// called returns what to call the engine.
func (n *survey) called() string { return cmp.Or(n.recognized.Name, "the engine") }

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
	const asIs = "They are for this survey, and are not written."
	user, question := "", n.called()+" wants an API key. "+asIs+"\nKey (it is not shown): "
	if !kind.Of(n.engine.Kind).KeysOnly {
		if user, err = n.talk.ask(ctx, n.called()+" wants to know who asks. "+asIs+"\nUser name (empty: an API key): "); err != nil {
			return err
		}
		question = "API key (it is not shown): "
	}
	if user == "" {
		key, err := n.talk.secret(ctx, question)
		n.with(config.Credentials{APIKey: config.SecretOf(key)}, keyVariable)
		return err
	}
	password, err := n.talk.secret(ctx, "Password (it is not shown): ")
	n.with(config.Credentials{Username: config.SecretOf(user), Password: config.SecretOf(password)}, userVariable, passwordVariable)
	return err
}

// shownCertificates returns the certificates that are shown at an address, nil where none are. Nothing is sent there.
func shownCertificates(ctx context.Context, u *url.URL) []*x509.Certificate {
	ctx, cancel := context.WithTimeout(ctx, server.ProbeTimeout)
	defer cancel()
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "443")
	}
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}} // only to see what is shown
	connection, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return nil
	}
	defer func() { _ = connection.Close() }() // there is nothing in it
	return connection.(*tls.Conn).ConnectionState().PeerCertificates
}

// trust shows a certificate that nobody vouches for, and keeps it where a person says that it is the engine's.
func (n *survey) trust(ctx context.Context, u *url.URL) error {
	chain := shownCertificates(ctx, u)
	if len(chain) == 0 {
		return fmt.Errorf("%s shows no certificate", u)
	}
	last := chain[len(chain)-1]
	sum := sha256.Sum256(last.Raw)
	n.talk.say("This machine knows no authority that vouches for the certificate of %s:", u)
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
		return fmt.Errorf("keep the certificate: %w: give it with --ca-file FILE", err)
	}
	n.notes = append(n.notes, "the certificate is kept in "+n.engine.TLS.CAFile)
	return nil
}

// saveCertificate puts a certificate into a folder, and returns in which file. Another engine's, which a configuration may name, stays.
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
	return "", fmt.Errorf("other files are in its place in %s", folder)
}

// explain returns why an engine could not be asked, and what to do about it.
func explain(ctx context.Context, u *url.URL, err error) error {
	const other = "name the engine's own address: sidecar init http://host:port"
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
		return fmt.Errorf("what answers at %s is not %s: %s", u, config.Either(products), other)
	case unknown:
		return fmt.Errorf("%s: this machine knows no authority that vouches for its certificate: "+
			"give that of the authority with --ca-file FILE (Elasticsearch keeps it in config/certs/http_ca.crt, OpenSearch in config/root-ca.pem), or try it out with --insecure", u)
	case network && op.Op == "dial" && !strings.Contains(err.Error(), "TLS"):
		return fmt.Errorf("no engine can be reached at %s: %w: start it, or %s (without any engine: sidecar demo)", u, err, other)
	case strings.Contains(err.Error(), "no answer within"):
		return fmt.Errorf("%s: %w: see whether it is overloaded, or %s", u, err, other)
	}
	return fmt.Errorf("%s: %w", u, err)
}
