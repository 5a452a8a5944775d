// The page's requests to the command that serves it.

import { busy, byId } from './dom.js'
import { exchange } from './exchange.js'

const storageKey = 'neardup.key'

// The key comes in the address. It is moved into the tab's session, so that a reload still works.
const key = (() => {
  const hash = new URLSearchParams(location.hash.slice(1))
  const given = hash.get('key')
  try {
    if (given) sessionStorage.setItem(storageKey, given)
    else return sessionStorage.getItem(storageKey)
  } catch {
    return given // the browser stores nothing
  }
  hash.delete('key')
  history.replaceState(null, '', '#' + hash)
  return given
})()

const authorization = { Authorization: 'Bearer ' + key }

// call sends a request to the command: GET, or POST if there is a body. It returns the answer, or throws an Error for people.
export async function call (what, body) {
  const { reply, answer } = await exchange('/api/' + what, body, authorization)
  if (!reply) throw new Error('The command does not answer. Is it still running?')
  if (answer === undefined) throw new Error(`The answer (status ${reply.status}) is not JSON.`)
  if (!reply.ok) throw new Error(answer.error)
  return answer
}

// save downloads a file of the API.
export async function save (what, name) {
  const reply = await fetch('/api/' + what, { headers: authorization })
  if (!reply.ok) throw new Error((await reply.json()).error)
  const link = document.createElement('a')
  link.href = URL.createObjectURL(await reply.blob())
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
}

let running = 0
export const working = () => running > 0

// work runs an action of the user. Meanwhile the page is marked as busy. An error is shown.
export async function work (action) {
  running++
  busy(true)
  byId('problem').hidden = true
  try {
    await action()
  } catch (error) {
    byId('problem').textContent = error.message[0].toUpperCase() + error.message.slice(1)
    byId('problem').hidden = false
  }
  if (--running === 0) busy(false)
}
