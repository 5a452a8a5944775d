// Equal words between the differences of two texts: a long run of them is left out until the reader asks for it.

import { make } from './dom.js'

export const around = 12 // how many equal words are shown next to a difference

// elided returns a button for each text, which stands for n equal words. A click on one of them shows all the texts.
export function elided (n, texts) {
  const show = ({ currentTarget }) =>
    buttons.forEach((button, i) => {
      const shown = make('span', { tabindex: '-1' }, texts[i])
      button.replaceWith(shown)
      if (button === currentTarget) shown.focus()
    })
  const attributes = { type: 'button', class: 'plain elided', 'aria-label': `Show ${n} equal words`, click: show }
  const buttons = texts.map(() => make('button', attributes, `… ${n} equal words …`))
  return buttons
}
