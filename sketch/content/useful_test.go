package content_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/sketch/content"
)

// Two articles, as an editor's window would give them.
const (
	bridge = `<h1>The old bridge opens again</h1>
		<p>After four years of work the stone bridge below the mill is open again, and the first to cross it, at six in the morning, was
		a woman with a bicycle, two baskets and a dog.</p>
		<p>The town had closed it when a diver found that the second pier, which was built in 1784, stood on little more than sand.
		Repairs cost nine million, a third more than was planned, most of it for steel that no one sees.</p>
		<ul><li>Cars may cross in one direction only, towards the market.</li>
		<li>Lorries have to take the road by the station.</li></ul>
		<p>&ldquo;It looks as it did&rdquo;, said the <b>engineer</b>, &ldquo;and that, if you ask me, was the hard part.&rdquo;</p>`

	owls = `<h1>Owls return to the tower</h1>
		<p>A pair of barn owls has nested in the church tower for the first time since the bells were hung anew, and the sexton, who has
		counted four eggs, asks visitors to keep away from the upper stairs.</p>
		<p>Nobody knows where the birds came from. The forester believes in the quarry, where an owl was seen in spring, but
		quarrymen say that they have heard nothing, neither by day nor by night, for at least ten years.</p>
		<p>Until the young can fly, which should be in August, the bells will be silent on weekdays.</p>`
)

// What they say.
var (
	bridgeText = paragraphs(`The old bridge opens again

		After four years of work the stone bridge below the mill is open again, and the first to cross it, at six in the
		morning, was a woman with a bicycle, two baskets and a dog.

		The town had closed it when a diver found that the second pier, which was built in 1784, stood on little more than sand.
		Repairs cost nine million, a third more than was planned, most of it for steel that no one sees.

		Cars may cross in one direction only, towards the market.

		Lorries have to take the road by the station.

		“It looks as it did”, said the engineer, “and that, if you ask me, was the hard part.”`)
	owlsText = paragraphs(`Owls return to the tower

		A pair of barn owls has nested in the church tower for the first time since the bells were hung anew, and the sexton,
		who has counted four eggs, asks visitors to keep away from the upper stairs.

		Nobody knows where the birds came from. The forester believes in the quarry, where an owl was seen in spring, but
		quarrymen say that they have heard nothing, neither by day nor by night, for at least ten years.

		Until the young can fly, which should be in August, the bells will be silent on weekdays.`)
)

// paragraphs joins the lines of each paragraph, and puts each paragraph on one line.
func paragraphs(text string) string {
	var list []string
	for p := range strings.SplitSeq(text, "\n\n") {
		list = append(list, strings.Join(strings.Fields(p), " "))
	}
	return strings.Join(list, "\n")
}

// links makes a list of links as menus and footers have them.
func links(words string) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(words) {
		fmt.Fprintf(&b, `<li><a href="/%s">%[1]s</a></li>`, word)
	}
	return "<ul>" + b.String() + "</ul>"
}

// gazette is a site in the markup of today, herald one in that of 2005, with tables and without end tags.
func gazette(title, article string) string {
	return `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>` + title + ` | The Gazette</title>
		<script type="application/ld+json">{"@type": "NewsArticle", "headline": "x"}</script><style>nav { color: red }</style></head>
		<body class="page"><header class="site-header"><a href="/">The Gazette</a><nav class="menu">` +
		links("Home News Sport Culture Weather Jobs Cars Houses Letters Archive Subscribe") + `</nav></header>
		<div class="cookie-banner" role="dialog" aria-modal="true"><p>We value your privacy. We and our 842 partners store and read
		cookies, measure, select and share. You may agree, or go through eleven pages of switches.</p><button>Agree</button></div>
		<main><article class="article-body">` + article + `</article>
		<aside class="sidebar related"><h3>Read more</h3>` + links("Flood Harvest Mayor Market School Station") + `</aside></main>
		<footer class="site-footer"><p>© The Gazette, all rights reserved, printed daily but on Sundays, since 1871.</p>` +
		links("Imprint Privacy Terms Contact Advertise") + `</footer><script>track("<p>x</p>")</script></body></html>`
}

func herald(title, article string) string {
	return `<html><head><title>Weekly Herald: ` + title + `</title></head><body bgcolor=white>
		<table width=100%><tr><td id=nav class=navigation>` + links("Front Local World Farming Fishing Chess Notices Deaths Tides") +
		`<td id=content class=content><div class=story>` + article + `</div>
		<td class=sidebar><div class=ad-banner>Buy one plough, get one free</div>` + links("Almanac Puzzles Recipes") +
		`</table><div class=footer><font size=1>Weekly Herald, at the harbour. No part may be reprinted, read aloud or sung.</font>` +
		links("About Write Help") + `</div></body></html>`
}

func TestUsefulLeavesBoilerplateOut(t *testing.T) {
	sites := map[string]func(title, article string) string{"gazette": gazette, "herald": herald}
	for name, site := range sites {
		expect.Same(t, bridgeText, content.Useful(site("The old bridge", bridge)), "the bridge at %s", name)
		expect.Same(t, owlsText, content.Useful(site("Owls", owls)), "the owls at %s", name)
		if all := content.Text(site("Owls", owls)); !strings.Contains(all, owlsText) || len(all) < len(owlsText)+100 {
			t.Errorf("the text of %s lacks the article or has no boilerplate:\n%s", name, all)
		}
	}
}

func TestUsefulFallsBackToText(t *testing.T) {
	start := func(n int, tag string) string { return strings.Repeat(tag, n) }
	for _, c := range []struct{ name, page string }{
		{"empty", ""},
		{"plain", "one two"},
		{"entities alone", "AT&amp;T"},
		{"menu alone", "<nav class=menu>" + links("Home News Sport") + "</nav>"},
		{"little among much", "<nav class=menu>" + strings.Repeat(links("Home News Sport"), 50) + "</nav><p>One, two, three.</p>"},
		{"an article in a much longer menu", "<nav class=menu>" + strings.Repeat(links("Home News Sport"), 800) + "</nav>" + bridge},
		{"too much in attributes", "<nav class=menu>one</nav>" + bridge + "<p class='" + start(5<<20, "x") + "'>x"},
		{"too deep", "<nav class=menu>one</nav>" + start(128, "<div>") + bridge},
		{"too many nodes", "<nav class=menu>one</nav>" + bridge + start(1<<17, "<br>")},
		{"too much text at depth", "<nav class=menu>one</nav>" + start(100, "<div>") + bridge + start(1<<20, "x ")},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect.Same(t, content.Text(c.page), content.Useful(c.page), "")
		})
	}
}

func TestUsefulOfMarkupWithErrors(t *testing.T) {
	menu := "<nav class=menu>" + links("Home News Sport") + "</nav>"
	for name, page := range map[string]string{
		"no end tags":      menu + "<div>" + strings.NewReplacer("</p>", "", "</li>", "").Replace(bridge),
		"end tags of none": menu + "</div></b></table></td>" + "<div></i></section>" + bridge + "</div></div></div>",
		"crossing":         menu + "<div><b><i>" + bridge + "</b></i></div>",
		"upper case":       strings.ToUpper(menu) + "<DIV>" + strings.NewReplacer("<p>", "<P>", "</p>", "</P>").Replace(bridge),
		"twice a class":    menu + "<div class=article class=sidebar>" + bridge + "</div>",
	} {
		expect.Same(t, bridgeText, content.Useful(page), "%s", name)
	}
}
